package replicas

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"
)

// streamMark is the order of the GET streams that a client opens on several replicas. The
// newest stays open.
type streamMark struct {
	time    int64  // in microseconds; later than that of every stream that the replica knew of
	replica string // decides between two streams of the same time
}

func (m streamMark) isAfter(other streamMark) bool {
	return cmp.Or(cmp.Compare(m.time, other.time), strings.Compare(m.replica, other.replica)) > 0
}

// announceStream notifies the other replicas in the background, until ctx ends, that the client
// has its GET stream here. Their copies have subscriptions, so they must not expire meanwhile.
func (c *sessionCopy) announceStream(ctx context.Context) {
	mark, ok := c.markStream()
	if !ok || !c.replicas.isShared {
		return
	}
	c.replicas.tasks.Go(func() {
		tick := time.NewTicker(max(c.replicas.front.Limits.SessionIdle/3, time.Second))
		defer tick.Stop()
		for {
			c.postStream(mark)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	})
}

// markStream gives the GET stream here the newest mark. It returns false if there is none.
func (c *sessionCopy) markStream() (streamMark, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.session.Stream() // under mu, so that of two new streams the one that stays open is marked
	if s == nil {
		return streamMark{}, false
	}
	c.newest = streamMark{max(time.Now().UnixMicro(), c.newest.time+1), c.replicas.id}
	c.stream = s
	return c.newest, true
}

// moveStream ends the GET stream here if the client has opened the one of the note later. If
// not, the clock of the sender may be late: moveStream notifies it, so that one stream stays.
func (c *sessionCopy) moveStream(m note) {
	at, _ := strconv.ParseInt(string(m.payload), 10, 64)
	c.session.Use()() // so that it does not expire
	mark := streamMark{at, m.from}
	c.mu.Lock()
	own, here := c.newest, c.stream
	isLater := mark.isAfter(own)
	if isLater {
		c.newest, c.stream = mark, nil
	}
	c.mu.Unlock()
	switch {
	case here == nil:
	case isLater:
		c.session.EndStream(here)
	case c.session.Stream() == here: // it has not ended
		c.postStream(own)
	}
}

// postStream notifies the other replicas of the GET stream here.
func (c *sessionCopy) postStream(mark streamMark) {
	c.post(noteStream, strconv.AppendInt(nil, mark.time, 10))
}

package link

import (
	"context"
	"errors"
	"io"
	"runtime"

	"mcpx/internal/rpc"
)

// Intake bounds the memory for messages that one upstream is sending at the same
// time, over all its upstream sessions and streams. Each size in NewIntake has a few slots. A
// message that outgrows one size waits for a slot of the next, and the upstream waits
// with it. A message that holds a slot waits only for a larger one, and the largest never
// waits, so waits cannot form a cycle.
type Intake struct {
	sizes []intakeSize
}

// intakeSize limits how many messages of up to this size are read at once.
type intakeSize struct {
	bytes int
	slots chan struct{} // one element for each slot in use
}

// Messages of up to smallMessage bytes need no slot.
const smallMessage = 64 << 10

// NewIntake returns an Intake for messages of at most limit bytes.
func NewIntake(limit int) *Intake {
	in := &Intake{}
	for _, size := range []struct{ bytes, slots int }{{1 << 20, 32}, {8 << 20, 4}, {limit, 1}} {
		in.sizes = append(in.sizes, intakeSize{size.bytes, make(chan struct{}, size.slots)})
	}
	return in
}

// reserve returns a reservation for the messages of one stream, which come one
// after the other. ctx ends every wait.
func (in *Intake) reserve(ctx context.Context) *reservation {
	return &reservation{ctx: ctx, intake: in}
}

// reservation holds the slots of the message being read. It is used by one
// goroutine.
type reservation struct {
	ctx    context.Context
	intake *Intake
	held   int // slots held, counted from the smallest size
}

// grow waits until the message may have that many bytes. It fails with the cause of the
// context.
func (r *reservation) grow(size int) error {
	if size <= smallMessage {
		return nil
	}
	for i, s := range r.intake.sizes {
		if i > 0 && size <= r.intake.sizes[i-1].bytes {
			return nil
		}
		if i < r.held {
			continue
		}
		select {
		case s.slots <- struct{}{}:
			r.held++
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
	}
	return nil
}

// pass returns the room of the message, which then belongs to its receiver; nil if it has no
// slots.
func (r *reservation) pass() *rpc.Room {
	if r.held == 0 {
		return nil
	}
	passed := &reservation{intake: r.intake, held: r.held}
	r.held = 0
	return rpc.NewRoom(passed.release)
}

// release frees all slots, because the message was dropped or its receiver is done with it.
func (r *reservation) release() {
	for ; r.held > 0; r.held-- {
		<-r.intake.sizes[r.held-1].slots
	}
}

// collect frees the memory of a message that was too long, before the next one of its size is
// read. Otherwise such messages would use several times their limit until the garbage
// collector runs by itself.
func (r *reservation) collect() {
	if r.held == len(r.intake.sizes) {
		runtime.GC()
	}
}

// readAll reads everything into one buffer, at most limit+1 bytes. size is the expected
// size, -1 if it is unknown. The buffer of a long message may be one that was used before
// (BenchmarkRemoteLarge).
func (r *reservation) readAll(from io.Reader, limit, size int) ([]byte, error) {
	size += rpc.EnvelopeBytes
	b := make([]byte, 0, min(max(size, 512), smallMessage))
	for len(b) <= limit {
		if len(b) == cap(b) {
			next := min(max(2*cap(b), size), limit+1)
			if err := r.grow(min(next, limit)); err != nil {
				return nil, err
			}
			b = append(rpc.Buffer(next), b...)
		}
		n, err := from.Read(b[len(b):min(cap(b), limit+1)])
		b = b[:len(b)+n]
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
	return b, nil
}

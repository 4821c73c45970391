package stdio

import (
	"sync"

	"mcpx/internal/unread"
)

// overflow holds the responses that the writer has no room for, in their order. All except
// the first are in files. The methods may be called concurrently.
type overflow struct {
	account *unread.Account
	write   func(response []byte) // may wait
	written func()                // called for each response that was written

	mu    sync.Mutex
	queue []unread.Message // the first is being written
}

// isEmpty reports whether no response waits.
func (o *overflow) isEmpty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.queue) == 0
}

// add adds a response. It does not wait for the client.
func (o *overflow) add(response []byte) {
	m := o.account.Keep(response)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.queue = append(o.queue, m)
	if len(o.queue) == 1 {
		go o.run()
	}
}

// run writes the responses until there are none.
func (o *overflow) run() {
	for m := o.first(); m != nil; m = o.next() {
		o.write(m.Text())
		m.Release()
		o.written()
	}
}

func (o *overflow) first() *unread.Message {
	o.mu.Lock()
	defer o.mu.Unlock()
	return new(o.queue[0])
}

// next removes the first response and returns the one after it, nil if there is none.
func (o *overflow) next() *unread.Message {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.queue = o.queue[1:]; len(o.queue) == 0 {
		o.queue = nil
		return nil
	}
	return new(o.queue[0])
}

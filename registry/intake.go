package registry

import (
	"context"
	"errors"
	"io"
)

// intake bounds the memory for messages that one upstream is sending at the same
// time, over all its sessions and streams. A message that grows beyond a size of
// the table below needs one of the places there, and waits for it: the upstream
// then has to wait, too. Whoever has a place waits only for one of a larger size,
// and nobody who has one of the largest waits, so there is no deadlock.
type intake struct {
	sizes []intakeSize
}

// intakeSize is the places for messages of up to that many bytes.
type intakeSize struct {
	bytes  int
	places chan struct{} // holds one for each message that has a place
}

// smallMessage is what needs no place.
const smallMessage = 64 << 10

// newIntake returns an intake for messages of at most limit bytes.
func newIntake(limit int) *intake {
	in := &intake{}
	for _, size := range []struct{ bytes, places int }{{1 << 20, 32}, {8 << 20, 4}, {limit, 1}} {
		in.sizes = append(in.sizes, intakeSize{size.bytes, make(chan struct{}, size.places)})
	}
	return in
}

// reserve returns a reservation for the messages of one stream, which come one
// after the other. ctx ends every wait.
func (in *intake) reserve(ctx context.Context) *reservation {
	return &reservation{ctx: ctx, intake: in}
}

// reservation is what the message that is being read has of the intake. It is used
// by one goroutine.
type reservation struct {
	ctx    context.Context
	intake *intake
	have   int // places of the first sizes in the table
}

// grow waits until the message may have that many bytes; 0 releases what it has. It
// fails with the cause of the context.
func (r *reservation) grow(size int) error {
	if size == 0 {
		r.release()
	}
	if size <= smallMessage {
		return nil
	}
	for i, s := range r.intake.sizes {
		if i > 0 && size <= r.intake.sizes[i-1].bytes {
			return nil
		}
		if i < r.have {
			continue
		}
		select {
		case s.places <- struct{}{}:
			r.have++
		case <-r.ctx.Done():
			return context.Cause(r.ctx)
		}
	}
	return nil
}

// release gives everything back: the message was handed on, or given up.
func (r *reservation) release() {
	for ; r.have > 0; r.have-- {
		<-r.intake.sizes[r.have-1].places
	}
}

// readAll reads everything from r into one buffer, at most limit bytes and one more.
// size is about how much that is, -1 if it is not known.
func (r *reservation) readAll(from io.Reader, limit, size int) ([]byte, error) {
	b := make([]byte, 0, min(max(size+1, 512), smallMessage))
	for len(b) <= limit {
		if len(b) == cap(b) {
			next := min(max(2*cap(b), min(size+1, limit+1)), limit+1)
			if err := r.grow(min(next, limit)); err != nil {
				return nil, err
			}
			b = append(make([]byte, 0, next), b...)
		}
		n, err := from.Read(b[len(b):cap(b)])
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

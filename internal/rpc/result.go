package rpc

import "sync"

// Line is the text of a message, and the room that its reader holds for it. The reader of a
// long message waits until there is room, so that the messages of a peer have a limit together.
type Line struct {
	Text []byte
	Room *Room // nil: none is held
}

// Room is the room that the reader of a message holds. The nil Room is none.
type Room struct {
	once sync.Once
	free func()
}

// NewRoom returns a Room that free gives back.
func NewRoom(free func()) *Room { return &Room{free: free} }

// Free gives the room back. Later calls do nothing.
func (r *Room) Free() {
	if r != nil {
		r.once.Do(r.free)
	}
}

// Result is the result of a call. It owns the message that it came in. The zero Result is
// that of a call that failed.
type Result struct {
	JSON []byte
	line Line
}

// NewResult returns a result that came in no message.
func NewResult(json []byte) Result { return Result{JSON: json} }

// With returns the Result with another JSON value.
func (r Result) With(json []byte) Result { return Result{json, r.line} }

// Free gives back the room of the message: the result is short, or somebody else counts its
// memory. Until then the peer may have to wait before it can send more long messages.
func (r Result) Free() { r.line.Room.Free() }

// Take frees the room and returns the result.
func (r Result) Take() []byte {
	r.Free()
	return r.JSON
}

// Response frees the room and returns the response to the request with that ID. It is built in
// the memory of the message if that suffices, so the Result must not be used any more.
func (r Result) Response(id []byte) []byte {
	r.Free()
	return ResponseIn(r.line.Text, id, r.JSON)
}

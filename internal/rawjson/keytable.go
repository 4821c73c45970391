package rawjson

import (
	"hash/maphash"
	"math/bits"
)

// keyTable finds the members of a large object by their keys. It is a hash table with open
// addressing: it has the spans of the members, each at the place that the hash of its key names,
// or at the next free one. A map would need five times the memory.
type keyTable []uint32

// tableBytes is the most memory that a table needs for one member.
const tableBytes = 4 * 3

var tableSeed = maphash.MakeSeed()

// newKeyTable returns a table with room for a number of members.
func newKeyTable(members int) keyTable {
	return make(keyTable, 1<<bits.Len(uint(members+members/2)))
}

// add adds a member, in place of one with the same key; isTaken reports whether there was
// one.
func (t keyTable) add(member Node) (isTaken bool) {
	place, isTaken := t.place(member.tree, member.key())
	t[place] = member.i
	return isTaken
}

// find returns the member with a key.
func (t keyTable) find(tree *Tree, key string) Node {
	if place, ok := t.place(tree, key); ok {
		return Node{tree, t[place]}
	}
	return Node{}
}

// place returns where the member with a key is, or where it belongs. A span is never 0,
// since that is the root.
func (t keyTable) place(tree *Tree, key string) (place uint64, ok bool) {
	mask := uint64(len(t) - 1)
	for place = maphash.String(tableSeed, key) & mask; t[place] != 0; place = (place + 1) & mask {
		if (Node{tree, t[place]}).hasKey(key) {
			return place, true
		}
	}
	return place, false
}

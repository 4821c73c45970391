package selection

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"hash"
	"iter"
	"slices"
	"strconv"

	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
)

// Memory that groups and ordered rows need, about.
const (
	groupBytes     = 160
	aggregateBytes = 100
	largeSumBytes  = 1 << 10
	sortedBytes    = 100
	captureBytes   = 500 // for a row that is a tree of its own
)

// Limits of the memory for the groups or the ordered rows of a value.
const (
	leastMemory   = 64 << 10
	mostMemory    = 64 << 20
	memoryPerByte = 32
)

// Memory returns the most bytes that a selection from a value of some bytes needs, besides its
// text.
func (q *Query) Memory(bytes int) int {
	if len(q.by) == 0 && len(q.order) == 0 {
		return 0
	}
	return min(max(leastMemory, memoryPerByte*bytes), mostMemory)
}

// errMemory means that a selection has too many groups or rows to order.
var errMemory = errors.New("too many rows to group or order; use where, or limit with order by")

// room is the memory that a selection may still use.
type room struct {
	left       int
	isCaptures bool // each row is a tree of its own
}

// take takes some bytes, and those of a row that is kept. It fails if there is no room.
func (r *room) take(bytes int) error {
	if r.isCaptures {
		bytes += captureBytes
	}
	if r.left -= bytes; r.left < 0 {
		return errMemory
	}
	return nil
}

// noLimit is a limit for values that are as long as they are.
const noLimit = 1 << 40

// grouping collects the groups of rows with the same values.
type grouping struct {
	*Selection
	groups map[[sha256.Size]byte]*group
	order  []*group
	hash   hash.Hash
	buffer []byte
}

// group is a group of rows.
type group struct {
	first      rawjson.Node // the first row
	aggregates []aggregate  // for each column; those of fields are empty
}

func newGrouping(s *Selection) *grouping {
	g := &grouping{Selection: s, groups: map[[sha256.Size]byte]*group{}, hash: sha256.New()}
	if len(s.query.by) == 0 { // all rows are one group, even if there are none
		g.insert(g.key(rawjson.Node{}), rawjson.Node{})
	}
	return g
}

// add adds a row to its group.
func (g *grouping) add(row rawjson.Node) error {
	key := g.key(row)
	to := g.groups[key]
	if to == nil {
		if err := g.room.take(groupBytes + aggregateBytes*len(g.query.columns)); err != nil {
			return err
		}
		to = g.insert(key, row)
	}
	for i, c := range g.query.columns {
		if c.function == "" {
			continue
		}
		a := &to.aggregates[i]
		wasLarge := a.sum.large != nil
		if a.add(g.Watch, c, row); a.sum.large != nil && !wasLarge && len(g.query.by) > 0 {
			if err := g.room.take(largeSumBytes); err != nil {
				return err
			}
		}
	}
	return nil
}

func (g *grouping) insert(key [sha256.Size]byte, row rawjson.Node) *group {
	to := &group{row, make([]aggregate, len(g.query.columns))}
	g.groups[key] = to
	g.order = append(g.order, to)
	return to
}

// key returns a hash of the values of a row after "by", so that long values need no memory.
func (g *grouping) key(row rawjson.Node) (key [sha256.Size]byte) {
	g.hash.Reset()
	for _, path := range g.query.by {
		g.buffer = g.appendValue(g.buffer[:0], row, path, noLimit)
		value := g.buffer
		if text, ok := rawjson.String(value); ok { // the same text can be escaped differently
			value = append([]byte{'"'}, text...)
		}
		var length [8]byte
		binary.BigEndian.PutUint64(length[:], uint64(len(value)))
		_, _ = g.hash.Write(length[:])
		_, _ = g.hash.Write(value)
	}
	g.hash.Sum(key[:0])
	return key
}

// rows returns a row for each group: an array with the values of its columns.
func (g *grouping) rows() iter.Seq[rawjson.Node] {
	return func(yield func(rawjson.Node) bool) {
		for _, of := range g.order {
			row := []byte("[")
			for i, c := range g.query.columns {
				if i > 0 {
					row = append(row, ',')
				}
				if c.function == "" {
					row = g.appendValue(row, of.first, c.path, noLimit)
				} else {
					row = of.aggregates[i].append(row, c.function)
				}
			}
			n, err := rawjson.Parse(append(row, ']'))
			if err != nil || !yield(n) {
				return
			}
		}
	}
}

// selection returns the selection of the groups.
func (g *grouping) selection() (*Selection, error) {
	s := *g.Selection
	s.collect = nil
	s.all, s.rows = g.rows(), g.Selection
	s.total, s.matched, s.unit, s.isOne = 0, 0, "group", len(g.query.by) == 0
	s.query = Query{limit: g.query.limit, order: slices.Clone(g.query.order)}
	for i, c := range g.query.columns {
		s.query.columns = append(s.query.columns, column{path: Path{{name: strconv.Itoa(i)}}, as: c.name()})
		s.noteLeft(g, i)
	}
	for i, key := range s.query.order {
		s.query.order[i].path = s.query.columns[key.column].path
	}
	if len(s.query.columns) > 0 && slices.ContainsFunc(g.query.by, func(p Path) bool { return slices.ContainsFunc(s.unknown, p.equal) }) {
		s.query.columns = nil // groups by a field that does not exist say nothing
		return &s, nil
	}
	s.dropUnknown(g.query)
	s.room.isCaptures = true
	return &s, s.collectRows()
}

// noteLeft notes the rows that a function leaves out.
func (s *Selection) noteLeft(g *grouping, i int) {
	c, left := g.query.columns[i], 0
	for _, of := range g.order {
		left += of.aggregates[i].leftOut()
	}
	if left == 0 || slices.ContainsFunc(s.unknown, c.path.equal) {
		return
	}
	kind := "a number"
	if c.function == "min" || c.function == "max" {
		kind = "a comparable value"
	}
	s.notes = append(s.notes, c.function+" "+shown(c.path.String())+" leaves out "+plain.Count(left, "row")+" without "+kind)
}

// dropUnknown removes the columns of groups whose fields do not exist.
func (s *Selection) dropUnknown(rows Query) {
	columns := s.query.columns
	s.query.columns = nil
	for i, c := range columns {
		if path := rows.columns[i].path; path == nil || !slices.ContainsFunc(s.unknown, path.equal) {
			s.query.columns = append(s.query.columns, c)
		}
	}
}

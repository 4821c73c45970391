package selection

import (
	"cmp"
	"container/heap"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/rawjson"
)

// sorter collects the rows of a selection in order. With a limit it keeps no more rows than
// that.
type sorter struct {
	*Selection
	rows []sortedRow // with a limit, a heap whose first row is the last one in order
	seen int
}

// sortedRow is a row with the values that it is ordered by.
type sortedRow struct {
	rawjson.Node
	number int // rows with the same values keep their order
	keys   []sortValue
}

// add adds a row.
func (s *sorter) add(row rawjson.Node) error {
	added := sortedRow{Node: row, number: s.seen}
	s.seen++
	for _, key := range s.query.order {
		found, _ := key.path.only(row)
		added.keys = append(added.keys, sortValueOf(found))
	}
	limit := s.query.limit
	switch {
	case limit == 0:
	case limit > 0 && len(s.rows) == limit:
		if s.compare(added, s.rows[0]) < 0 {
			s.rows[0] = added
			heap.Fix(s, 0)
		}
	default:
		if err := s.room.take(sortedBytes + 40*len(added.keys)); err != nil {
			return err
		}
		s.rows = append(s.rows, added)
		if limit > 0 {
			heap.Fix(s, len(s.rows)-1)
		}
	}
	return nil
}

// sorted returns the rows in order.
func (s *sorter) sorted() []sortedRow {
	slices.SortFunc(s.rows, s.compare)
	return s.rows
}

// compare compares two rows. Rows without a value come last, in both directions.
func (s *sorter) compare(a, b sortedRow) int {
	if s.IsOver() {
		return 0
	}
	for i, key := range s.query.order {
		x, y := a.keys[i], b.keys[i]
		order := x.compare(y)
		if key.isDescending && x.class != noValue && y.class != noValue {
			order = -order
		}
		if order != 0 {
			return order
		}
	}
	return cmp.Compare(a.number, b.number)
}

// The methods of heap.Interface.

func (s *sorter) Len() int           { return len(s.rows) }
func (s *sorter) Less(i, j int) bool { return s.compare(s.rows[i], s.rows[j]) > 0 }
func (s *sorter) Swap(i, j int)      { s.rows[i], s.rows[j] = s.rows[j], s.rows[i] }
func (s *sorter) Push(any)           {} // rows are added by add
func (s *sorter) Pop() any           { return nil }

// sortValue is a value that is compared with others: numbers come before texts.
type sortValue struct {
	class  int
	number float64
	text   string
}

// The classes of values, in their order.
const (
	aNumber = iota
	aText
	noValue // null, an object or an array
)

func sortValueOf(n rawjson.Node) sortValue {
	if text, ok := numberOf(n); ok {
		number, _ := strconv.ParseFloat(text, 64)
		return sortValue{aNumber, number, text}
	}
	switch n.Kind() {
	case '"', 't', 'f':
		return sortValue{class: aText, text: n.Text()}
	}
	return sortValue{class: noValue}
}

func (v sortValue) compare(other sortValue) int {
	switch order := cmp.Compare(v.class, other.class); {
	case order != 0 || v.class == noValue:
		return order
	case v.class == aText:
		return strings.Compare(v.text, other.text)
	case v.number != other.number:
		return cmp.Compare(v.number, other.number)
	}
	order, _ := compareNumbers(v.text, other.text)
	return order
}

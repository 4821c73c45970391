package selection

import (
	"slices"
)

// Query is a parsed select. It is immutable.
type Query struct {
	columns []column // returned for each row, or for each group of rows
	isAll   bool     // return all fields
	by      []Path   // rows with the same values are a group
	from    string   // an RE2 pattern: the rows are its captures in the lines of a text
	names   []string // of the captures
	where   test     // nil: all rows
	order   []sortKey
	limit   int // at most that many rows; -1: all

	Pattern string // the RE2 pattern of a select like /pattern/, which has nothing else
}

// column is a field of the rows, or a function of a field of all rows.
type column struct {
	function string // count, sum, min, max or avg; "" for a field
	path     Path   // nil for the number of rows
	as       string // the name; "" for the name as it is written
	isBare   bool   // count, which may also be a field
}

// name returns the name of the column in a selection.
func (c column) name() string {
	switch {
	case c.as != "":
		return c.as
	case c.function == "":
		return c.path.String()
	case c.path == nil:
		return c.function
	}
	return c.function + " " + c.path.String()
}

// sortKey is a path to order rows by, or the number of a column to order groups by.
type sortKey struct {
	path         Path // nil for a column
	column       int
	isDescending bool
}

// Captures returns the pattern whose captures are the rows, and their names. The pattern is
// empty if the rows are not captures.
func (q *Query) Captures() (pattern string, names []string) { return q.from, q.names }

// IsForText reports whether the query selects from any text, not only from JSON.
func (q *Query) IsForText() bool { return q.Pattern != "" || q.from != "" }

// isGrouped reports whether the query computes values of several rows.
func (q *Query) isGrouped() bool {
	return len(q.by) > 0 || slices.ContainsFunc(q.columns, func(c column) bool { return c.function != "" })
}

// check decides what a lone count means, and completes the columns. It fails if a column is
// neither a function nor one that the rows of a group share.
func (q *Query) check(p *parser) error {
	isField := len(q.by) == 0 && !slices.ContainsFunc(q.columns, func(c column) bool { return c.function != "" && !c.isBare }) &&
		slices.ContainsFunc(q.columns, func(c column) bool { return c.function == "" })
	for i, c := range q.columns {
		switch {
		case c.isBare && isField:
			q.columns[i].function = ""
		case c.isBare:
			q.columns[i].path = nil
		}
		q.columns[i].isBare = false
	}
	if q.isAll && q.from != "" {
		q.isAll = false
		for _, name := range q.names {
			q.columns = append(q.columns, column{path: Path{{name: name}}})
		}
	}
	if !q.isGrouped() {
		return nil
	}
	if q.isAll {
		return p.problem(`expected "count by", found "* by"`)
	}
	for _, c := range q.columns {
		if c.function == "" && !slices.ContainsFunc(q.by, c.path.equal) {
			return p.problem("expected a function, or " + quoted(c.path.String()) + ` after "by"`)
		}
	}
	q.addGroupColumns()
	return nil
}

// addGroupColumns adds the columns after "by" that the fields do not have.
func (q *Query) addGroupColumns() {
	var missing []column
	for _, path := range q.by {
		isPath := func(c column) bool { return c.function == "" && c.path.equal(path) }
		if !slices.ContainsFunc(q.columns, isPath) && !slices.ContainsFunc(missing, isPath) {
			missing = append(missing, column{path: path})
		}
	}
	q.columns = append(missing, q.columns...)
}

// sortKey returns what a column after "order by" means. ok is false if groups do not have it.
func (q *Query) sortKey(c column) (key sortKey, ok bool) {
	name := c.path.String()
	isLone := c.isBare
	if c.isBare && q.isGrouped() {
		c.path = nil
	} else if c.isBare {
		c.function = ""
	}
	i := slices.IndexFunc(q.columns, c.computesSame)
	if i < 0 && (c.function == "" || isLone) {
		i = slices.IndexFunc(q.columns, func(own column) bool { return own.as != "" && own.as == name })
	}
	switch {
	case !q.isGrouped() && i < 0:
		return sortKey{path: c.path}, c.function == ""
	case !q.isGrouped():
		return sortKey{path: q.columns[i].path}, true
	case i < 0:
		return sortKey{}, false
	}
	return sortKey{column: slices.IndexFunc(q.columns, q.columns[i].computesSame)}, true
}

// computesSame reports whether two columns have the same values.
func (c column) computesSame(other column) bool {
	return c.function == other.function && c.path.equal(other.path)
}

// columnNames returns the names of the columns.
func (q *Query) columnNames() (names []string) {
	for _, c := range q.columns {
		names = append(names, c.name())
	}
	return names
}

// paths returns all paths of the query.
func (q *Query) paths() []Path {
	paths := q.shownPaths()
	for c := range leaves(q.where) {
		paths = append(paths, c.path)
	}
	for _, key := range q.order {
		if key.path != nil {
			paths = append(paths, key.path)
		}
	}
	return paths
}

// shownPaths returns the paths of the columns and groups.
func (q *Query) shownPaths() (paths []Path) {
	for _, c := range q.columns {
		if c.path != nil {
			paths = append(paths, c.path)
		}
	}
	for _, path := range q.by {
		if !slices.ContainsFunc(paths, path.equal) {
			paths = append(paths, path)
		}
	}
	return paths
}

// isAboutRows reports whether a query of an object may mean the rows of an array in it.
// Only "*" alone means the object.
func (q *Query) isAboutRows() bool {
	return len(q.columns) > 0 || q.where != nil || len(q.order) > 0 || q.limit >= 0
}

// below returns the query for rows that a prefix leads to: paths lose the prefix.
func (q *Query) below(prefix Path) Query {
	below := *q
	below.columns, below.by, below.order = slices.Clone(q.columns), slices.Clone(q.by), slices.Clone(q.order)
	for i := range below.columns {
		below.columns[i].path = below.columns[i].path.without(prefix)
	}
	for i := range below.by {
		below.by[i] = below.by[i].without(prefix)
	}
	for i := range below.order {
		below.order[i].path = below.order[i].path.without(prefix)
	}
	if q.where != nil {
		below.where = q.where.mapped(func(c comparison) comparison {
			c.path = c.path.without(prefix)
			return c
		})
	}
	return below
}

package selection

import (
	"strconv"

	"mcpx/internal/rawjson"
	"mcpx/internal/work"
)

// aggregate computes the value of a column with a function, row by row.
type aggregate struct {
	values   int // numbers, or rows for count
	sum      decimal
	number   rawjson.Node // the smallest or largest number
	text     rawjson.Node // the smallest or largest text
	left     int          // rows with a value that is left out
	textRows int          // rows with a text, which is left out if there are numbers
}

// add adds the values of a row.
func (a *aggregate) add(w *work.Watch, c column, row rawjson.Node) {
	if c.path == nil {
		a.values++
		return
	}
	isLeft, isUsed, isText := false, false, false
	eachValue(w, c.path, row, func(n rawjson.Node) bool {
		switch {
		case c.function == "count":
			isUsed = isUsed || !rawjson.IsNull(n.Raw())
		case a.addNumber(c.function, n):
			isUsed = true
		case n.Kind() == '"' && (c.function == "min" || c.function == "max"):
			a.text = better(c.function, a.text, n)
			isText = true
		default:
			isLeft = true
		}
		return true
	})
	switch {
	case c.function == "count" && isUsed:
		a.values++
	case c.function == "count":
	case isLeft || !isUsed && !isText:
		a.left++
	case isText:
		a.textRows++
	}
}

// addNumber adds a number. It returns false if a value is none.
func (a *aggregate) addNumber(function string, n rawjson.Node) bool {
	text, ok := numberOf(n)
	if !ok {
		return false
	}
	if function == "min" || function == "max" {
		a.number = better(function, a.number, n)
		return true
	}
	d, ok := parseDecimal(text)
	if ok {
		a.values++
		a.sum = a.sum.plus(d)
	}
	return ok
}

// numberOf returns the text of a number, or of a string that is exactly a number.
func numberOf(n rawjson.Node) (text string, ok bool) {
	if n.IsNumber() {
		return rawjson.Text(n.Raw()), true
	}
	text, ok = n.String()
	return text, ok && isNumber(text)
}

// better returns the smaller or larger one of two values; best may be the zero Node.
func better(function string, best, n rawjson.Node) rawjson.Node {
	if best.IsZero() {
		return n
	}
	order := sortValueOf(n).compare(sortValueOf(best))
	if function == "min" && order < 0 || function == "max" && order > 0 {
		return n
	}
	return best
}

// append appends the value as JSON.
func (a *aggregate) append(b []byte, function string) []byte {
	switch {
	case function == "count":
		return strconv.AppendInt(b, int64(a.values), 10)
	case function == "min" || function == "max":
		best := a.number
		if best.IsZero() {
			best = a.text
		}
		if best.IsZero() {
			return append(b, "null"...)
		}
		return append(b, best.Raw()...)
	case a.values == 0 && function == "avg":
		return append(b, "null"...)
	case function == "avg":
		return append(b, a.sum.over(a.values)...)
	}
	return append(b, a.sum.String()...)
}

// leftOut returns how many rows have a value that is left out.
func (a *aggregate) leftOut() int {
	if a.number.IsZero() {
		return a.left
	}
	return a.left + a.textRows
}

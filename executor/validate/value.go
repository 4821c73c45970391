package validate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"mcpx/internal/rawjson"
)

// Decode decodes one JSON value, with numbers as json.Number. It fails for more than
// one value and for nesting beyond 256. Half of a surrogate pair becomes U+FFFD.
func Decode(raw []byte) (any, error) {
	if err := rawjson.Check(raw); err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	return value, err
}

// Numbers are limited to a size at which exact arithmetic is cheap, and to the range
// of float64: beyond it gojsonschema panics.
const (
	maxDigits   = 400
	maxExponent = len("e-999")
)

var (
	errDeep   = errors.New("nested too deep")
	errMany   = errors.New("too many values")
	errNumber = errors.New("a number out of range")
)

// sizeOf counts the values in arguments. ok is false if they cannot be judged.
func sizeOf(arguments any) (nodes int, ok bool) {
	nodes, err := measure(arguments, rawjson.MaxDepth, maxArgumentsNodes)
	return nodes, err == nil
}

// measure counts the values in v. It fails if v is deeper or larger than allowed, or
// has a type that Decode does not produce.
func measure(v any, depth, limit int) (nodes int, err error) {
	if depth < 0 {
		return 0, errDeep
	}
	if limit < 1 {
		return 0, errMany
	}
	nodes = 1
	inside := func(child any) error {
		n, err := measure(child, depth-1, limit-nodes)
		nodes += n
		return err
	}
	switch v := v.(type) {
	case nil, bool, string:
	case json.Number:
		return nodes, checkNumber(v.String())
	case []any:
		for _, child := range v {
			if err := inside(child); err != nil {
				return nodes, err
			}
		}
	case map[string]any:
		for _, child := range v {
			if err := inside(child); err != nil {
				return nodes, err
			}
		}
	default:
		return nodes, fmt.Errorf("a %T", v)
	}
	return nodes, nil
}

// members returns the members of an object by their keys, or the elements of an array by
// their indexes. Other values have none.
func members(value any) iter.Seq2[string, any] {
	return func(yield func(string, any) bool) {
		switch v := value.(type) {
		case map[string]any:
			maps.All(v)(yield)
		case []any:
			for i, item := range v {
				if !yield(strconv.Itoa(i), item) {
					return
				}
			}
		}
	}
}

// IsNumber reports whether a text is exactly a JSON number, and one that Check can
// judge.
func IsNumber(text string) bool {
	return rawjson.IsNumber([]byte(text)) && checkNumber(text) == nil
}

func checkNumber(n string) error {
	_, err := strconv.ParseFloat(n, 64)
	exponent := strings.IndexAny(n, "eE")
	if err != nil || len(n) > maxDigits || exponent >= 0 && len(n)-exponent > maxExponent {
		return errNumber
	}
	return nil
}

// rational returns the exact value of a number that was measured before. The empty
// number is zero.
func rational(n json.Number) *big.Rat {
	exact, ok := new(big.Rat).SetString(n.String())
	if !ok {
		return new(big.Rat)
	}
	return exact
}

// distinct returns the values without repetitions.
func distinct(values []any) (list []any) {
	seen := map[string]bool{}
	for _, value := range values {
		if key := canonical(value); !seen[key] {
			seen[key] = true
			list = append(list, value)
		}
	}
	return list
}

// canonical returns a text that equal values share: 1 and 1.0 are equal, and so are
// objects in any order.
func canonical(v any) string { return string(appendCanonical(nil, v)) }

func appendCanonical(b []byte, v any) []byte {
	switch v := v.(type) {
	case json.Number:
		return append(b, rational(v).RatString()...)
	case string:
		return strconv.AppendQuote(b, v)
	case []any:
		b = append(b, '[')
		for _, item := range v {
			b = append(appendCanonical(b, item), ',')
		}
		return append(b, ']')
	case map[string]any:
		b = append(b, '{')
		for _, key := range slices.Sorted(maps.Keys(v)) {
			b = append(strconv.AppendQuote(b, key), ':')
			b = append(appendCanonical(b, v[key]), ',')
		}
		return append(b, '}')
	}
	return fmt.Append(b, v)
}

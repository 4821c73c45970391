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

// decode decodes a value, with numbers as json.Number. It fails for a number that is out of
// range, and for more than limit values.
func decode(raw []byte, limit int) (value any, err error) {
	root, err := rawjson.Parse(raw)
	if err != nil {
		return nil, err
	}
	if root.Tree().Len() > limit {
		return nil, errMany
	}
	for scalar := range root.Scalars() {
		if scalar.IsNumber() && !isInRange(string(scalar.Raw())) {
			return nil, errors.New("a number out of range")
		}
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	err = decoder.Decode(&value)
	return value, err
}

// Numbers are limited to a size at which exact arithmetic is cheap, and to the range
// of float64: beyond it gojsonschema panics.
const (
	maxDigits   = 400
	maxExponent = len("e-999")
)

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
func IsNumber(text string) bool { return rawjson.IsNumber([]byte(text)) && isInRange(text) }

func isInRange(n string) bool {
	_, err := strconv.ParseFloat(n, 64)
	exponent := strings.IndexAny(n, "eE")
	return err == nil && len(n) <= maxDigits && (exponent < 0 || len(n)-exponent <= maxExponent)
}

// rational returns the exact value of a decoded number. The empty
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

// keysOf returns the canonical texts of values, nil if there are none.
func keysOf(values []any) (keys map[string]bool) {
	for _, value := range values {
		add(&keys, canonical(value), true)
	}
	return keys
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

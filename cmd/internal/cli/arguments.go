package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"mcpx/internal/rawjson"
)

// arguments are those of a call as the command line has them: one JSON object,
// or pairs that only the tool's schema gives their types.
type arguments struct {
	raw   []byte
	pairs []pair
}

// readArguments reads them from where the command line says. A mistake in them is
// found before anything is started.
func readArguments(t *terminal, list []string) (arguments, error) {
	if len(list) != 1 {
		return parsePairs(list)
	}
	only := list[0]
	switch {
	case only == "-":
		raw, err := t.read()
		if err != nil || len(bytes.TrimSpace(raw)) == 0 {
			return arguments{}, err
		}
		return wholeArguments("stdin", raw)
	case strings.HasPrefix(only, "@"):
		raw, err := os.ReadFile(only[1:])
		if err != nil {
			return arguments{}, usageError{err}
		}
		return wholeArguments(only[1:], raw)
	case strings.HasPrefix(strings.TrimSpace(only), "{"):
		return wholeArguments("arguments", []byte(only))
	}
	return parsePairs(list)
}

func wholeArguments(from string, raw []byte) (arguments, error) {
	if err := checkJSON(from, raw); err != nil {
		return arguments{}, err
	}
	if rawjson.Kind(raw) != '{' {
		return arguments{}, usageError{fmt.Errorf("%s: not a JSON object; arguments are {\"key\": value}", from)}
	}
	return arguments{raw: raw}, nil
}

// texts are the arguments as pairs, for those that take nothing but strings.
func (a arguments) texts() ([]pair, error) {
	pairs := a.pairs
	for key, value := range rawjson.Members(a.raw) {
		text, ok := rawjson.String(value)
		if !ok {
			return nil, usageError{fmt.Errorf("the value of %q must be a string: a prompt takes nothing else", key)}
		}
		pairs = append(pairs, pair{key: key, text: text})
	}
	return pairs, nil
}

// checkJSON says where a text is not JSON, as FILE:LINE:COLUMN.
func checkJSON(from string, raw []byte) error {
	raw = bytes.TrimRight(raw, " \t\r\n")
	wrong := rawjson.Check(raw)
	if wrong == nil {
		return nil
	}
	at := len(raw)
	var syntax *json.SyntaxError
	if errors.As(json.Unmarshal(raw, new(json.RawMessage)), &syntax) {
		wrong = syntax
		if !strings.HasPrefix(syntax.Error(), "unexpected end") {
			at = int(syntax.Offset) - 1
		}
	}
	line := bytes.LastIndexByte(raw[:at], '\n') + 1
	return usageError{fmt.Errorf("%s:%d:%d: not JSON: %w", from, 1+bytes.Count(raw[:at], []byte("\n")), 1+utf8.RuneCount(raw[line:at]), wrong)}
}

package cli

import (
	"bytes"
	"encoding/json"
	"fmt"

	"mcpx/internal/plain"
)

// writeJSON prints a JSON text over several lines, every value as it is.
func (t *terminal) writeJSON(raw []byte) error {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		b.Write(raw)
	}
	text := bytes.TrimRight(b.Bytes(), "\n")
	if t.person() {
		text = plain.JSON(text)
	}
	_, err := fmt.Fprintf(t.stdout, "%s\n", text)
	return err
}

// printJSON prints a JSON text that an upstream sent: readable for a person, to
// others byte for byte.
func (t *terminal) printJSON(raw []byte) error {
	if t.person() {
		return t.writeJSON(raw)
	}
	_, err := fmt.Fprintf(t.stdout, "%s\n", raw)
	return err
}

// encode prints a value of our own as JSON.
func (t *terminal) encode(value any) error {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return err
	}
	return t.writeJSON(b.Bytes())
}

// printText prints a text that an upstream sent. To a person's terminal nothing
// goes that would steer it.
func (t *terminal) printText(text string) error {
	if t.person() {
		text = plain.Text(text)
	}
	_, err := fmt.Fprintln(t.stdout, text)
	return err
}

package results

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/work"
)

// TextPart says which part of a text a reference means: some lines, or those that match a
// pattern, with texts replaced.
type TextPart struct {
	Lines   string   // like 5, 5-9 or 5-; "" for all
	Match   string   // an RE2 pattern, which may be between slashes; "" for all
	Replace *Replace // comes last; may be nil
}

// Replace replaces a text that occurs exactly Count times.
type Replace struct {
	Old, New string
	Count    int
}

// Check returns what is wrong with the part.
func (p *TextPart) Check() error {
	if p.Lines != "" && p.Match != "" {
		return errors.New(`"lines" and "match" cannot be combined`)
	}
	if _, _, err := p.lineRange(); err != nil {
		return err
	}
	if p.Replace != nil && (p.Replace.Old == "" || p.Replace.Count < 1) {
		return errReplace
	}
	if p.Match != "" {
		_, err := compile(p.pattern(), 0)
		return err
	}
	return nil
}

var errReplace = errors.New(`"replace" is ["old", "new", N]: a text that occurs N times, and what replaces it`)

// pattern returns the pattern without its slashes.
func (p *TextPart) pattern() string {
	if len(p.Match) > 2 && strings.HasPrefix(p.Match, "/") && strings.HasSuffix(p.Match, "/") {
		return p.Match[1 : len(p.Match)-1]
	}
	return p.Match
}

// lineRange returns the first and the last line; the last one is 0 if it is the end.
func (p *TextPart) lineRange() (first, last int, err error) {
	if p.Lines == "" {
		return 1, 0, nil
	}
	from, to, isRange := strings.Cut(strings.ReplaceAll(p.Lines, " ", ""), "-")
	if first, err = strconv.Atoi(from); err == nil && to != "" {
		last, err = strconv.Atoi(to)
	}
	if !isRange {
		last = first
	}
	if err != nil || first < 1 || last < 0 || last > 0 && last < first || isRange && to == "0" {
		return 0, 0, fmt.Errorf(`"lines" is %s; use "5", "5-9" or "5-"`, quote(plain.Cut(p.Lines, maxKey)))
	}
	return first, last, nil
}

// of returns the part of a text as a JSON string, unless that is longer than limit. The part
// may be nil, which is the whole text.
func (p *TextPart) of(ctx context.Context, text string, limit int) (value []byte, err error) {
	if p != nil {
		switch watch := work.NewWatch(ctx); {
		case p.Lines != "":
			text, err = p.lines(watch, text)
		case p.Match != "":
			text, err = p.matching(watch, text, limit)
		}
		if err == nil && p.Replace != nil {
			text, err = p.Replace.in(text, limit)
		}
	}
	if err == nil && len(text) > limit {
		err = ErrLong
	}
	if err != nil {
		return nil, err
	}
	return rawjson.AppendString(nil, text), nil
}

// lines returns the lines of a text, as they are, without the end of the last one.
func (p *TextPart) lines(w *work.Watch, text string) (string, error) {
	first, last, err := p.lineRange()
	if err != nil {
		return "", err
	}
	number, at, start, end := 0, 0, -1, 0
	for line := range strings.Lines(text) {
		if w.IsOver() {
			return "", w.Err()
		}
		if number++; number == first {
			start = at
		}
		at += len(line)
		if number == last || last == 0 {
			end = at
		}
	}
	if start < 0 || last > number {
		return "", fmt.Errorf("lines %s: the text has %s", p.Lines, plain.Count(number, "line"))
	}
	return strings.TrimSuffix(strings.TrimSuffix(text[start:end], "\n"), "\r"), nil
}

// matching returns the lines that match, unless they are longer than limit.
func (p *TextPart) matching(w *work.Watch, text string, limit int) (string, error) {
	pattern, err := compile(p.pattern(), len(text))
	if err != nil {
		return "", fmt.Errorf("match: %w", err)
	}
	var b strings.Builder
	total, matched := 0, 0
	for line := range linesIn(text) {
		total++
		isMatch := pattern.find(w, line) != nil
		if w.IsOver() {
			return "", w.Err()
		}
		if !isMatch {
			continue
		}
		if matched++; matched > 1 {
			b.WriteByte('\n')
		}
		b.WriteString(line)
		if b.Len() > limit {
			return "", ErrLong
		}
	}
	if matched == 0 {
		return "", fmt.Errorf("no line matches %s; the text has %s", plain.Cut(plain.Line(p.Match), maxLine), plain.Count(total, "line"))
	}
	return b.String(), nil
}

// in returns a text with the replacement, unless that is longer than limit.
func (r *Replace) in(text string, limit int) (string, error) {
	if count := strings.Count(text, r.Old); count != r.Count {
		return "", fmt.Errorf("replace: %s occurs %s, not %d", quote(plain.Cut(r.Old, maxKey)), plain.Count(count, "time"), r.Count)
	}
	if len(text)+r.Count*(len(r.New)-len(r.Old)) > limit {
		return "", ErrLong
	}
	return strings.ReplaceAll(text, r.Old, r.New), nil
}

package config

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"mcpx/internal/jsonc"
)

// maxDuration keeps sums of durations from overflowing.
const maxDuration = 30 * 24 * time.Hour

// Duration is a string such as "30s", or a number of seconds.
func Duration(p *time.Duration) Kind {
	return Kind{
		schema: object{
			{"type", []string{"string", "number"}},
			{"pattern", `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`},
			{"exclusiveMinimum", 0},
			{"maximum", maxDuration.Seconds()},
		},
		read: func(r *reader, n jsonc.Node) {
			got, d := n.Describe(), time.Duration(0)
			switch n.Kind() {
			case '"':
				got = strconv.Quote(n.Text())
				d, _ = time.ParseDuration(n.Text())
			case '0':
				// The conversion of a float that is too large is undefined.
				seconds := max(0, min(n.Literal().Float(), 2*maxDuration.Seconds()))
				d = time.Duration(seconds * float64(time.Second))
			}
			if d <= 0 || d > maxDuration {
				r.Fail(n, `expected a duration of up to 30 days, such as "30s", or a number of seconds, got %s`, got)
				return
			}
			*p = d
		},
		show: func() any {
			if *p == 0 {
				return nil
			}
			return FormatDuration(*p)
		},
	}
}

// unset marks an idle time that the file does not set.
const unset time.Duration = -1

// idleTime is a duration, or "never", which is 0.
func idleTime(p *time.Duration) Kind {
	k := Duration(p)
	read := k.read
	k.schema = object{{"anyOf", []object{k.schema, {{"const", "never"}}}}}
	k.read = func(r *reader, n jsonc.Node) {
		if n.Kind() == '"' && n.Text() == "never" {
			*p = 0
			return
		}
		read(r, n)
	}
	k.show = func() any {
		switch *p {
		case unset:
			return nil
		case 0:
			return "never"
		}
		return FormatDuration(*p)
	}
	return k
}

// FormatDuration returns 30m for 30 minutes, instead of 30m0s.
func FormatDuration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// milliseconds is a duration of at most a day as a number; 0 means no limit.
func milliseconds(p *time.Duration) Kind {
	ms := int(p.Milliseconds())
	return Number(&ms, 0, 24*60*60*1000).then(func(*reader, jsonc.Node) { *p = time.Duration(ms) * time.Millisecond })
}

var (
	sizePattern = regexp.MustCompile(`^([0-9]{1,9}) ?([KMG]i?B|B)$`)
	sizeUnits   = map[string]int{
		"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
	}
)

// The limits of a size.
const (
	leastSize = 1 << 10
	mostSize  = 1 << 30
)

// Size is a number of bytes, or a string such as "8MiB".
func Size(p *int) Kind {
	return Kind{
		schema: object{
			{"type", []string{"integer", "string"}},
			{"pattern", sizePattern.String()},
			{"minimum", leastSize},
			{"maximum", mostSize},
		},
		read: func(r *reader, n jsonc.Node) {
			got, bytes := n.Describe(), 0
			switch n.Kind() {
			case '"':
				got = strconv.Quote(n.Text())
				bytes = parseSize(n.Text())
			case '0':
				bytes = int(n.Literal().Int())
			}
			if bytes < leastSize || bytes > mostSize {
				r.Fail(n, `expected a size from %s to %s, such as "8MiB", or a number of bytes, got %s`,
					formatSize(leastSize), formatSize(mostSize), got)
				return
			}
			*p = bytes
		},
		show: func() any { return formatSize(*p) },
	}
}

// parseSize returns 0 for an invalid size.
func parseSize(s string) int {
	m := sizePattern.FindStringSubmatch(s)
	if m == nil {
		return 0
	}
	count, _ := strconv.Atoi(m[1])
	return count * sizeUnits[m[2]]
}

func formatSize(bytes int) string {
	for _, unit := range []string{"GiB", "MiB", "KiB"} {
		if bytes > 0 && bytes%sizeUnits[unit] == 0 {
			return fmt.Sprintf("%d%s", bytes/sizeUnits[unit], unit)
		}
	}
	return fmt.Sprintf("%dB", bytes)
}

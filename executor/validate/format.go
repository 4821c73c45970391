package validate

import (
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"mcpx/internal/rawjson"
)

// format is a format of strings. It is never enforced: servers differ in what they
// accept, so a misfit is only noted.
type format struct {
	name string
	form string // shown to the caller
	fits func(text string) bool
}

// formats are the formats that are noted. They accept the variants of RFC 3339 that
// most servers accept.
var formats = map[string]*format{
	"date":      {"date", "YYYY-MM-DD", fitsTime("2006-01-02")},
	"date-time": {"date-time", "YYYY-MM-DDThh:mm:ssZ", fitsTime(time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04Z07:00", "2006-01-02T15:04")},
	"time":      {"time", "hh:mm:ssZ", fitsTime("15:04:05Z07:00", "15:04:05", "15:04Z07:00", "15:04")},
	"uri":       {"uri", "https://…", fitsURI},
	"email":     {"email", "name@example.com", fitsEmail},
	"uuid":      {"uuid", "8-4-4-4-12 hex digits", uuid.MatchString},
}

// maxFormatBytes bounds the strings whose format is checked: longer ones fit.
const maxFormatBytes = 4 << 10

// accepts reports whether a text has the format. A nil format accepts everything.
func (f *format) accepts(text string) bool {
	return f == nil || len(text) > maxFormatBytes || f.fits(text)
}

// acceptsRaw is accepts for a JSON string.
func (f *format) acceptsRaw(value []byte) bool {
	text, ok := rawjson.View(value)
	return ok && f.accepts(text)
}

// fitsTime accepts times in one of several layouts of package time, also with a space
// between date and time.
func fitsTime(layouts ...string) func(text string) bool {
	return func(text string) bool {
		text = strings.ToUpper(strings.Replace(text, " ", "T", 1))
		return slices.ContainsFunc(layouts, func(layout string) bool {
			_, err := time.Parse(layout, text)
			return err == nil
		})
	}
}

func fitsURI(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.IsAbs()
}

func fitsEmail(text string) bool {
	address, err := mail.ParseAddress(text)
	return err == nil && address.Address == text
}

var uuid = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

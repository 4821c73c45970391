package validate

import (
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcpx/internal/rawjson"
)

const (
	// maxNoteSteps bounds the search for notes, so that it needs no timer: a note is
	// only a hint.
	maxNoteSteps = 50_000

	// maxStrayNames is how many undeclared names of an object are compared with others.
	maxStrayNames = 20
)

// noter looks for probable mistakes in valid arguments.
type noter struct{ steps int }

// notes returns probable mistakes in valid arguments.
func (e *engine) notes(arguments any) []Problem {
	var n noter
	found := append(n.strayNames([]*rule{e.rule}, arguments, nil), n.misfits(e.rule, arguments, nil)...)
	slices.SortStableFunc(found, func(a, b finding) int { return slices.Compare(a.Path, b.Path) })
	return report(found)
}

// step counts work and reports whether there may be more.
func (n *noter) step(work int) bool {
	n.steps += work
	return n.steps <= maxNoteSteps
}

// misfits returns the strings that do not fit their format. A nil rule has none.
func (n *noter) misfits(r *rule, value any, at []string) (found []finding) {
	if r == nil || !n.step(1) {
		return nil
	}
	found = n.misfits(r.ref, value, at)
	for _, rule := range r.allOf {
		found = append(found, n.misfits(rule, value, at)...)
	}
	found = append(found, n.fewestMisfits(r.anyOf, value, at)...)
	found = append(found, n.fewestMisfits(r.oneOf, value, at)...)
	if text, ok := value.(string); ok && !r.format.accepts(text) {
		found = append(found, problem(at, "expected %s (%s), got %s; sent as it is", r.format.name, r.format.form, show(text)))
	}
	for key, member := range members(value) {
		for _, rule := range n.inside(r, value, key) {
			found = append(found, n.misfits(rule, member, below(at, key))...)
		}
	}
	return found[:min(len(found), maxFindings)]
}

// fewestMisfits returns the misfits of the form that has the fewest. It does not check
// the forms, which takes long: a value may seem to have more forms than it has, and then
// there are fewer notes.
func (n *noter) fewestMisfits(forms []*rule, value any, at []string) (fewest []finding) {
	first := true
	for _, form := range forms {
		if !n.mayMatch(form, value) {
			continue
		}
		found := n.misfits(form, value, at)
		if first || len(found) < len(fewest) {
			fewest, first = found, false
		}
	}
	return fewest
}

// mayMatch compares a value and its members with types, enums and consts.
func (n *noter) mayMatch(r *rule, value any) bool {
	if r = r.resolved(); !n.mayBe(r, value) {
		return false
	}
	object, _ := value.(map[string]any)
	for name, member := range object {
		if property := r.properties[name]; property != nil && !n.mayBe(property.resolved(), member) {
			return false
		}
	}
	return true
}

func (n *noter) mayBe(r *rule, value any) bool {
	if r.never || len(r.types) > 0 && !hasType(value, r.types) {
		return false
	}
	return n.step(1) && r.refusal(value) == nil
}

// strayNames returns the properties that no rule declares and whose names are close to a
// declared property that is missing.
func (n *noter) strayNames(rules []*rule, value any, at []string) (found []finding) {
	all := n.withInPlace(rules)
	if object, ok := value.(map[string]any); ok {
		found = n.strayNamesOf(all, object, at)
	}
	for key, member := range members(value) {
		if name := typeName(member); name != "object" && name != "array" || !n.step(1+len(all)/8) {
			continue
		}
		var inside []*rule
		for _, r := range all {
			inside = append(inside, n.inside(r, value, key)...)
		}
		found = append(found, n.strayNames(inside, member, below(at, key))...)
	}
	return found[:min(len(found), maxFindings)]
}

// strayNamesOf returns the stray names of one object.
func (n *noter) strayNamesOf(rules []*rule, v map[string]any, at []string) (found []finding) {
	var stray, free []string
	for key := range v {
		if !slices.ContainsFunc(rules, func(r *rule) bool { return len(n.declared(r, key)) > 0 }) {
			stray = append(stray, key)
		}
	}
	if len(stray) == 0 {
		return nil
	}
	for _, r := range rules {
		for name := range r.properties {
			if _, given := v[name]; !given && n.step(1) {
				free = append(free, name)
			}
		}
	}
	slices.Sort(stray)
	slices.Sort(free)
	for _, key := range stray[:min(len(stray), maxStrayNames)] {
		if !n.step(len(free)) {
			break
		}
		if near := suggest(key, free); near != "" {
			found = append(found, problem(below(at, key), "unknown property, sent as it is; did you mean %s?", show(near)))
		}
	}
	return found
}

// withInPlace returns the rules and all that apply to the same value, each once.
func (n *noter) withInPlace(rules []*rule) (all []*rule) {
	add := func(rules []*rule) {
		for _, r := range rules {
			if r != nil && n.step(1+len(all)/8) && !slices.Contains(all, r) {
				all = append(all, r)
			}
		}
	}
	add(rules)
	for i := 0; i < len(all); i++ {
		add(all[i].inPlace())
	}
	return all
}

// declared is rule.declared, with its work counted: patterns take the longest.
func (n *noter) declared(r *rule, key string) []*rule {
	if !n.step(1 + len(r.patternProperties)*(1+len(key)/10)) {
		return nil
	}
	return r.declared(key)
}

// inside returns the rules for a member or an element of a value.
func (n *noter) inside(r *rule, value any, key string) []*rule {
	if _, isArray := value.([]any); isArray {
		i, _ := strconv.Atoi(key)
		if item := r.ofItem(i); item != nil && n.step(1) {
			return []*rule{item}
		}
		return nil
	}
	rules := n.declared(r, key)
	if len(rules) == 0 && r.additionalProperties != nil {
		rules = append(rules, r.additionalProperties)
	}
	return rules
}

// ofItem returns the rule for an element of an array, nil if there is none.
func (r *rule) ofItem(i int) *rule {
	if i < len(r.prefixItems) {
		return r.prefixItems[i]
	}
	return r.items
}

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

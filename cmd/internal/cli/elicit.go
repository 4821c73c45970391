package cli

import (
	"cmp"
	"net/mail"
	"net/url"
	"slices"
	"strings"
	"time"

	"mcpx/executor/validate"
	"mcpx/internal/plain"
	"mcpx/internal/rawjson"
	"mcpx/internal/schema"
)

// question is one field of a form.
type question struct {
	parameter
	name     string
	required bool
	choices  []choice            // of the value, or of the elements of an array
	form     *validate.Validator // checks the whole form
}

// choice is a value that the person may choose.
type choice struct {
	value []byte
	title string // may be empty
}

// questions returns the fields of a form in the schema's order.
func questions(requested *schema.Schema) []question {
	whole := newParameter(requested)
	required := schema.Strings(whole.node.Get("required"))
	form := validate.New(requested)
	var list []question
	for name, field := range whole.node.Get("properties").Members() {
		q := question{parameter: parameter{requested, field}, name: name, required: slices.Contains(required, name), form: form}
		q.choices = choicesOf(field)
		if q.is("array") {
			q.choices = choicesOf(q.items().node)
		}
		list = append(list, q)
	}
	return list
}

// choicesOf returns the choices of a schema: an enum, perhaps with enumNames, or
// alternatives with a const and a title each. None: any value will do.
func choicesOf(field rawjson.Node) (choices []choice) {
	for _, value := range field.Get("enum").Elements() {
		choices = append(choices, choice{value: value.Raw()})
	}
	for i, name := range field.Get("enumNames").Elements() {
		if i < len(choices) {
			choices[i].title, _ = name.String()
		}
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		if len(choices) > 0 {
			return choices
		}
		for _, alternative := range field.Get(key).Elements() {
			value := alternative.Get("const")
			if value.IsZero() {
				return nil
			}
			title, _ := alternative.Get("title").String()
			choices = append(choices, choice{value.Raw(), title})
		}
	}
	return choices
}

// prompt returns the line that asks for the value.
func (q question) prompt() string {
	var parts []string
	if text, _ := q.node.Get("description").String(); text != "" {
		parts = append(parts, text)
	}
	parts = append(parts, q.expected()...)
	if !q.required {
		parts = append(parts, "optional")
	}
	title, _ := q.node.Get("title").String()
	label := cmp.Or(title, q.name)
	if len(parts) > 0 {
		label += " (" + strings.Join(parts, "; ") + ")"
	}
	if text := q.shown(q.fallback()); text != "" {
		label += " [" + text + "]"
	}
	return plain.Line(label) + ": "
}

// maxChoices bounds how many choices a prompt lists.
const maxChoices = 50

// expected describes the valid values.
func (q question) expected() (parts []string) {
	types := q.types()
	var choices []string
	for _, c := range q.choices {
		if len(choices) == maxChoices {
			choices = append(choices, "…")
			break
		}
		text := bare(c.value)
		if c.title != "" && c.title != text {
			text += ": " + c.title
		}
		choices = append(choices, text)
	}
	format, known := q.format()
	switch {
	case len(choices) > 0:
		parts = append(parts, strings.Join(choices, " | "))
	case q.is("boolean"):
		parts = append(parts, "y/n")
	case q.is("array"):
	case known:
		parts = append(parts, format.name)
	case len(types) > 0 && types[0] != "string":
		parts = append(parts, types[0])
	}
	if q.is("array") {
		parts = append(parts, "separate several with commas")
	}
	for _, r := range ranges {
		if text := r.text(q.node); text != "" {
			parts = append(parts, text)
		}
	}
	return parts
}

// span is a pair of keywords that bound a value.
type span struct{ least, most, unit string }

var ranges = []span{
	{"minimum", "maximum", ""},
	{"minLength", "maxLength", " characters"},
	{"minItems", "maxItems", " items"},
}

// text says which values lie between the bounds, empty if there are none.
func (s span) text(field rawjson.Node) string {
	least, most := string(field.Get(s.least).Raw()), string(field.Get(s.most).Raw())
	if most == "1" || most == "" && least == "1" {
		s.unit = strings.TrimSuffix(s.unit, "s")
	}
	switch {
	case least != "" && most != "":
		return least + " to " + most + s.unit
	case least != "":
		return "at least " + least + s.unit
	case most != "":
		return "at most " + most + s.unit
	}
	return ""
}

// fallback is the value of an empty answer, nil if there is none.
func (q question) fallback() []byte { return q.node.Get("default").Raw() }

// shown returns a value as the person would type it.
func (q question) shown(value []byte) string {
	switch rawjson.Kind(value) {
	case '[':
		var parts []string
		for element := range rawjson.Elements(value) {
			parts = append(parts, bare(element))
		}
		return strings.Join(parts, ", ")
	case 't':
		return "y"
	case 'f':
		return "n"
	}
	return bare(value)
}

// read returns the value of an answer, nil if it is left out, or the problem with it.
func (q question) read(answer string) (value []byte, problem string) {
	value = q.fallback()
	if answer != "" {
		value = q.value(answer)
	}
	switch {
	case value == nil && q.required:
		return nil, "an answer is required"
	case value == nil:
		return nil, ""
	}
	return value, q.problem(value)
}

// value returns an answer as JSON. An answer that does not fit the type stays text.
func (q question) value(answer string) []byte {
	switch {
	case q.is("array"):
		return q.list(answer)
	case len(q.choices) > 0:
		return q.chosen(q.parameter, answer)
	case q.is("boolean") && !q.is("string"):
		return truth(answer)
	}
	return q.scalar(answer)
}

// list returns an answer with several values: a JSON array, or values between commas.
func (q question) list(answer string) []byte {
	if raw := []byte(answer); rawjson.Kind(raw) == '[' && rawjson.Check(raw) == nil {
		return raw
	}
	return jsonArray(strings.Split(answer, ","), func(part string) []byte {
		return q.chosen(q.items(), strings.TrimSpace(part))
	})
}

// chosen returns the choice with this value or title. Other texts become a value of the
// parameter's type.
func (q question) chosen(p parameter, text string) []byte {
	for _, same := range []func(a, b string) bool{func(a, b string) bool { return a == b }, strings.EqualFold} {
		for _, c := range q.choices {
			if same(text, bare(c.value)) || same(text, c.title) {
				return c.value
			}
		}
	}
	return p.scalar(text)
}

// problem explains why a value is not valid, "" if it is.
func (q question) problem(value []byte) string {
	if q.is("boolean") && !q.is("string") && rawjson.Kind(value) == '"' {
		return "expected y or n"
	}
	form := append(rawjson.AppendMember([]byte("{"), q.name, value), '}')
	decoded, err := validate.Decode(form)
	if err != nil {
		return err.Error()
	}
	for _, p := range q.form.Check(decoded) {
		if len(p.Path) > 0 && p.Path[0] == q.name { // the other fields are asked for later
			return p.Text
		}
	}
	format, known := q.format()
	if text, ok := rawjson.String(value); ok && known && !format.fits(text) {
		return "expected " + format.example
	}
	return ""
}

// format describes one format of texts.
type format struct {
	name    string
	example string
	fits    func(text string) bool
}

// format returns the format of the value, if it has one that is known.
func (q question) format() (f format, known bool) {
	name, _ := q.node.Get("format").String()
	f, known = formats[name]
	return f, known
}

// formats are the formats that MCP allows for texts.
var formats = map[string]format{
	"email":     {"email address", "an email address, such as me@example.com", isEmail},
	"uri":       {"URL", "a URL, such as https://example.com", isURI},
	"date":      {"date", "a date, such as 2025-12-31", isTime(time.DateOnly)},
	"date-time": {"date and time", "a date and time, such as 2025-12-31T23:59:59Z", isTime(time.RFC3339)},
}

func isEmail(text string) bool {
	address, err := mail.ParseAddress(text)
	return err == nil && address.Name == "" && !strings.ContainsAny(text, "<>")
}

func isURI(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Scheme != "" && !strings.Contains(text, " ")
}

func isTime(layout string) func(text string) bool {
	return func(text string) bool {
		_, err := time.Parse(layout, strings.ToUpper(text)) // t and z may be lower case
		return err == nil
	}
}

// bare returns a value without quotes.
func bare(value []byte) string {
	if text, ok := rawjson.String(value); ok {
		return text
	}
	return string(value)
}

// truth returns the boolean that people write in many ways. Other answers stay text.
func truth(answer string) []byte {
	switch strings.ToLower(answer) {
	case "y", "yes", "true", "1":
		return []byte("true")
	case "n", "no", "false", "0":
		return []byte("false")
	}
	return rawjson.AppendString(nil, answer)
}

package cli

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"

	"mcpx/cmd/internal/terminal"
)

// TestElicitationAnswers: what a person types is checked against the field's schema.
// A wrong answer is asked for again, with what is expected.
func TestElicitationAnswers(t *testing.T) {
	const (
		colors  = `{"type":"string","title":"Color","oneOf":[{"const":"r","title":"Bright red"},{"const":"b","title":"Deep blue"}]}`
		several = `{"type":"array","minItems":1,"maxItems":2,"items":{"anyOf":[{"const":"r","title":"Red"},{"const":"g","title":"Green"},{"const":"b","title":"Blue"}]},"default":["r","b"]}`
	)
	for _, row := range []struct {
		name, field string
		typed       []string
		want        string   // the value; empty: there is none
		shown       []string // what the person reads, in this order
	}{
		{"text", `{"type":"string"}`, []string{"5"}, `"5"`, []string{"  f: "}},
		{"title", `{"type":"string","title":"Full name","description":"as in your passport"}`, []string{"Ann"}, `"Ann"`, []string{"  Full name – as in your passport: "}},
		{"too short", `{"type":"string","minLength":3,"maxLength":5}`, []string{"ab", "abc"}, `"abc"`, []string{"(3 or more characters; 5 or fewer characters)", "    expected at least 3 characters, got 2\n", "  f ("}},
		{"too long", `{"type":"string","maxLength":2}`, []string{"äöü", "äö"}, `"äö"`, []string{"(2 or fewer characters)", "    expected at most 2 characters, got 3\n"}},
		{"pattern", `{"type":"string","pattern":"^[a-z]+$"}`, []string{"A", "a"}, `"a"`, []string{"    expected to match ^[a-z]+$, got \"A\"\n"}},

		{"email", `{"type":"string","format":"email"}`, []string{"me", "Me <me@example.com>", "me@example.com"}, `"me@example.com"`,
			[]string{"(email)", "    expected email (name@example.com), got \"me\"\n", "    expected email"}},
		{"uri", `{"type":"string","format":"uri"}`, []string{"example.com", "/a", "https://example.com/a"}, `"https://example.com/a"`,
			[]string{"(URL)", "    expected uri (https://…), got \"example.com\"\n"}},
		{"uri without a host", `{"type":"string","format":"uri"}`, []string{"urn:isbn:1", "x"}, `"urn:isbn:1"`, nil},
		{"date", `{"type":"string","format":"date"}`, []string{"31.12.2025", "2025-02-30", "2025-12-31"}, `"2025-12-31"`,
			[]string{"(date)", "    expected date (YYYY-MM-DD), got \"31.12.2025\"\n", "    expected date"}},
		{"date-time", `{"type":"string","format":"date-time"}`, []string{"2025-12-31", "2025-12-31T25:00:00Z", "2025-12-31T23:59:59.5+01:00"}, `"2025-12-31T23:59:59.5+01:00"`,
			[]string{"(date and time)", "    expected date-time (YYYY-MM-DDThh:mm:ssZ), got \"2025-12-31\"\n", "    expected date-time"}},
		{"unknown format", `{"type":"string","format":"color"}`, []string{"x"}, `"x"`, nil},

		{"integer", `{"type":"integer","minimum":1,"maximum":10}`, []string{"many", "1.5", "0", "11", "10"}, `10`,
			[]string{"(whole number; 1 or more; 10 or less)", `    expected integer, got string "many"`, "    expected integer, got number 1.5\n", "    expected at least 1, got 0\n", "    expected at most 10, got 11\n"}},
		{"number", `{"type":"number","minimum":0}`, []string{"1,5", "-1", "1.5"}, `1.5`, []string{"(number; 0 or more)", `    expected number, got string "1,5"`, "    expected at least 0, got -1\n"}},
		{"boolean", `{"type":"boolean"}`, []string{"maybe", "Y"}, `true`, []string{"(y | n)", "    expected y | n\n"}},
		{"boolean as a number", `{"type":"boolean"}`, []string{"0"}, `false`, nil},
		{"boolean with a default", `{"type":"boolean","default":false}`, []string{""}, `false`, []string{"(y | n; Enter: n): "}},

		{"enum", `{"type":"string","enum":["red","blue"]}`, []string{"rde", "RED"}, `"red"`, []string{"(red | blue)", "    expected red | blue\n"}},
		{"enum of numbers", `{"enum":[1,2]}`, []string{"3", "2"}, `2`, []string{"(1 | 2)", "    expected 1 | 2\n"}},
		{"enum with names", `{"type":"string","enum":["r","b"],"enumNames":["Red","Blue"],"default":"b"}`, []string{""}, `"b"`, []string{"(Red | Blue; Enter: Blue): "}},
		{"titles", colors, []string{"deep blue"}, `"b"`, []string{"  Color (Bright red | Deep blue): "}},
		{"value of a title", colors, []string{"green", "r"}, `"r"`, []string{"    expected Bright red | Deep blue\n"}},

		{"several", several, []string{"r, blue"}, `["r","b"]`, []string{"(Red | Green | Blue; several, with commas between them; 1 or more; 2 or fewer; Enter: Red, Blue): "}},
		{"one of several", `{"type":"array","maxItems":1,"items":{"enum":["a","b"]}}`, []string{"a"}, `["a"]`, []string{"; 1 or fewer): "}},
		{"several by default", several, []string{""}, `["r","b"]`, nil},
		{"too many", several, []string{"r,g,b", "g"}, `["g"]`, []string{"    expected at most 2 items, got 3\n"}},
		{"one of several is wrong", several, []string{"r,x", "g,r"}, `["g","r"]`, []string{"    expected Red | Green | Blue\n"}},
		{"several as JSON", `{"type":"array","items":{"type":"string","enum":["a,b","c"]}}`, []string{`["a,b"]`}, `["a,b"]`, nil},

		{"required", `{"type":"string"}`, []string{"", "x"}, `"x"`, []string{"    an answer is required\n"}},
		{"a wrong default", `{"type":"integer","maximum":5,"default":9}`, []string{"", "5"}, `5`, []string{"Enter: 9): ", "    expected at most 5, got 9\n"}},
		{"a hostile title", `{"type":"string","title":"\u001b[2J"}`, []string{"x"}, `"x"`, []string{`  \u001b[2J: `}},
	} {
		t.Run(row.name, func(t *testing.T) {
			var out strings.Builder
			c := &caller{server: "t", status: terminal.NewStatus(&out), out: &out, in: terminal.NewLines(strings.NewReader(strings.Join(row.typed, "\n") + "\n"))}
			got, err := c.Request(t.Context(), "elicitation/create", []byte(`{"message":"m","requestedSchema":{"type":"object","properties":{"f":`+row.field+`},"required":["f"]}}`))
			if want := `{"action":"accept","content":{"f":` + row.want + `}}`; err != nil || string(got) != want {
				t.Errorf("got %s, %v, want %s", got, err, want)
			}
			rest := out.String()
			for _, part := range row.shown {
				_, after, ok := strings.Cut(rest, part)
				if !ok {
					t.Fatalf("no %q in\n%s", part, out.String())
				}
				rest = after
			}
		})
	}
}

// TestElicitationEnds: whoever stops answering declines, also after a wrong answer.
func TestElicitationEnds(t *testing.T) {
	for _, typed := range []string{"", "x\n", "x\n\nx\n", "5"} {
		var out strings.Builder
		c := &caller{server: "t", status: terminal.NewStatus(&out), out: &out, in: terminal.NewLines(strings.NewReader(typed))}
		got, err := c.Request(t.Context(), "elicitation/create", []byte(`{"message":"m","requestedSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}`))
		if want := `{"action":"decline"}`; err != nil || string(got) != want {
			t.Errorf("%q: got %s, %v, want %s", typed, got, err, want)
		}
	}
}

// TestElicitationLeavesOut: an optional field without an answer and a default is
// left out, whatever the schema demands of a value.
func TestElicitationLeavesOut(t *testing.T) {
	var out strings.Builder
	c := &caller{server: "t", status: terminal.NewStatus(&out), out: &out, in: terminal.NewLines(strings.NewReader("\n\nx\n"))}
	got, err := c.Request(t.Context(), "elicitation/create", []byte(`{"message":"m","requestedSchema":{"type":"object","properties":{"a":{"type":"string","minLength":3},"b":{"type":"integer"},"c":{"type":"string"}},"required":["c"]}}`))
	if want := `{"action":"accept","content":{"c":"x"}}`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	if !strings.Contains(out.String(), "  b (whole number; optional): ") {
		t.Error(out.String())
	}
}

// TestCanceledQuestions: what a person writes answers the question that is asked
// then, never one from before.
func TestCanceledQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stdin, keyboard := io.Pipe()
		c := &caller{status: terminal.NewStatus(io.Discard), out: io.Discard, in: terminal.NewLines(stdin)}
		ask := func(ctx context.Context) <-chan string {
			answer := make(chan string, 1)
			go func() {
				result, err := c.Request(ctx, "elicitation/create", []byte(`{"message":"who?","requestedSchema":{"properties":{"name":{"type":"string"}},"required":["name"]}}`))
				if err != nil {
					result = []byte(err.Error())
				}
				answer <- string(result)
			}()
			synctest.Wait()
			return answer
		}
		write := func(text string) {
			go func() { _, _ = io.WriteString(keyboard, text) }()
			synctest.Wait()
		}
		ctx, cancel := context.WithCancel(t.Context())
		first := ask(ctx)
		cancel()
		if got := <-first; got != context.Canceled.Error() {
			t.Errorf("the question that was canceled got %s", got)
		}
		second := ask(t.Context())
		write("Ann\n")
		if got, want := <-second, `{"action":"accept","content":{"name":"Ann"}}`; got != want {
			t.Errorf("the one after it got %s, want %s", got, want)
		}
		ctx, cancel = context.WithCancel(t.Context())
		third := ask(ctx)
		cancel()
		<-third
		write("too late\n")
		fourth := ask(t.Context())
		write("Bob\n")
		if got, want := <-fourth, `{"action":"accept","content":{"name":"Bob"}}`; got != want {
			t.Errorf("the last got %s, want %s", got, want)
		}
	})
}

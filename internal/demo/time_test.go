package demo

import (
	"testing"
	"time"
)

func TestTimeCalls(t *testing.T) {
	c := connect(t, "time", Options{})
	for _, row := range []struct {
		name, tool, arguments, want string
		isError                     bool
	}{
		{"days", "time_between", `{"start":"2026-02-27T22:30:00Z","end":"2026-03-01T01:00:05+01:00"}`,
			`{"days":1,"hours":1,"minutes":30,"seconds":5,"total_seconds":91805}`, false},
		{"centuries", "time_between", `{"start":"0001-01-01T00:00:00Z","end":"9999-12-31T23:59:59Z"}`,
			`{"days":3652058,"hours":23,"minutes":59,"seconds":59,"total_seconds":315537897599}`, false},
		{"backwards", "time_between", `{"start":"2026-01-02T00:00:00Z","end":"2026-01-01T00:00:00Z"}`,
			"arguments.end is before arguments.start; swap them", true},
		{"no moment", "time_between", `{"start":"yesterday","end":"2026-01-01T00:00:00Z"}`,
			`arguments.start: "yesterday" is not a moment in RFC 3339; write it like 2026-03-01T09:00:00+01:00`, true},
		{"nearly a zone", "get_current_time", `{"timezone":"europe/pari"}`,
			`arguments.timezone: unknown time zone "europe/pari"; did you mean Europe/Paris?`, true},
		{"no zone", "get_current_time", `{"timezone":"here"}`,
			`arguments.timezone: unknown time zone "here"; use an IANA name, such as Europe/Paris, Asia/Tokyo or UTC`, true},
		{"path", "get_current_time", `{"timezone":"../../etc/passwd"}`,
			`arguments.timezone: unknown time zone "../../etc/passwd"; use an IANA name, such as Europe/Paris, Asia/Tokyo or UTC`, true},
		{"nothing", "get_current_time", `{}`,
			`arguments.timezone: unknown time zone ""; use an IANA name, such as Europe/Paris, Asia/Tokyo or UTC`, true},
		{"wrong type", "get_current_time", `{"timezone":1}`, "arguments.timezone: expected string, got number", true},
		{"source", "convert_time", `{"source_timezone":"x","time":"12:00","target_timezone":"UTC"}`,
			`arguments.source_timezone: unknown time zone "x"; use an IANA name, such as Europe/Paris, Asia/Tokyo or UTC`, true},
		{"target", "convert_time", `{"source_timezone":"UTC","time":"12:00","target_timezone":"Asia/Tokio"}`,
			`arguments.target_timezone: unknown time zone "Asia/Tokio"; did you mean Asia/Tokyo?`, true},
		{"no time", "convert_time", `{"source_timezone":"UTC","time":"noon","target_timezone":"UTC"}`,
			`arguments.time: "noon" is not a time; write HH:MM with 24 hours, such as 17:30`, true},
	} {
		t.Run(row.name, func(t *testing.T) {
			got, isError := callTool(t, c, row.tool, row.arguments)
			if got != row.want || isError != row.isError {
				t.Errorf("got  %s, error %v\nwant %s, error %v", got, isError, row.want, row.isError)
			}
		})
	}
}

func TestCurrentTime(t *testing.T) {
	c := connect(t, "time", Options{})
	before := time.Now().Truncate(time.Second)
	got, _ := callTool(t, c, "get_current_time", `{"timezone":"Asia/Tokyo"}`)
	at, err := time.Parse(time.RFC3339, got)
	if _, offset := at.Zone(); err != nil || offset != 9*60*60 || at.Before(before) || at.After(time.Now()) {
		t.Errorf("%s: %v", got, err)
	}
	got, _ = callTool(t, c, "convert_time", `{"source_timezone":"Asia/Kolkata","time":"12:00","target_timezone":"Asia/Tokyo"}`)
	if at, err := time.Parse(time.RFC3339, got); err != nil || at.Format("15:04 -0700") != "15:30 +0900" {
		t.Errorf("%s: %v", got, err)
	}
}

// TestCommonZones: the time zones that errors suggest exist.
func TestCommonZones(t *testing.T) {
	for _, name := range commonZones {
		if _, err := time.LoadLocation(name); err != nil {
			t.Error(err)
		}
	}
}

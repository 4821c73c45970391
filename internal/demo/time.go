package demo

import (
	"context"
	"errors"
	"fmt"
	"time"
	_ "time/tzdata" // for systems without time zones, such as Windows and small containers; 450 KB

	"mcpx/internal/nearest"
)

// timeServer has the tool names of mcp-server-time, which many people know.
func timeServer(Options) (*server, error) {
	return &server{
		instructions: "Time zones are IANA names, such as Europe/Paris or UTC.",
		tools: []tool{{
			Name: "get_current_time", Title: "Current time",
			Description: "Get the current time in a time zone. The answer is in RFC 3339.",
			Input: schema(`{"type":"object","properties":{
				"timezone":{"type":"string","description":"IANA time zone","examples":["Europe/Paris","UTC"]}
			},"required":["timezone"],"additionalProperties":false}`),
			run: with(zoneArguments{}, currentTime),
		}, {
			Name: "convert_time", Title: "Convert a time",
			Description: "Convert a time of today from one time zone to another. The answer is in RFC 3339.",
			Input: schema(`{"type":"object","properties":{
				"source_timezone":{"type":"string","description":"IANA time zone of the time"},
				"time":{"type":"string","description":"Time as HH:MM, 24 hours","pattern":"^([01][0-9]|2[0-3]):[0-5][0-9]$"},
				"target_timezone":{"type":"string","description":"IANA time zone to convert to"}
			},"required":["source_timezone","time","target_timezone"],"additionalProperties":false}`),
			run: with(convertArguments{}, convertTime),
		}, {
			Name: "time_between", Title: "Time between two moments",
			Description: "Compute how much time passes between two moments.",
			Input: schema(`{"type":"object","properties":{
				"start":{"type":"string","format":"date-time","description":"RFC 3339, such as 2026-03-01T09:00:00+01:00"},
				"end":{"type":"string","format":"date-time","description":"RFC 3339, not before start"}
			},"required":["start","end"],"additionalProperties":false}`),
			Output: schema(`{"type":"object","properties":{
				"days":{"type":"integer"},"hours":{"type":"integer"},"minutes":{"type":"integer"},"seconds":{"type":"integer"},
				"total_seconds":{"type":"integer"}
			},"required":["days","hours","minutes","seconds","total_seconds"]}`),
			run: with(betweenArguments{}, timeBetween),
		}},
	}, nil
}

type zoneArguments struct{ Timezone string }

func currentTime(_ context.Context, _ *call, a zoneArguments) (*result, error) {
	zone, err := location("timezone", a.Timezone)
	if err != nil {
		return nil, err
	}
	return text("%s", time.Now().In(zone).Format(time.RFC3339)), nil
}

type convertArguments struct {
	Source string `json:"source_timezone"`
	Time   string
	Target string `json:"target_timezone"`
}

func convertTime(_ context.Context, _ *call, a convertArguments) (*result, error) {
	from, err := location("source_timezone", a.Source)
	if err != nil {
		return nil, err
	}
	to, err := location("target_timezone", a.Target)
	if err != nil {
		return nil, err
	}
	clock, err := time.Parse("15:04", a.Time)
	if err != nil {
		return nil, fmt.Errorf("arguments.time: %q is not a time; write HH:MM with 24 hours, such as 17:30", a.Time)
	}
	today := time.Now().In(from)
	at := time.Date(today.Year(), today.Month(), today.Day(), clock.Hour(), clock.Minute(), 0, 0, from)
	return text("%s", at.In(to).Format(time.RFC3339)), nil
}

// span is the time between two moments.
type span struct {
	Days    int64 `json:"days"`
	Hours   int64 `json:"hours"`
	Minutes int64 `json:"minutes"`
	Seconds int64 `json:"seconds"`
	Total   int64 `json:"total_seconds"`
}

type betweenArguments struct{ Start, End string }

func timeBetween(_ context.Context, _ *call, a betweenArguments) (*result, error) {
	start, err := moment("start", a.Start)
	if err != nil {
		return nil, err
	}
	end, err := moment("end", a.End)
	if err != nil {
		return nil, err
	}
	total := end.Unix() - start.Unix() // a time.Duration holds at most 292 years
	if total < 0 {
		return nil, errors.New("arguments.end is before arguments.start; swap them")
	}
	const minute, hour, day = 60, 60 * 60, 24 * 60 * 60
	return structured(span{
		Days: total / day, Hours: total % day / hour, Minutes: total % hour / minute, Seconds: total % minute, Total: total,
	}), nil
}

func moment(argument, value string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, value)
	if err != nil {
		return at, fmt.Errorf("arguments.%s: %q is not a moment in RFC 3339; write it like 2026-03-01T09:00:00+01:00", argument, value)
	}
	return at, nil
}

// location returns a time zone, or an error that suggests one.
func location(argument, name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if name != "" && err == nil {
		return zone, nil
	}
	if near := nearest.Word(name, commonZones); near != "" {
		return nil, fmt.Errorf("arguments.%s: unknown time zone %q; did you mean %s?", argument, name, near)
	}
	return nil, fmt.Errorf("arguments.%s: unknown time zone %q; use an IANA name, such as Europe/Paris, Asia/Tokyo or UTC", argument, name)
}

// commonZones are the time zones that errors suggest.
var commonZones = []string{
	"UTC",
	"Africa/Cairo", "Africa/Johannesburg", "Africa/Lagos", "Africa/Nairobi",
	"America/Anchorage", "America/Argentina/Buenos_Aires", "America/Bogota", "America/Chicago", "America/Denver", "America/Halifax",
	"America/Lima", "America/Los_Angeles", "America/Mexico_City", "America/New_York", "America/Phoenix", "America/Santiago",
	"America/Sao_Paulo", "America/Toronto", "America/Vancouver",
	"Asia/Bangkok", "Asia/Dhaka", "Asia/Dubai", "Asia/Ho_Chi_Minh", "Asia/Hong_Kong", "Asia/Jakarta", "Asia/Jerusalem", "Asia/Karachi",
	"Asia/Kathmandu", "Asia/Kolkata", "Asia/Manila", "Asia/Riyadh", "Asia/Seoul", "Asia/Shanghai", "Asia/Singapore", "Asia/Taipei",
	"Asia/Tehran", "Asia/Tokyo",
	"Atlantic/Reykjavik",
	"Australia/Adelaide", "Australia/Brisbane", "Australia/Melbourne", "Australia/Perth", "Australia/Sydney",
	"Europe/Amsterdam", "Europe/Athens", "Europe/Berlin", "Europe/Brussels", "Europe/Budapest", "Europe/Copenhagen", "Europe/Dublin",
	"Europe/Helsinki", "Europe/Istanbul", "Europe/Kyiv", "Europe/Lisbon", "Europe/London", "Europe/Madrid", "Europe/Moscow",
	"Europe/Oslo", "Europe/Paris", "Europe/Prague", "Europe/Rome", "Europe/Stockholm", "Europe/Vienna", "Europe/Warsaw", "Europe/Zurich",
	"Pacific/Auckland", "Pacific/Honolulu",
}

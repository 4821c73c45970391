package logging

import (
	"io"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// BenchmarkLine: the line of a call, as internal/app logs it, from Later to the writer.
func BenchmarkLine(b *testing.B) {
	for _, row := range []struct {
		name, level string
		format      format
	}{{"console", "info", console{}.format}, {"json", "info", formatJSON}, {"off", "warn", formatJSON}} {
		b.Run(row.name, func(b *testing.B) {
			l := &Log{queue: &queue{out: io.Discard, format: row.format}} // without its goroutine, so that all work is measured
			l.least.set(row.level)
			l.Logger = zerolog.New(l.queue).With().Timestamp().Logger().Sample(&l.least)
			b.ReportAllocs()
			for n := 0; b.Loop(); n++ {
				l.Later(func() {
					l.Info().Str("client", "http-7f3a9c").Str("request", "1234").Str("server", "files").Str("tool", "read_file").Str("outcome", "ok").
						Dur("ms", 1230*time.Microsecond).Int("in", 42).Int("out", 1234).Msg("call")
				})
				if n%100 == 0 {
					l.Flush()
					l.queue.flush()
				}
			}
		})
	}
}

package app

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// handleHangup makes SIGHUP apply the config file and open the log and audit files again,
// until stop is called. A SIGHUP because the terminal of mcpx was closed ends the returned
// context instead: nobody could stop mcpx any more.
func (a *App) handleHangup(ctx context.Context) (_ context.Context, stop func()) {
	detached := signal.Ignored(syscall.SIGHUP) || !hasTerminal() // nohup ignores the signal
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-signals:
			}
			if !detached && !hasTerminal() {
				a.log.Info().Msg("the terminal was closed; stopping")
				cancel()
				return
			}
			if err := a.log.Reopen(); err != nil {
				a.log.Error().Err(err).Msg("the log file cannot be opened again; mcpx goes on with the old one")
			}
			if err := a.audit.Reopen(); err != nil {
				a.log.Error().Err(err).Msg("the audit file cannot be opened again; mcpx goes on with the old one")
			}
			_ = a.Reload() // it reports its own error
		}
	})
	return ctx, func() {
		cancel()
		running.Wait()
		signal.Stop(signals)
	}
}

// hasTerminal reports whether the process has a controlling terminal. Windows has
// none of this name.
func hasTerminal() bool {
	f, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	_ = f.Close()
	return true
}

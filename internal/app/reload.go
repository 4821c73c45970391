package app

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"mcpx/config"
	"mcpx/internal/parts/lock/lockfile"
	"mcpx/internal/parts/search"
	"mcpx/server"
	httpfront "mcpx/server/http"
)

// reloading holds the state of reloads.
type reloading struct {
	problem atomic.Pointer[string] // why the newest config file is not in use; nil if it is

	mu        sync.Mutex                // one reload at a time
	ctx       context.Context           // ends when mcpx begins to stop; nil before Run
	web       *httpfront.HTTP           // nil on stdio
	servers   map[string]*server.Server // of web, by profile name
	restart   []string                  // sections that need a restart, as reported last
	stopWatch context.CancelFunc        // nil unless the config file is watched
}

var (
	errNoFile   = errors.New("there is no config file to read again")
	errStopping = errors.New("mcpx is stopping")
)

// allowReload lets reloads begin. They end when mcpx begins to stop.
func (a *App) allowReload(ctx, upstreams context.Context) {
	a.reload.mu.Lock()
	defer a.reload.mu.Unlock()
	a.reload.ctx, a.upstreams = ctx, upstreams
	a.setWatch(a.config.Watch && a.Load != nil)
}

// Reload reads the config file again and applies it to everything that runs. If the file
// has an error, nothing changes. It does not wait for upstreams, and may be called
// concurrently.
func (a *App) Reload() error {
	a.reload.mu.Lock()
	defer a.reload.mu.Unlock()
	switch {
	case a.Load == nil:
		return errNoFile
	case a.reload.ctx == nil || a.reload.ctx.Err() != nil:
		return errStopping
	}
	next, err := a.Load()
	var chosen []*config.Profile
	if err == nil {
		chosen, err = choose(next, a.profile)
	}
	if errors.Is(err, fs.ErrNotExist) { // the error has a sample, for somebody who starts
		err = fmt.Errorf("%s does not exist", a.config.File)
	}
	if err != nil {
		a.setProblem(err.Error())
		a.log.Error().Err(err).Msg("the config file has changed, but is not in use")
		return err
	}
	a.keepSections(next)
	a.apply(next, chosen)
	a.setProblem("")
	a.warn()
	a.log.Info().Str("config", next.File).Msg("config reloaded")
	if watch := next.Watch; watch != (a.reload.stopWatch != nil) {
		a.setWatch(watch)
	}
	return nil
}

// setProblem sets why the newest config file is not in use; empty if it is.
func (a *App) setProblem(problem string) {
	a.reload.problem.Store(&problem)
	for _, p := range a.Profiles() {
		p.Executor.SetProblem(problem)
	}
}

// ReloadProblem returns why the newest config file is not in use; empty if it is.
func (a *App) ReloadProblem() string {
	if problem := a.reload.problem.Load(); problem != nil {
		return *problem
	}
	return ""
}

// keepSections keeps the sections of the config that need a restart, and logs once which
// of them have changed.
func (a *App) keepSections(next *config.Config) {
	var restart []string
	for _, section := range []struct {
		name      string
		old, next any
	}{
		{"server", &a.config.Server, &next.Server},
		{"cli", &a.config.Stdio, &next.Stdio},
		{"logging", &a.config.Logging, &next.Logging},
		{"limits", &a.config.Limits, &next.Limits},
		{"auth", &a.config.Auth, &next.Auth},
	} {
		if !reflect.DeepEqual(section.old, section.next) {
			restart = append(restart, section.name)
			reflect.ValueOf(section.next).Elem().Set(reflect.ValueOf(section.old).Elem())
		}
	}
	if len(restart) > 0 && !slices.Equal(restart, a.reload.restart) {
		a.log.Warn().Str("sections", strings.Join(restart, ", ")).Msg("restart mcpx to apply the changes in these sections of the config")
	}
	a.reload.restart = restart
}

// apply puts a config into use. A profile that the old config has too keeps its registry.
func (a *App) apply(c *config.Config, chosen []*config.Profile) {
	a.config = c
	a.search.Apply(search.Section.Of(c.Parts))
	a.readLock(c)
	old := a.Profiles()
	var profiles []*Profile
	for _, p := range chosen {
		at := slices.IndexFunc(old, func(o *Profile) bool { return o.Name == p.Name })
		if at < 0 {
			added := a.newProfile(c, p)
			profiles = append(profiles, added)
			a.tasks.Go(func() { _ = added.Registry.Run(a.upstreams) })
			continue
		}
		current := old[at]
		current.Executor.Apply(c, p)
		current.Registry.Apply(p)
		profiles = append(profiles, &Profile{Profile: p, Registry: current.Registry, Executor: current.Executor})
	}
	a.profiles.Store(&profiles)
	servers := a.reload.servers
	if a.reload.web != nil {
		a.setServers()
	}
	for _, o := range old {
		if !slices.ContainsFunc(profiles, func(p *Profile) bool { return p.Name == o.Name }) {
			a.tasks.Go(func() { a.remove(o, servers[o.Name]) })
		}
	}
}

// setServers makes the HTTP front serve the current profiles.
func (a *App) setServers() {
	servers := map[string]*server.Server{}
	for _, p := range a.Profiles() {
		if old := a.reload.servers[p.Name]; old != nil {
			servers[p.Name] = old.With(p.Profile, a.serverOptions())
			continue
		}
		if a.replicas != nil {
			p.Executor.Share(a.replicas.Shelf(p.Name))
		}
		servers[p.Name] = server.New(p.Profile, p.Registry, p.Executor, a.serverOptions())
	}
	a.reload.servers = servers
	a.reload.web.SetServers(servers)
}

// remove ends a profile and its client sessions when its calls in flight have ended.
func (a *App) remove(p *Profile, s *server.Server) {
	p.Registry.Close()
	if a.reload.web != nil {
		a.reload.web.EndSessions(s)
	}
}

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

// lookEvery is how often a watched config file is read.
const lookEvery = time.Second

// setWatch starts or stops the watch of the config file. The caller holds a.reload.mu.
func (a *App) setWatch(on bool) {
	if a.reload.stopWatch != nil {
		a.reload.stopWatch()
		a.reload.stopWatch = nil
	}
	if !on {
		return
	}
	ctx, cancel := context.WithCancel(a.reload.ctx)
	a.reload.stopWatch = cancel
	w := newWatch(a.config.File)
	a.tasks.Go(func() {
		ticker := time.NewTicker(lookEvery)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
				if w.look() {
					_ = a.Reload() // it reports its own error
				}
			}
		}
	})
}

// watch notices changes of a config file and of the lock file beside it, by their content:
// editors replace a file, Kubernetes replaces a link, and folders on a network send no
// events. See ADR 10.
type watch struct {
	file          string
	applied, seen hash // the content reported last, and that of the last look
}

type hash = [sha256.Size]byte

func newWatch(file string) *watch {
	now := contentHash(file)
	return &watch{file: file, applied: now, seen: now}
}

// look reports whether the content is new. Two looks in a row must find it, because a
// file may be written in several steps.
func (w *watch) look() bool {
	last := w.seen
	w.seen = contentHash(w.file)
	if w.seen != last || w.seen == w.applied {
		return false
	}
	w.applied = w.seen
	return true
}

// contentHash returns a hash of the config file and of the lock file beside it.
func contentHash(file string) hash {
	config, lock := fileHash(file, config.MaxBytes), fileHash(lockfile.Path(file), lockfile.MaxBytes)
	return sha256.Sum256(append(config[:], lock[:]...))
}

// fileHash returns a hash of a file, or of the error that keeps it from being read. A pipe
// can be read only once, so it never changes.
func fileHash(file string, limit int) hash {
	if info, err := os.Stat(file); err == nil && !info.Mode().IsRegular() {
		return hash{}
	}
	data, err := config.ReadFile(file, limit)
	if err != nil {
		data = []byte(err.Error())
	}
	return sha256.Sum256(data)
}

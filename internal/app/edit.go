package app

import (
	"context"
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"mcpx/config"
	"mcpx/config/edit"
	"mcpx/internal/parts/console"
	"mcpx/registry"
	"mcpx/registry/live"
)

// checkTime bounds the start of a server that is only checked.
const checkTime = time.Minute

var errBusy = errors.New("another server is being checked; try again when that is done")

// editing lets the console change the config file.
func (a *App) editing() console.Editing {
	var checking sync.Mutex
	return console.Editing{
		Edit: a.edit,
		Check: func(ctx context.Context, profile, name string, entry []byte) (*live.Upstream, []string, error) {
			if !checking.TryLock() {
				return nil, nil, errBusy
			}
			defer checking.Unlock()
			return a.checkServer(ctx, profile, name, entry)
		},
	}
}

// edit changes the config file as "mcpx add" does, and applies it.
func (a *App) edit(change func(e *edit.Editor) error) error {
	c, err := a.currentConfig()
	if err != nil {
		return err
	}
	if _, err := edit.File(ConfigHooks(), c.File, 0, change); err != nil {
		return err
	}
	return a.Reload()
}

// approve approves a server as it is now, as "mcpx pin" does, and applies it.
func (a *App) approve(write func(file string) error) error {
	c, err := a.currentConfig()
	if err != nil {
		return err
	}
	if err := write(c.File); err != nil {
		return err
	}
	return a.Reload()
}

// currentConfig returns the config that is in use, if it is from a file.
func (a *App) currentConfig() (*config.Config, error) {
	a.reload.mu.Lock()
	defer a.reload.mu.Unlock()
	if a.Load == nil {
		return nil, errNoFile
	}
	return a.config, nil
}

// checkServer starts a server as if it were in the config file, stops it again, and returns
// its last state. The file does not change.
func (a *App) checkServer(ctx context.Context, profile, name string, entry []byte) (*live.Upstream, []string, error) {
	current, err := a.currentConfig()
	if err != nil {
		return nil, nil, err
	}
	text, err := os.ReadFile(current.File)
	if err != nil {
		return nil, nil, err
	}
	changed, err := edit.Text(ConfigHooks(), current.File, text, func(e *edit.Editor) error { return e.Add(profile, name, entry) })
	if err != nil {
		return nil, nil, err
	}
	c, err := ConfigHooks().Parse(current.File, changed, os.LookupEnv)
	if err != nil {
		return nil, nil, err
	}
	c.StartAll()
	p, err := c.Profile(profile)
	if err != nil {
		return nil, nil, err
	}
	p.Upstreams = slices.DeleteFunc(p.Upstreams, func(u config.Upstream) bool { return u.Name != name })
	if len(p.Upstreams) == 0 {
		return nil, nil, errors.New("the server is disabled, so it cannot be checked")
	}
	options := a.registryOptions(current, p)
	options.Cache = nil // the server may never be saved
	options.Views = nil // it shows everything
	how := options.SignIn
	options.SignIn = func(u *config.Upstream, scopes []string) string { return "add the server, then " + how(u, scopes) }
	return a.tryUpstream(ctx, registry.New(p, options), name), p.Upstreams[0].LiteralSecrets(), nil
}

// tryUpstream runs the only upstream of a registry until it is ready or has failed.
func (a *App) tryUpstream(ctx context.Context, r *registry.Registry, name string) *live.Upstream {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	defer context.AfterFunc(a.upstreams, cancel)() // mcpx is stopping
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	var upstreams sync.WaitGroup
	upstreams.Go(func() { _ = r.Run(running) })
	u := *r.Settled(ctx, name)
	stop()
	upstreams.Wait()
	if u.State == live.Waiting {
		u.State = live.Failed // nobody will start it again
	}
	return &u
}

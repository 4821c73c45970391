package app

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/auth"
	"mcpx/internal/editfile"
	"mcpx/internal/seal"
	"mcpx/internal/store"
)

// openStore returns the store that replicas share, nil if the config has none. It connects
// when it is first used.
func openStore(c *config.Config, o store.Options) (*store.Redis, error) {
	if c.Server.Store == "" {
		return nil, nil
	}
	r, err := store.OpenRedis(c.Server.Store, o)
	if err != nil {
		return nil, fmt.Errorf("server.store: %w", err)
	}
	return r, nil
}

// openTokens returns the vault of a config's tokens: in the shared store, or in files if it is
// nil.
func openTokens(c *config.Config, shared *store.Redis, repaired editfile.Repaired) auth.Vault {
	if shared == nil {
		return auth.NewFiles(auth.Folder(), c.Auth.Store, repaired)
	}
	return auth.NewShared(shared, seal.New(seal.Token, c.Server.SessionKeys))
}

// personLimit is the longest time of a request to the store for a person who waits.
const personLimit = 5 * time.Second

// Accounts returns the accounts of a config, which sign in to its upstreams, and a function
// that ends their connections. Nothing is read yet. repaired is called for files of tokens that
// other users could read.
func Accounts(c *config.Config, repaired editfile.Repaired) (accounts *auth.Accounts, closeStore func(), err error) {
	shared, err := openStore(c, store.Options{Limit: personLimit})
	if err != nil {
		return nil, nil, err
	}
	return auth.New(openTokens(c, shared, repaired), zerolog.Nop()), func() { closeIfOpen(shared) }, nil
}

func closeIfOpen(shared *store.Redis) {
	if shared != nil {
		_ = shared.Close()
	}
}

// closeStore ends the connections to the store when everything that uses it has ended.
func (a *App) closeStore() {
	for _, p := range a.Profiles() {
		p.Executor.Close()
	}
	closeIfOpen(a.store)
}

// storeMetrics returns the metrics of a store.
func storeMetrics(s *store.Redis) []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "mcpx_store_up", Help: "1 if the store can be used."}, func() float64 {
			if s.State().Reason != "" {
				return 0
			}
			return 1
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "mcpx_store_requests_total", Help: "Requests to the store."}, func() float64 {
			return float64(s.State().Requests)
		}),
		prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "mcpx_store_failures_total", Help: "Requests to the store that failed."}, func() float64 {
			return float64(s.State().Failures)
		}),
	}
}

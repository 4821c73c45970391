package app

import (
	"context"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"mcpx/config"
	"mcpx/internal/atomicfile"
	"mcpx/internal/parts/metrics"
	"mcpx/internal/parts/replicas"
	"mcpx/internal/parts/replicas/redis"
	"mcpx/internal/parts/secrets"
	"mcpx/internal/parts/signin"
	"mcpx/internal/seal"
	"mcpx/internal/store"
	httpfront "mcpx/server/http"
)

// openStore returns the store that replicas share, nil if the config has none. It connects
// when it is first used.
func openStore(c *config.Config, o redis.Options) (*redis.Store, error) {
	if c.Server.Store == "" {
		return nil, nil
	}
	r, err := redis.Open(c.Server.Store, o)
	if err != nil {
		return nil, fmt.Errorf("server.store: %w", err)
	}
	return r, nil
}

// openTokens returns the vault of a config's tokens: in the shared store, or in files if it is
// nil.
func openTokens(c *config.Config, shared *redis.Store, repaired atomicfile.Repaired) signin.Vault {
	if shared == nil {
		return signin.NewFiles(signin.Folder(), c.Auth.Place, secrets.Key, repaired)
	}
	return signin.NewShared(shared, seal.New(seal.Token, c.Server.SessionKeys))
}

// addReplicas lets other processes with the same session key continue the client sessions of
// a front, and read kept results.
func (a *App) addReplicas(web *httpfront.HTTP) {
	keys := a.config.Server.SessionKeys
	if len(keys) == 0 {
		return
	}
	var shared store.Store
	if a.store != nil {
		shared = a.store
	}
	a.replicas = replicas.New(web, seal.New(seal.Session, keys), shared)
	web.Replicas = a.replicas
}

// runReplicas connects to the store, and runs the replicas until ctx ends.
func (a *App) runReplicas(ctx context.Context) {
	if a.store != nil {
		a.store.Start()
	}
	if a.replicas != nil {
		a.tasks.Go(func() { a.replicas.Run(ctx) })
	}
}

// personLimit is the longest time of a request to the store for a person who waits.
const personLimit = 5 * time.Second

// Accounts returns the accounts of a config, which sign in to its upstreams, and a function
// that ends their connections. Nothing is read yet. repaired is called for files of tokens that
// other users could read.
func Accounts(c *config.Config, repaired atomicfile.Repaired) (accounts *signin.Accounts, closeStore func(), err error) {
	shared, err := openStore(c, redis.Options{Limit: personLimit})
	if err != nil {
		return nil, nil, err
	}
	return signin.New(openTokens(c, shared, repaired), zerolog.Nop()), func() { closeIfOpen(shared) }, nil
}

func closeIfOpen(shared *redis.Store) {
	if shared != nil {
		_ = shared.Close()
	}
}

// closeStore ends the connections to the store when everything that uses it has ended.
func (a *App) closeStore() {
	if a.replicas != nil {
		a.replicas.Close()
	}
	closeIfOpen(a.store)
}

// storeNumbers returns the metrics of a store.
func storeNumbers(s *redis.Store) []metrics.Number {
	return []metrics.Number{
		{Name: "mcpx_store_up", Help: "1 if the store can be used.", Value: func() float64 {
			if s.State().Reason != "" {
				return 0
			}
			return 1
		}},
		{Name: "mcpx_store_requests_total", Help: "Requests to the store.", Value: func() float64 { return float64(s.State().Requests) }},
		{Name: "mcpx_store_failures_total", Help: "Requests to the store that failed.", Value: func() float64 { return float64(s.State().Failures) }},
	}
}

package search

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"mcpx/internal/neterr"
	"mcpx/internal/plain"
)

// The bounds on the work with vectors.
const (
	denseTime    = 2 * time.Second  // how long a search waits for vectors
	denseRest    = 30 * time.Second // how long an endpoint that failed gets no requests
	batchTime    = 30 * time.Second // for the vectors of a batch of tools
	batchTools   = 64
	maxTextBytes = 4000 // of a tool
	maxQueries   = 64   // whose vectors are kept
	fuseDepth    = 50   // hits of each ranking that are merged
)

// dense ranks tools by the meaning of their texts. The vectors of tools are made in the
// background, when a search needs them. Its methods may be called concurrently.
type dense struct {
	endpoint endpoint
	vectors  *vectors
	log      zerolog.Logger
	patience time.Duration // denseTime, less in tests

	ctx    context.Context // ends with close
	cancel context.CancelFunc
	fills  sync.WaitGroup

	mu        sync.Mutex
	isFilling bool
	restUntil time.Time     // no requests before
	isFailing bool          // the last request has failed, which was logged
	queries   []queryVector // the newest last
}

// queryVector is the vector of a query.
type queryVector struct {
	query  string
	vector []float32
}

func newDense(e Embeddings, folder string, log zerolog.Logger) *dense {
	d := &dense{endpoint: newEndpoint(e), vectors: newVectors(folder, e), log: log, patience: denseTime}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

// close ends the work in the background. It is safe to call twice.
func (d *dense) close() {
	d.mu.Lock() // no fill starts from now on
	d.cancel()
	d.mu.Unlock()
	d.fills.Wait()
	d.endpoint.client.CloseIdleConnections()
}

// rank returns the tools nearest to a query, best first, nil if it cannot say in time. Tools
// whose vectors are not known yet are missing.
func (d *dense) rank(ctx context.Context, x *toolIndex, query string) []hit {
	if d.isResting() {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.patience)
	defer cancel()
	texts := x.texts()
	started := d.fill(texts)
	near, err := d.queryVector(ctx, query)
	if err != nil {
		return nil
	}
	select {
	case <-started:
	case <-ctx.Done():
	}
	return nearest(near, d.vectors.get(texts.keys))
}

// nearest returns the documents whose vectors are nearest to one, best first.
func nearest(to []float32, documents [][]float32) (hits []hit) {
	for d, vector := range documents {
		if len(vector) != len(to) {
			continue // not known yet, or of another model
		}
		score := float32(0)
		for i, x := range to {
			score += x * vector[i]
		}
		if score > 0 {
			hits = append(hits, hit{d, float64(score)})
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int { return cmp.Compare(b.Score, a.Score) })
	return hits[:min(fuseDepth, len(hits))]
}

// queryVector returns the vector of a query.
func (d *dense) queryVector(ctx context.Context, query string) ([]float32, error) {
	query = plain.Cut(query, maxTextBytes)
	if found := d.knownQuery(query); found != nil {
		return found, nil
	}
	made, err := d.endpoint.embed(ctx, []string{query})
	if ctx.Err() == context.Canceled {
		return nil, ctx.Err() // the client has canceled, which says nothing about the endpoint
	}
	d.report(err)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.queries = append(d.queries, queryVector{query, made[0]})
	d.queries = d.queries[max(0, len(d.queries)-maxQueries):]
	return made[0], nil
}

func (d *dense) knownQuery(query string) []float32 {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, q := range d.queries {
		if q.query == query {
			return q.vector
		}
	}
	return nil
}

// fill makes the vectors of tools in the background, unless it already does so. It returns a
// channel that is closed when the fill has ended that it has started: only that search waits.
func (d *dense) fill(t *toolTexts) <-chan struct{} {
	done := make(chan struct{})
	missing := t.missing(d.vectors)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.isFilling || len(missing) == 0 || d.ctx.Err() != nil {
		close(done)
		return done
	}
	d.isFilling = true
	d.fills.Go(func() {
		defer close(done)
		d.embedTools(t, missing)
		d.mu.Lock()
		defer d.mu.Unlock()
		d.isFilling = false
	})
	return done
}

// embedTools makes the vectors of these tools, and saves them.
func (d *dense) embedTools(t *toolTexts, tools []int) {
	for batch := range slices.Chunk(tools, batchTools) {
		texts, keys := make([]string, len(batch)), make([]vectorKey, len(batch))
		for i, tool := range batch {
			texts[i], keys[i] = t.texts[tool], t.keys[tool]
		}
		ctx, cancel := context.WithTimeout(d.ctx, batchTime)
		made, err := d.endpoint.embed(ctx, texts)
		cancel()
		if d.ctx.Err() != nil {
			break
		}
		if d.report(err); err != nil {
			break
		}
		d.vectors.add(keys, made)
	}
	if err := d.vectors.save(); err != nil {
		d.log.Debug().Err(err).Msg("could not save the vectors of tools")
	}
}

func (d *dense) isResting() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return time.Now().Before(d.restUntil)
}

// report records how a request has ended. It logs the first of several failures.
func (d *dense) report(err error) {
	d.mu.Lock()
	hasFailed := d.isFailing
	d.isFailing = err != nil
	if err != nil {
		d.restUntil = time.Now().Add(denseRest)
	}
	d.mu.Unlock()
	switch {
	case err != nil && !hasFailed:
		d.log.Warn().Str("reason", reason(err)).Msg("the endpoint of search.embeddings fails; search compares words until it works")
	case err == nil && hasFailed:
		d.log.Info().Msg("the endpoint of search.embeddings works again")
	}
}

// reason returns why a request has failed, without secrets.
func reason(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "it does not respond in time"
	}
	return neterr.Reason(err)
}

func encodeName(sum [32]byte) string { return hex.EncodeToString(sum[:12]) }

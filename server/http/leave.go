package httpfront

import (
	"encoding/json"
	"net/http"
	"time"

	"mcpx/internal/store"
)

// leave keeps serving for StopDelay, so that load balancers stop sending requests before
// connections are refused: /health responds with 503, and each connection closes after its next
// response. It returns early if the listener fails.
func (h *HTTP) leave(ended <-chan error) error {
	h.leaving.Store(true)
	select {
	case err := <-ended:
		return err
	case <-time.After(h.StopDelay):
		return nil
	}
}

// health serves GET /health: 200, or 503 while mcpx leaves. The state of upstreams and of the
// store does not change that. Everybody may read it, so it has no addresses.
func (h *HTTP) health(w http.ResponseWriter, _ *http.Request) {
	response := struct {
		Status string       `json:"status"`
		Store  store.Health `json:"store,omitzero"`
	}{Status: "ok"}
	if h.StoreState != nil {
		response.Store = h.StoreState().Health
	}
	w.Header().Set("Content-Type", "application/json")
	if h.leaving.Load() {
		response.Status = "stopping"
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	body, _ := json.Marshal(response) // cannot fail: strings and a time
	_, _ = w.Write(body)
}

// closeWhenLeaving makes clients and load balancers open their next connection elsewhere.
func (h *HTTP) closeWhenLeaving(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.leaving.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

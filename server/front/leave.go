package front

import (
	"net/http"
	"time"
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

// closeWhenLeaving makes clients and load balancers open their next connection elsewhere.
func (h *HTTP) closeWhenLeaving(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if h.leaving.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

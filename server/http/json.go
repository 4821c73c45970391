package httpfront

import (
	"encoding/json"
	"errors"
	"net/http"

	"mcpx/internal/rawjson"
	"mcpx/registry"
	"mcpx/server/access"
)

// WriteJSON writes a response of a Route.
func WriteJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

// WriteDone writes that a change is done, or its error.
func WriteDone(w http.ResponseWriter, err error) {
	if err != nil {
		WriteError(w, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

// WriteError writes the error of a request that was understood: 404 for a server that does not
// exist, 422 for everything else.
func WriteError(w http.ResponseWriter, err error) {
	status := http.StatusUnprocessableEntity
	if errors.Is(err, registry.ErrUnknown) {
		status = http.StatusNotFound
	}
	access.Refuse(w, status, err.Error())
}

// Object reads the body of a request, which must be a JSON object. If it fails, it writes the
// error response and returns false.
func (h *HTTP) Object(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	body, ok := h.Body(w, r)
	if ok && (rawjson.Kind(body) != '{' || rawjson.Check(body) != nil || rawjson.DuplicateKey(body) != nil) {
		access.Refuse(w, http.StatusBadRequest, "the body must be a JSON object without repeated keys")
		return nil, false
	}
	return body, ok
}

package servertest

import (
	"net/http"

	"mcpx/internal/policy"
	"mcpx/server/access"
)

// Callers are the callers of a front: what each may use, by its token. All are called "ci".
type Callers map[string]policy.Rules

// Find implements access.Callers.
func (c Callers) Find(_ *http.Request, token string) (*policy.Caller, *access.Refusal) {
	rules, ok := c[token]
	if !ok {
		return nil, nil
	}
	return &policy.Caller{ID: "ci", Name: "ci", Rules: rules}, nil
}

// MissingScope implements access.Callers. There are no scopes.
func (c Callers) MissingScope(*policy.Caller, string) string { return "" }

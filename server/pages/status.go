package pages

import (
	"net/http"
	"time"

	"mcpx/internal/store"
	"mcpx/internal/tokens"
	"mcpx/registry/live"
	"mcpx/server"
	"mcpx/server/access"
	httpfront "mcpx/server/http"
)

// status is the response to GET /status.
type status struct {
	Version  string                      `json:"version"`
	Sessions int                         `json:"sessions"` // open client sessions
	Profiles map[string][]UpstreamStatus `json:"schemas"`  // upstreams by profile name, in config order
	Context  map[string]contextStatus    `json:"context"`
	Config   configStatus                `json:"config"`
	Disabled map[string][]disabledStatus `json:"disabled,omitempty"` // servers that the config disables, by profile name

	AuditFailed int64       `json:"audit_failed,omitempty"` // lines of the audit that could not be written
	Store       store.State `json:"store,omitzero"`         // the store that replicas share
}

// disabledStatus is a server that the config disables.
type disabledStatus struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Transport   string `json:"transport"`
}

// configStatus is the state of the config file.
type configStatus struct {
	Reload  bool   `json:"reload"`            // POST /reload is allowed
	Problem string `json:"problem,omitempty"` // why the newest file is not in use
	Control bool   `json:"control"`           // servers may be stopped, started and restarted
}

// UpstreamStatus is the state of an upstream.
type UpstreamStatus struct {
	Name        string    `json:"name"`
	Description string    `json:"description,omitempty"`
	Transport   string    `json:"transport"`
	State       string    `json:"state"`
	Reason      string    `json:"reason,omitempty"`
	Advice      string    `json:"advice,omitempty"` // what to do, as "mcpx check" says it
	Review      string    `json:"review,omitempty"` // what the views of the lists say, such as what waits for a review
	Stderr      []string  `json:"stderr,omitempty"`
	RetryAt     time.Time `json:"retry_at,omitzero"`
	StartupMS   int64     `json:"startup_ms,omitempty"`
	ListedAt    time.Time `json:"listed_at,omitzero"` // when its lists were read
	Tools       int       `json:"tools"`
	Prompts     int       `json:"prompts"`
	Resources   int       `json:"resources"`
	Tokens      int       `json:"tokens"` // of its full tool definitions
}

// contextStatus is how many tokens the tools of a profile take in a client's context.
type contextStatus struct {
	Without int `json:"without"` // without mcpx: all tools
	With    int `json:"with"`    // with mcpx: inspect and exec
}

// StatusOf returns the state of an upstream as people see it.
func StatusOf(u *live.Upstream) UpstreamStatus {
	u = u.Shown()
	return UpstreamStatus{
		Name:        u.Name,
		Description: u.Description,
		Transport:   string(u.Config.Transport),
		State:       string(u.State),
		Reason:      u.Reason,
		Review:      u.Note(),
		Stderr:      u.LatestStderr(),
		RetryAt:     u.RetryAt,
		Advice:      adviceOn(u),
		StartupMS:   u.StartupTime.Milliseconds(),
		ListedAt:    u.ListedAt,
		Tools:       len(u.Tools),
		Prompts:     len(u.Prompts),
		Resources:   len(u.Resources) + len(u.Templates),
		Tokens:      u.Tokens(),
	}
}

// disabledOf returns the servers that the config disables.
func disabledOf(s *server.Server) (list []disabledStatus) {
	for _, u := range s.Disabled() {
		list = append(list, disabledStatus{u.Name, u.Description, string(u.Transport)})
	}
	return list
}

// adviceOn returns what to do about an upstream that has failed, also while it is tried
// again.
func adviceOn(u *live.Upstream) string {
	isRetried := u.State == live.Starting && u.Reason != ""
	if u.State == live.Failed || u.State == live.Waiting || isRetried {
		return u.Advice()
	}
	return ""
}

// status serves GET /status.
func (p *Pages) status(w http.ResponseWriter, r *http.Request) {
	response := status{Sessions: p.Front.OpenFor(r), Profiles: map[string][]UpstreamStatus{}, Disabled: map[string][]disabledStatus{}, Context: map[string]contextStatus{}}
	for name, s := range p.Front.Profiles() {
		if !access.MayUse(r.Context(), name) {
			continue
		}
		response.Version = s.Version
		client := httpfront.NewSessionlessClient(s, r)
		list := []UpstreamStatus{}
		context := contextStatus{With: tokens.CountBytes(s.FirstTexts(client))}
		for _, u := range s.Upstreams(client) {
			list = append(list, StatusOf(u))
			context.Without += u.Tokens()
		}
		if list := disabledOf(s); len(list) > 0 && access.MayUseAll(r.Context()) {
			response.Disabled[name] = list
		}
		response.Profiles[name], response.Context[name] = list, context
	}
	if access.MayUseAll(r.Context()) {
		response.Config.Reload, response.Config.Control = p.Front.MayEdit(), true
		if p.Problem != nil {
			response.Config.Problem = p.Problem()
		}
		if p.AuditFailed != nil {
			response.AuditFailed = p.AuditFailed()
		}
		if p.Front.StoreState != nil {
			response.Store = p.Front.StoreState()
		}
	}
	httpfront.WriteJSON(w, response)
}

// reload serves POST /reload: it applies the config file again.
func (p *Pages) reload(w http.ResponseWriter, r *http.Request) {
	if !p.Front.MayEdit() || !access.MayUseAll(r.Context()) {
		access.Refuse(w, http.StatusForbidden, `reloading from here is not allowed; set "server": {"console": "edit"} and a token, and restart mcpx`)
		return
	}
	if err := p.Reload(); err != nil {
		access.Refuse(w, http.StatusUnprocessableEntity, err.Error())
		return
	}
	w.WriteHeader(http.StatusNoContent)
}

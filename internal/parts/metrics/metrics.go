// Package metrics adds /metrics: numbers of calls, client sessions and upstreams, for
// Prometheus. Hooks: executor.Observer, httpfront.Route.
package metrics

import (
	"net/http"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	dto "github.com/prometheus/client_model/go"

	"mcpx/config"
	"mcpx/executor"
	"mcpx/internal/policy"
	"mcpx/registry"
	"mcpx/registry/live"
	"mcpx/server/access"
	httpfront "mcpx/server/http"
)

// unknownServer is the server label of calls to servers that the config does not
// have. Clients can invent names without end; each would be a new time series.
const unknownServer = "unknown"

// Metrics counts calls by their outcome. Its methods may be called concurrently.
type Metrics struct {
	registry *prometheus.Registry
	profiles func() []Profile
	calls    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	bytes    *prometheus.CounterVec
}

// Profile is a profile that is served.
type Profile struct {
	Name    string
	Expose  config.Expose
	Catalog *registry.Catalog
}

// New returns metrics of calls, of the open client sessions and of the upstreams of the
// profiles.
func New(profiles func() []Profile, sessions func() int) *Metrics {
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		profiles: profiles,
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcpx_calls_total", Help: "Calls to upstreams, by what became of them.",
		}, []string{"schema", "server", "outcome"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "mcpx_call_seconds", Help: "How long calls took.", Buckets: prometheus.ExponentialBuckets(0.001, 4, 9),
		}, []string{"schema", "server", "outcome"}),
		bytes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "mcpx_call_bytes_total", Help: "Bytes of arguments (in) and results (out).",
		}, []string{"schema", "server", "outcome", "direction"}),
	}
	m.registry.MustRegister(m.calls, m.seconds, m.bytes, upstreams(profiles), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m.Add(Number{"mcpx_sessions", "Client sessions that are open.", func() float64 { return float64(sessions()) }})
	return m
}

// Number is a number that somebody else knows. It is a counter if its name ends with _total.
type Number struct {
	Name, Help string
	Value      func() float64
}

// Add adds numbers.
func (m *Metrics) Add(numbers ...Number) {
	for _, n := range numbers {
		if strings.HasSuffix(n.Name, "_total") {
			m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: n.Name, Help: n.Help}, n.Value))
		} else {
			m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: n.Name, Help: n.Help}, n.Value))
		}
	}
}

// Observe counts a call. Its labels come from the config and from mcpx itself,
// never from a client.
func (m *Metrics) Observe(e executor.Event) {
	server := e.Server
	if !m.has(e.Profile, server) {
		server = unknownServer
	}
	m.calls.WithLabelValues(e.Profile, server, e.Outcome).Inc()
	m.seconds.WithLabelValues(e.Profile, server, e.Outcome).Observe(e.Took.Seconds())
	m.bytes.WithLabelValues(e.Profile, server, e.Outcome, "in").Add(float64(e.BytesIn))
	m.bytes.WithLabelValues(e.Profile, server, e.Outcome, "out").Add(float64(e.BytesOut))
}

// has reports whether the config has the server.
func (m *Metrics) has(profile, server string) bool {
	for _, p := range m.profiles() {
		if p.Name == profile {
			return server == executor.Builtin || p.Catalog.Upstream(server) != nil
		}
	}
	return false
}

// Routes returns /metrics. flush counts the last calls first.
func (m *Metrics) Routes(flush func()) []httpfront.Route {
	return []httpfront.Route{{Pattern: "GET /metrics", Access: httpfront.AllowedPages, Handler: m.handler(flush)}}
}

// handler returns a handler that responds with all metrics that the caller may see.
func (m *Metrics) handler(flush func()) http.Handler {
	all := promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		flush()
		caller := access.CallerOf(r.Context())
		if caller == nil || caller.Rules == nil {
			all.ServeHTTP(w, r)
			return
		}
		promhttp.HandlerFor(m.granted(caller.Rules), promhttp.HandlerOpts{}).ServeHTTP(w, r)
	})
}

// granted returns the metrics of the servers that the rules grant with all their tools:
// the numbers of a server count every tool.
func (m *Metrics) granted(rules policy.Rules) prometheus.Gatherer {
	return prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		families, err := m.registry.Gather()
		var some []*dto.MetricFamily
		for _, f := range families {
			f.Metric = slices.DeleteFunc(f.Metric, func(metric *dto.Metric) bool {
				labels := map[string]string{}
				for _, l := range metric.GetLabel() {
					labels[l.GetName()] = l.GetValue()
				}
				return labels["server"] == "" || rules.Extent(labels["schema"], labels["server"]) < policy.Everything
			})
			if len(f.Metric) > 0 {
				some = append(some, f)
			}
		}
		return some, err
	})
}

// upstreams collects the state of the upstreams of some profiles when it is requested.
type upstreams func() []Profile

var (
	stateDesc  = prometheus.NewDesc("mcpx_upstream_state", "1 for the state an upstream is in.", []string{"schema", "server", "state"}, nil)
	toolsDesc  = prometheus.NewDesc("mcpx_upstream_tools", "Tools of an upstream.", []string{"schema", "server"}, nil)
	tokensDesc = prometheus.NewDesc("mcpx_tokens_saved", "Tokens of tool lists that clients are spared.", []string{"schema"}, nil)
)

// Describe implements prometheus.Collector.
func (profiles upstreams) Describe(out chan<- *prometheus.Desc) {
	prometheus.DescribeByCollect(profiles, out)
}

// Collect implements prometheus.Collector.
func (profiles upstreams) Collect(out chan<- prometheus.Metric) {
	for _, p := range profiles() {
		saved := 0
		for _, u := range p.Catalog.Upstreams {
			for _, s := range live.States {
				value := 0.0
				if u.Shown().State == s {
					value = 1
				}
				out <- prometheus.MustNewConstMetric(stateDesc, prometheus.GaugeValue, value, p.Name, u.Name, string(s))
			}
			out <- prometheus.MustNewConstMetric(toolsDesc, prometheus.GaugeValue, float64(len(u.Tools)), p.Name, u.Name)
			if p.Expose == config.Lazy { // clients of a flat one are spared nothing
				saved += u.Tokens()
			}
		}
		out <- prometheus.MustNewConstMetric(tokensDesc, prometheus.GaugeValue, float64(saved), p.Name)
	}
}

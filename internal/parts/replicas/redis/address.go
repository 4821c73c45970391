package redis

import (
	"cmp"
	"crypto/tls"
	"errors"
	"net"
	"net/url"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"mcpx/internal/store"
)

// defaultPrefix begins all keys, unless the address names another prefix.
const defaultPrefix = "mcpx"

// errAddress does not repeat the address, which may have a password. The config says what an
// address may be.
var errAddress = errors.New("not the address of a store")

var prefixForm = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,64}$`)

// CheckAddress returns an error if a text is not the address of a store: the URL of a
// server, or of one that belongs to a Sentinel group (master_name) or a cluster (addr), with
// the parameters in parameters and prefix. The error has no part of the text.
func CheckAddress(text string) error {
	_, err := parse(text, store.Limit)
	return err
}

// address is a parsed address.
type address struct {
	connect connector
	prefix  string
	shown   string // without user and password
}

// connector creates a client, which connects when it is first used.
type connector func() client

// parse reads an address.
func parse(text string, limit time.Duration) (*address, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "redis" && u.Scheme != "rediss" {
		return nil, errAddress
	}
	a := &address{prefix: defaultPrefix, shown: u.Scheme + "://" + u.Host + u.Path}
	q := &query{values: u.Query()}
	if q.values.Has("prefix") {
		a.prefix = q.values.Get("prefix")
	}
	q.values.Del("prefix")
	a.connect = q.connector(u, limit)
	if !q.isValid() || !prefixForm.MatchString(a.prefix) {
		return nil, errAddress
	}
	return a, nil
}

// parameters are the parameters of an address, with the form of their values. Those without
// an effect are accepted because other clients of Redis have them: every request has a limit
// and is sent once, reads go to primaries, and connections are opened when they are needed.
var parameters = map[string]func(q *query, name string){
	"addr": nil, "master_name": nil, "username": nil, "password": nil, "client_name": nil, "identitySuffix": nil,

	"db": isInt, "max_redirects": isInt, "pool_size": isInt, "max_idle_conns": isInt, "max_active_conns": isInt,
	"conn_max_idle_time": isTime, "idle_timeout": isTime, "conn_max_lifetime": isTime, "max_conn_age": isTime,
	"skip_verify": isBool,

	"read_only": isFalse, "replica_only": isFalse, "route_by_latency": isFalse, "route_randomly": isFalse,

	"protocol": isInt, "max_retries": isInt, "dialer_retries": isInt, "min_idle_conns": isInt, "max_concurrent_dials": isInt,
	"pipeline_pool_size": isInt, "pipeline_read_buffer_size": isInt, "pipeline_write_buffer_size": isInt, "failing_timeout_seconds": isInt,
	"min_retry_backoff": isTime, "max_retry_backoff": isTime, "dial_timeout": isTime, "read_timeout": isTime, "write_timeout": isTime,
	"pool_timeout": isTime, "dialer_retry_timeout": isTime, "conn_max_lifetime_jitter": isTime, "route_by_latency_tolerance": isTime,
	"pool_fifo": isBool, "use_disconnected_replicas": isBool, "context_timeout_enabled": isBool, "disableIdentity": isBool, "unstable_resp3": isBool,
}

func isInt(q *query, name string)   { q.int(name) }
func isTime(q *query, name string)  { q.time(name) }
func isBool(q *query, name string)  { q.bool(name) }
func isFalse(q *query, name string) { q.isWrong = q.bool(name) || q.isWrong } // a value must be readable at once after it was written

// query are the parameters of one address.
type query struct {
	values  url.Values
	isWrong bool // a value has a wrong form
}

// isValid reports whether all parameters are known and have the right form.
func (q *query) isValid() bool {
	for name := range q.values {
		check, ok := parameters[name]
		if !ok {
			return false
		}
		if check != nil {
			check(q, name)
		}
	}
	return !q.isWrong
}

// text returns the last value of a parameter, "" if there is none.
func (q *query) text(name string) string {
	if all := q.values[name]; len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

func (q *query) int(name string) int {
	n, err := strconv.Atoi(cmp.Or(q.text(name), "0"))
	q.isWrong = err != nil || q.isWrong
	return n
}

func (q *query) bool(name string) bool {
	t := q.text(name)
	is := t == "1" || t == "true"
	q.isWrong = !is && t != "" && t != "0" && t != "false" || q.isWrong
	return is
}

// time returns a time; a number without a unit has seconds.
func (q *query) time(name string) time.Duration {
	t := cmp.Or(q.text(name), "0")
	if seconds, err := strconv.Atoi(t); err == nil {
		return time.Duration(seconds) * time.Second
	}
	d, err := time.ParseDuration(t)
	q.isWrong = err != nil || q.isWrong
	return d
}

// connector returns the connector of the servers that a URL names.
func (q *query) connector(u *url.URL, limit time.Duration) connector {
	hosts := []string{net.JoinHostPort(cmp.Or(u.Hostname(), "localhost"), cmp.Or(u.Port(), "6379"))}
	for _, more := range q.values["addr"] {
		host, port, err := net.SplitHostPort(more)
		q.isWrong = err != nil || host == "" || port == "" || q.isWrong
		hosts = append(hosts, net.JoinHostPort(host, port))
	}
	d := q.dialer(u)
	user := u.User.Username()
	password, _ := u.User.Password()
	switch l := q.limits(); {
	case q.values.Has("master_name"):
		sentinels := (&dialer{tls: d.tls}).as(user, password)
		d.options = append(d.options, q.database(u))
		return func() client {
			return newSentinel(&sentinel{
				name: q.text("master_name"), configured: hosts, limit: limit,
				sentinels: sentinels, servers: d.as(q.text("username"), q.text("password")),
			}, l)
		}
	case q.values.Has("addr"):
		redirects := cmp.Or(max(q.int("max_redirects"), 0), defaultRedirects)
		return func() client {
			return &cluster{dialer: d.as(user, password), limits: l, seeds: hosts, redirects: redirects, nodes: map[string]*pool{}}
		}
	default:
		d.options = append(d.options, q.database(u))
		q.isWrong = q.values.Has("username") || q.values.Has("password") || q.isWrong
		return func() client { return newPool(d.as(user, password).to(hosts[0]), l) }
	}
}

// dialer returns a dialer without user and password.
func (q *query) dialer(u *url.URL) *dialer {
	d := &dialer{options: []redis.DialOption{redis.DialClientName(q.text("client_name"))}}
	if u.Scheme == "rediss" {
		d.tls = &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12, InsecureSkipVerify: q.bool("skip_verify")} //nolint:gosec // the user's choice
	} else {
		q.isWrong = q.values.Has("skip_verify") || q.isWrong
	}
	return d
}

// database returns the database that the path or a parameter names.
func (q *query) database(u *url.URL) redis.DialOption {
	database := q.int("db")
	if path := strings.Trim(u.Path, "/"); path != "" && !q.values.Has("db") {
		var err error
		database, err = strconv.Atoi(path)
		q.isWrong = err != nil || q.isWrong
	}
	return redis.DialDatabase(database)
}

// limits returns the limits of a pool.
func (q *query) limits() limits {
	l := limits{
		open:     cmp.Or(max(q.int("pool_size"), 0), 10*runtime.GOMAXPROCS(0)),
		idleTime: cmp.Or(q.time("conn_max_idle_time"), q.time("idle_timeout"), 30*time.Minute),
		lifetime: cmp.Or(q.time("conn_max_lifetime"), q.time("max_conn_age")),
	}
	if most := q.int("max_active_conns"); most > 0 {
		l.open = min(l.open, most)
	}
	l.idle = l.open
	if most := q.int("max_idle_conns"); most > 0 {
		l.idle = min(l.open, most)
	}
	l.idleTime, l.lifetime = max(l.idleTime, 0), max(l.lifetime, 0)
	return l
}

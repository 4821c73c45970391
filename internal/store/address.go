package store

import (
	"errors"
	"net/url"
	"regexp"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// defaultPrefix begins all keys, unless the address names another prefix.
const defaultPrefix = "mcpx"

// errAddress does not repeat the address, which may have a password.
var errAddress = errors.New("not the address of a store; use redis://USER:PASSWORD@HOST:PORT/DATABASE, rediss:// for TLS, " +
	"?master_name=NAME for Sentinel, ?addr=HOST:PORT for further nodes of a cluster, ?prefix=NAME for the keys; " +
	"write special characters of a password as %XX")

var prefixForm = regexp.MustCompile(`^[A-Za-z0-9_.:-]{1,64}$`)

// CheckAddress returns an error if a text is not the address of a store: the URL of a
// server, or of one that belongs to a Sentinel group (master_name) or a cluster (addr), with
// the parameters of the client library and prefix. The error has no part of the text.
func CheckAddress(text string) error {
	_, err := parse(text)
	return err
}

// address is a parsed address. connect creates the client of its kind, which connects when
// it is first used.
type address struct {
	connect func(limit time.Duration) redis.UniversalClient
	prefix  string
	shown   string // without user and password
}

// parse reads an address. Times and retries that it sets are replaced: every request has
// a limit.
func parse(text string) (*address, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "redis" && u.Scheme != "rediss" {
		return nil, errAddress
	}
	query := u.Query()
	a := &address{prefix: defaultPrefix, shown: u.Scheme + "://" + u.Host + u.Path}
	if query.Has("prefix") {
		a.prefix = query.Get("prefix")
	}
	if !prefixForm.MatchString(a.prefix) {
		return nil, errAddress
	}
	query.Del("prefix")
	u.RawQuery = query.Encode()
	switch {
	case query.Has("master_name"):
		err = a.sentinel(u.String())
	case query.Has("addr"):
		err = a.cluster(u.String())
	default:
		err = a.single(u.String())
	}
	if err != nil {
		return nil, errAddress
	}
	logging.Disable() // the library would write to stderr
	return a, nil
}

func (a *address) single(text string) error {
	o, err := redis.ParseURL(text)
	if err != nil {
		return err
	}
	o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries = true, -1, 1
	o.Protocol, o.DisableIdentity, o.MaintNotificationsConfig = 2, true, noMaintenance()
	a.connect = func(limit time.Duration) redis.UniversalClient {
		longest := limit + maxTransfer // the context of a request ends first
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = limit, longest, longest, 2*longest
		return redis.NewClient(o)
	}
	return nil
}

func (a *address) sentinel(text string) error {
	o, err := redis.ParseFailoverURL(text)
	if err != nil {
		return err
	}
	if o.RouteByLatency || o.RouteRandomly || o.ReplicaOnly { // a value must be readable at once after it was written
		return errAddress
	}
	o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries = true, -1, 1
	o.Protocol, o.DisableIdentity = 2, true
	a.connect = func(limit time.Duration) redis.UniversalClient {
		longest := limit + maxTransfer // the context of a request ends first
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = limit, longest, longest, 2*longest
		return redis.NewFailoverClient(o)
	}
	return nil
}

func (a *address) cluster(text string) error {
	o, err := redis.ParseClusterURL(text)
	if err != nil {
		return err
	}
	if o.RouteByLatency || o.RouteRandomly || o.ReadOnly {
		return errAddress
	}
	o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries = true, -1, 1
	o.Protocol, o.DisableIdentity, o.MaintNotificationsConfig = 2, true, noMaintenance()
	a.connect = func(limit time.Duration) redis.UniversalClient {
		longest := limit + maxTransfer // the context of a request ends first
		o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = limit, longest, longest, 2*longest
		return redis.NewClusterClient(o)
	}
	return nil
}

// noMaintenance turns off notifications that only Redis Enterprise sends.
func noMaintenance() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

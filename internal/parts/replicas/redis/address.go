package redis

import (
	"errors"
	"net/url"
	"regexp"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

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
// the parameters of the client library and prefix. The error has no part of the text.
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
type connector func() goredis.UniversalClient

// parse reads an address. Times and retries that it sets are replaced: every request has
// a limit.
func parse(text string, limit time.Duration) (*address, error) {
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
	kind := single
	switch {
	case query.Has("master_name"):
		kind = sentinel
	case query.Has("addr"):
		kind = cluster
	}
	if a.connect, err = kind(u.String(), limit); err != nil {
		return nil, errAddress
	}
	logging.Disable() // the library would write to stderr
	return a, nil
}

// timeouts returns the timeouts of a client whose requests have a limit.
func timeouts(limit time.Duration) (dial, read, write, pool time.Duration) {
	longest := limit + maxTransfer // the context of a request ends first
	return limit, longest, longest, 2 * longest
}

func single(text string, limit time.Duration) (connector, error) {
	o, err := goredis.ParseURL(text)
	if err != nil {
		return nil, err
	}
	o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries = true, -1, 1
	o.Protocol, o.DisableIdentity, o.MaintNotificationsConfig = 2, true, noMaintenance()
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = timeouts(limit)
	return func() goredis.UniversalClient { return goredis.NewClient(o) }, nil
}

func sentinel(text string, limit time.Duration) (connector, error) {
	o, err := goredis.ParseFailoverURL(text)
	if err != nil || o.RouteByLatency || o.RouteRandomly || o.ReplicaOnly { // a value must be readable at once after it was written
		return nil, errAddress
	}
	o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries = true, -1, 1
	o.Protocol, o.DisableIdentity = 2, true
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = timeouts(limit)
	return func() goredis.UniversalClient { return goredis.NewFailoverClient(o) }, nil
}

func cluster(text string, limit time.Duration) (connector, error) {
	o, err := goredis.ParseClusterURL(text)
	if err != nil || o.RouteByLatency || o.RouteRandomly || o.ReadOnly {
		return nil, errAddress
	}
	o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries = true, -1, 1
	o.Protocol, o.DisableIdentity, o.MaintNotificationsConfig = 2, true, noMaintenance()
	o.DialTimeout, o.ReadTimeout, o.WriteTimeout, o.PoolTimeout = timeouts(limit)
	return func() goredis.UniversalClient { return goredis.NewClusterClient(o) }, nil
}

// noMaintenance turns off notifications that only Redis Enterprise sends.
func noMaintenance() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

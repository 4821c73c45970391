package registry

import (
	"context"
	"fmt"

	"github.com/rs/zerolog"

	"mcpx/config"
)

// dialer opens a link to an upstream. ctx bounds the opening, not the link's life.
type dialer func(ctx context.Context, c *config.Upstream, o Options, log zerolog.Logger) (link, error)

// dialers is the table of transports.
var dialers = map[config.Transport]dialer{
	config.TransportStdio:  dialStdio,
	config.TransportHTTP:   dialHTTP,
	config.TransportSSE:    dialSSE,
	config.TransportRemote: dialRemote,
}

func dial(ctx context.Context, c *config.Upstream, o Options, log zerolog.Logger) (link, error) {
	open, ok := dialers[c.Transport]
	if !ok {
		return nil, &failure{reason: fmt.Sprintf("the transport %q is not supported yet", c.Transport)}
	}
	return open(ctx, c, o, log)
}

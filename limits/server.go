package limits

import (
	"context"
	"net"
	"net/http"
	"time"
)

// The profile of a server. There is no WriteTimeout, because event streams are written for an hour. They set
// a deadline for each event, and remove the ReadTimeout, which would end them. A handler of the host that
// takes longer than ReadTimeout has to remove it too.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = time.Minute
	idleTimeout   = 2 * time.Minute
	headerBytes   = 32 << 10
)

// Server returns an http.Server whose clients cannot hold it with slow headers, slow bodies or idle
// connections. Its requests end when ctx does, so that Shutdown does not wait for event streams.
//
// A middleware that wraps the ResponseWriter must have an Unwrap method (http.ResponseController), or slow
// bodies are bounded by the server's ReadTimeout only.
func Server(ctx context.Context, handler http.Handler) *http.Server {
	return &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       readTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    headerBytes,
		BaseContext:       func(net.Listener) context.Context { return ctx },
	}
}

// Package httpapi serves the JSON API under /v1: a plain http.Handler over a payments.Engine.
//
// Each operation is one Go value (operation.go): method, path, scope, the types of its query, body
// and answer, its error codes and its function. Routing, checking of input (shape.go), and the
// OpenAPI document (document.go) are all made from that value. server.go takes a request through
// the checks that all share, in this order: key, rate, permission, path, query, Idempotency-Key,
// body. The other files hold the operations, one resource each.
//
// The handler starts no goroutine, keeps no global state, and can be mounted in any mux.
package httpapi

import (
	"net/http"
	"net/netip"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/internal/limit"
	"github.com/seed-8ee7f392/payments/store"
)

// Options adjust a Handler. The zero value works.
type Options struct {
	// Prefix is the path in front of /v1 when the handler is mounted below one without
	// http.StripPrefix, such as "/pay". Defaults to none.
	Prefix string
	// TrustedProxies are the peers whose forwarding header is believed. Defaults to none: then the
	// client is the peer.
	TrustedProxies []netip.Prefix
	// ForwardedHeader is the header in which they name the client, a list of addresses, the latest hop last.
	// Defaults to X-Forwarded-For.
	ForwardedHeader string
	// Limiter limits requests across processes. Defaults to one for this handler alone.
	Limiter store.Limiter
	// MaxBody is the largest request body in bytes. Defaults to 256 KiB.
	MaxBody int64
	// Timeout ends a request that takes too long, with 503. Defaults to 30 s.
	Timeout time.Duration
	// DocsURL is where error codes are explained; errors then link to DocsURL#code.
	DocsURL string
}

func (o *Options) complete() Options {
	var out Options
	if o != nil {
		out = *o
	}

	if out.ForwardedHeader == "" {
		out.ForwardedHeader = limit.ForwardedFor
	}

	if out.MaxBody <= 0 {
		out.MaxBody = 256 << 10
	}

	if out.Timeout <= 0 {
		out.Timeout = 30 * time.Second
	}

	return out
}

// Handler returns the API of an engine. o may be nil.
func Handler(e *payments.Engine, o *Options) http.Handler {
	engine := engine.Of(e)
	s := &server{
		options:      o.complete(),
		authenticate: engine.Accounts.Authenticate,
		answers: idempotency.Config[store.Tx]{
			Reader: engine.Store(),
			Update: engine.Update,
			Seal:   engine.Sealer(),
			Now:    engine.Now,
		},
		log:   engine.Log(),
		ids:   id.New(engine.Now, nil),
		local: limit.NewBuckets(engine.Now),
	}
	operations := (&api{engine}).operations()
	operations = append(operations, openAPI(operations, s.options.DocsURL))
	s.route(operations)

	return s
}

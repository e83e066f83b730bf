// Package httpapi serves the JSON API under /v1: a plain http.Handler over a payments.Engine.
//
// Each operation is one Go value (operation.go): method, path, scope, types of query, body and answer, error
// codes and function. Routing, input checks (shape.go) and the OpenAPI document (document.go) are made from
// that value. server.go runs the checks that all operations share, in this order: API key, rate limit, scope,
// path, query, Idempotency-Key, body. Each resource's operations are in a file of their own.
//
// The package sits beside httpapi/checkout, on top of package payments; only the host imports it. The handler
// starts no goroutine, keeps no global state, and can be mounted in any mux.
//
// It is one package because the OpenAPI document and the router are made from one list of all operations.
package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/internal/limit"
	"github.com/seed-8ee7f392/payments/internal/requestkey"
	"github.com/seed-8ee7f392/payments/store"
)

// Options adjust a Handler. The zero value works.
type Options struct {
	// Prefix is the path before /v1, such as "/pay", when the host does not use http.StripPrefix. Defaults to
	// none.
	Prefix string

	// TrustedProxies are the peers whose forwarding header is trusted. Defaults to none: the client
	// is the peer.
	TrustedProxies []netip.Prefix

	// ForwardedHeader is the trusted proxies' header: a list of addresses, the latest hop last. Defaults to
	// X-Forwarded-For.
	ForwardedHeader string

	// Limiter limits requests across processes. Defaults to a limiter in this handler's memory.
	Limiter store.Limiter

	// Timeout is a request's time limit; after it the answer is 503. Defaults to 30 s.
	Timeout time.Duration

	// DocsURL is the page that explains error codes; errors then link to DocsURL#code. Defaults to none.
	DocsURL string
}

// withDefaults returns a copy with the defaults set; o may be nil.
func (o *Options) withDefaults() Options {
	var out Options
	if o != nil {
		out = *o
	}

	if out.ForwardedHeader == "" {
		out.ForwardedHeader = limit.ForwardedFor
	}

	if out.Timeout <= 0 {
		out.Timeout = 30 * time.Second
	}

	return out
}

// Handler returns the HTTP API of an engine. o may be nil.
func Handler(e *payments.Engine, o *Options) http.Handler {
	engine := engine.Of(e)
	s := &server{
		options:      o.withDefaults(),
		limits:       engine.Limits(),
		authenticate: engine.Accounts.Authenticate,
		answers: requestkey.Config[payments.Tx]{
			Reader: engine.Store(),
			Update: engine.Update,
			Seal:   engine.Sealer(),
			Now:    engine.Now,

			Status: func(err error) int { return problemOf(err).status },

			Running: engine.Requests(),
		},
		seal:  engine.Sealer(),
		log:   engine.Log(),
		ids:   id.New(engine.Now, engine.Entropy()),
		local: limit.NewBuckets(engine.Now),
	}

	operations := (&api{engine}).operations()
	operations = append(operations, openAPI(operations, s.options.DocsURL))
	s.route(operations)

	return s
}

// api has a method for each operation; each resource has its own file.
type api struct {
	*engine.Engine
}

// operations returns all operations but the document's own, in the order of the document.
func (a *api) operations() []operation {
	return slices.Concat(
		a.invoices(), a.invoiceActions(), a.simulations(), a.payments(), a.settlements(),
		a.depositAddresses(), a.payouts(), a.refunds(), a.balances(), a.reference(),
		a.webhookEndpoints(), a.webhookEndpointActions(), a.webhookDeliveries(), a.events(),
	)
}

// openAPI returns the operation that serves the OpenAPI document of the given operations and of itself. The
// document is rendered at its first request, because that takes longer than everything else a Handler does at
// start.
func openAPI(operations []operation, docsURL string) operation { // spec D9.14
	var rendered func() ([]byte, error)

	op := get(operation{
		id:          "getDocument",
		path:        "/v1/openapi.json",
		tag:         "Reference",
		access:      noKey,
		summary:     "Read this document",
		description: "Needs no key.",
	}, func(context.Context, *call, none) (json.RawMessage, error) { return rendered() })

	rendered = sync.OnceValues(func() ([]byte, error) {
		return document(append(slices.Clone(operations), op), docsURL)
	})

	return op
}

package httpapi

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/seed-8ee7f392/payments/internal/engine"
)

// api holds the operations; each resource's are in a file of its own.
type api struct {
	*engine.Engine
}

// operations lists the whole API, in the order of the document.
func (a *api) operations() []operation {
	return slices.Concat(
		a.invoices(), a.simulations(), a.payments(), a.settlements(), a.depositAddresses(),
		a.payouts(), a.refunds(), a.balances(), a.reference(), a.webhookEndpoints(), a.events(),
	)
}

// openAPI is the operation that serves the document of all the others.
func openAPI(operations []operation, docsURL string) operation {
	var rendered json.RawMessage

	op := get(operation{
		id:          "getDocument",
		path:        "/v1/openapi.json",
		tag:         "Reference",
		access:      noKey,
		summary:     "Read this document",
		description: "Needs no key.",
	}, func(context.Context, *call, none) (json.RawMessage, error) { return rendered, nil })

	var err error
	if rendered, err = document(append(slices.Clone(operations), op), docsURL); err != nil {
		// a mistake in an operation's types
		panic("httpapi: the document of the API cannot be written: " + err.Error())
	}

	return op
}

// knownNetworks refuses a filter that names a network which is not there in the key's mode.
func (a *api) knownNetworks(c *call, slugs ...string) error {
	for _, slug := range slugs {
		if n, ok := a.Networks.Network(slug); !ok || n.Livemode != c.owner.Livemode {
			return invalid(
				"network", "network %q is not enabled; GET /v1/networks lists those that are",
				clip(slug),
			)
		}
	}

	return nil
}

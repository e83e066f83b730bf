package httpapi

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
)

type createEndpointBody struct {
	URL         string       `json:"url" format:"uri" maxLength:"2048"`
	Description string       `json:"description,omitempty" maxLength:"200"`
	Events      []event.Type `json:"events" maxItems:"100" maxLength:"64" nullable:"false"`
}

type updateEndpointBody struct {
	URL         *string                 `json:"url,omitempty" format:"uri" maxLength:"2048"`
	Description *string                 `json:"description,omitempty" maxLength:"200"`
	Events      *[]event.Type           `json:"events,omitempty" maxItems:"100" maxLength:"64" nullable:"false"`
	Status      *webhook.EndpointStatus `json:"status,omitempty" enum:"enabled,disabled"`
}

type rotateSecretBody struct {
	OverlapHours *int `json:"overlap_hours,omitempty" minimum:"0" maximum:"168"`
}

type deletedResource struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

type deliveryQuery struct {
	Status []webhook.DeliveryStatus `query:"status" enum:"pending,succeeded,failed" maxLength:"64"`
}

func (a *api) webhookEndpoints() []operation {
	const tag = "Webhooks"

	return []operation{
		write(operation{
			id:          "createWebhookEndpoint",
			method:      "POST",
			path:        "/v1/webhook_endpoints",
			tag:         tag,
			scope:       account.WebhooksWrite,
			summary:     "Register an endpoint",
			description: "The answer holds the signing secret, which cannot be read again.",
			codes:       []string{"409 webhook_endpoint_limit_exceeded", "422 url_not_allowed"},
		}, func(
			_ context.Context,
			c *call,
			b createEndpointBody,
		) (func(context.Context, store.Tx) (webhook.EndpointResource, error), error) {
			return func(ctx context.Context, tx store.Tx) (webhook.EndpointResource, error) {
				return withSecret(
					a.Webhooks.CreateEndpointTx(
						ctx,
						tx,
						webhook.EndpointParams{
							Owner:       c.owner,
							URL:         b.URL,
							Description: b.Description,
							Events:      b.Events,
						},
					),
				)
			}, nil
		}),
		list(operation{
			id:      "listWebhookEndpoints",
			path:    "/v1/webhook_endpoints",
			tag:     tag,
			scope:   account.WebhooksRead,
			summary: "List endpoints, newest first",
		}, func(ctx context.Context, c *call, _ none) (page[webhook.EndpointResource], error) {
			found, more, err := a.Webhooks.ListEndpoints(
				ctx, webhook.EndpointFilter{Owner: c.owner, After: c.after, Limit: c.limit},
			)

			return pageOf(
				found, more, err, webhook.Endpoint.Resource,
				func(e webhook.Endpoint) string { return e.ID },
			)
		}),
		get(operation{
			id:      "getWebhookEndpoint",
			path:    "/v1/webhook_endpoints/{id}",
			tag:     tag,
			scope:   account.WebhooksRead,
			summary: "Read an endpoint",
		}, func(ctx context.Context, c *call, _ none) (webhook.EndpointResource, error) {
			return withSecret(found(a.Webhooks.GetEndpoint(ctx, c.owner, c.id)))
		}),
		write(operation{
			id:          "updateWebhookEndpoint",
			method:      "PATCH",
			path:        "/v1/webhook_endpoints/{id}",
			tag:         tag,
			scope:       account.WebhooksWrite,
			summary:     "Change an endpoint",
			description: "Disabling it fails its pending deliveries.",
			codes:       []string{"422 url_not_allowed"},
		}, func(
			_ context.Context,
			c *call,
			b updateEndpointBody,
		) (func(context.Context, store.Tx) (webhook.EndpointResource, error), error) {
			return func(ctx context.Context, tx store.Tx) (webhook.EndpointResource, error) {
				u := webhook.EndpointUpdate{
					URL:         b.URL,
					Description: b.Description,
					Events:      b.Events,
					Status:      b.Status,
				}

				return withSecret(found(a.Webhooks.UpdateEndpointTx(ctx, tx, c.owner, c.id, u)))
			}, nil
		}),
		write(operation{
			id:          "deleteWebhookEndpoint",
			method:      "DELETE",
			path:        "/v1/webhook_endpoints/{id}",
			tag:         tag,
			scope:       account.WebhooksWrite,
			summary:     "Delete an endpoint",
			description: "Its pending deliveries fail.",
		}, func(_ context.Context, c *call, _ none) (func(context.Context, store.Tx) (deletedResource, error), error) {
			return func(ctx context.Context, tx store.Tx) (deletedResource, error) {
				err := a.Webhooks.DeleteEndpointTx(ctx, tx, c.owner, c.id)

				return deletedResource{ID: c.id, Deleted: true}, err
			}, nil
		}),
		write(operation{
			id:           "rotateWebhookSecret",
			method:       "POST",
			path:         "/v1/webhook_endpoints/{id}/rotate_secret",
			tag:          tag,
			scope:        account.WebhooksWrite,
			bodyOptional: true,
			summary:      "Give an endpoint a new signing secret",
			description: "The answer holds it, and it cannot be read again. The previous one signs along " +
				"for overlap_hours.",
		}, func(
			_ context.Context,
			c *call,
			b rotateSecretBody,
		) (func(context.Context, store.Tx) (webhook.EndpointResource, error), error) {
			overlap := 24 * time.Hour
			if b.OverlapHours != nil {
				overlap = time.Duration(*b.OverlapHours) * time.Hour
			}

			return func(ctx context.Context, tx store.Tx) (webhook.EndpointResource, error) {
				return withSecret(a.Webhooks.RotateSecretTx(ctx, tx, c.owner, c.id, overlap))
			}, nil
		}),
		write(operation{
			id:      "testWebhookEndpoint",
			method:  "POST",
			path:    "/v1/webhook_endpoints/{id}/test",
			tag:     tag,
			scope:   account.WebhooksWrite,
			summary: "Send a ping to an endpoint",
			codes:   []string{"409 webhook_endpoint_disabled"},
		}, func(
			_ context.Context,
			c *call,
			_ none,
		) (func(context.Context, store.Tx) (webhook.DeliveryResource, error), error) {
			return func(ctx context.Context, tx store.Tx) (webhook.DeliveryResource, error) {
				d, err := a.Webhooks.TestTx(ctx, tx, c.owner, c.id)
				return d.Resource(false), err
			}, nil
		}),
		list(operation{
			id:      "listEndpointDeliveries",
			path:    "/v1/webhook_endpoints/{id}/deliveries",
			tag:     tag,
			scope:   account.WebhooksRead,
			summary: "List the deliveries to an endpoint, newest first",
		}, func(ctx context.Context, c *call, q deliveryQuery) (page[webhook.DeliveryResource], error) {
			if _, err := a.Webhooks.GetEndpoint(ctx, c.owner, c.id); err != nil {
				return page[webhook.DeliveryResource]{}, err
			}

			return a.deliveriesPage(
				ctx,
				webhook.DeliveryFilter{
					Owner:      c.owner,
					EndpointID: c.id,
					Statuses:   q.Status,
					After:      c.after,
					Limit:      c.limit,
				},
			)
		}),
		get(operation{
			id:      "getWebhookDelivery",
			path:    "/v1/webhook_deliveries/{id}",
			tag:     tag,
			scope:   account.WebhooksRead,
			summary: "Read a delivery with what the endpoint answered",
		}, func(ctx context.Context, c *call, _ none) (webhook.DeliveryResource, error) {
			d, err := a.Webhooks.GetDelivery(ctx, c.owner, c.id)
			if err != nil {
				return webhook.DeliveryResource{}, err
			}

			return d.Resource(true), nil
		}),
		write(operation{
			id:      "resendWebhookDelivery",
			method:  "POST",
			path:    "/v1/webhook_deliveries/{id}/resend",
			tag:     tag,
			scope:   account.WebhooksWrite,
			summary: "Deliver an event to the same endpoint again",
			codes:   []string{"409 webhook_endpoint_disabled"},
		}, func(
			_ context.Context,
			c *call,
			_ none,
		) (func(context.Context, store.Tx) (webhook.DeliveryResource, error), error) {
			return func(ctx context.Context, tx store.Tx) (webhook.DeliveryResource, error) {
				d, err := a.Webhooks.ResendDeliveryTx(ctx, tx, c.owner, c.id)
				return d.Resource(false), err
			}, nil
		}),
	}
}

// withSecret renders an endpoint with its new secret, "" for none.
func withSecret(e webhook.Endpoint, secret string, err error) (webhook.EndpointResource, error) {
	if err != nil {
		return webhook.EndpointResource{}, err
	}

	r := e.Resource()
	r.Secret = secret

	return r, nil
}

// found is an endpoint whose secret nobody gets.
func found(e webhook.Endpoint, err error) (webhook.Endpoint, string, error) { return e, "", err }

// deliveriesPage lists deliveries; what the endpoints answered is shown only when one is read by its id.
func (a *api) deliveriesPage(
	ctx context.Context,
	f webhook.DeliveryFilter,
) (page[webhook.DeliveryResource], error) {
	records, more, err := a.Webhooks.ListDeliveries(ctx, f)

	return pageOf(
		records, more, err,
		func(d webhook.Delivery) webhook.DeliveryResource { return d.Resource(false) },
		func(d webhook.Delivery) string { return d.ID },
	)
}

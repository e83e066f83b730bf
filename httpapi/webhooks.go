package httpapi

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/webhook"
)

type createEndpointBody struct {
	URL         string       `json:"url" format:"uri" maxLength:"2048"`
	Description string       `json:"description,omitempty" maxLength:"200"`
	Events      []event.Type `json:"events" maxItems:"100" minLength:"1" maxLength:"64" nullable:"false"`
}

type updateEndpointBody struct { // spec D8.18
	URL         *string `json:"url,omitempty" format:"uri" maxLength:"2048"`
	Description *string `json:"description,omitempty" maxLength:"200"`

	Events *[]event.Type `json:"events,omitempty" maxItems:"100" minLength:"1" maxLength:"64" nullable:"false"`

	Status *webhook.EndpointStatus `json:"status,omitempty" enum:"enabled,disabled"`
}

type rotateSecretBody struct { // spec 4.11.1
	OverlapHours *int `json:"overlap_hours,omitempty" minimum:"0" maximum:"168"`
}

type deletedResource struct {
	ID      string `json:"id"`
	Deleted bool   `json:"deleted"`
}

type deliveryQuery struct {
	Status []webhook.DeliveryStatus `query:"status" enum:"pending,succeeded,failed" maxLength:"64"`
}

// webhookEndpoints returns the operations that create, read, update and delete endpoints.
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
		}, a.createWebhookEndpoint),
		list(operation{
			id:      "listWebhookEndpoints",
			path:    "/v1/webhook_endpoints",
			tag:     tag,
			scope:   account.WebhooksRead,
			summary: "List endpoints, newest first",
		}, a.listWebhookEndpoints),
		get(operation{
			id:      "getWebhookEndpoint",
			path:    "/v1/webhook_endpoints/{id}",
			tag:     tag,
			scope:   account.WebhooksRead,
			summary: "Read an endpoint",
		}, a.getWebhookEndpoint),
		write(operation{
			id:          "updateWebhookEndpoint",
			method:      "PATCH",
			path:        "/v1/webhook_endpoints/{id}",
			tag:         tag,
			scope:       account.WebhooksWrite,
			summary:     "Change an endpoint",
			description: "Disabling it fails its pending deliveries.",
			codes:       []string{"422 url_not_allowed"},
		}, a.updateWebhookEndpoint),
		write(operation{
			id:          "deleteWebhookEndpoint",
			method:      "DELETE",
			path:        "/v1/webhook_endpoints/{id}",
			tag:         tag,
			scope:       account.WebhooksWrite,
			summary:     "Delete an endpoint",
			description: "Its pending deliveries fail.",
		}, a.deleteWebhookEndpoint),
	}
}

// webhookEndpointActions returns the operations that rotate an endpoint's secret and test it.
func (a *api) webhookEndpointActions() []operation {
	const tag = "Webhooks"

	return []operation{
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
		}, a.rotateWebhookSecret),
		write(operation{
			id:      "testWebhookEndpoint",
			method:  "POST",
			path:    "/v1/webhook_endpoints/{id}/test",
			tag:     tag,
			scope:   account.WebhooksWrite,
			summary: "Send a ping to an endpoint",
			codes:   []string{"409 webhook_endpoint_disabled"},
		}, a.testWebhookEndpoint),
	}
}

// webhookDeliveries returns the operations on deliveries.
func (a *api) webhookDeliveries() []operation {
	const tag = "Webhooks"

	return []operation{
		list(operation{
			id:      "listEndpointDeliveries",
			path:    "/v1/webhook_endpoints/{id}/deliveries",
			tag:     tag,
			scope:   account.WebhooksRead,
			summary: "List the deliveries to an endpoint, newest first",
		}, a.listEndpointDeliveries),
		get(operation{
			id:      "getWebhookDelivery",
			path:    "/v1/webhook_deliveries/{id}",
			tag:     tag,
			scope:   account.WebhooksRead,
			summary: "Read a delivery with what the endpoint answered",
		}, a.getWebhookDelivery),
		write(operation{
			id:      "resendWebhookDelivery",
			method:  "POST",
			path:    "/v1/webhook_deliveries/{id}/resend",
			tag:     tag,
			scope:   account.WebhooksWrite,
			summary: "Deliver an event to the same endpoint again",
			codes:   []string{"409 webhook_endpoint_disabled"},
		}, a.resendWebhookDelivery),
	}
}

// createWebhookEndpoint registers an endpoint and shows its secret.
func (a *api) createWebhookEndpoint(
	_ context.Context,
	c *call,
	b createEndpointBody,
) (commit[webhook.EndpointResource], error) {
	params := webhook.EndpointParams{Owner: c.owner, URL: b.URL, Description: b.Description, Events: b.Events}

	return func(ctx context.Context, tx payments.Tx) (webhook.EndpointResource, error) {
		return withSecret(a.Webhooks.In(tx).CreateEndpoint(ctx, params))
	}, nil
}

// listWebhookEndpoints lists endpoints without their secrets.
func (a *api) listWebhookEndpoints(
	ctx context.Context,
	c *call,
	_ none,
) (page[webhook.EndpointResource], error) {
	found, more, err := a.Webhooks.ListEndpoints(
		ctx, webhook.EndpointFilter{Owner: c.owner, After: c.after, Limit: c.limit},
	)

	return pageOf(
		found, more, err, webhook.Endpoint.Resource,
		func(e webhook.Endpoint) string { return e.ID },
	)
}

// getWebhookEndpoint reads an endpoint without its secret.
func (a *api) getWebhookEndpoint(ctx context.Context, c *call, _ none) (webhook.EndpointResource, error) {
	return withoutSecret(a.Webhooks.GetEndpoint(ctx, c.owner, c.id))
}

// updateWebhookEndpoint changes the fields that are in the body.
func (a *api) updateWebhookEndpoint(
	_ context.Context,
	c *call,
	b updateEndpointBody,
) (commit[webhook.EndpointResource], error) {
	update := webhook.EndpointUpdate{
		URL:         b.URL,
		Description: b.Description,
		Events:      b.Events,
		Status:      b.Status,
	}

	return func(ctx context.Context, tx payments.Tx) (webhook.EndpointResource, error) {
		return withoutSecret(a.Webhooks.In(tx).UpdateEndpoint(ctx, c.owner, c.id, update))
	}, nil
}

// deleteWebhookEndpoint deletes an endpoint.
func (a *api) deleteWebhookEndpoint(_ context.Context, c *call, _ none) (commit[deletedResource], error) {
	return func(ctx context.Context, tx payments.Tx) (deletedResource, error) {
		err := a.Webhooks.In(tx).DeleteEndpoint(ctx, c.owner, c.id)

		return deletedResource{ID: c.id, Deleted: true}, err
	}, nil
}

// rotateWebhookSecret replaces the secret; the previous one stays valid for overlap_hours.
func (a *api) rotateWebhookSecret(
	_ context.Context,
	c *call,
	b rotateSecretBody,
) (commit[webhook.EndpointResource], error) {
	overlap := 24 * time.Hour
	if b.OverlapHours != nil {
		overlap = time.Duration(*b.OverlapHours) * time.Hour
	}

	return func(ctx context.Context, tx payments.Tx) (webhook.EndpointResource, error) {
		return withSecret(a.Webhooks.In(tx).RotateSecret(ctx, c.owner, c.id, overlap))
	}, nil
}

// testWebhookEndpoint creates a delivery of a ping.
func (a *api) testWebhookEndpoint(
	_ context.Context,
	c *call,
	_ none,
) (commit[webhook.DeliveryResource], error) {
	return func(ctx context.Context, tx payments.Tx) (webhook.DeliveryResource, error) {
		d, err := a.Webhooks.In(tx).Test(ctx, c.owner, c.id)
		return d.Resource(false), err
	}, nil
}

// withoutSecret renders an endpoint, or returns err.
func withoutSecret(endpoint webhook.Endpoint, err error) (webhook.EndpointResource, error) {
	return withSecret(endpoint, "", err)
}

// withSecret renders an endpoint with its signing secret, or returns err.
func withSecret(endpoint webhook.Endpoint, secret string, err error) (webhook.EndpointResource, error) {
	// spec 2.10.2
	if err != nil {
		return webhook.EndpointResource{}, err
	}

	resource := endpoint.Resource()
	resource.Secret = secret

	return resource, nil
}

// listEndpointDeliveries lists the deliveries to an endpoint.
func (a *api) listEndpointDeliveries(
	ctx context.Context,
	c *call,
	q deliveryQuery,
) (page[webhook.DeliveryResource], error) {
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
}

// getWebhookDelivery reads a delivery with its attempts.
func (a *api) getWebhookDelivery(ctx context.Context, c *call, _ none) (webhook.DeliveryResource, error) {
	d, err := a.Webhooks.GetDelivery(ctx, c.owner, c.id)
	if err != nil {
		return webhook.DeliveryResource{}, err
	}

	return d.Resource(true), nil
}

// resendWebhookDelivery creates another delivery of the same event to the same endpoint.
func (a *api) resendWebhookDelivery(
	_ context.Context,
	c *call,
	_ none,
) (commit[webhook.DeliveryResource], error) {
	return func(ctx context.Context, tx payments.Tx) (webhook.DeliveryResource, error) {
		d, err := a.Webhooks.In(tx).ResendDelivery(ctx, c.owner, c.id)
		return d.Resource(false), err
	}, nil
}

// deliveriesPage lists deliveries without their attempts, which only getWebhookDelivery shows.
func (a *api) deliveriesPage(
	ctx context.Context,
	f webhook.DeliveryFilter,
) (page[webhook.DeliveryResource], error) { // spec 4.10.1
	records, more, err := a.Webhooks.ListDeliveries(ctx, f)

	return pageOf(
		records, more, err,
		func(d webhook.Delivery) webhook.DeliveryResource { return d.Resource(false) },
		func(d webhook.Delivery) string { return d.ID },
	)
}

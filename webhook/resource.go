package webhook

import (
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/wire"
)

// EndpointResource is an endpoint as the API shows it (specification 2.10).
type EndpointResource struct { // spec 2.10.1
	ID                      string         `json:"id"`
	URL                     string         `json:"url" format:"uri"`
	Description             string         `json:"description,omitempty"`
	Events                  []event.Type   `json:"events" nullable:"false"`
	Status                  EndpointStatus `json:"status" enum:"enabled,disabled,failing"`
	SecretLast4             string         `json:"secret_last4"`
	PreviousSecretExpiresAt string         `json:"previous_secret_expires_at,omitempty" format:"date-time"`
	FailingSince            string         `json:"failing_since,omitempty" format:"date-time"`
	LastSuccessAt           string         `json:"last_success_at,omitempty" format:"date-time"`
	Livemode                bool           `json:"livemode"`
	CreatedAt               string         `json:"created_at" format:"date-time"`
	UpdatedAt               string         `json:"updated_at" format:"date-time"`
	// Secret is set only in the response that creates or rotates it.
	Secret string `json:"secret,omitempty"`
}

// Resource returns the endpoint as the API shows it, without its secret.
func (e Endpoint) Resource() EndpointResource {
	return EndpointResource{
		ID:                      e.ID,
		URL:                     e.URL,
		Description:             e.Description,
		Events:                  append([]event.Type{}, e.Events...),
		Status:                  e.Status,
		SecretLast4:             e.SecretLast4,
		PreviousSecretExpiresAt: wire.Time(e.PreviousSecretExpiresAt),
		FailingSince:            wire.Time(e.FailingSince),
		LastSuccessAt:           wire.Time(e.LastSuccessAt),
		Livemode:                e.Owner.Livemode,
		CreatedAt:               wire.Time(e.CreatedAt),
		UpdatedAt:               wire.Time(e.UpdatedAt),
	}
}

// DeliveryResource is a delivery as the API shows it (specification 2.9).
type DeliveryResource struct { // spec 2.9.1
	ID                string            `json:"id"`
	EventID           string            `json:"event_id"`
	EventType         event.Type        `json:"event_type"`
	InvoiceID         string            `json:"invoice_id,omitempty"`
	PaymentID         string            `json:"payment_id,omitempty"`
	WebhookEndpointID string            `json:"webhook_endpoint_id"`
	Trigger           Trigger           `json:"trigger" enum:"event,resend,test"`
	Status            DeliveryStatus    `json:"status" enum:"pending,succeeded,failed"`
	Attempts          int               `json:"attempts"`
	AttemptLog        []AttemptResource `json:"attempt_log" nullable:"false"`
	NextAttemptAt     string            `json:"next_attempt_at,omitempty" format:"date-time"`
	LastAttemptAt     string            `json:"last_attempt_at,omitempty" format:"date-time"`
	DeliveredAt       string            `json:"delivered_at,omitempty" format:"date-time"`
	CreatedAt         string            `json:"created_at" format:"date-time"`
}

// AttemptResource is an attempt as the API shows it.
type AttemptResource struct { // spec 2.9.3
	At         string           `json:"at" format:"date-time"`
	HTTPStatus int              `json:"http_status,omitempty"`
	Error      string           `json:"error,omitempty" example:"http_500"`
	DurationMS int64            `json:"duration_ms"`
	Request    AttemptRequest   `json:"request"`
	Response   *AttemptResponse `json:"response,omitempty"`
}

// Resource returns the delivery as the API shows it. withResponses includes the endpoint's
// responses, which the API shows only for a single delivery.
func (d Delivery) Resource(withResponses bool) DeliveryResource { // spec 2.9.8
	r := DeliveryResource{
		ID:                d.ID,
		EventID:           d.EventID,
		EventType:         d.EventType,
		InvoiceID:         d.InvoiceID,
		PaymentID:         d.PaymentID,
		WebhookEndpointID: d.EndpointID,
		Trigger:           d.Trigger,
		Status:            d.Status,
		Attempts:          d.Attempts,
		AttemptLog:        make([]AttemptResource, len(d.Log)),
		NextAttemptAt:     wire.Time(d.NextAttemptAt),
		LastAttemptAt:     wire.Time(d.LastAttemptAt),
		DeliveredAt:       wire.Time(d.DeliveredAt),
		CreatedAt:         wire.Time(d.CreatedAt),
	}
	for i, a := range d.Log {
		v := AttemptResource{
			At:         wire.Time(a.At),
			HTTPStatus: a.HTTPStatus,
			Error:      a.Error,
			DurationMS: a.DurationMS,
			Request:    a.Request,
		}
		if withResponses {
			v.Response = a.Response
		}

		r.AttemptLog[i] = v
	}

	return r
}

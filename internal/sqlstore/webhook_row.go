package sqlstore

// This file holds the rows of webhooks.

import (
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/webhook"
)

// eventRow is a row of {events}.
type eventRow struct {
	ID string `db:"id"`
	ownerRow
	Type      event.Type `db:"type"`
	ObjectID  string     `db:"object_id"`
	InvoiceID string     `db:"invoice_id"`
	PaymentID string     `db:"payment_id"`
	Sequence  int64      `db:"sequence"`
	// Envelope is signed as it is: bytes, so that no database touches them.
	Envelope              []byte `db:"envelope"`
	CreatedAt             moment `db:"created_at"`
	RequestID             string `db:"request_id"`
	RequestIdempotencyKey string `db:"request_idempotency_key"`
}

func eventRowOf(from *event.Event) eventRow {
	return eventRow{
		ID:                    from.ID,
		ownerRow:              ownerRow(from.Owner),
		Type:                  from.Type,
		ObjectID:              from.ObjectID,
		InvoiceID:             from.InvoiceID,
		PaymentID:             from.PaymentID,
		Sequence:              from.Sequence,
		Envelope:              from.Envelope,
		CreatedAt:             moment(from.CreatedAt),
		RequestID:             from.Request.ID,
		RequestIdempotencyKey: from.Request.IdempotencyKey,
	}
}

func (r *eventRow) record() event.Event {
	return event.Event{
		ID:        r.ID,
		Owner:     event.Owner(r.ownerRow),
		Type:      r.Type,
		ObjectID:  r.ObjectID,
		InvoiceID: r.InvoiceID,
		PaymentID: r.PaymentID,
		Sequence:  r.Sequence,
		Envelope:  r.Envelope,
		CreatedAt: time.Time(r.CreatedAt),
		Request:   event.Request{ID: r.RequestID, IdempotencyKey: r.RequestIdempotencyKey},
	}
}

// endpointRow is a row of {endpoints}.
type endpointRow struct {
	ID string `db:"id"`
	ownerRow
	URL                     string                 `db:"url"`
	Description             string                 `db:"description"`
	Events                  document[[]event.Type] `db:"events"`
	Status                  webhook.EndpointStatus `db:"status"`
	SealedSecret            []byte                 `db:"sealed_secret"`
	SealedPrevious          []byte                 `db:"sealed_previous"`
	SecretLast4             string                 `db:"secret_last4"`
	PreviousSecretExpiresAt moment                 `db:"previous_secret_expires_at"`
	FailingSince            moment                 `db:"failing_since"`
	LastSuccessAt           moment                 `db:"last_success_at"`
	FirstFailureAt          moment                 `db:"first_failure_at"`
	CreatedAt               moment                 `db:"created_at"`
	UpdatedAt               moment                 `db:"updated_at"`
	Sequence                int64                  `db:"sequence"`
	Version                 int64                  `db:"version"`
}

func endpointRowOf(from *webhook.Endpoint) endpointRow {
	return endpointRow{
		ID:                      from.ID,
		ownerRow:                ownerRow(from.Owner),
		URL:                     from.URL,
		Description:             from.Description,
		Events:                  documentOf(from.Events),
		Status:                  from.Status,
		SealedSecret:            from.SealedSecret,
		SealedPrevious:          from.SealedPrevious,
		SecretLast4:             from.SecretLast4,
		PreviousSecretExpiresAt: moment(from.PreviousSecretExpiresAt),
		FailingSince:            moment(from.FailingSince),
		LastSuccessAt:           moment(from.LastSuccessAt),
		FirstFailureAt:          moment(from.FirstFailureAt),
		CreatedAt:               moment(from.CreatedAt),
		UpdatedAt:               moment(from.UpdatedAt),
		Sequence:                from.Sequence,
		Version:                 from.Version,
	}
}

func (r *endpointRow) record() webhook.Endpoint {
	return webhook.Endpoint{
		ID:                      r.ID,
		Owner:                   event.Owner(r.ownerRow),
		URL:                     r.URL,
		Description:             r.Description,
		Events:                  r.Events.value,
		Status:                  r.Status,
		SealedSecret:            r.SealedSecret,
		SealedPrevious:          r.SealedPrevious,
		SecretLast4:             r.SecretLast4,
		PreviousSecretExpiresAt: time.Time(r.PreviousSecretExpiresAt),
		FailingSince:            time.Time(r.FailingSince),
		LastSuccessAt:           time.Time(r.LastSuccessAt),
		FirstFailureAt:          time.Time(r.FirstFailureAt),
		CreatedAt:               time.Time(r.CreatedAt),
		UpdatedAt:               time.Time(r.UpdatedAt),
		Sequence:                r.Sequence,
		Version:                 r.Version,
	}
}

// deliveryRow is a row of {deliveries}.
type deliveryRow struct {
	ID string `db:"id"`
	ownerRow
	EventID       string                      `db:"event_id"`
	EventType     event.Type                  `db:"event_type"`
	InvoiceID     string                      `db:"invoice_id"`
	PaymentID     string                      `db:"payment_id"`
	EndpointID    string                      `db:"endpoint_id"`
	Trigger       webhook.Trigger             `db:"cause"`
	Status        webhook.DeliveryStatus      `db:"status"`
	Attempts      int                         `db:"attempts"`
	Log           document[[]webhook.Attempt] `db:"log"`
	NextAttemptAt moment                      `db:"next_attempt_at"`
	LastAttemptAt moment                      `db:"last_attempt_at"`
	DeliveredAt   moment                      `db:"delivered_at"`
	ClaimedBy     string                      `db:"claimed_by"`
	ClaimedUntil  moment                      `db:"claimed_until"`
	LapsedAt      moment                      `db:"lapsed_at"`
	Fence         int64                       `db:"fence"`
	CreatedAt     moment                      `db:"created_at"`
	Version       int64                       `db:"version"`
}

func deliveryRowOf(from *webhook.Delivery) deliveryRow {
	return deliveryRow{
		ID:            from.ID,
		ownerRow:      ownerRow(from.Owner),
		EventID:       from.EventID,
		EventType:     from.EventType,
		InvoiceID:     from.InvoiceID,
		PaymentID:     from.PaymentID,
		EndpointID:    from.EndpointID,
		Trigger:       from.Trigger,
		Status:        from.Status,
		Attempts:      from.Attempts,
		Log:           documentOf(from.Log),
		NextAttemptAt: moment(from.NextAttemptAt),
		LastAttemptAt: moment(from.LastAttemptAt),
		DeliveredAt:   moment(from.DeliveredAt),
		ClaimedBy:     from.ClaimedBy,
		ClaimedUntil:  moment(from.ClaimedUntil),
		LapsedAt:      moment(from.LapsedAt),
		Fence:         from.Fence,
		CreatedAt:     moment(from.CreatedAt),
		Version:       from.Version,
	}
}

func (r *deliveryRow) record() webhook.Delivery {
	return webhook.Delivery{
		ID:            r.ID,
		Owner:         event.Owner(r.ownerRow),
		EventID:       r.EventID,
		EventType:     r.EventType,
		InvoiceID:     r.InvoiceID,
		PaymentID:     r.PaymentID,
		EndpointID:    r.EndpointID,
		Trigger:       r.Trigger,
		Status:        r.Status,
		Attempts:      r.Attempts,
		Log:           r.Log.value,
		NextAttemptAt: time.Time(r.NextAttemptAt),
		LastAttemptAt: time.Time(r.LastAttemptAt),
		DeliveredAt:   time.Time(r.DeliveredAt),
		ClaimedBy:     r.ClaimedBy,
		ClaimedUntil:  time.Time(r.ClaimedUntil),
		LapsedAt:      time.Time(r.LapsedAt),
		Fence:         r.Fence,
		CreatedAt:     time.Time(r.CreatedAt),
		Version:       r.Version,
	}
}

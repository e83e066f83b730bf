// Package webhook notifies merchants' servers of events. It holds the records of endpoints and
// deliveries, their state machines, the merchants' operations, and the signature.
//
// A delivery is stored in the transaction of its event, so that no event is lost between commit and send. The
// worker (internal/deliver) claims due deliveries in batches, fairly between endpoints. It posts the event's
// envelope, byte for byte the same at every attempt, and stores each attempt. Verify and NewReceiver are the
// receiving end, for merchants who write Go.
package webhook

import (
	"context"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// EndpointStatus is the status of an endpoint.
type EndpointStatus string // spec 3.5.2

// The statuses of specification 3.5.
const (
	Enabled  EndpointStatus = "enabled"
	Disabled EndpointStatus = "disabled"
	Failing  EndpointStatus = "failing"
)

// Endpoint is a merchant's URL with the event types that it subscribes to.
type Endpoint struct {
	ID          string
	Owner       event.Owner
	URL         string
	Description string
	// Events are the types it receives, or the single entry "*".
	Events []event.Type
	Status EndpointStatus
	// SealedSecret and SealedPrevious are signing secrets, encrypted with Config.SecretKey.
	SealedSecret, SealedPrevious []byte
	SecretLast4                  string
	PreviousSecretExpiresAt      time.Time
	FailingSince, LastSuccessAt  time.Time
	// FirstFailureAt is the time of the first failed attempt since the last success; zero after a success.
	FirstFailureAt       time.Time
	CreatedAt, UpdatedAt time.Time
	Sequence             int64
	Version              int64
}

// Wants reports whether the endpoint is subscribed to a type and not disabled.
func (e Endpoint) Wants(t event.Type) bool { // spec 6.3
	if e.Status == Disabled {
		return false
	}

	for _, want := range e.Events {
		if want == "*" || want == t {
			return true
		}
	}

	return false
}

// Trigger is why a delivery was made.
type Trigger string // spec 2.9.2

// The triggers of specification 2.9.
const (
	ByEvent  Trigger = "event"
	ByResend Trigger = "resend"
	ByTest   Trigger = "test"
)

// DeliveryStatus is the status of a delivery.
type DeliveryStatus string // spec 3.5.1

// The statuses of specification 3.5.
const (
	DeliveryPending   DeliveryStatus = "pending"
	DeliverySucceeded DeliveryStatus = "succeeded"
	DeliveryFailed    DeliveryStatus = "failed"
)

// Delivery is the sending of one event to one endpoint.
type Delivery struct {
	ID                   string
	Owner                event.Owner
	EventID              string
	EventType            event.Type
	InvoiceID, PaymentID string
	EndpointID           string
	Trigger              Trigger
	Status               DeliveryStatus
	// Attempts counts the attempts; Log has them in order.
	Attempts int
	Log      []Attempt
	// NextAttemptAt is when it is due; zero once it ended.
	NextAttemptAt time.Time
	LastAttemptAt time.Time
	DeliveredAt   time.Time
	// ClaimedBy is the process that sends it now; the claim ends at ClaimedUntil.
	ClaimedBy    string
	ClaimedUntil time.Time
	// LapsedAt is when the previous claim ended without a result from its process; zero if it had a result.
	LapsedAt time.Time
	// Fence rises with every claim; a result is stored only under the fence of its claim.
	Fence     int64
	CreatedAt time.Time
	Version   int64
}

// Attempt is one attempt of a delivery (specification 2.9).
type Attempt struct {
	At         time.Time `json:"at"`
	HTTPStatus int       `json:"http_status,omitempty"`
	// Error is empty when the attempt succeeded, and "interrupted" when its outcome is unknown.
	Error      string           `json:"error,omitempty"`
	DurationMS int64            `json:"duration_ms"`
	Request    AttemptRequest   `json:"request"`
	Response   *AttemptResponse `json:"response,omitempty"`
}

// AttemptRequest is the request that was sent; its body is the event's envelope.
type AttemptRequest struct {
	Headers map[string]string `json:"headers"`
}

// AttemptResponse is the endpoint's response, without credentials.
type AttemptResponse struct {
	Headers       map[string]string `json:"headers"`
	Body          string            `json:"body,omitempty"`
	BodyTruncated bool              `json:"body_truncated"`
}

// DeliveryFilter selects deliveries for a list.
type DeliveryFilter struct {
	Owner      event.Owner
	EventID    string
	EndpointID string
	Statuses   []DeliveryStatus
	After      string
	Limit      int
}

// EndpointFilter selects endpoints for a list.
type EndpointFilter struct {
	Owner event.Owner
	After string
	Limit int
}

// Reader reads the records of this package.
type Reader interface {
	event.Reader
	// EventsByID, EndpointsByID and DeliveriesByID are for the worker, which has no owner. They return the
	// records that exist, each once, in any order.
	EventsByID(ctx context.Context, ids []string) ([]event.Event, error)
	EndpointsByID(ctx context.Context, ids []string) ([]Endpoint, error)
	DeliveriesByID(ctx context.Context, ids []string) ([]Delivery, error)
	// WebhookEndpoint returns an endpoint of an owner, or fault.NotFound when the owner has none of this id.
	WebhookEndpoint(ctx context.Context, owner event.Owner, id string) (Endpoint, error)
	// WebhookEndpoints returns a page, newest first.
	WebhookEndpoints(ctx context.Context, f EndpointFilter) ([]Endpoint, error)
	// Delivery returns a delivery of an owner, or fault.NotFound when the owner has none of this id.
	Delivery(ctx context.Context, owner event.Owner, id string) (Delivery, error)
	// Deliveries returns a page, newest first.
	Deliveries(ctx context.Context, f DeliveryFilter) ([]Delivery, error)
	// PendingDeliveries counts the pending deliveries of an endpoint.
	PendingDeliveries(ctx context.Context, endpointID string) (int, error)
}

// BacklogReader is a store that counts the deliveries that are due, whichever process sends them. If the
// store is no BacklogReader, Engine.Health shows only the deliveries that its own process claimed.
type BacklogReader interface {
	// Backlogs returns one Backlog of each account and mode that has deliveries for which Delivery.DueSince at now
	// is true, claimed or not, in any order.
	Backlogs(ctx context.Context, now time.Time) ([]Backlog, error)
}

// Backlog summarises the due deliveries of an account in one mode.
type Backlog struct {
	Owner event.Owner
	// Due is how many deliveries are due.
	Due int
	// Since is the earliest Delivery.DueSince of them.
	Since time.Time
}

// Tx has the reads and writes that one operation of this package may make.
type Tx interface {
	Reader
	Writer
	Pruner
	lease.Tx
	event.Appender
	// LockAccount locks the row of an account, of both modes, until the transaction ends, or returns
	// fault.NotFound. Transactions that lock one account run one after the other, and each sees what
	// the one before it committed. It locks nothing else, and changes nothing.
	LockAccount(ctx context.Context, accountID string) error
}

// Claim selects the deliveries to claim, and names the claiming process.
type Claim struct {
	// By is the process that sends them until Until.
	By string
	// Now is the time at which they are due.
	Now   time.Time
	Until time.Time
	// Limit is the most deliveries; 0 or less is no limit.
	Limit int
	// PerEndpoint is the most deliveries of one endpoint; 0 or less is no limit.
	PerEndpoint int
	// Except are the ids of endpoints whose deliveries are not claimed.
	Except []string
	// Live leaves out deliveries of test mode.
	Live bool
}

// Writer writes endpoints and deliveries.
type Writer interface {
	PutEndpoint(ctx context.Context, e *Endpoint) error
	// DeleteEndpoint deletes an endpoint; an absent one is no error.
	DeleteEndpoint(ctx context.Context, id string) error
	PutDeliveries(ctx context.Context, d ...*Delivery) error
	// ClaimDeliveries claims due deliveries: pending, NextAttemptAt ≤ c.Now, and ClaimedUntil ≤ c.Now, so
	// that a claim is over at exactly its end. It sets LapsedAt to the previous ClaimedUntil, and sets
	// ClaimedBy, ClaimedUntil and Fence. Rows locked by another transaction are skipped, not waited for, if
	// the database can. Oldest NextAttemptAt and then lowest id first.
	ClaimDeliveries(ctx context.Context, c Claim) ([]Delivery, error)
	// FailDeliveries ends all pending deliveries of an endpoint as failed.
	FailDeliveries(ctx context.Context, endpointID string) error
}

// Pruner deletes old rows, the oldest first, up to a limit, and returns how many. Rows created at exactly
// that time stay. A limit of 0 or less is no limit.
type Pruner interface {
	// PruneDeliveries deletes deliveries that were created before the time and are not pending.
	PruneDeliveries(ctx context.Context, before time.Time, limit int) (int, error)
	// PruneEvents deletes events that were created before the time and have no pending delivery.
	PruneEvents(ctx context.Context, before time.Time, limit int) (int, error)
}

// database is this package's view of a store.
type database interface {
	Reader
	Update(ctx context.Context, f func(ctx context.Context, tx Tx) error) error
}

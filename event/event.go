// Package event holds the record of something that happened and the outbox that it is appended to.
//
// Domain packages notify each other by events only. A domain appends an event in the transaction that makes
// it true. Before that transaction commits, the engine runs the other domains' reactions to the event, stores
// it, and creates its webhook deliveries.
package event

import (
	"context"
	"encoding/json"
	"time"
)

// Owner identifies who owns an object: one merchant's account in one mode. An API key never sees an object
// of another owner.
type Owner struct {
	AccountID string
	Livemode  bool
}

// Type names what happened, as <object>.<what>.
type Type string

// The event types of specification part 6 and decisions part 8.
const (
	InvoiceCreated          Type = "invoice.created"
	InvoicePending          Type = "invoice.pending"
	InvoiceUnderpaid        Type = "invoice.underpaid"
	InvoicePaid             Type = "invoice.paid"
	InvoiceExpired          Type = "invoice.expired"
	InvoiceCanceled         Type = "invoice.canceled"
	InvoiceRefunded         Type = "invoice.refunded"
	InvoicePaymentDetected  Type = "invoice.payment_detected"
	InvoicePaymentConfirmed Type = "invoice.payment_confirmed"
	InvoicePaymentReversed  Type = "invoice.payment_reversed"
	InvoiceReopened         Type = "invoice.reopened"

	DepositPaymentDetected  Type = "deposit.payment_detected"
	DepositPaymentConfirmed Type = "deposit.payment_confirmed"
	DepositPaymentReleased  Type = "deposit.payment_released"

	PaymentOrphaned            Type = "payment.orphaned"
	PaymentDropped             Type = "payment.dropped"
	PaymentTransactionAttached Type = "payment.transaction_attached"
	PaymentPriced              Type = "payment.priced"

	SettlementHeld     Type = "settlement.held"
	SettlementReleased Type = "settlement.released"
	SettlementFailed   Type = "settlement.failed"
	SettlementReverted Type = "settlement.reverted"
	// SettlementUpdated reports that an ended settlement differs from its last event.
	SettlementUpdated Type = "settlement.updated"

	PayoutCreated   Type = "payout.created"
	PayoutBroadcast Type = "payout.broadcast"
	PayoutConfirmed Type = "payout.confirmed"
	PayoutFailed    Type = "payout.failed"

	RefundCreated   Type = "refund.created"
	RefundSucceeded Type = "refund.succeeded"
	RefundFailed    Type = "refund.failed"

	WebhookEndpointFailing  Type = "webhook_endpoint.failing"
	WebhookEndpointDisabled Type = "webhook_endpoint.disabled"

	Ping Type = "ping"
)

// The internal events: other domains react to them in the same transaction. They are neither stored nor
// delivered. Their types have no dot.
const (
	// PaymentValued reports that a confirmed payment got its usd_value, at confirmation or with the first
	// fresh price.
	PaymentValued Type = "payment_valued"
	// PaymentLost reports that a confirmed or detected payment left the chain or was dropped.
	PaymentLost Type = "payment_lost"
	// TransactionMoved reports that a transaction of ours changed state: signed, broadcast, included,
	// confirmed, retracted or failed.
	TransactionMoved Type = "transaction"
	// RefundTakenBack reports that a reorganisation retracted a refund's payout.
	RefundTakenBack Type = "refund"
	// SettingsChanged reports that an account's settings changed.
	SettingsChanged Type = "settings"
)

// reach says who is notified of a type.
type reach int

const (
	subscribed reach = iota // endpoints that subscribe to it
	always                  // an endpoint under test, with any subscription
	internal                // the domains only
)

// types is the table of event types.
var types = []struct { // spec 6.1
	name  Type
	reach reach
}{
	{InvoiceCreated, subscribed},
	{InvoicePending, subscribed},
	{InvoiceUnderpaid, subscribed},
	{InvoicePaid, subscribed},
	{InvoiceExpired, subscribed},
	{InvoiceCanceled, subscribed},
	{InvoiceRefunded, subscribed},
	{InvoicePaymentDetected, subscribed},
	{InvoicePaymentConfirmed, subscribed},
	{InvoicePaymentReversed, subscribed},
	{InvoiceReopened, subscribed},
	{DepositPaymentDetected, subscribed},
	{DepositPaymentConfirmed, subscribed},
	{DepositPaymentReleased, subscribed},
	{PaymentOrphaned, subscribed},
	{PaymentDropped, subscribed},
	{PaymentTransactionAttached, subscribed},
	{PaymentPriced, subscribed},
	{SettlementHeld, subscribed},
	{SettlementReleased, subscribed},
	{SettlementFailed, subscribed},
	{SettlementReverted, subscribed},
	{SettlementUpdated, subscribed},
	{PayoutCreated, subscribed},
	{PayoutBroadcast, subscribed},
	{PayoutConfirmed, subscribed},
	{PayoutFailed, subscribed},
	{RefundCreated, subscribed},
	{RefundSucceeded, subscribed},
	{RefundFailed, subscribed},
	{WebhookEndpointFailing, subscribed},
	{WebhookEndpointDisabled, subscribed},
	{Ping, always},
	{PaymentValued, internal},
	{PaymentLost, internal},
	{TransactionMoved, internal},
	{RefundTakenBack, internal},
	{SettingsChanged, internal},
}

// Types returns every type that an endpoint may subscribe to; ping is sent without a subscription.
func Types() []Type {
	var names []Type

	for _, t := range types {
		if t.reach == subscribed {
			names = append(names, t.name)
		}
	}

	return names
}

// Internal reports whether the type is an internal event.
func (t Type) Internal() bool {
	for _, row := range types {
		if row.name == t {
			return row.reach == internal
		}
	}

	return false
}

// Payload is the record that an event is about: an invoice.Invoice, invoice.Payment, settlement.Settlement,
// payout.Payout, payout.Refund, webhook.Endpoint, wallet.Transaction or account.Account.
type Payload interface {
	// EventObject returns the record as the object of an event.
	EventObject() Object
}

// Object identifies the record of an event.
type Object struct {
	Owner Owner
	ID    string
	// InvoiceID and PaymentID are set when the record is or belongs to one; they are used to find deliveries.
	InvoiceID, PaymentID string
	// Sequence is the sequence number of the record's latest event.
	Sequence int64
}

// Event is one thing that happened to one object.
type Event struct {
	// ID is "evt_" and 24 hex characters; set by the engine before the event is stored.
	ID    string
	Owner Owner
	Type  Type
	// ObjectID is the object it happened to.
	ObjectID string
	// InvoiceID and PaymentID are set when the event is about one; they are used to find deliveries.
	InvoiceID, PaymentID string
	// Sequence counts up per object, from 1, so that a receiver can put events of one object in order.
	Sequence int64
	// Payload is the record as the transaction leaves it; for an internal event, as it was appended.
	// Reactions read it, and data.object is rendered from it. It is not stored.
	Payload Payload `json:"-"`
	// Previous holds the attributes that changed, with their earlier values; may be nil.
	Previous map[string]any `json:"-"`
	// Envelope is the rendered JSON, byte for byte as every delivery sends it; set by the engine.
	Envelope  json.RawMessage
	CreatedAt time.Time
	Request   Request
}

// Request is the API request that caused an event; zero for events without a request.
type Request struct {
	ID             string `json:"id,omitempty"`
	IdempotencyKey string `json:"idempotency_key,omitempty"`
}

// Appender appends events to the current transaction.
type Appender interface {
	AppendEvents(ctx context.Context, events ...Event) error
}

// Filter selects events for a list.
type Filter struct {
	Owner                       Owner
	Types                       []Type
	ObjectID                    string
	CreatedAfter, CreatedBefore time.Time // inclusive, exclusive; zero: open
	After                       string    // id to continue after, exclusive; newest first
	Limit                       int
}

// Reader reads stored events.
type Reader interface {
	// Event returns one event, or fault.NotFound.
	Event(ctx context.Context, owner Owner, id string) (Event, error)
	// Events returns a page, newest first.
	Events(ctx context.Context, f Filter) ([]Event, error)
}

// Package payout sends money out of master wallets: payouts that a merchant asks for, and refunds, which are
// paid by payouts.
//
// transitions.go is the pure state machine of both. A payout reserves its amount and its highest network fee
// in the master wallet when it is accepted. internal/txmgr signs and sends its transaction, and reports each
// change of state to Service.TransactionTx. In every failed case nothing was sent.
package payout

import (
	"context"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/wire"
)

// Status is the status of a payout.
type Status string // spec 2.3.2

// The statuses of specification 3.2.
const (
	Pending    Status = "pending"
	Processing Status = "processing"
	Included   Status = "included"
	Confirmed  Status = "confirmed"
	Failed     Status = "failed"
)

// Requester made the request: an API key, or a user of the host's own interface.
type Requester struct { // spec 2.3.7
	Type string `json:"type" enum:"user,apiKey"`
	ID   string `json:"id"`
}

// Payout sends one asset from the master wallet to a destination.
type Payout struct {
	ID       string
	Owner    event.Owner
	Status   Status
	Network  string
	Asset    string
	AssetID  string
	Contract chain.Address
	Decimals uint8
	Amount   chain.Amount // the destination receives it
	// AmountDelivered is the amount that a block brought to the destination, in base units, if less than
	// Amount: the token takes a fee, or moved nothing.
	AmountDelivered *chain.Amount
	Destination     chain.Address
	Memo            string // spec 2.3.5
	TxHash          string
	RefundID        string
	FailureCode     string
	FailureMessage  string
	// Conflict is the transaction that replaced the payout; set when FailureCode is conflict.
	Conflict       wallet.Conflict
	RequestedBy    Requester
	NativeAsset    string
	NativeDecimals uint8
	// MaxNetworkFee is the amount reserved for the fee. NetworkFee is the fee that the transaction paid,
	// while it is in a block; in a batch it is the payout's share, and all payouts of the batch have the same
	// TxHash. If the wallet's own transaction displaced the payout or canceled its nonce, NetworkFee is the
	// fee of that transaction.
	MaxNetworkFee chain.Amount
	NetworkFee    *chain.Amount
	TransactionID string
	CreatedAt     time.Time
	// BroadcastAt is when the network first had its transaction, as far as known; see event.PayoutBroadcast.
	BroadcastAt time.Time
	ConfirmedAt time.Time
	FailedAt    time.Time
	// Approval is the approval of a second key, if the account requires one.
	Approval Approval
	// Signing records what its signatures use up.
	Signing Signing
	// MAC authenticates amount, destination, approval and Signing with payments.Config.SecretKey: nothing is
	// signed without it.
	MAC      []byte
	Sequence int64
	Version  int64
	// ReasonMessage explains to people why it waits; WaitingSince is when the wait began. Both are empty
	// until it has waited for a minute.
	ReasonMessage string
	WaitingSince  time.Time
}

// RefundStatus is the status of a refund.
type RefundStatus string

// The statuses of decisions part 6.
const (
	RefundPending   RefundStatus = "pending"
	RefundSucceeded RefundStatus = "succeeded"
	RefundFailed    RefundStatus = "failed"
	RefundCanceled  RefundStatus = "canceled"
)

// Refund returns a received payment to a payer, by a payout from the master wallet.
type Refund struct {
	ID                             string
	Owner                          event.Owner
	Status                         RefundStatus
	InvoiceID, PaymentID, PayoutID string
	Network                        string
	Asset                          string
	AssetID                        string
	Contract                       chain.Address
	Decimals                       uint8
	Amount                         chain.Amount
	Destination                    chain.Address
	Reason                         string
	Metadata                       map[string]string
	RequestedBy                    Requester
	Simulated                      bool
	FailureCode                    string
	CreatedAt                      time.Time
	SucceededAt                    time.Time
	FailedAt                       time.Time
	Sequence                       int64
	Version                        int64
}

// Settings are the settings of an account that this package needs.
type Settings struct {
	// PerHour is how many payouts may be created in an hour; 0: 10.
	PerHour int
	// Index is the account's index, which names its master wallets.
	Index uint32
	// ApproveAboveUSD is the value in USD above which a payout waits for its approval; nil: none does.
	ApproveAboveUSD *decimal.Decimal
}

// Filter selects payouts for a list.
type Filter struct {
	Owner    event.Owner
	Statuses []Status
	Networks []string
	// Q matches the beginning of the transaction hash, the destination or the id, without case.
	Q                           string
	CreatedAfter, CreatedBefore time.Time // inclusive, exclusive; zero: open
	After                       string
	Limit                       int
}

// RefundFilter selects refunds for a list.
type RefundFilter struct {
	Owner                       event.Owner
	Statuses                    []RefundStatus
	InvoiceID, PaymentID        string
	CreatedAfter, CreatedBefore time.Time // inclusive, exclusive; zero: open
	After                       string
	Limit                       int
}

// Reader has the reads of this package.
type Reader interface {
	// Payout returns a payout of an owner, or fault.NotFound when the owner has none of this id.
	Payout(ctx context.Context, owner event.Owner, id string) (Payout, error)
	// PayoutByID is Payout for callers without an owner.
	PayoutByID(ctx context.Context, id string) (Payout, error)
	// Payouts returns a page, newest first.
	Payouts(ctx context.Context, f Filter) ([]Payout, error)
	// PayoutsSince counts payouts of an owner, refunds left out, that were created at or after t.
	PayoutsSince(ctx context.Context, owner event.Owner, t time.Time) (int, error)
	// Refund returns a refund of an owner, or fault.NotFound when the owner has none of this id.
	Refund(ctx context.Context, owner event.Owner, id string) (Refund, error)
	// RefundByID is Refund for callers without an owner.
	RefundByID(ctx context.Context, id string) (Refund, error)
	// Refunds returns a page, newest first.
	Refunds(ctx context.Context, f RefundFilter) ([]Refund, error)
	// PayoutSettings returns the settings of an account, or fault.NotFound. The engine verifies a store's
	// answer.
	PayoutSettings(ctx context.Context, accountID string) (Settings, error)
}

// Writer writes the records of this package.
type Writer interface {
	PutPayout(ctx context.Context, p *Payout) error
	PutRefund(ctx context.Context, r *Refund) error
	// LockAccount locks the row of an account, of both modes, until the transaction ends, or returns
	// fault.NotFound. Transactions that lock one account run one after the other, and each sees what
	// the one before it committed. It locks nothing else, and changes nothing.
	LockAccount(ctx context.Context, accountID string) error
}

// Tx has the reads and writes that one operation of this package may make. The engine's transaction
// implements it.
type Tx interface {
	Reader
	Writer
	wallet.Tx
	// ReceivedPayments returns the payments that can be refunded: the confirmed payments of an invoice, or
	// one payment while it is confirmed. paymentID "" stands for all payments of the invoice. It returns
	// fault.NotFound when the owner has no such object.
	ReceivedPayments(ctx context.Context, owner event.Owner, invoiceID, paymentID string) ([]Received, error)
}

// refundReader has the reads of refunds, inside a transaction or outside.
type refundReader interface {
	Reader
	ReceivedPayments(ctx context.Context, owner event.Owner, invoiceID, paymentID string) ([]Received, error)
}

// database is this package's view of the engine.
type database interface {
	refundReader
	wallet.Reader
	Update(ctx context.Context, f func(ctx context.Context, tx Tx) error) error
}

// Resource is a payout as the API shows it (specification 2.3).
type Resource struct { // spec 2.3.1
	ID       string        `json:"id"`
	Status   Status        `json:"status" enum:"pending,processing,included,confirmed,failed"`
	Network  string        `json:"network"`
	Asset    string        `json:"asset"`
	AssetID  string        `json:"asset_id"`
	Contract chain.Address `json:"contract,omitempty"`
	Decimals uint8         `json:"decimals"`
	Amount   string        `json:"amount"`
	// AmountDelivered is present if less than the amount arrived.
	AmountDelivered string        `json:"amount_delivered,omitempty"`
	Destination     chain.Address `json:"destination"`
	Memo            string        `json:"memo,omitempty"`
	TxHash          string        `json:"tx_hash,omitempty"`
	RefundID        string        `json:"refund_id,omitempty"`
	FailureCode     string        `json:"failure_code,omitempty"`
	FailureMessage  string        `json:"failure_message,omitempty"`
	// ReasonMessage explains why it waits; for a failed payout it is FailureMessage.
	ReasonMessage string `json:"reason_message,omitempty"`
	// WaitingSince is present once it has waited for more than a minute, or for an approval.
	WaitingSince string `json:"waiting_since,omitempty" format:"date-time"`

	Conflict       *Conflict `json:"conflict,omitempty"`
	RequestedBy    Requester `json:"requested_by"`
	CreatedAt      string    `json:"created_at" format:"date-time"`
	ConfirmedAt    string    `json:"confirmed_at,omitempty" format:"date-time"`
	FailedAt       string    `json:"failed_at,omitempty" format:"date-time"`
	NativeAsset    string    `json:"native_asset"`
	NativeDecimals uint8     `json:"native_decimals"`
	MaxNetworkFee  string    `json:"max_network_fee,omitempty"`
	NetworkFee     string    `json:"network_fee,omitempty"`
	// Approval is present if one is required.
	Approval *ApprovalResource `json:"approval,omitempty"`
	Livemode bool              `json:"livemode"`
}

// Conflict is the transaction that replaced a failed payout, as the API shows it (decisions part 11).
type Conflict struct { // spec D11.7
	TxHash string `json:"tx_hash"`
	Own    bool   `json:"own"`
	// NetworkFee is the payout's cost for the conflicting transaction, if the payout's own wallet sent it.
	NetworkFee string `json:"network_fee,omitempty"`
}

// EventObject returns the payout as the object of an event.
func (p Payout) EventObject() event.Object {
	return event.Object{Owner: p.Owner, ID: p.ID, Sequence: p.Sequence}
}

// Resource returns the payout as the API shows it.
func (p Payout) Resource() Resource {
	r := Resource{
		ID:             p.ID,
		Status:         p.Status,
		Network:        p.Network,
		Asset:          p.Asset,
		AssetID:        p.AssetID,
		Contract:       p.Contract,
		Decimals:       p.Decimals,
		Amount:         p.Amount.String(),
		Destination:    p.Destination,
		Memo:           p.Memo,
		TxHash:         p.TxHash,
		RefundID:       p.RefundID,
		FailureCode:    p.FailureCode,
		FailureMessage: p.FailureMessage,
		RequestedBy:    p.RequestedBy,
		CreatedAt:      wire.Time(p.CreatedAt),
		ConfirmedAt:    wire.Time(p.ConfirmedAt),
		FailedAt:       wire.Time(p.FailedAt),
		NativeAsset:    p.NativeAsset,
		NativeDecimals: p.NativeDecimals,
		Livemode:       p.Owner.Livemode,
	}
	r.ReasonMessage, r.WaitingSince = p.reason()

	if !p.MaxNetworkFee.IsZero() {
		r.MaxNetworkFee = p.MaxNetworkFee.String()
	}

	if p.AmountDelivered != nil {
		r.AmountDelivered = p.AmountDelivered.String()
	}

	if p.NetworkFee != nil && !p.displaced() {
		r.NetworkFee = p.NetworkFee.String()
	}

	if p.Approval.Required {
		r.Approval = &ApprovalResource{
			Required:   true,
			Reason:     p.Approval.Reason,
			ApprovedBy: p.Approval.ApprovedBy,
			ApprovedAt: wire.Time(p.Approval.ApprovedAt),
		}
	}

	if p.Conflict.TxHash != "" {
		r.Conflict = &Conflict{TxHash: p.Conflict.TxHash, Own: p.Conflict.Own}
		if p.displaced() {
			r.Conflict.NetworkFee = p.NetworkFee.String()
		}
	}

	return r
}

// reason returns why the payout waits or failed, and when its wait began, as the API shows both.
func (p Payout) reason() (message, since string) {
	switch {
	case p.Status == Failed:
		return p.FailureMessage, ""
	case p.Status == Pending && p.Approval.Missing():
		return "approval_missing: the payout waits for the approval of a second key", wire.Time(p.CreatedAt)
	}

	return p.ReasonMessage, wire.Time(p.WaitingSince)
}

// displaced reports whether NetworkFee is of the transaction that displaced the payout.
func (p Payout) displaced() bool { return p.NetworkFee != nil && p.Conflict.TxHash != "" }

// RefundResource is a refund as the API shows it (decisions part 6).
type RefundResource struct { // spec D6.1
	ID          string            `json:"id"`
	Status      RefundStatus      `json:"status" enum:"pending,succeeded,failed,canceled"`
	InvoiceID   string            `json:"invoice_id,omitempty"`
	PaymentID   string            `json:"payment_id,omitempty"`
	PayoutID    string            `json:"payout_id,omitempty"`
	Network     string            `json:"network"`
	Asset       string            `json:"asset"`
	AssetID     string            `json:"asset_id"`
	Contract    chain.Address     `json:"contract,omitempty"`
	Decimals    uint8             `json:"decimals"`
	Amount      string            `json:"amount"`
	Destination chain.Address     `json:"destination"`
	Reason      string            `json:"reason,omitempty"`
	Metadata    map[string]string `json:"metadata,omitempty"`
	RequestedBy Requester         `json:"requested_by"`
	CreatedAt   string            `json:"created_at" format:"date-time"`
	SucceededAt string            `json:"succeeded_at,omitempty" format:"date-time"`
	FailedAt    string            `json:"failed_at,omitempty" format:"date-time"`
	FailureCode string            `json:"failure_code,omitempty"`
	Livemode    bool              `json:"livemode"`
}

// EventObject returns the refund as the object of an event.
func (r Refund) EventObject() event.Object {
	return event.Object{
		Owner:     r.Owner,
		ID:        r.ID,
		InvoiceID: r.InvoiceID,
		PaymentID: r.PaymentID,
		Sequence:  r.Sequence,
	}
}

// Resource returns the refund as the API shows it.
func (r Refund) Resource() RefundResource {
	return RefundResource{
		ID:          r.ID,
		Status:      r.Status,
		InvoiceID:   r.InvoiceID,
		PaymentID:   r.PaymentID,
		PayoutID:    r.PayoutID,
		Network:     r.Network,
		Asset:       r.Asset,
		AssetID:     r.AssetID,
		Contract:    r.Contract,
		Decimals:    r.Decimals,
		Amount:      r.Amount.String(),
		Destination: r.Destination,
		Reason:      r.Reason,
		Metadata:    r.Metadata,
		RequestedBy: r.RequestedBy,
		CreatedAt:   wire.Time(r.CreatedAt),
		SucceededAt: wire.Time(r.SucceededAt),
		FailedAt:    wire.Time(r.FailedAt),
		FailureCode: r.FailureCode,
		Livemode:    r.Owner.Livemode,
	}
}

package payout

import (
	"context"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/eventctx"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/internal/paging"
)

// RefundParams are the parameters of a refund.
type RefundParams struct {
	Owner event.Owner
	// InvoiceID or PaymentID is the object that is refunded.
	InvoiceID, PaymentID string
	// Amount is in base units; nil: all that was received and not yet refunded.
	Amount *chain.Amount
	// Destination is required. Exchanges pay from hot wallets, so the sender's address is never used instead.
	Destination string
	// Reason is at most 200 characters.
	Reason       string
	Metadata     map[string]string
	RequestedBy  Requester
	Destinations []chain.Destination
}

// PrepareRefund checks a refund against the received payments and the network. It stores only the balance
// that it read.
//
// Its errors are those of PrepareCreate, and
//   - fault.Invalid with code parameter_missing, refund_payment_required or refund_exceeds_payment;
//   - fault.State with code refund_no_payment when no confirmed payment was received.
func (s *Service) PrepareRefund(ctx context.Context, p RefundParams) (Prepared, error) {
	if err := p.check(); err != nil {
		return Prepared{}, err
	}

	total, left, err := s.refundable(ctx, s.db, p.Owner, p.InvoiceID, p.PaymentID)
	if err != nil {
		return Prepared{}, err
	}

	settings, err := s.db.PayoutSettings(ctx, p.Owner.AccountID)
	if err != nil {
		return Prepared{}, err
	}

	asset, err := s.receivedAsset(total)
	if err != nil {
		return Prepared{}, err
	}

	amount, err := p.amount(total, left)
	if err != nil {
		return Prepared{}, err
	}

	r := s.newRefund(p, total, asset, amount)

	if total.Simulated {
		driver, err := s.registry.Driver(total.Network)
		if err != nil {
			return Prepared{}, err
		}

		if r.Destination, err = destination(driver, p.Destination, p.Destinations); err != nil {
			return Prepared{}, err
		}

		return Prepared{refund: &r}, nil
	}

	prepared, err := s.prepare(ctx, settings, Params{
		Owner:        p.Owner,
		Network:      total.Network,
		Asset:        asset.Symbol,
		Amount:       amount,
		Destination:  p.Destination,
		RequestedBy:  p.RequestedBy,
		Destinations: p.Destinations,
	})
	if err != nil {
		return Prepared{}, err
	}

	r.Destination = prepared.payout.Destination
	r.PayoutID, prepared.payout.RefundID = prepared.payout.ID, r.ID
	prepared.refund = &r

	return prepared, nil
}

// check does the checks that need the request alone.
func (p RefundParams) check() error {
	if (p.InvoiceID == "") == (p.PaymentID == "") {
		return fault.Param("invoice_id", "parameter_missing", "name either invoice_id or payment_id")
	}

	if p.Destination == "" {
		return fault.Param(
			"destination", "parameter_missing",
			"destination is required: the sender's address may belong to an exchange",
		)
	}

	if err := checkText("reason", p.Reason, maxReason); err != nil {
		return err
	}

	return checkMetadata(p.Metadata)
}

// amount returns the amount to refund in base units, at most left.
func (p RefundParams) amount(total Received, left chain.Amount) (chain.Amount, error) {
	amount := left
	if p.Amount != nil {
		amount = *p.Amount
	}

	switch {
	case left.IsZero():
		return chain.Amount{}, fault.Param(
			"amount", "refund_exceeds_payment",
			"all that was received is refunded or being refunded already",
		).AsTransient()
	case amount.IsZero():
		return chain.Amount{}, fault.Param(
			"amount", "amount_too_small", "the amount must be at least 1 base unit",
		)
	case left.Less(amount):
		return chain.Amount{}, exceeds(total, left)
	}

	return amount, nil
}

// receivedAsset returns the asset that was received, or fault.Invalid with code asset_not_enabled.
func (s *Service) receivedAsset(total Received) (chain.Asset, error) {
	n, _ := s.registry.Network(total.Network)

	asset, ok := n.AssetByID(total.AssetID)
	if !ok {
		return chain.Asset{}, fault.New(
			fault.Invalid, "asset_not_enabled",
			"the asset that was received on network %s is not enabled any more",
			total.Network,
		)
	}

	return asset, nil
}

// newRefund returns a pending refund that has no payout and no destination yet.
func (s *Service) newRefund(p RefundParams, total Received, asset chain.Asset, amount chain.Amount) Refund {
	return Refund{
		ID:          s.config.IDs.Next(),
		Owner:       p.Owner,
		Status:      RefundPending,
		InvoiceID:   total.InvoiceID,
		PaymentID:   p.PaymentID,
		Network:     total.Network,
		Asset:       asset.Symbol,
		AssetID:     asset.ID,
		Contract:    asset.Contract,
		Decimals:    asset.Decimals,
		Amount:      amount,
		Reason:      p.Reason,
		Metadata:    p.Metadata,
		RequestedBy: p.RequestedBy,
		Simulated:   total.Simulated,
	}
}

// RefundTx accepts a prepared refund and the payout that pays it. It reads the received payments again under
// the account's lock: refunds that have not failed never exceed them (422 refund_exceeds_payment).
func (s *Service) RefundTx(ctx context.Context, tx Tx, prepared Prepared) (Refund, error) { // spec D6.5
	r, now := *prepared.refund, s.now()
	if err := tx.LockAccount(ctx, r.Owner.AccountID); err != nil {
		return Refund{}, err
	}

	invoiceID := r.InvoiceID
	if r.PaymentID != "" {
		invoiceID = ""
	}

	total, left, err := s.refundable(ctx, tx, r.Owner, invoiceID, r.PaymentID)
	if err != nil {
		return Refund{}, err
	}

	if left.Less(r.Amount) {
		return Refund{}, exceeds(total, left)
	}

	r.CreatedAt = id.CreatedAt(r.ID)
	if r.Simulated { // spec D6.7
		if err := s.saveRefund(ctx, tx, &r, event.RefundCreated); err != nil {
			return Refund{}, err
		}

		r.Status, r.SucceededAt = RefundSucceeded, now

		return r, s.saveRefund(ctx, tx, &r, event.RefundSucceeded)
	}

	if _, err := s.CreateTx(ctx, tx, prepared); err != nil {
		return Refund{}, err
	}

	return r, s.saveRefund(ctx, tx, &r, event.RefundCreated)
}

// CreateRefund is PrepareRefund and RefundTx in a transaction of its own.
func (s *Service) CreateRefund(ctx context.Context, params RefundParams) (r Refund, err error) {
	prepared, err := s.PrepareRefund(ctx, params)
	if err != nil {
		return Refund{}, err
	}

	err = s.db.Update(ctx, func(ctx context.Context, tx Tx) (err error) {
		r, err = s.RefundTx(ctx, tx, prepared)
		return err
	})

	return r, err
}

func exceeds(total Received, left chain.Amount) error {
	return fault.Param(
		"amount", "refund_exceeds_payment",
		"%s base units were received; less what is refunded or being refunded, at most %s can be given back",
		total.Amount, left,
	).AsTransient()
}

// followTx moves a refund to the status of its payout.
func (s *Service) followTx(ctx context.Context, tx Tx, r Refund, p Payout) error {
	before := r

	events, err := r.Follow(p, s.now())
	if err != nil || r.Status == before.Status && r.FailureCode == before.FailureCode {
		return err
	}

	if r.Status == before.Status {
		return s.saveRefund(ctx, tx, &r)
	}

	if err := s.saveRefund(ctx, tx, &r, events...); err != nil {
		return err
	}

	if len(events) > 0 {
		return nil
	}
	// A reorganisation took the refund back. No event is published, but the invoice's flags change.
	return tx.AppendEvents(ctx, eventctx.About(r, event.RefundTakenBack)...)
}

// saveRefund stores a refund with its events.
func (s *Service) saveRefund(ctx context.Context, tx Tx, r *Refund, types ...event.Type) error {
	r.Sequence += int64(len(types))
	if err := tx.PutRefund(ctx, r); err != nil {
		return err
	}

	return tx.AppendEvents(ctx, eventctx.About(*r, types...)...)
}

// GetRefund returns a refund, or fault.NotFound.
func (s *Service) GetRefund(ctx context.Context, owner event.Owner, id string) (Refund, error) {
	return s.db.Refund(ctx, owner, id)
}

// ListRefunds returns a page of refunds, newest first, and whether there are more.
func (s *Service) ListRefunds(ctx context.Context, f RefundFilter) ([]Refund, bool, error) {
	limit := paging.Limit(f.Limit)
	f.Limit = limit + 1

	page, err := s.db.Refunds(ctx, f)

	return paging.Page(page, limit, err)
}

// Package uncovered cancels refunds that confirmed payments no longer cover, because a payment left the
// chain.
package uncovered

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/payout"
)

// Config configures a Canceler. Everything is required.
type Config struct {
	DB database
	// Refunds cancels one refund in a transaction. It is the payout.Service.
	Refunds canceler
	// WasCompared reports whether this process has compared a wallet with its network. It calls no node.
	WasCompared func(network string, address chain.Address) bool
}

// database runs transactions.
type database interface {
	Update(ctx context.Context, f func(ctx context.Context, tx payout.Tx) error) error
}

// canceler cancels a refund that is not signed; a signed one is fault.State.
type canceler interface {
	CancelRefundTx(
		ctx context.Context,
		tx payout.Tx,
		owner event.Owner,
		refundID string,
	) (payout.Refund, error)
}

// Canceler cancels refunds that are not covered.
type Canceler struct{ config Config }

// New returns a Canceler. It starts nothing.
func New(c Config) *Canceler { return &Canceler{c} }

// PaymentLostTx cancels unsigned refunds of a payment that left the chain: first those that name it, then
// those of its invoice, newest first. It ends when the confirmed payments cover all refunds that have not
// failed.
func (c *Canceler) PaymentLostTx(
	ctx context.Context,
	tx payout.Tx,
	owner event.Owner,
	paymentID, invoiceID string,
) error { // spec D6.6
	// The creation of a refund reads the payment under the same lock, so that one of the two sees the other.
	if err := tx.LockAccount(ctx, owner.AccountID); err != nil {
		return err
	}

	named, err := unfailedRefunds(ctx, tx, payout.RefundFilter{Owner: owner, PaymentID: paymentID})
	if err != nil {
		return err
	}

	for _, r := range named {
		if _, err := c.cancelUnsigned(ctx, tx, r); err != nil {
			return err
		}
	}

	if invoiceID == "" {
		return nil
	}

	return c.cancelUncovered(ctx, tx, owner, invoiceID)
}

// Cancel cancels the refund of a payout that is about to be signed, if the confirmed payments do not cover
// it: a payment left the chain before its wallet was compared with the network, and came back smaller or not
// at all. canceled is false if the payout goes on.
func (c *Canceler) Cancel(ctx context.Context, p payout.Payout) (canceled bool, err error) {
	err = c.config.DB.Update(ctx, func(ctx context.Context, tx payout.Tx) error {
		canceled = false // of an earlier try

		if err := tx.LockAccount(ctx, p.Owner.AccountID); err != nil {
			return err
		}

		r, err := tx.Refund(ctx, p.Owner, p.RefundID)
		if err != nil {
			return err
		}

		if r.PaymentID != "" {
			lacks, err := lacksPayment(ctx, tx, r)
			if err != nil {
				return err
			}

			if lacks {
				canceled, err = c.cancelUnsigned(ctx, tx, r)
				return err
			}
		}

		if r.InvoiceID == "" {
			return nil
		}

		if err := c.cancelUncovered(ctx, tx, p.Owner, r.InvoiceID); err != nil {
			return err
		}

		r, err = tx.Refund(ctx, p.Owner, p.RefundID)
		canceled = r.Status == payout.RefundCanceled

		return err
	})

	return canceled, err
}

// cancelUncovered cancels unsigned refunds of an invoice, newest first, until the confirmed
// payments cover the others.
func (c *Canceler) cancelUncovered(
	ctx context.Context,
	tx payout.Tx,
	owner event.Owner,
	invoiceID string,
) error {
	refunds, err := unfailedRefunds(ctx, tx, payout.RefundFilter{Owner: owner, InvoiceID: invoiceID})
	if err != nil || len(refunds) == 0 {
		return err
	}

	received, err := tx.ReceivedPayments(ctx, owner, invoiceID, "")
	if err != nil {
		return err
	}

	// Amounts in base units. Refunds of simulated payments are kept apart.
	type coin struct {
		network, assetID string
		simulated        bool
	}

	confirmed, promised := map[coin]chain.Amount{}, map[coin]chain.Amount{}

	for _, payment := range received {
		x := coin{payment.Network, payment.AssetID, payment.Simulated}
		confirmed[x] = confirmed[x].Add(payment.Amount)
	}

	for _, r := range refunds {
		x := coin{r.Network, r.AssetID, r.Simulated}
		promised[x] = promised[x].Add(r.Amount)
	}

	for _, r := range refunds {
		x := coin{r.Network, r.AssetID, r.Simulated}
		if r.PaymentID != "" || !confirmed[x].Less(promised[x]) {
			continue
		}

		canceled, err := c.cancelUnsigned(ctx, tx, r)
		if err != nil {
			return err
		}

		if canceled {
			promised[x] = promised[x].Sub(r.Amount)
		}
	}

	return nil
}

// lacksPayment reports whether a refund's payment is not confirmed, or is smaller than the refunds that name
// it: it may be in another block with another amount.
func lacksPayment(ctx context.Context, tx payout.Tx, r payout.Refund) (bool, error) {
	received, err := tx.ReceivedPayments(ctx, r.Owner, "", r.PaymentID)
	if err != nil {
		return false, err
	}

	named, err := unfailedRefunds(ctx, tx, payout.RefundFilter{Owner: r.Owner, PaymentID: r.PaymentID})
	if err != nil {
		return false, err
	}

	var confirmed, promised chain.Amount // base units

	for _, payment := range received {
		confirmed = confirmed.Add(payment.Amount)
	}

	for _, other := range named {
		promised = promised.Add(other.Amount)
	}

	return confirmed.Less(promised), nil
}

// unfailedRefunds returns the pending and succeeded refunds that a filter selects, newest first.
func unfailedRefunds(ctx context.Context, r payout.Reader, f payout.RefundFilter) ([]payout.Refund, error) {
	f.Statuses = []payout.RefundStatus{payout.RefundPending, payout.RefundSucceeded}
	return r.Refunds(ctx, f)
}

// cancelUnsigned cancels a refund unless its payout is signed. Until its wallet is compared with the network,
// lost records may have signed it: Cancel handles it later. A simulated refund has succeeded, without a
// payout.
func (c *Canceler) cancelUnsigned(ctx context.Context, tx payout.Tx, r payout.Refund) (bool, error) {
	if r.Simulated {
		return false, nil
	}

	p, err := tx.Payout(ctx, r.Owner, r.PayoutID)
	if err != nil {
		return false, err
	}

	t, err := tx.Transaction(ctx, p.TransactionID)
	if err != nil || !c.config.WasCompared(t.Network, t.Order.From.Address) {
		return false, err
	}

	_, err = c.config.Refunds.CancelRefundTx(ctx, tx, r.Owner, r.ID)
	if errors.Is(err, fault.State) {
		return false, nil
	}

	return err == nil, err
}

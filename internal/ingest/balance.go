package ingest

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
)

// errBalances is the error of a node that answered for another number of holdings than asked.
var errBalances = fault.New(
	fault.Unavailable, "balance_unreadable", "the node answered for another number of balances than asked",
)

// optionExcess is native coin at an option's address that no transfer explains.
type optionExcess struct {
	option  invoice.Option
	network chain.Network
	asset   chain.Asset
	at      chain.Ref
	excess  chain.Amount
}

// CheckBalances compares the native coin at an open invoice's addresses with its payments, both at the last
// block that was read. An excess becomes a payment, without a transaction until a transfer explains it: coin
// that a contract sent shows in no scan. found reports whether there was an excess.
//
// Addresses that received a confirmed payment are skipped: transactions of ours (a top-up, a sweep) may have
// moved coin there. Step checks every invoice before it expires; a checkout page may do so sooner.
func (s *Ingester) CheckBalances(ctx context.Context, invoiceID string) (found bool, err error) {
	inv, err := s.db.InvoiceByID(ctx, invoiceID)
	if err != nil || inv.Status != invoice.Open && inv.Status != invoice.Underpaid {
		return false, err
	}

	payments, err := s.db.PaymentsOfInvoice(ctx, inv.ID)
	if err != nil {
		return false, err
	}

	excesses, wanted, err := s.excesses(ctx, inv, payments)
	if err != nil || len(excesses) == 0 {
		return false, err
	}

	if err := s.fill(ctx, wanted); err != nil {
		return false, err
	}

	return s.update(ctx, func(ctx context.Context, tx Tx) (bool, error) {
		return s.recordExcessesTx(ctx, tx, inv, excesses, wanted)
	})
}

// excesses returns what payments do not explain at the invoice's addresses, and the prices that it needs.
func (s *Ingester) excesses(
	ctx context.Context,
	inv invoice.Invoice,
	payments []invoice.Payment,
) ([]optionExcess, prices, error) {
	var all []optionExcess

	wanted := prices{}

	for _, o := range inv.Options {
		u, ok, err := s.excess(ctx, o, payments)
		if err != nil {
			return nil, nil, err
		}

		if !ok {
			continue
		}

		all = append(all, u)
		wanted.wantUSD(u.asset, u.network)

		if inv.Kind == invoice.Fiat {
			wanted.want(u.asset.PriceSymbol(), inv.Currency)
		}
	}

	return all, wanted, nil
}

// recordExcessesTx records as payments those excesses that were read at the current block of their
// network. It records nothing when the invoice changed since it was read.
func (s *Ingester) recordExcessesTx(
	ctx context.Context,
	tx Tx,
	inv invoice.Invoice,
	excesses []optionExcess,
	wanted prices,
) (found bool, err error) {
	stored, err := tx.InvoiceByID(ctx, inv.ID)
	if err != nil || stored.Version != inv.Version {
		return false, err // something arrived meanwhile: the next check compares anew
	}

	l := s.newLedger(tx, "", wanted)

	a, err := l.open(ctx, stored)
	if err != nil {
		return false, err
	}

	for _, u := range excesses {
		cursor, _, err := tx.Cursor(ctx, u.network.Slug)
		if err != nil {
			return false, err
		}

		if cursor.At.Hash != u.at.Hash {
			continue
		}

		if err := l.recordExcess(ctx, a, u); err != nil {
			return false, err
		}

		found = true
	}

	if err := l.setRequired(a); err != nil {
		return false, err
	}

	l.notifyNew(a)

	return found, l.flush(ctx)
}

// excess reads one option's balance and returns what exceeds its payments. ok is false when there is no
// excess, or none can be determined.
func (s *Ingester) excess(
	ctx context.Context,
	o invoice.Option,
	payments []invoice.Payment,
) (u optionExcess, ok bool, err error) {
	driver, err := s.registry.Driver(o.Network)
	if err != nil || !o.Selected() {
		return u, false, nil // a network that is not served any more is not read
	}

	balancer, can := driver.(chain.Balancer)

	asset, native, err := s.registry.AssetByID(o.Network, o.AssetID)
	if err != nil || !can || asset.ID != native.ID {
		return u, false, nil
	}

	cursor, err := s.cursor(ctx, o.Network)
	if err != nil || cursor.At.IsZero() {
		return u, false, err
	}

	explained, ok := explainedAmount(o, cursor, payments)
	if !ok {
		return u, false, nil
	}

	holdings := []chain.Holding{{Address: o.Address, AssetID: o.AssetID}}

	balances, err := balancer.Balances(ctx, cursor.At, holdings)
	if err != nil {
		return u, false, fmt.Errorf("reading the balance of %s on %s: %w", o.Address, o.Network, err)
	}

	if len(balances) != 1 {
		return u, false, fault.New(
			fault.Unavailable, "balance_unreadable",
			"the node of %s answered %d balances for one address",
			o.Network, len(balances),
		)
	}

	u = optionExcess{
		option:  o,
		network: driver.Network(),
		asset:   asset,
		at:      cursor.At,
		excess:  balances[0].SubFloor(explained),
	}

	return u, !u.excess.IsZero() && !chain.MaxTransfer.Less(u.excess), nil
}

// explainedAmount returns the sum, in base units, of the payments at the option's address up to the
// cursor. ok is false where a confirmed payment may have led to transactions of ours, or one
// without a transaction waits.
func explainedAmount(
	o invoice.Option,
	cursor scan.Cursor,
	payments []invoice.Payment,
) (sum chain.Amount, ok bool) {
	for _, p := range payments {
		if p.Network != o.Network || p.Address != o.Address || p.Simulated {
			continue
		}

		switch {
		case p.Status == invoice.Confirmed || p.Status == invoice.Orphaned && p.TxHash != "":
			return sum, false
		case p.Status == invoice.Detected && p.TxHash == "":
			return sum, false
		case p.Status == invoice.Detected && p.AssetID == o.AssetID && !p.Block.IsZero() &&
			p.Block.Height <= cursor.At.Height:
			sum = sum.Add(p.Amount)
		}
	}

	return sum, true
}

// recordExcess records the excess: as the payment without a transaction that a fork took back and
// that is there again, or as a new one.
func (l *ledger) recordExcess(ctx context.Context, a *entry, u optionExcess) error {
	for _, p := range a.payments {
		here := p.Network == u.network.Slug && p.Address == u.option.Address && p.AssetID == u.asset.ID
		if here && p.Status == invoice.Orphaned && p.TxHash == "" {
			if p.Amount != u.excess {
				return nil // it is dropped first
			}

			return l.move(a, p, func(p *invoice.Payment) ([]event.Type, error) { return p.Observe(u.at) })
		}
	}

	_, _, err := l.enter(ctx, invoice.Payment{
		ID:         l.s.ids.Next(),
		Owner:      a.invoice.Owner,
		Status:     invoice.Detected,
		InvoiceID:  a.invoice.ID,
		Network:    u.network.Slug,
		Asset:      u.asset.Symbol,
		AssetID:    u.asset.ID,
		Contract:   u.asset.Contract,
		Decimals:   u.asset.Decimals,
		Address:    u.option.Address,
		Key:        u.option.Key,
		Amount:     u.excess,
		Block:      u.at,
		Required:   u.network.Confirmations,
		DetectedBy: invoice.ByBalance,
		DetectedAt: l.now,
	}, u.option.ID, u.asset)

	return err
}

// checkBeforeExpiry checks the balances of an invoice whose deadline has passed.
func (s *Ingester) checkBeforeExpiry(ctx context.Context, inv invoice.Invoice) error {
	if s.now().Before(inv.Deadline()) {
		return nil
	}

	_, err := s.CheckBalances(ctx, inv.ID)
	if errors.Is(err, fault.NotFound) {
		return nil
	}

	return err
}

package ingest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
)

// unexplained is native coin at an option's address that no transfer shows.
type unexplained struct {
	option  invoice.Option
	network chain.Network
	asset   chain.Asset
	at      chain.Ref
	excess  chain.Amount
}

// CheckBalances compares the native coin at an open invoice's addresses with what its payments
// explain, both at the last block that was read. Only an excess becomes a payment, without a
// transaction until one is found that explains it: coin that a contract sent shows in no scan.
// found says that there was one.
//
// Addresses that received a confirmed payment are left alone: transactions of ours (a top-up, a
// sweep) may have moved coin there. Step checks every invoice before it expires; a checkout page
// may ask for it sooner.
func (s *Ingester) CheckBalances(ctx context.Context, invoiceID string) (found bool, err error) {
	inv, err := s.db.InvoiceByID(ctx, invoiceID)
	if err != nil || inv.Status != invoice.Open && inv.Status != invoice.Underpaid {
		return false, err
	}

	payments, err := s.db.PaymentsOfInvoice(ctx, inv.ID)
	if err != nil {
		return false, err
	}

	var all []unexplained

	wanted := prices{}

	for _, o := range inv.Options {
		u, ok, err := s.excess(ctx, o, payments)
		if err != nil {
			return false, err
		}

		if ok {
			all = append(all, u)
			wanted.wantUSD(u.asset, u.network)

			if inv.Kind == invoice.Fiat {
				wanted.want(u.asset.PriceSymbol(), inv.Currency)
			}
		}
	}

	if len(all) == 0 {
		return false, nil
	}

	if err := s.fill(ctx, wanted); err != nil {
		return false, err
	}

	return s.update(ctx, func(ctx context.Context, tx Tx) (bool, error) {
		stored, err := tx.InvoiceByID(ctx, inv.ID)
		if err != nil || stored.Version != inv.Version {
			return false, err // something arrived meanwhile: the next look compares anew
		}

		l := s.newLedger(tx, "", wanted)

		a, err := l.open(ctx, stored)
		if err != nil {
			return false, err
		}

		found := false

		for _, u := range all {
			cursor, _, err := tx.Cursor(ctx, u.network.Slug)
			if err != nil {
				return false, err
			}

			if cursor.At.Hash != u.at.Hash {
				continue
			}

			if err := l.unexplained(ctx, a, u); err != nil {
				return false, err
			}

			found = true
		}

		if err := l.require(a); err != nil {
			return false, err
		}

		l.notifyNew(a)

		return found, l.flush(ctx)
	})
}

// excess reads one option's balance; ok is false when there is nothing to explain, or nothing that
// can be said.
func (s *Ingester) excess(
	ctx context.Context,
	o invoice.Option,
	payments []invoice.Payment,
) (u unexplained, ok bool, err error) {
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

	explained, ok := explains(o, cursor, payments)
	if !ok {
		return u, false, nil
	}

	balances, err := balancer.Balances(
		ctx, cursor.At, []chain.Holding{{Address: o.Address, AssetID: o.AssetID}},
	)
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

	u = unexplained{
		option:  o,
		network: driver.Network(),
		asset:   asset,
		at:      cursor.At,
		excess:  balances[0].SubFloor(explained),
	}

	return u, !u.excess.IsZero() && !chain.MaxTransfer.Less(u.excess), nil
}

// explains sums what payments put at the option's address up to the cursor. It cannot say where a confirmed
// payment may have led to transactions of ours, or where one without a transaction waits already.
func explains(o invoice.Option, cursor scan.Cursor, payments []invoice.Payment) (chain.Amount, bool) {
	var sum chain.Amount

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

// unexplained books the excess: as the payment without a transaction that a fork took back and that is there
// again, or as a new one.
func (l *ledger) unexplained(ctx context.Context, a *entry, u unexplained) error {
	for _, p := range a.payments {
		if p.Status == invoice.Orphaned && p.TxHash == "" && p.Network == u.network.Slug &&
			p.Address == u.option.Address &&
			p.AssetID == u.asset.ID {
			if p.Amount != u.excess {
				return nil // it is dropped first
			}

			return l.move(a, p, func(p *invoice.Payment) ([]event.Type, error) { return p.See(u.at) })
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

// beforeExpiry looks for money that no scan shows before an invoice ends.
func (s *Ingester) beforeExpiry(ctx context.Context, inv invoice.Invoice) error {
	if s.now().Before(inv.Deadline()) {
		return nil
	}

	_, err := s.CheckBalances(ctx, inv.ID)
	if errors.Is(err, fault.NotFound) {
		return nil
	}

	return err
}

// attach gives a transfer to the payment that was known from the balance alone which it explains: one read at
// its block or later. If it explains only a part, the rest stays a payment without a transaction.
func (in *intake) attach(
	ctx context.Context,
	m observedTransfer,
	to invoice.Address,
	asset chain.Asset,
) (bool, error) {
	if m.at.IsZero() {
		return false, nil
	}

	candidates, err := in.tx.BalancePayments(ctx, in.n.Slug, to.Address, asset.ID)
	if err != nil {
		return false, err
	}

	var a *entry

	for _, c := range candidates {
		if c.TxHash == "" {
			if a, _, err = in.payment(ctx, c); err != nil {
				return false, err
			}
		}
	}

	if a == nil {
		return false, nil
	}

	for _, p := range a.payments { // with what this batch left of one
		if p.TxHash != "" || p.Network != in.n.Slug || p.Address != to.Address || p.AssetID != asset.ID ||
			p.Block.IsZero() ||
			p.Block.Height < m.at.Height {
			continue
		}

		if p.Status == invoice.Confirmed && p.Amount != m.Amount {
			in.s.log.LogAttrs(
				ctx,
				slog.LevelWarn,
				"a transfer explains a part of a confirmed payment that was known from the balance; it is "+
					"counted already",
				slog.String("payment", p.ID),
				slog.String("tx", m.TxHash),
				slog.Any("index", m.Index),
			)

			return true, nil
		}

		rest := *p

		err := in.move(a, p, func(p *invoice.Payment) ([]event.Type, error) {
			types, err := p.Attach(m.Transfer, m.at)
			if slices.Contains(a.fresh, p.ID) {
				types = nil // nobody heard of it yet
			}

			return types, err
		})
		if err != nil {
			return false, err
		}

		in.seen[p.ID] = true
		if !rest.Amount.Less(m.Amount) && rest.Amount != m.Amount {
			rest.ID, rest.Amount, rest.Version, rest.Sequence = in.s.ids.Next(), rest.Amount.Sub(
				m.Amount,
			), 0, 0

			rest.Credit = decimal.Decimal{}
			if !rest.Rate.IsZero() {
				rest.Credit = invoice.CreditOf(rest.Amount, rest.Decimals, rest.Rate)
			}

			in.add(a, rest)
		}

		return true, nil
	}

	return false, nil
}

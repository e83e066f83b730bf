package ingest

// This file measures token payments whose balances could not be read at their block: later, by all that is at
// their address (decisions 11, "What arrived").

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// errUnmeasured is the error of a retry row whose balances cannot be compared yet.
var errUnmeasured = fault.New(
	fault.State,
	"balance_unmeasured",
	"what arrived could not be compared with the balance yet; the payment waits",
)

// lateBalances are the balances of an address at the last block that was read, by asset, in base units: of those whose
// balance could be read.
type lateBalances struct {
	at    chain.Ref
	found map[string]chain.Amount
}

// readLate reads the balances of an address.
func (s *Ingester) readLate(
	ctx context.Context,
	driver chain.Driver,
	address chain.Address,
) (*lateBalances, error) {
	n := driver.Network()

	cursor, err := s.cursor(ctx, n.Slug)
	if err != nil {
		return nil, err
	}

	check := &balanceCheck{s: s, network: n, at: cursor.At}
	late := &lateBalances{at: cursor.At, found: map[string]chain.Amount{}}

	balancer, can := driver.(chain.Balancer)
	if !can || cursor.At.IsZero() {
		return late, nil
	}

	found, err := check.read(ctx, balancer, []invoice.Address{{Address: address}})

	unreadable, _ := errors.AsType[*chain.UnreadableError](err)
	if err != nil && unreadable == nil {
		return late, nil //nolint:nilerr // the row is postponed
	}

	for i, asset := range n.Assets {
		late.found[asset.ID] = found[i]
	}

	if unreadable != nil {
		for _, holding := range unreadable.Holdings {
			delete(late.found, holding.AssetID)
		}
	}

	return late, nil
}

// measureLate returns the batch of a retry row with what arrived by its transfer: what the balance of the address
// can still hold beside everything else on record, at most what the transfer says. It fails with errUnmeasured
// while that is unknown.
func (s *Ingester) measureLate(
	ctx context.Context,
	tx Tx,
	p PreparedRetry,
	cursor scan.Cursor,
) (PreparedBatch, error) {
	key := invoicestate.KeyOf(p.row.Transfer)
	n := p.batch.batch.Network

	found, read := p.late.found[p.row.Transfer.AssetID]
	if !read || !canonical(cursor, p.late.at) || p.late.at.Height < p.row.Block.Height {
		return p.batch, errUnmeasured
	}

	check := &balanceCheck{s: s, network: n, at: p.late.at}
	address := invoice.Address{Address: p.row.Transfer.To}

	payments, err := check.paymentsOf(ctx, tx, address)
	if err != nil {
		return p.batch, err
	}

	left, known, err := leftoversAt(ctx, tx, n, address.Address, payments, p.late.at)
	if err != nil {
		return p.batch, err
	}

	if !known {
		return p.batch, errUnmeasured
	}

	if err := left.addUnrecorded(ctx, tx, n, address.Address, payments, p.late.at); err != nil {
		return p.batch, err
	}

	if left.unclear[p.row.Transfer.AssetID] {
		return p.batch, errUnmeasured
	}

	dust, err := check.dustOf(ctx, tx, address)
	if err != nil {
		return p.batch, err
	}

	left.returned = nil // what may be there is taken from nobody's payment
	others := slices.DeleteFunc(
		payments,
		func(q invoice.Payment) bool { return invoicestate.PaymentKey(q) == key },
	)
	all := check.explainAll(others, left, dust)

	i := slices.IndexFunc(n.Assets, func(a chain.Asset) bool { return a.ID == p.row.Transfer.AssetID })
	if i < 0 || chain.MaxTransfer.Less(found) {
		return p.batch, errUnmeasured
	}

	unexplained := found.Add(all[i].taken).SubFloor(all[i].sum)

	return p.batch.withArrived(arrivalKey{p.row.Block.Hash, key}, unexplained), nil
}

// withArrived returns the batch with a transfer measured: at most an amount arrived, in base units.
func (p PreparedBatch) withArrived(at arrivalKey, most chain.Amount) PreparedBatch {
	p.measured, p.unmeasured = maps.Clone(p.measured), maps.Clone(p.unmeasured)
	p.measured[at] = chaindata.Min(p.measured[at], most)
	delete(p.unmeasured, at)

	return p
}

// dropNothing drops the payments of a retry row by whose transfers nothing arrived, as their balances show.
func (in *intake) dropNothing(ctx context.Context, matched []observedTransfer) error {
	for _, m := range matched {
		arrived, known := in.p.measured[arrivalKey{m.at.Hash, m.key()}]
		if in.p.retry == "" || !known || !arrived.IsZero() {
			continue // a whole block drops what it does not hold by itself
		}

		stored, err := paymentsByKey(ctx, in.tx, in.n.Slug, m.key())
		if err != nil {
			return err
		}

		for _, q := range stored {
			if q.Status != invoice.Detected || q.Block.Hash != m.at.Hash {
				continue
			}

			a, q, err := in.payment(ctx, q)
			if err != nil {
				return err
			}

			if err := in.move(
				a,
				q,
				func(q *invoice.Payment) ([]event.Type, error) { return invoicestate.Displace(q, in.now) },
			); err != nil {
				return err
			}
		}
	}

	return nil
}

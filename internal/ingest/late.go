package ingest

// This file measures token payments whose balances could not be read with their block: later, by the balances of that
// block, or else by all that is at their address (decisions 11, "What arrived").

import (
	"cmp"
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

// keptBalances is for how many blocks a node may be expected to keep balances: as long as full nodes of Ethereum do.
const keptBalances = 128

// lateReading is what was read of the transfer of a retry row that was not measured with its block.
type lateReading struct {
	// at is the last block that was read.
	at chain.Ref
	// arrived is what arrived by the transfer, in base units, where measured is set: as the balances of its block say.
	arrived  chain.Amount
	measured bool
	// found are the balances of its receiver at at, by asset, in base units: of those whose balance could be read.
	found map[string]chain.Amount
}

// readLate measures the transfer of a retry row at its block, and reads the balances of its receiver where it cannot.
func (s *Ingester) readLate(ctx context.Context, driver chain.Driver, r scan.Retry) (*lateReading, error) {
	n := driver.Network()

	cursor, err := s.cursor(ctx, n.Slug)
	if err != nil {
		return nil, err
	}

	late := &lateReading{at: cursor.At, found: map[string]chain.Amount{}}

	balancer, can := driver.(chain.Balancer)
	if !can || cursor.At.IsZero() {
		return late, nil
	}

	if late.arrived, late.measured = s.measureAtBlock(ctx, driver, r); late.measured {
		return late, nil
	}

	check := &balanceCheck{s: s, network: n, at: cursor.At}
	found, err := check.read(ctx, balancer, []invoice.Address{{Address: r.Transfer.To}})

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

// measureAtBlock returns what arrived by the transfer of a retry row, in base units, as the batch of its block would
// have measured it. ok is false where the whole block or its balances cannot be read: what an address shows alone lacks
// what left it.
func (s *Ingester) measureAtBlock(
	ctx context.Context,
	driver chain.Driver,
	r scan.Retry,
) (arrived chain.Amount, ok bool) {
	scanner, can := driver.(chain.BlockScanner)
	if !can {
		return chain.Amount{}, false
	}

	blocks, err := scanner.Blocks(ctx, r.Block.Height, r.Block.Height)
	if err != nil || !isOnly(blocks, r.Block) {
		return chain.Amount{}, false
	}

	n := driver.Network()
	holding := chain.Holding{Address: r.Transfer.To, AssetID: r.Transfer.AssetID}
	isRow := func(t chain.Transfer) bool { return invoicestate.KeyOf(t) == invoicestate.KeyOf(r.Transfer) }

	transfers := slices.DeleteFunc(
		transfersTo(arrivals(blocks[0].Transfers), holding),
		func(t chain.Transfer) bool { return !isMeasured(n, t) },
	)

	limited, err := s.limitByBalance(ctx, n, blocks[0], transfers)
	if err != nil || !slices.ContainsFunc(transfers, isRow) {
		return chain.Amount{}, false
	}

	if i := slices.IndexFunc(limited, isRow); i >= 0 {
		return limited[i].Amount, true
	}

	return r.Transfer.Amount, true
}

// measureLate returns the batch of a retry row with what arrived by its transfer: what the balances of its block say,
// or else what the balance of the address can still hold beside everything else on record; at most what the transfer
// says. It fails with errUnmeasured while that is unknown.
func (s *Ingester) measureLate(
	ctx context.Context,
	tx Tx,
	p PreparedRetry,
	cursor scan.Cursor,
) (PreparedBatch, error) {
	at := arrivalKey{p.row.Block.Hash, invoicestate.KeyOf(p.row.Transfer)}

	if !canonical(cursor, p.late.at) || p.late.at.Height < p.row.Block.Height {
		return p.batch, errUnmeasured
	}

	if p.late.measured {
		return p.batch.withArrived(at, p.late.arrived), nil
	}

	// What several lack together says of none what arrived by it, and a fork may measure one of them again.
	if p.late.at.Height < p.row.Block.Height+keptBalances {
		if shared, err := s.isShared(ctx, tx, p.row); err != nil || shared {
			return p.batch, cmp.Or[error](err, errUnmeasured)
		}
	}

	unexplained, err := s.unexplainedBy(ctx, tx, p)

	return p.batch.withArrived(at, unexplained), err
}

// isShared reports whether other transfers of the same asset to the receiver of a retry row wait in retry rows.
func (s *Ingester) isShared(ctx context.Context, tx Tx, row scan.Retry) (bool, error) {
	rows, err := AllRetries(ctx, tx, row.Network, s.now())

	return slices.ContainsFunc(rows, func(r scan.Retry) bool {
		return r.ID != row.ID && !r.Block.IsZero() &&
			r.Transfer.To == row.Transfer.To && r.Transfer.AssetID == row.Transfer.AssetID
	}), err
}

// unexplainedBy returns what the balance of a retry row's receiver can hold of its transfer beside everything else on
// record, in base units.
func (s *Ingester) unexplainedBy(ctx context.Context, tx Tx, p PreparedRetry) (chain.Amount, error) {
	n := p.batch.batch.Network

	found, read := p.late.found[p.row.Transfer.AssetID]
	if !read {
		return chain.Amount{}, errUnmeasured
	}

	check := &balanceCheck{s: s, network: n, at: p.late.at}
	address := invoice.Address{Address: p.row.Transfer.To}

	payments, err := check.paymentsOf(ctx, tx, address)
	if err != nil {
		return chain.Amount{}, err
	}

	left, known, err := leftoversAt(ctx, tx, n, address.Address, payments, p.late.at)
	if err != nil {
		return chain.Amount{}, err
	}

	if !known {
		return chain.Amount{}, errUnmeasured
	}

	if err := left.addUnrecorded(ctx, tx, n, address.Address, payments, p.late.at); err != nil {
		return chain.Amount{}, err
	}

	if left.unclear[p.row.Transfer.AssetID] {
		return chain.Amount{}, errUnmeasured
	}

	dust, err := check.dustOf(ctx, tx, address)
	if err != nil {
		return chain.Amount{}, err
	}

	left.returned = nil // what may be there is taken from nobody's payment
	others := slices.DeleteFunc(
		payments,
		func(q invoice.Payment) bool { return invoicestate.PaymentKey(q) == invoicestate.KeyOf(p.row.Transfer) },
	)
	all := check.explainAll(others, left, dust)

	i := slices.IndexFunc(n.Assets, func(a chain.Asset) bool { return a.ID == p.row.Transfer.AssetID })
	if i < 0 || chain.MaxTransfer.Less(found) {
		return chain.Amount{}, errUnmeasured
	}

	return found.Add(all[i].taken).SubFloor(all[i].sum), nil
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

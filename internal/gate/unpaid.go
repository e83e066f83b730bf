package gate

import (
	"context"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/payout"
)

// This file uses the network itself to keep a payout from being signed twice, even if no row shows the first
// time.

// The distance before the acceptance of a payout from which its network is read: margin, and marginBlocks.
// The makers of blocks set the times of blocks.
const (
	marginBlocks = 6
	margin       = 10 * time.Second
)

// checkUnpaid refuses payouts that the network shows as paid since their acceptance, in a block or in the
// pool. The payment must be in a transaction of the wallet that belongs to no other payout. That transaction
// must not exclude the one to sign (spends). The refused payouts do not fail, as money was sent. They wait
// until that transaction is on record, which freezes the wallet, or is gone.
//
// Errors: fault.Unavailable with code payout_unchecked while the network cannot be read, and with code
// payout_paid_already.
func (g *Gate) checkUnpaid(
	ctx context.Context,
	request chain.SignRequest,
	from chain.Address,
	spends []string,
	payouts []payout.Payout,
) error {
	if len(payouts) == 0 {
		return nil
	}

	// Use the time of creation: old records may be restored without an approval, and the approval is then
	// given again.
	since := g.config.Now()
	for _, p := range payouts {
		if p.CreatedAt.Before(since) {
			since = p.CreatedAt
		}
	}

	shown, err := g.shownSince(ctx, request.Network, from, since, func(tx shownTx) bool {
		return slices.ContainsFunc(payouts, func(p payout.Payout) bool { return tx.payments(p, from) > 0 })
	})
	if err != nil {
		return fault.Wrap(
			err, fault.Unavailable, "payout_unchecked",
			"%s cannot be read: it is not known what %s has paid since %s",
			request.Network, from, since.Format(time.RFC3339),
		)
	}

	shown = distinct(shown)

	for _, p := range payouts {
		var payments []shownTx

		for _, tx := range shown {
			if !tx.excludes(spends) && !slices.Contains(p.Signing.Foreign, tx.TxHash) {
				payments = append(payments, slices.Repeat([]shownTx{tx}, tx.payments(p, from))...)
			}
		}

		unexplained, err := g.unexplained(ctx, p, payments, payouts)
		if err != nil {
			return err
		}

		if unexplained != "" {
			why := fault.New(
				fault.Unavailable, "payout_paid_already", "payout %s was paid by %s", p.ID, unexplained,
			)
			g.logRefusal(request, why)

			return why
		}
	}

	return nil
}

// shownTx is a transaction that a block or the pool shows.
type shownTx chain.PoolTx

// usesAny reports whether the transaction makes one of the spends (chaindata.SpendKey).
func (t shownTx) usesAny(spends []string) bool {
	return slices.ContainsFunc(
		t.Spent,
		func(s chain.Spend) bool { return slices.Contains(spends, chaindata.SpendKey(s)) },
	)
}

// payments returns how often the transaction pays the amount of a payout to its destination, if it may be
// from a wallet.
func (t shownTx) payments(p payout.Payout, from chain.Address) int {
	return walletstate.Payments(
		t.Transfers, from, chain.Output{To: p.Destination, AssetID: p.AssetID, Amount: p.Amount},
	)
}

// excludes reports whether a chain holds at most one of these: the transaction, the one to sign now, and
// every later one that makes the recorded spend of either. The recorded spend is the first one.
func (t shownTx) excludes(spends []string) bool {
	return len(spends) > 0 && t.usesAny(spends[:1]) && slices.Contains(spends, chaindata.SpendKey(t.Spent[0]))
}

// shownSince returns the wanted transactions of a network since a time: those of its blocks, or those that a
// wallet signed where the network is read by address. It adds those of the pool if the node shows it.
func (g *Gate) shownSince(
	ctx context.Context,
	network string,
	from chain.Address,
	since time.Time,
	wanted func(tx shownTx) bool,
) (all []shownTx, err error) {
	driver, err := g.config.Networks.Driver(network)
	if err != nil {
		return nil, err
	}

	// Read the pool first: a transaction that leaves it for a block meanwhile is in the blocks that are read
	// later.
	if pool, ok := driver.(chain.Mempool); ok {
		waiting, err := pool.Pool(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}

		if err == nil { // some providers refuse the pool
			for _, tx := range waiting {
				if wanted(shownTx(tx)) {
					all = append(all, shownTx(tx))
				}
			}
		}
	}

	since = since.Add(-margin)

	if scanner, ok := driver.(chain.BlockScanner); ok {
		recent, _ := g.recent.LoadOrStore(network, &recentBlocks{})

		err := recent.(*recentBlocks).since(ctx, driver, scanner, since, func(b chain.Block) {
			for _, tx := range transactionsOf(b) {
				if wanted(tx) {
					all = append(all, tx)
				}
			}
		})

		return all, err
	}

	signed, err := g.signedBy(ctx, driver, from, since)

	return append(all, signed...), err
}

// transactionsOf returns the transactions of a block that have transfers.
func transactionsOf(b chain.Block) (all []shownTx) {
	index := map[string]int{}

	for _, moved := range b.Transfers {
		at, known := index[moved.TxHash]
		if !known {
			at = len(all)
			index[moved.TxHash] = at
			all = append(all, shownTx{TxHash: moved.TxHash})
		}

		all[at].Transfers = append(all[at].Transfers, moved)
	}

	for _, s := range b.Spent {
		if at, known := index[s.By]; known {
			all[at].Spent = append(all[at].Spent, s)
		}
	}

	return all
}

// triesOfHeight is the number of immediate tries to read a history from a node that turns out to be behind
// the tip. Another backend of the node may answer the next time, and those behind advance meanwhile.
const triesOfHeight = 5

// signedBy returns the transactions that a wallet signed since a time, on a network that is read by address.
//
// The tip is read once. A node that answers must have reached it: a backend behind it does not show payments
// made in between.
func (g *Gate) signedBy(
	ctx context.Context,
	driver chain.Driver,
	from chain.Address,
	since time.Time,
) (all []shownTx, err error) {
	scanner, scans := driver.(chain.AddressScanner)
	finder, finds := driver.(chain.Finder)

	if !scans || !finds {
		return nil, nil
	}

	head, err := driver.Head(ctx)
	if err != nil {
		return nil, err
	}

	first, err := heightBefore(ctx, driver, head.Tip, since)
	if err != nil {
		return nil, err
	}

	for try := 1; ; try++ {
		all, err = readSigned(ctx, scanner, finder, from, first, head.Tip.Height)
		if !isBehind(err) || try == triesOfHeight || ctx.Err() != nil {
			return all, err
		}
	}
}

// firstStep is the first distance below the tip, in blocks, at which a block older than a time is searched:
// about a minute of the fastest networks.
const firstStep = 256

// heightBefore returns the height, at least 1, of a block made before a time. If the nodes have no block that
// is so old, the error is that of RefAt.
func heightBefore(ctx context.Context, driver chain.Driver, tip chain.Ref, since time.Time) (uint64, error) {
	for back := uint64(firstStep); back < tip.Height; back *= 2 {
		ref, err := driver.RefAt(ctx, tip.Height-back)

		if chaindata.IsPruned(err) {
			oldest, failed := chaindata.OldestHeld(ctx, driver, tip.Height-back, tip.Height)
			if failed == nil && oldest.Time.Before(since) {
				return oldest.Height, nil
			}

			return 0, err
		}

		if err != nil || ref.Time.Before(since) {
			return tip.Height - back, err
		}
	}

	return 1, nil
}

// isBehind reports whether a reading failed because the node that answered lacks the newest blocks.
func isBehind(err error) bool {
	switch fault.Code(err) {
	case "node_behind", "block_unknown", "transaction_unknown":
		return true
	}

	return false
}

// readSigned returns the transactions that a wallet signed in a range of heights and that were not reverted.
func readSigned(
	ctx context.Context,
	scanner chain.AddressScanner,
	finder chain.Finder,
	from chain.Address,
	first, last uint64,
) (all []shownTx, err error) {
	blocks, err := scanner.TransfersTo(ctx, []chain.Address{from}, first, last)
	if err != nil {
		return nil, err
	}

	for _, b := range blocks {
		for _, s := range b.Spent {
			if s.Sender != from || s.Failed {
				continue
			}

			found, err := finder.Transaction(ctx, s.By)
			if err != nil {
				return nil, err
			}

			all = append(all, shownTx{TxHash: s.By, Transfers: found.Transfers, Spent: found.Spent})
		}
	}

	return all, nil
}

package ingest

// This file finds money at deposit addresses that no transfer shows, by what the addresses hold.

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
)

// caughtUp is how many blocks a network may be behind its tip for balances to be compared.
const caughtUp = 16

// Leftovers is what our own transactions left at a deposit address.
type Leftovers struct {
	// Moved are the payments, by id, whose money is not there any more.
	Moved map[string]bool
	// Coin is what they left of native coin beside the payments.
	Coin chain.Amount
}

// LeftoversFunc returns what our own transactions left at an address of its payments, as of block at. ok is
// false when that is unknown: while a transaction of ours touches the address, or may have since that block.
type LeftoversFunc func(
	ctx context.Context,
	tx Tx,
	network string,
	address chain.Address,
	payments []invoice.Payment,
	at chain.Ref,
) (k Leftovers, ok bool, err error)

// CheckDeposits compares the balances of deposit addresses of one network with their payments and
// our own transactions, both at the last block that was read. An excess becomes a payment, without
// a transaction until a transfer explains it. found is the number of excesses.
//
// It checks the native coin, which contracts send without a trace in blocks and receipts. Where transfers are
// queried by address it checks tokens too, because such answers are known to be incomplete.
func (s *Ingester) CheckDeposits(
	ctx context.Context,
	network string,
	deposits []invoice.DepositAddress,
) (found int, err error) {
	driver, err := s.registry.Driver(network)
	if err != nil {
		return 0, err
	}

	balancer, can := driver.(chain.Balancer)

	cursor, err := s.cursor(ctx, network)
	if err != nil || !can || s.kept == nil || cursor.At.IsZero() || len(deposits) == 0 {
		return 0, err
	}

	if cursor.At.Height+caughtUp < cursor.Tip.Height {
		// few nodes know balances of long ago; until the network is caught up, transfers may still
		// explain them
		return 0, nil
	}

	assets := checkedAssets(driver)

	balances, err := depositBalances(ctx, balancer, network, cursor.At, deposits, assets)
	if err != nil {
		return 0, err
	}

	for i, balance := range balances {
		if balance.IsZero() || chain.MaxTransfer.Less(balance) {
			continue // a swept address holds nothing: most addresses cost no query
		}

		held := depositBalance{
			deposit: deposits[i/len(assets)],
			network: driver.Network(),
			asset:   assets[i%len(assets)],
			at:      cursor.At,
			balance: balance,
		}

		recorded, err := s.checkDeposit(ctx, held)
		if err != nil {
			return found, fmt.Errorf("deposit address %s: %w", held.deposit.ID, err)
		}

		if recorded {
			found++
		}
	}

	return found, nil
}

// depositBalances returns the balances at a block of every deposit address, in base units: for each
// address one per asset, in order.
func depositBalances(
	ctx context.Context,
	balancer chain.Balancer,
	network string,
	at chain.Ref,
	deposits []invoice.DepositAddress,
	assets []chain.Asset,
) ([]chain.Amount, error) {
	var holdings []chain.Holding

	for _, d := range deposits {
		for _, a := range assets {
			holdings = append(holdings, chain.Holding{Address: d.Address, AssetID: a.ID})
		}
	}

	balances, err := balancer.Balances(ctx, at, holdings)
	if err != nil {
		return nil, fmt.Errorf("reading balances of deposit addresses on %s: %w", network, err)
	}

	if len(balances) != len(holdings) {
		return nil, fault.New(
			fault.Unavailable, "balance_unreadable",
			"the node of %s answered %d balances for %d addresses",
			network, len(balances), len(holdings),
		)
	}

	return balances, nil
}

// checkedAssets returns the assets whose balances are compared.
func checkedAssets(driver chain.Driver) []chain.Asset {
	n := driver.Network()
	if _, byAddress := driver.(chain.AddressScanner); byAddress {
		return n.Assets
	}

	native, _ := n.Native()

	return []chain.Asset{native}
}

// depositBalance is the balance of a deposit address in one asset at a block, in base units.
type depositBalance struct {
	deposit invoice.DepositAddress
	network chain.Network
	asset   chain.Asset
	at      chain.Ref
	balance chain.Amount
}

// checkDeposit records the excess of a balance as a payment, and reports whether there was one.
func (s *Ingester) checkDeposit(ctx context.Context, k depositBalance) (bool, error) {
	wanted := prices{} // read only where there is an excess, and the value decides on confirmations

	for try := 1; ; try++ {
		found, err := s.update(ctx, func(ctx context.Context, tx Tx) (bool, error) {
			return s.checkDepositTx(ctx, tx, k, wanted)
		})
		if !errors.Is(err, invoice.ErrUnprepared) || try == 4 {
			return found, err
		}

		s.recall(k.network.Slug, wanted)

		if err := s.fill(ctx, wanted); err != nil {
			return false, err
		}
	}
}

// checkDepositTx is checkDeposit in tx; invoice.ErrUnprepared when a price is missing from wanted.
func (s *Ingester) checkDepositTx(ctx context.Context, tx Tx, k depositBalance, wanted prices) (bool, error) {
	cursor, _, err := tx.Cursor(ctx, k.network.Slug)
	if err != nil || cursor.At.Hash != k.at.Hash {
		return false, err // blocks were read meanwhile: the next check compares anew
	}

	payments, err := allOfDeposit(ctx, tx, k.deposit)
	if err != nil {
		return false, err
	}

	kept, ok, err := s.kept(ctx, tx, k.network.Slug, k.deposit.Address, payments, k.at)
	if err != nil || !ok {
		return false, err
	}

	explained, back, ok := k.explained(payments, kept)

	excess := k.balance.SubFloor(explained)
	if !ok || excess.IsZero() || back != nil && back.Amount != excess {
		return false, nil
	}

	l := s.newLedger(tx, k.network.Slug, wanted)

	var a *entry

	if back != nil {
		var p *invoice.Payment
		if a, p, err = l.payment(ctx, *back); err == nil {
			err = l.move(a, p, func(p *invoice.Payment) ([]event.Type, error) { return p.Observe(k.at) })
		}
	} else {
		a, err = l.enterExcess(ctx, k, excess)
	}

	if err != nil {
		return false, err
	}

	if err := l.setRequired(a); err != nil {
		return false, err
	}

	l.notifyNew(a)

	return true, l.flush(ctx)
}

// enterExcess adds the excess at a deposit address as a payment without a transaction.
func (l *ledger) enterExcess(ctx context.Context, k depositBalance, excess chain.Amount) (*entry, error) {
	l.s.log.LogAttrs(
		ctx, slog.LevelInfo,
		"a deposit address holds more than its transfers explain; it is booked as a payment",
		slog.String("deposit_address", k.deposit.ID), slog.String("network", k.network.Slug),
		slog.String("asset", k.asset.Symbol), slog.String("amount", excess.String()),
	)

	a, _, err := l.enter(ctx, invoice.Payment{
		ID:               l.s.ids.Next(),
		Owner:            k.deposit.Owner,
		Status:           invoice.Detected,
		DepositAddressID: k.deposit.ID,
		Network:          k.network.Slug,
		Asset:            k.asset.Symbol,
		AssetID:          k.asset.ID,
		Contract:         k.asset.Contract,
		Decimals:         k.asset.Decimals,
		Address:          k.deposit.Address,
		Key:              k.deposit.Key,
		Amount:           excess,
		Block:            k.at,
		Required:         k.network.Confirmations,
		DetectedBy:       invoice.ByBalance,
		DetectedAt:       l.now,
	}, "", k.asset)

	return a, err
}

// explained returns the base units that payments and our own transactions leave at the address up
// to the block. back is a payment without a transaction that a fork took back. ok is false where
// the sum is unknown: an orphaned payment may be in the chain again, or one without a transaction
// stands for money still there.
func (k depositBalance) explained(
	payments []invoice.Payment,
	kept Leftovers,
) (sum chain.Amount, back *invoice.Payment, ok bool) {
	if k.asset.Kind == chain.Native {
		sum = kept.Coin
	}

	for i, p := range payments {
		here := p.Network == k.network.Slug && p.AssetID == k.asset.ID
		if !here || p.Simulated || p.Status == invoice.Dropped || kept.Moved[p.ID] {
			continue
		}

		switch {
		case p.Status == invoice.Orphaned && p.TxHash == "":
			back = &payments[i]
		case p.Status == invoice.Orphaned, p.TxHash == "":
			return sum, nil, false
		case !p.Block.IsZero() && p.Block.Height <= k.at.Height:
			sum = sum.Add(p.Amount)
		}
	}

	return sum, back, true
}

// allOfDeposit returns the payments to a deposit address, in every status.
func allOfDeposit(
	ctx context.Context,
	r invoice.Reader,
	d invoice.DepositAddress,
) (all []invoice.Payment, err error) {
	f := invoice.PaymentFilter{Owner: d.Owner, DepositAddressID: d.ID, Limit: 500}
	for {
		page, err := r.Payments(ctx, f)
		if err != nil {
			return nil, err
		}

		all = append(all, page...)
		if len(page) < f.Limit {
			return all, nil
		}

		f.After = page[len(page)-1].ID
	}
}

package auditor

import (
	"context"
	"fmt"
	"slices"

	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// This file compares the ledger with the balances on the network.

// balances compares every address with the network. Reserved amounts are in base units.
func (a *auditor) balances(ctx context.Context, reserved map[chain.Holding]chain.Amount) error {
	if reader, ok := a.driver.(chain.CoinReader); ok {
		return a.coins(ctx, reader, reserved)
	}

	balancer, ok := a.driver.(chain.Balancer)
	if !ok {
		a.out.Unchecked = "the driver of this network cannot read balances"
		return nil
	}

	read := func(ctx context.Context, holdings []chain.Holding) ([]chain.Amount, error) {
		amounts, err := balancer.Balances(ctx, a.out.At, holdings)
		if err = chaindata.WithoutProvisional(err); err == nil && len(amounts) != len(holdings) {
			err = fault.New(
				fault.Unavailable, "balances_incomplete", "the driver answered %d of %d balances",
				len(amounts), len(holdings),
			)
		}

		return amounts, err
	}

	for holdings := range slices.Chunk(a.ledger.close(), maxHoldings) {
		amounts, err := read(ctx, holdings)
		if err != nil {
			return err
		}

		for i, h := range holdings {
			a.compare(h, amounts[i], reserved[h])
		}

		a.out.Holdings += len(holdings)
	}

	return a.unexplained(ctx, read)
}

// compare reports the difference between a balance and the ledger, in base units. A master wallet may hold
// money from elsewhere, a deposit address may not.
func (a *auditor) compare(h chain.Holding, found, reserved chain.Amount) {
	recorded := a.ledger.balanceOf(h.Address, h.AssetID)
	asset, _ := a.network.AssetByID(h.AssetID)

	has, others := found.Add(recorded.out), a.ledger.others[h]
	if missing := recorded.in.Add(others.in).SubFloor(has.Add(others.out)); !missing.IsZero() {
		a.report(audit.Difference{
			Kind:     audit.MoneyMissing,
			Address:  h.Address,
			AssetID:  h.AssetID,
			Expected: recorded.in.SubFloor(recorded.out),
			Found:    found,
			Message: fmt.Sprintf(
				"%s base units of %s are missing at %s: the records bring %s and take %s",
				missing, asset.Symbol, h.Address, recorded.in, recorded.out,
			),
			Records: recorded.newest(),
		})
	}

	outside := has.SubFloor(recorded.in)
	if owner, isMaster := a.masters[h.Address]; isMaster {
		a.out.Wallets = append(a.out.Wallets, audit.Wallet{
			Owner:    owner,
			Address:  h.Address,
			Asset:    asset.Symbol,
			AssetID:  h.AssetID,
			OnChain:  found,
			In:       recorded.in,
			Out:      recorded.out,
			Outside:  outside,
			Reserved: reserved,
		})

		return
	}

	if outside = outside.SubFloor(a.ledger.brought[h]); !outside.IsZero() {
		a.report(audit.Difference{
			Kind:     audit.MoneyUnexplained,
			Address:  h.Address,
			AssetID:  h.AssetID,
			Expected: recorded.in.SubFloor(recorded.out),
			Found:    found,
			Message:  a.unexplainedMessage(h.Address, asset, outside),
			Records:  recorded.newest(),
		})
	}
}

// unexplainedMessage describes an unexplained amount at an address, in base units of an asset. It says
// whether blocks that are still to be read for the address may explain it.
func (a *auditor) unexplainedMessage(address chain.Address, asset chain.Asset, amount chain.Amount) string {
	message := fmt.Sprintf(
		"%s base units of %s at %s are not explained by any record",
		amount, asset.Symbol, address,
	)

	if r, waits := a.unread[address]; waits && r.Next <= a.out.At.Height {
		message += fmt.Sprintf(" yet: blocks %d to %d are still to be read for it", r.Next, r.To)
	}

	for _, blocks := range a.out.Unread {
		message += fmt.Sprintf("; blocks %d to %d were not read, as no node had them", blocks.From, blocks.To)
	}

	return message
}

package txmgr

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// maxDepth is the number of waiting transactions of its wallet that a coin may depend on. Nodes accept chains
// of 25 (Bitcoin Core's ancestor limit; decisions part 5).
const maxDepth = 20 // spec D5.11

// SpendableCoins returns the coins of a wallet that a new transaction may spend now; none on networks that do
// not spend outputs. waiting is set while waiting transactions of the wallet spend other coins, whose change
// will come.
func (o *Manager) SpendableCoins(
	ctx context.Context,
	network string,
	party chain.Party,
) (coins []chain.Coin, waiting bool, err error) {
	driver, err := o.registry.Driver(network)
	if err != nil {
		return nil, false, err
	}

	if _, ok := driver.(chain.CoinReader); !ok {
		return nil, false, nil
	}

	d := &walletWorker{Manager: o, network: driver.Network(), party: party}

	all, err := d.db.Coins(ctx, network, party.Address)
	if err != nil {
		return nil, false, &storeError{err}
	}

	waiting = slices.ContainsFunc(all, func(c wallet.Coin) bool {
		return c.SpentBy == "" && (c.ReservedBy != "" || c.Height == 0)
	})

	coins, err = d.spendableCoins(ctx, wallet.Transaction{Network: network})

	return coins, waiting, err
}

// spendableCoins returns the coins that a transaction's bytes may spend: coins reserved by it or by the
// transaction that it displaces, and unreserved ones. It leaves out the change of its own earlier bytes and
// immature block rewards. If the order names its coins, only those are returned.
func (d *walletWorker) spendableCoins(ctx context.Context, t wallet.Transaction) ([]chain.Coin, error) {
	coins, err := d.candidateCoins(ctx, t)
	if err != nil {
		return nil, &storeError{err}
	}

	cursor, _, err := d.db.Cursor(ctx, t.Network)
	if err != nil {
		return nil, &storeError{err}
	}

	var out []chain.Coin

	for _, c := range coins {
		if walletstate.AttemptIndex(&t, c.Outpoint.TxHash) >= 0 || !walletstate.Mature(c, cursor.At.Height) {
			continue
		}

		if c.SpentBy == "" && (c.ReservedBy == "" && spendable(c, t) || reservedFor(c, t)) {
			out = append(out, c.Coin)
		}
	}

	return out, nil
}

// candidateCoins returns the coins that the order names, or else all of the wallet.
func (d *walletWorker) candidateCoins(ctx context.Context, t wallet.Transaction) ([]wallet.Coin, error) {
	if len(t.Order.Coins) == 0 {
		return d.db.Coins(ctx, t.Network, d.party.Address)
	}

	named := make([]chain.Outpoint, len(t.Order.Coins))
	for i, c := range t.Order.Coins {
		named[i] = c.Outpoint
	}

	return coinsAt(ctx, d.db, t.Network, named)
}

// reservedFor reports whether the coin is reserved for a transaction, or for the one that it displaces.
func reservedFor(c wallet.Coin, t wallet.Transaction) bool {
	return c.ReservedBy != "" &&
		(c.ReservedBy == t.ID || t.Kind == wallet.Cancel && c.ReservedBy == t.ObjectID)
}

// spendable reports whether an unreserved coin may be spent: it is in a block, or is own change that depends
// on at most maxDepth waiting transactions. A release and a bump spend only coins in blocks.
func spendable(c wallet.Coin, t wallet.Transaction) bool {
	return c.Height > 0 ||
		len(t.Order.Coins) == 0 && t.Order.Bumps == nil && c.Depth > 0 && c.Depth <= maxDepth
}

package engine

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
)

// This file acknowledges transactions that no block holds: they left the chain, or wait in the pool.

// applyGone unfreezes the wallet of a transaction that has left the chain with its block. If the transaction
// comes back, it freezes the wallet again. A master wallet's transaction that its node still has, in the pool
// or in a later block, must first be read in a block: the payouts that it pays may wait to be paid once more.
func (a *acknowledgement) applyGone(ctx context.Context, tx Tx) error {
	frozen, err := tx.FrozenWallets(ctx, a.network, 0)
	if err != nil {
		return err
	}

	i := slices.IndexFunc(frozen, func(w wallet.Wallet) bool { return w.FrozenBy == a.txHash })
	if len(a.pooled) > 0 && (i < 0 || frozen[i].Party.Key.Role != chain.RoleDeposit) {
		return a.applyPooled(ctx, tx)
	}

	if i < 0 {
		return fault.New(
			fault.NotFound, "transaction_unknown",
			"no block of %s that was read shows a transaction %s of our wallets that is not on record; "+
				"Engine.Health names those that freeze a wallet", a.network, a.txHash,
		)
	}

	if a.ahead {
		return fault.New(
			fault.State, "transaction_not_final",
			"transaction %s is in a block of %s that was not read yet: acknowledge it when it is final",
			a.txHash, a.network,
		)
	}

	if len(a.ids) > 0 {
		return fault.New(
			fault.State,
			"transaction_not_final",
			"transaction %s has left the chain: it fulfils nothing now; acknowledge it as %q, or wait until it is back",
			a.txHash,
			wallet.Foreign,
		)
	}

	return a.thaw(ctx, tx, frozen[i].Party.Address)
}

// applyPooled records as foreign a transaction of deposit addresses that waits in the pool: the addresses
// then sign again, at its nonce too. If a block includes it, it freezes them. A master wallet's transaction
// must be in a block: the payouts that it pays may wait to be paid at another nonce.
func (a *acknowledgement) applyPooled(ctx context.Context, tx Tx) error {
	ours, err := parties(tx, a.driver.Network().Space())(ctx, a.pooled)
	if err != nil {
		return err
	}

	if len(ours) == 0 {
		return fault.New(
			fault.NotFound, "transaction_unknown", "transaction %s in the pool of %s is none of our wallets'",
			a.txHash, a.network,
		)
	}

	for address, party := range ours {
		if party.Key.Role != chain.RoleDeposit || len(a.ids) > 0 {
			return fault.New(
				fault.State,
				"transaction_not_final",
				"transaction %s of %s waits in the pool of %s: wait until a block holds it; one of a deposit address "+
					"may be acknowledged as %q before",
				a.txHash,
				address,
				a.network,
				wallet.Foreign,
			)
		}
	}

	for address := range ours {
		if err := a.Transactions.AcknowledgePooledTx(ctx, tx, a.network, address, a.txHash); err != nil {
			return err
		}
	}

	return nil
}

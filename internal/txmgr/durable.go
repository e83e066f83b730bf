package txmgr

import (
	"cmp"
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// Durable nonces. A wallet with nonce accounts gives each new transaction the value of a free account: one
// that no live transaction of the wallet uses. The used value is stored with the first bytes, like their
// hash. So a second transaction never uses it, even if a node is behind. Replacements and the cancel use the
// same value. If no account can be used, such as when all are closed, transactions expire instead, and Health
// lists the accounts.

// noncePool is the state of a wallet's nonce accounts in one turn.
type noncePool struct {
	// free are the nonces that can be used, in the order of the accounts.
	free []chain.DurableNonce
	// busy is set when there are more nonces, which a later turn can use.
	busy bool
}

// nonces returns the free nonces of the wallet, read once per turn; nil if it has no nonce accounts.
func (d *walletWorker) nonces(ctx context.Context) (*noncePool, error) {
	reader, ok := d.driver.(chain.DurableNonces)
	if !ok {
		return nil, nil
	}

	accounts := reader.NonceAccounts(d.party.Address)
	if len(accounts) == 0 {
		return nil, nil
	}

	if d.noncePool != nil {
		return d.noncePool, nil
	}

	live, err := d.db.LiveTransactions(ctx, d.network.Slug, d.party.Address)
	if err != nil {
		return nil, &storeError{err}
	}

	free := slices.DeleteFunc(slices.Clone(accounts), func(account chain.Address) bool {
		return slices.ContainsFunc(live, func(t wallet.Transaction) bool { return usesAccount(t, account) })
	})

	pool := &noncePool{busy: len(free) < len(accounts)}
	if len(free) > 0 {
		if err := d.readNonces(ctx, reader, free, pool); err != nil {
			return nil, err
		}
	}

	d.noncePool = pool

	return pool, nil
}

// usesAccount reports whether bytes of a transaction use a nonce account.
func usesAccount(t wallet.Transaction, account chain.Address) bool {
	return slices.ContainsFunc(t.Attempts, func(a wallet.Attempt) bool {
		return a.Signed.DurableNonce != nil && a.Signed.DurableNonce.Account == account
	})
}

// readNonces reads free accounts and adds their nonces to a pool.
func (d *walletWorker) readNonces(
	ctx context.Context,
	reader chain.DurableNonces,
	accounts []chain.Address,
	pool *noncePool,
) error {
	read, err := reader.ReadNonces(ctx, d.party.Address, accounts)
	if err != nil {
		return err
	}

	keys := make([]string, len(read))
	for i, account := range read {
		keys[i] = chaindata.SpendKey(chaindata.NonceSpend(account.DurableNonce))
	}

	used, err := d.db.OwnTransactions(ctx, d.network.Slug, keys)
	if err != nil {
		return &storeError{err}
	}

	for i, account := range read {
		if !account.Disputed {
			d.recordNonceAccount(ctx, account)
		}

		_, stale := used[keys[i]]

		switch {
		case account.Disputed, stale && account.Unusable == "": // the node is behind
			pool.busy = true
		case account.Unusable == "":
			pool.free = append(pool.free, account.DurableNonce)
		}
	}

	return nil
}

// unusableNonce is a nonce account that a wallet cannot use.
type unusableNonce struct {
	wallet health.Wallet
}

// recordNonceAccount records for Health whether an account can be used, and logs when that changes.
func (d *walletWorker) recordNonceAccount(ctx context.Context, account chain.NonceAccount) {
	key := d.network.Slug + "/" + string(account.Account)

	if account.Unusable == "" {
		d.unusableNonces.Delete(key)
		return
	}

	named := unusableNonce{health.Wallet{
		Network:   d.network.Slug,
		Address:   string(d.party.Address),
		AccountID: d.due[0].Owner.AccountID,
		Reason:    "nonce account " + string(account.Account) + " cannot be used: " + account.Unusable,
	}}

	if before, known := d.unusableNonces.Swap(key, named); !known || before != named {
		d.config.Log.WarnContext(
			ctx, "a nonce account cannot be used", "network", d.network.Slug,
			"wallet", string(d.party.Address), "account", string(account.Account), "reason", account.Unusable,
		)
	}
}

// UnusableNonces returns the wallets of a network with nonce accounts that cannot be used, one row per
// account, as this process last read them.
func (o *Manager) UnusableNonces(network string) (named []health.Wallet) {
	o.unusableNonces.Range(func(_, value any) bool {
		if w := value.(unusableNonce).wallet; w.Network == network {
			named = append(named, w)
		}

		return true
	})

	slices.SortFunc(named, func(a, b health.Wallet) int { return cmp.Compare(a.Reason, b.Reason) })

	return named
}

// awaitsNonce reports whether a new transaction of the wallet must wait until a nonce account is free.
func (d *walletWorker) awaitsNonce(ctx context.Context) (bool, error) {
	pool, err := d.nonces(ctx)

	return pool != nil && len(pool.free) == 0 && pool.busy, err
}

// nextDurableNonce returns the nonce for the next new transaction; nil for a transaction that expires
// instead.
func (d *walletWorker) nextDurableNonce(ctx context.Context) (*chain.DurableNonce, error) {
	pool, err := d.nonces(ctx)
	if err != nil || pool == nil || len(pool.free) == 0 {
		return nil, err
	}

	next := pool.free[0]

	return &next, nil
}

// dropNonce removes a nonce that was signed from the turn's free ones.
func (d *walletWorker) dropNonce(signed chain.Signed) {
	if d.noncePool != nil && signed.DurableNonce != nil {
		d.noncePool.busy = true
		d.noncePool.free = slices.DeleteFunc(d.noncePool.free, func(n chain.DurableNonce) bool {
			return n == *signed.DurableNonce
		})
	}
}

// putNonceTx stores that the first bytes of a transaction use a durable nonce. fault.Duplicate: other bytes
// use it.
func (d *walletWorker) putNonceTx(
	ctx context.Context,
	tx wallet.Tx,
	t wallet.Transaction,
	signed chain.Signed,
) error {
	if signed.DurableNonce == nil || len(t.Attempts) > 0 || t.Kind == wallet.Cancel {
		return nil // a replacement or a cancel uses the nonce of earlier bytes
	}

	return tx.PutAttemptHash(
		ctx,
		t.Network,
		chaindata.SpendKey(chaindata.NonceSpend(*signed.DurableNonce)),
		t.ID,
		t.Kind,
	)
}

// sameNonce reports whether signed bytes use the durable nonce of their order.
func sameNonce(order chain.Order, signed chain.Signed) bool {
	if order.DurableNonce == nil || signed.DurableNonce == nil {
		return order.DurableNonce == signed.DurableNonce
	}

	return *order.DurableNonce == *signed.DurableNonce
}

// nonceUsed reports whether blocks that were read prove that the durable nonce of an attempt was used. In a
// final block its account holds another value, every block up to that one was read, and none has the attempt.
func (d *walletWorker) nonceUsed(
	ctx context.Context,
	t wallet.Transaction,
	signed chain.Signed,
	tip chain.Ref,
) (used bool, at chain.Ref, err error) {
	reader, ok := d.driver.(chain.DurableNonces)
	if !ok || signed.DurableNonce == nil {
		return false, chain.Ref{}, nil
	}

	used, at, err = reader.NonceUsed(ctx, *signed.DurableNonce)
	if err != nil || !used || at.Height > tip.Height {
		return false, chain.Ref{}, err
	}

	// The blocks that were read must be on the chain of that final block.
	used, err = d.isCanonical(ctx, t, tip)

	return used, at, err
}

// nonceRefused reports whether blocks that were read prove that the network no longer accepts an attempt,
// because it refuses durable nonces. It refuses them at a final block, every block up to that one was read,
// and none has the attempt.
func (d *walletWorker) nonceRefused(
	ctx context.Context,
	t wallet.Transaction,
	signed chain.Signed,
	tip chain.Ref,
) (refused bool, at chain.Ref, err error) {
	reader, ok := d.driver.(chain.NonceRefuser)
	if !ok || signed.DurableNonce == nil {
		return false, chain.Ref{}, nil
	}

	refused, at, err = reader.NonceRefused(ctx, signed)
	if err != nil || !refused || at.Height > tip.Height {
		return false, chain.Ref{}, err
	}

	refused, err = d.isCanonical(ctx, t, tip)

	return refused, at, err
}

// ownConflict returns the cancel that used the durable nonce of a transaction; zero if another transaction
// used it. known is false while a cancel may have used it but is not recorded as included.
func (d *walletWorker) ownConflict(
	ctx context.Context,
	t wallet.Transaction,
) (conflict wallet.Conflict, known bool, err error) {
	if walletstate.LastAttempt(&t).Signed.DurableNonce == nil {
		return wallet.Conflict{}, true, nil
	}

	cancels, err := d.db.TransactionsOf(ctx, t.ID)
	if err != nil {
		return wallet.Conflict{}, false, &storeError{err}
	}

	for _, cancel := range cancels {
		switch {
		case cancel.Kind != wallet.Cancel:
		case cancel.State == wallet.Included || cancel.State == wallet.Confirmed:
			return wallet.Conflict{TxHash: cancel.TxHash, Own: true}, true, nil
		case cancel.State == wallet.Signed || cancel.State == wallet.Broadcast:
			return wallet.Conflict{}, false, nil
		}
	}

	return wallet.Conflict{}, true, nil
}

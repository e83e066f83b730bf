package txmgr

import (
	"context"
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/follow"
)

// PartyLookup returns the addresses of ours among those given, with their keys.
type PartyLookup func(ctx context.Context, addresses []chain.Address) (map[chain.Address]chain.Party, error)

// IndexCoinsTx updates the UTXO index with a batch of blocks, in the transaction that moves the network's
// cursor. Outputs to our addresses become coins, spent coins are marked, and a fork undoes both; balances
// follow. From the pool it adds only change of our own transactions. Payments of others, and their CPFP
// bumps, count from their block. It is idempotent, and does nothing on account networks.
func (o *Manager) IndexCoinsTx(ctx context.Context, tx wallet.Tx, b follow.Batch, parties PartyLookup) error {
	driver, err := o.registry.Driver(b.Network.Slug)
	if err != nil {
		return err
	}

	if _, ok := driver.(chain.CoinReader); !ok || len(b.Blocks) == 0 && !b.Rewound && !b.PoolRead {
		return nil
	}

	k := &utxoIndex{Manager: o, tx: tx, batch: b, coins: map[chain.Outpoint]*utxoEntry{}}
	if k.ours, err = parties(ctx, k.recipients()); err != nil {
		return err
	}

	return k.run(ctx)
}

// utxoIndex is one run of IndexCoinsTx.
type utxoIndex struct {
	*Manager
	tx    wallet.Tx
	batch follow.Batch
	ours  map[chain.Address]chain.Party
	// pool are the waiting transactions of ours that pay an address of ours, by hash.
	pool  map[string]chain.PoolTx
	coins map[chain.Outpoint]*utxoEntry
}

// utxoEntry is a coin in the index. stored is the coin as it is stored; zero for a new one.
type utxoEntry struct {
	wallet.Coin
	stored wallet.Coin
}

// recipients returns the addresses that the batch pays, sorted.
func (k *utxoIndex) recipients() []chain.Address {
	to := map[chain.Address]bool{}

	for _, block := range k.batch.Blocks {
		for _, t := range block.Transfers {
			to[t.To] = true
		}
	}

	for _, waiting := range k.batch.Pool {
		for _, t := range waiting.Transfers {
			to[t.To] = true
		}
	}

	return slices.Sorted(maps.Keys(to))
}

// run applies the batch: fork, blocks, pool.
func (k *utxoIndex) run(ctx context.Context) error {
	if err := k.ownPool(ctx); err != nil {
		return err
	}

	if err := k.load(ctx); err != nil {
		return err
	}

	k.rewind()

	for _, block := range k.batch.Blocks {
		k.indexBlock(block)
	}

	k.indexPool()

	if err := k.logForeignSpends(ctx); err != nil {
		return err
	}

	return k.save(ctx)
}

// ownPool selects our own transactions from the pool, without bumps. Payers may replace the transactions that
// bumps depend on, so no transaction of ours spends the outputs of a bump before its block.
func (k *utxoIndex) ownPool(ctx context.Context) error {
	k.pool = map[string]chain.PoolTx{}
	for _, waiting := range k.batch.Pool {
		if slices.ContainsFunc(
			waiting.Transfers, func(t chain.Transfer) bool { _, ours := k.ours[t.To]; return ours },
		) {
			k.pool[waiting.TxHash] = waiting
		}
	}

	if len(k.pool) == 0 {
		return nil
	}

	own, err := k.tx.OwnTransactions(ctx, k.batch.Network.Slug, slices.Sorted(maps.Keys(k.pool)))
	if err != nil {
		return err
	}

	maps.DeleteFunc(
		k.pool,
		func(hash string, _ chain.PoolTx) bool { t, ours := own[hash]; return !ours || t.Kind == wallet.Bump },
	)

	return nil
}

// load reads every coin that the batch may touch.
func (k *utxoIndex) load(ctx context.Context) error {
	hashes := map[string]bool{}

	for _, block := range k.batch.Blocks {
		for _, t := range block.Transfers {
			if _, ours := k.ours[t.To]; ours {
				hashes[t.TxHash] = true
			}
		}

		for _, s := range block.Spent {
			hashes[s.Outpoint.TxHash] = true
		}
	}

	for hash, waiting := range k.pool {
		hashes[hash] = true
		for _, s := range waiting.Spent {
			hashes[s.Outpoint.TxHash] = true
		}
	}

	network := k.batch.Network.Slug

	add := func(found []wallet.Coin, err error) error {
		for _, c := range found {
			if k.coins[c.Outpoint] == nil {
				k.coins[c.Outpoint] = &utxoEntry{c, c}
			}
		}

		return err
	}
	if err := add(k.tx.CoinsOf(ctx, network, slices.Sorted(maps.Keys(hashes)))); err != nil {
		return err
	}

	if k.batch.Rewound {
		if err := add(k.tx.CoinsAbove(ctx, network, k.batch.ForkedFrom.Height)); err != nil {
			return err
		}
	}

	if !k.batch.PoolRead {
		return nil
	}

	return add(k.tx.UnconfirmedCoins(ctx, network))
}

// rewind undoes the effects of blocks above the fork; indexBlock then applies the canonical ones again.
func (k *utxoIndex) rewind() {
	if !k.batch.Rewound {
		return
	}

	for _, c := range k.coins {
		if c.Height > k.batch.ForkedFrom.Height {
			c.Height = 0
		}

		if c.SpentAt > k.batch.ForkedFrom.Height {
			c.SpentBy, c.SpentAt = "", 0
		}
	}
}

// indexBlock applies one canonical block: its outputs first and then its spends, as a block may spend its own
// outputs.
func (k *utxoIndex) indexBlock(b chain.Block) {
	for _, t := range b.Transfers {
		if c := k.coinOf(t); c != nil {
			c.Height, c.Depth, c.MatureAt = b.Height, 0, 0
			if t.Locked > 0 {
				c.MatureAt = b.Height + t.Locked - 1
			}
		}
	}

	for _, s := range b.Spent {
		if c := k.coins[s.Outpoint]; c != nil {
			c.SpentBy, c.SpentAt = s.By, b.Height
		}
	}
}

// coinOf returns the entry of a transfer to an address of ours, or nil.
func (k *utxoIndex) coinOf(t chain.Transfer) *utxoEntry {
	native, _ := k.batch.Network.Native()

	owner, ours := k.ours[t.To]
	if !ours || t.AssetID != native.ID {
		return nil
	}

	at := chain.Outpoint{TxHash: t.TxHash, Vout: t.Index}

	c := k.coins[at]
	if c == nil {
		c = &utxoEntry{
			Coin: wallet.Coin{
				Network: k.batch.Network.Slug,
				Coin:    chain.Coin{Outpoint: at, Owner: owner, Amount: t.Amount},
			},
		}
		k.coins[at] = c
	}

	return c
}

// indexPool adds the outputs of our own transactions in the pool. The depth of an output is the length of the
// chain of those transactions that it depends on. Outputs of a transaction in neither the chain nor the pool
// get depth 0.
func (k *utxoIndex) indexPool() {
	depths := map[string]int{}

	var depth func(hash string) int

	depth = func(hash string) int {
		tx, waiting := k.pool[hash]
		if !waiting {
			return 0
		}

		if d, known := depths[hash]; known {
			return d
		}

		depths[hash] = 1
		for _, s := range tx.Spent {
			depths[hash] = max(depths[hash], 1+depth(s.Outpoint.TxHash))
		}

		return depths[hash]
	}

	for _, c := range k.coins {
		if k.batch.PoolRead {
			c.Depth = 0
		}
	}

	for hash, tx := range k.pool {
		for _, t := range tx.Transfers {
			if c := k.coinOf(t); c != nil && c.Height == 0 {
				c.Depth = depth(hash)
			}
		}
	}
}

// logForeignSpends logs coins that were spent by a transaction which is not on record: somebody else has the
// key.
func (k *utxoIndex) logForeignSpends(ctx context.Context) error {
	by := map[string][]chain.Outpoint{}

	for at, c := range k.coins {
		if c.SpentBy != "" && c.stored.SpentBy != c.SpentBy && !k.watchOnly(c.Network, c.Owner.Address) {
			by[c.SpentBy] = append(by[c.SpentBy], at)
		}
	}

	if len(by) == 0 {
		return nil
	}

	own, err := k.tx.OwnTransactions(ctx, k.batch.Network.Slug, slices.Sorted(maps.Keys(by)))
	if err != nil {
		return err
	}

	for hash, coins := range by {
		if _, ours := own[hash]; !ours {
			k.config.Log.ErrorContext(
				ctx,
				"a coin of ours was spent by a transaction that is not on record: somebody else has its key",
				"network", k.batch.Network.Slug, "spent_by", hash, "tx_hash", coins[0].TxHash,
				"vout", coins[0].Vout, "coins", len(coins),
			)
		}
	}

	return nil
}

// save stores the changed coins, ordered by outpoint, and the balances of the touched addresses. It deletes a
// coin in no block, unless the coin is an output of ours in the pool or reserved by signed bytes.
func (k *utxoIndex) save(ctx context.Context) error {
	order := slices.SortedFunc(maps.Keys(k.coins), compareOutpoints)
	touched := map[chain.Address]bool{}

	for _, at := range order {
		c := k.coins[at]
		touched[c.Owner.Address] = touched[c.Owner.Address] || c.Height != c.stored.Height ||
			c.SpentBy != c.stored.SpentBy
		_, pooled := k.pool[at.TxHash]

		var err error

		switch {
		case c.Height == 0 && !pooled && c.ReservedBy == "" && k.batch.PoolRead:
			if c.stored.Network != "" {
				err = k.tx.DeleteCoin(ctx, c.Network, at)
			}
		case c.Coin != c.stored:
			err = k.tx.PutCoin(ctx, &c.Coin)
		}

		if err != nil {
			return err
		}
	}

	maps.DeleteFunc(touched, func(_ chain.Address, touched bool) bool { return !touched })

	native, _ := k.batch.Network.Native()
	for _, address := range slices.Sorted(maps.Keys(touched)) { // sorted to avoid deadlock
		if err := sumCoinsTx(ctx, k.tx, k.batch.Network.Slug, address, native.ID, false); err != nil {
			return err
		}
	}

	return nil
}

package sim

// Driver methods of UTXO that read blocks, pool, transactions and outputs.

import (
	"context"
	"strings"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Head returns the node's tip. The network has no safe or final blocks.
func (u *UTXO) Head(ctx context.Context) (chain.Head, error) {
	if err := u.call(ctx, MethodHead); err != nil {
		return chain.Head{}, err
	}

	u.mu.Lock()
	defer u.mu.Unlock()

	return chain.Head{Tip: u.headers[u.nodeTip()].Ref}, nil
}

// isFinal reports whether the block at a height has the confirmations that the network asks for.
func (u *UTXO) isFinal(height uint64) bool {
	return height <= u.nodeTip() && u.nodeTip()-height+1 >= max(u.network.Confirmations, 1)
}

// Blocks returns the blocks of a range of heights, at most 256 of them.
func (u *UTXO) Blocks(ctx context.Context, from, to uint64) ([]chain.Block, error) {
	if err := u.call(ctx, MethodBlocks); err != nil {
		return nil, err
	}

	u.mu.Lock()
	defer u.mu.Unlock()

	to, err := u.checkRange(from, to)
	if err != nil {
		return nil, err
	}

	blocks := make([]chain.Block, 0, to-from+1)
	for height := from; height <= to; height++ {
		blocks = append(blocks, u.block(height))
	}

	return blocks, nil
}

// block returns the block at a height.
func (u *UTXO) block(height uint64) chain.Block {
	block := chain.Block{Ref: u.headers[height].Ref, Parent: u.headers[height].parent}
	for _, entry := range u.blocks[height].entries {
		block.Transfers = append(block.Transfers, u.transfers(entry)...)
		block.Spent = append(block.Spent, entry.tx.spends(entry.hash)...)
	}

	return block
}

// AgreedHead returns the newest block that the second node has too; see LagSecond.
func (u *UTXO) AgreedHead(ctx context.Context) (chain.Head, error) {
	if err := u.call(ctx, MethodAgreedHead); err != nil {
		return chain.Head{}, err
	}

	u.mu.Lock()
	defer u.mu.Unlock()

	return chain.Head{Tip: u.headers[u.agreedTip()].Ref}, nil
}

// AgreedBlock returns a block that the second node has too; see LagSecond.
func (u *UTXO) AgreedBlock(ctx context.Context, at chain.Ref, hashes []string) (chain.Block, error) {
	return u.agreedBlock(ctx, at, hashes, u.block)
}

// transfers returns the outputs of a transaction as transfers; those of 0 are left out. As on Bitcoin,
// nobody is named as the sender.
func (u *UTXO) transfers(entry *utxoEntry) []chain.Transfer {
	var out []chain.Transfer

	locked := uint64(0)
	if len(entry.tx.inputs) == 0 { // a block reward
		locked = u.config.Maturity
	}

	for vout, output := range entry.tx.outputs {
		if output.amount == 0 {
			continue
		}

		out = append(out, chain.Transfer{
			TxHash:  entry.hash,
			Index:   uint32(vout),
			To:      output.to.address(),
			AssetID: u.native.ID,
			Amount:  chain.Units(output.amount),
			Locked:  locked,
		})
	}

	return out
}

// Pool returns the waiting transactions by arrival, with the outputs that they spend.
func (u *UTXO) Pool(ctx context.Context) ([]chain.PoolTx, error) {
	if err := u.call(ctx, MethodPool); err != nil {
		return nil, err
	}

	u.mu.Lock()
	defer u.mu.Unlock()

	var out []chain.PoolTx

	for _, entry := range u.pool.sorted() {
		out = append(out, chain.PoolTx{
			TxHash:    entry.hash,
			Transfers: u.transfers(entry),
			Spent:     entry.tx.spends(entry.hash),
		})
	}

	return out, nil
}

// Transaction returns a transaction of the chain or the pool by its hash. An unknown one is
// fault.NotFound.
func (u *UTXO) Transaction(ctx context.Context, hash string) (chain.FoundTx, error) {
	if err := u.call(ctx, MethodTransaction); err != nil {
		return chain.FoundTx{}, err
	}

	u.mu.Lock()
	defer u.mu.Unlock()

	hash = strings.ToLower(hash)
	if entry := u.included[hash]; entry != nil && entry.height <= u.nodeTip() {
		return chain.FoundTx{
			TxHash:    hash,
			Block:     u.headers[entry.height].Ref,
			Transfers: u.transfers(entry),
			Spent:     entry.tx.spends(hash),
		}, nil
	}

	if entry := u.pool.byHash[hash]; entry != nil {
		return chain.FoundTx{
			TxHash:    hash,
			Transfers: u.transfers(entry),
			Spent:     entry.tx.spends(hash),
		}, nil
	}

	return chain.FoundTx{}, fault.New(
		fault.NotFound, "transaction_unknown", "network %s knows no transaction %q",
		u.network.Slug, hash[:min(len(hash), 64)],
	)
}

// Unspent returns the amounts of outputs that no block up to the node's tip spends, without the pool.
func (u *UTXO) Unspent(
	ctx context.Context,
	outpoints []chain.Outpoint,
) (at chain.Ref, amounts []chain.Amount, err error) {
	if err := u.call(ctx, MethodUnspent); err != nil {
		return chain.Ref{}, nil, err
	}

	u.mu.Lock()
	defer u.mu.Unlock()

	amounts = make([]chain.Amount, len(outpoints))

	for i, outpoint := range outpoints {
		if output := u.unspent(outpoint, u.nodeTip()); output != nil {
			amounts[i] = chain.Units(output.amount)
		}
	}

	return u.headers[u.nodeTip()].Ref, amounts, nil
}

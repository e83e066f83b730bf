package bitcoin

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/seed-8ee7f392/payments/chain"
)

// poolCache stores the transactions of the mempool, so that each is fetched once.
type poolCache struct {
	limit int

	mu  sync.Mutex
	txs map[string]chain.PoolTx // replaced as a whole, never changed
}

func (p *poolCache) load() map[string]chain.PoolTx {
	p.mu.Lock()
	defer p.mu.Unlock()

	return p.txs
}

func (p *poolCache) store(txs map[string]chain.PoolTx) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.txs = txs
}

// Pool returns the transactions of the mempool, at most Config.PoolLimit, with the outputs that they spend.
// The spends show replacements.
func (d *driver) Pool(ctx context.Context) ([]chain.PoolTx, error) {
	var out []chain.PoolTx

	err := d.ask(ctx, func(ctx context.Context, node *endpoint) (err error) {
		out, err = d.readPool(ctx, node)
		return err
	})
	if err != nil {
		return nil, err
	}

	return out, nil
}

// readPool returns the transactions of a node's mempool, and stores them in the cache.
func (d *driver) readPool(ctx context.Context, node *endpoint) ([]chain.PoolTx, error) {
	if d.pool.limit == 0 {
		return nil, nil
	}

	var hashes []string
	if err := node.call(ctx, &hashes, "getrawmempool"); err != nil {
		return nil, err
	}

	hashes = hashes[:min(len(hashes), d.pool.limit)]
	known := d.pool.load()

	var missing []*rpcCall

	for _, hash := range hashes {
		if _, ok := known[hash]; !ok {
			missing = append(missing, newCall("getrawtransaction", hash, 0))
		}
	}

	if err := node.batchCall(ctx, missing...); err != nil {
		return nil, err
	}

	now := make(map[string]chain.PoolTx, len(hashes))
	out := make([]chain.PoolTx, 0, len(hashes))
	next := 0

	for _, hash := range hashes {
		tx, ok := known[hash]
		if !ok {
			call := missing[next]
			next++

			if call.err != nil {
				continue // it left the mempool meanwhile
			}

			var err error
			if tx, err = d.poolTx(node, hash, call.result); err != nil {
				return nil, err
			}
		}

		now[hash] = tx
		out = append(out, tx)
	}

	d.pool.store(now)

	return out, nil
}

// poolTx returns the transaction in an answer of getrawtransaction.
func (d *driver) poolTx(node *endpoint, hash string, answer json.RawMessage) (chain.PoolTx, error) {
	var text string
	if json.Unmarshal(answer, &text) != nil {
		return chain.PoolTx{}, node.Garbled(
			"asked for transaction %s, it answered something else",
			node.Clean(hash),
		)
	}

	tx, err := decodeTx(text)
	if err != nil || tx.TxHash().String() != hash {
		return chain.PoolTx{}, node.Garbled("asked for transaction %s, it answered another", node.Clean(hash))
	}

	return chain.PoolTx{TxHash: hash, Transfers: d.transfers(tx, hash, ""), Spent: spendsOf(tx, hash)}, nil
}

package evm

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
)

// Pool returns the waiting transactions that carry native coin or call transfer of an enabled token, as
// far as Config.Pool shows them. Coin and tokens moved by other contracts are seen in blocks only. What
// it returns is foreseen, not done: the transaction may fail.
func (d *Driver) Pool(ctx context.Context) ([]chain.PoolTx, error) {
	if d.pool == PoolOff {
		return nil, nil
	}

	var out []chain.PoolTx

	err := d.ask(ctx, 0, func(ctx context.Context, e *endpoint) error {
		read := e.pendingBlock
		if d.pool == PoolContent {
			read = e.poolContent
		}

		waiting, err := read(ctx)
		if err != nil {
			return err
		}

		out = nil

		for i := range waiting {
			if err := waiting[i].check(e); err != nil {
				return err
			}

			transfers, err := d.foreseen(e, &waiting[i])
			if err != nil {
				return err
			}

			if len(transfers) > 0 {
				out = append(
					out,
					chain.PoolTx{
						TxHash:    waiting[i].Hash.Hex(),
						Transfers: transfers,
						Spent:     waiting[i].spent(),
					},
				)
			}
		}

		return nil
	})

	return out, err
}

// pendingBlock returns the transactions of the block that the node would make now. Nodes without a pool
// of their own answer with the newest block instead: that one waits for nothing.
func (e *endpoint) pendingBlock(ctx context.Context) ([]poolTxJSON, error) {
	tip := newCall("eth_blockNumber")

	pending := newCall("eth_getBlockByNumber", "pending", true)
	if err := e.do(ctx, tip, pending); err != nil {
		return nil, err
	}

	var height hexutil.Uint64
	if err := tip.decode(e, &height); err != nil {
		return nil, err
	}

	if pending.null() {
		return nil, nil
	}

	var block struct {
		Number       *hexutil.Uint64 `json:"number"`
		Transactions []poolTxJSON    `json:"transactions"`
	}
	if err := pending.decode(e, &block); err != nil {
		return nil, err
	}

	if block.Number == nil || *block.Number <= height {
		return nil, nil
	}

	return block.Transactions, nil
}

// poolContent returns what txpool_content calls pending; queued ones wait for a nonce before them.
func (e *endpoint) poolContent(ctx context.Context) ([]poolTxJSON, error) {
	c := newCall("txpool_content")
	if err := e.do(ctx, c); err != nil {
		return nil, err
	}

	var content struct {
		Pending map[common.Address]map[string]poolTxJSON `json:"pending"`
	}
	if err := c.decode(e, &content); err != nil {
		return nil, err
	}

	var out []poolTxJSON

	for _, byNonce := range content.Pending {
		for _, tx := range byNonce {
			out = append(out, tx)
		}
	}

	return out, nil
}

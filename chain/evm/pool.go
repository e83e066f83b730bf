package evm

import (
	"context"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
)

// Pool returns the pending transactions that send native coin or call transfer of an enabled token, as far as
// Config.Pool shows them. Transfers by other contracts show in blocks only. The transfers are provisional: a
// pending transaction may fail.
func (d *driver) Pool(ctx context.Context) ([]chain.PoolTx, error) {
	if d.pool == PoolOff {
		return nil, nil
	}

	var pool []chain.PoolTx

	err := d.ask(ctx, 0, func(ctx context.Context, node *endpoint) error {
		read := node.pendingBlock
		if d.pool == PoolContent {
			read = node.poolContent
		}

		pending, err := read(ctx)
		if err != nil {
			return err
		}

		pool = nil

		for i := range pending {
			if err := pending[i].checkComplete(node); err != nil {
				return err
			}

			transfers, err := d.pendingTransfers(node, &pending[i])
			if err != nil {
				return err
			}

			if len(transfers) > 0 {
				pool = append(pool, chain.PoolTx{
					TxHash:    pending[i].Hash.Hex(),
					Transfers: transfers,
					Spent:     pending[i].nonceSpent(),
				})
			}
		}

		return nil
	})

	return pool, err
}

// pendingBlock returns the transactions of the node's pending block. A node without a pool answers
// with the newest block, which is ignored, or refuses the tag.
func (e *endpoint) pendingBlock(ctx context.Context) ([]txJSON, error) {
	tip := newCall("eth_blockNumber")

	pending := newCall("eth_getBlockByNumber", "pending", true)
	if err := e.do(ctx, tip, pending); err != nil {
		return nil, err
	}

	var height hexutil.Uint64
	if err := tip.decode(e, &height); err != nil {
		return nil, err
	}

	if pending.refusal() != nil {
		return nil, nil
	}

	var block struct {
		Number       *hexutil.Uint64 `json:"number"`
		Transactions []txJSON        `json:"transactions"`
	}
	if err := pending.decode(e, &block); err != nil {
		return nil, err
	}

	if block.Number == nil || *block.Number <= height {
		return nil, nil
	}

	return block.Transactions, nil
}

// poolContent returns the pending transactions of txpool_content, without the queued ones.
func (e *endpoint) poolContent(ctx context.Context) ([]txJSON, error) {
	rpcCall := newCall("txpool_content")
	if err := e.do(ctx, rpcCall); err != nil {
		return nil, err
	}

	var content struct {
		Pending map[common.Address]map[string]txJSON `json:"pending"`
	}
	if err := rpcCall.decode(e, &content); err != nil {
		return nil, err
	}

	var out []txJSON

	for _, byNonce := range content.Pending {
		for _, tx := range byNonce {
			out = append(out, tx)
		}
	}

	return out, nil
}

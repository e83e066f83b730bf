package evm

import (
	"encoding/json"
	"math/big"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/seed-8ee7f392/payments/chain"
)

// The JSON forms of blocks, transactions, receipts and logs. Source: Ethereum execution API
// specification (execution-apis). Only fields in use are decoded, so that other networks' header
// fields and transaction types do no harm. Those fields must be present.

// headerJSON is a block without its transactions.
type headerJSON struct {
	Number           *hexutil.Uint64 `json:"number"`
	Hash             *common.Hash    `json:"hash"`
	ParentHash       *common.Hash    `json:"parentHash"`
	Timestamp        *hexutil.Uint64 `json:"timestamp"`
	LogsBloom        *types.Bloom    `json:"logsBloom"`
	TransactionsRoot *common.Hash    `json:"transactionsRoot"`
	BaseFeePerGas    *hexutil.Big    `json:"baseFeePerGas"`
}

// blockJSON is a block with its transactions.
type blockJSON struct {
	headerJSON
	Transactions []txJSON `json:"transactions"`
}

// txJSON is a transaction, in a block or pending.
type txJSON struct {
	Hash      *common.Hash    `json:"hash"`
	From      *common.Address `json:"from"`
	To        *common.Address `json:"to"` // nil: creates a contract
	Value     *hexutil.Big    `json:"value"`
	Nonce     *hexutil.Uint64 `json:"nonce"`
	BlockHash *common.Hash    `json:"blockHash"`
}

// nonceSpent returns the nonce that the transaction uses up; none where the network gives it none.
func (t *txJSON) nonceSpent() []chain.Spend {
	if t.Nonce == nil {
		return nil
	}

	return []chain.Spend{{Sender: canonical(*t.From), Nonce: uint64(*t.Nonce), By: t.Hash.Hex()}}
}

// poolTxJSON is a pending transaction with its input, from which its transfers are derived.
type poolTxJSON struct {
	txJSON
	Input hexutil.Bytes `json:"input"`
}

// receiptJSON is the receipt of a transaction.
type receiptJSON struct {
	TransactionHash   *common.Hash    `json:"transactionHash"`
	BlockHash         *common.Hash    `json:"blockHash"`
	BlockNumber       *hexutil.Uint64 `json:"blockNumber"`
	Status            *hexutil.Uint64 `json:"status"`
	GasUsed           *hexutil.Uint64 `json:"gasUsed"`
	EffectiveGasPrice *hexutil.Big    `json:"effectiveGasPrice"`
	// L1Fee is the L1 data fee that an OP-stack rollup charged, in wei.
	L1Fee *hexutil.Big `json:"l1Fee"`
	Logs  []logJSON    `json:"logs"`
}

// logJSON is one log of a receipt.
type logJSON struct {
	Address  *common.Address `json:"address"`
	Topics   []common.Hash   `json:"topics"`
	Data     hexutil.Bytes   `json:"data"`
	LogIndex *hexutil.Uint64 `json:"logIndex"`
	Removed  bool            `json:"removed"`
}

// isNull reports whether the node answered null: it does not have what was asked for.
func (c *call) isNull() bool {
	return c.err == nil && (len(c.result) == 0 || string(c.result) == "null")
}

// decode reads the result into v. A null or another form is a failure of the node.
func (c *call) decode(node *endpoint, v any) error {
	if c.err != nil {
		return c.err
	}

	if c.isNull() {
		return node.Garbled("%s answered null", c.method)
	}

	if err := json.Unmarshal(c.result, v); err != nil {
		return node.Garbled("%s answered something that does not fit: %s", c.method, node.Clean(err.Error()))
	}

	return nil
}

// ref returns the reference to the header's block, or an error if a field is missing.
func (h *headerJSON) ref(node *endpoint) (chain.Ref, error) {
	if h.Number == nil || h.Hash == nil || h.ParentHash == nil || h.Timestamp == nil ||
		uint64(*h.Timestamp) > 1<<40 {
		return chain.Ref{}, node.Garbled("a block without number, hash, parent hash or usable timestamp")
	}

	return chain.Ref{
		Height: uint64(*h.Number),
		Hash:   h.Hash.Hex(),
		Time:   time.Unix(int64(*h.Timestamp), 0).UTC(),
	}, nil
}

// check returns the reference to the block, or an error if the block is incomplete.
func (b *blockJSON) check(node *endpoint, height uint64) (chain.Ref, error) {
	ref, err := b.ref(node)
	if err != nil {
		return ref, err
	}

	if ref.Height != height {
		return ref, node.Garbled("asked for block %d, it answered block %d", height, ref.Height)
	}

	if b.LogsBloom == nil || b.TransactionsRoot == nil || b.Transactions == nil {
		return ref, node.Garbled("block %d without logs bloom, transactions root or transactions", height)
	}

	if len(b.Transactions) == 0 && *b.TransactionsRoot != types.EmptyTxsHash {
		return ref, node.Garbled("block %d has transactions that the node left out", height)
	}

	for i := range b.Transactions {
		tx := &b.Transactions[i]
		if err := tx.checkComplete(node); err != nil {
			return ref, err
		}

		if tx.BlockHash == nil || *tx.BlockHash != *b.Hash {
			return ref, node.Garbled(
				"transaction %s of block %d belongs to another block",
				tx.Hash.Hex(), height,
			)
		}
	}

	return ref, nil
}

// checkComplete returns an error if hash, sender or value is missing.
func (t *txJSON) checkComplete(node *endpoint) error {
	if t.Hash == nil || t.From == nil || t.Value == nil {
		return node.Garbled("a transaction without hash, sender or value")
	}

	return nil
}

// check returns an error unless the receipt is complete and of this transaction in this block.
func (r *receiptJSON) check(node *endpoint, tx, block common.Hash) error {
	if r.TransactionHash == nil || *r.TransactionHash != tx || r.Status == nil || r.GasUsed == nil ||
		r.BlockNumber == nil {
		return node.Garbled("the receipt of transaction %s is incomplete or another's", tx.Hex())
	}

	if r.BlockHash == nil || *r.BlockHash != block {
		return node.Garbled("the receipt of transaction %s belongs to another block", tx.Hex())
	}

	for i := range r.Logs {
		log := &r.Logs[i]
		if log.Address == nil || log.LogIndex == nil || log.Removed ||
			*log.LogIndex != *r.Logs[0].LogIndex+hexutil.Uint64(i) {
			return node.Garbled("the logs of transaction %s have a gap or were removed", tx.Hex())
		}
	}

	return nil
}

// maxPrice bounds the gas prices that are accepted, in wei: 10^28. No product with a gas amount
// overflows.
var maxPrice = chain.Pow10(28)

// price returns a gas price in wei.
func (e *endpoint) price(wei *hexutil.Big) (chain.Amount, error) {
	if wei == nil {
		return chain.Amount{}, e.Garbled("a gas price is missing")
	}

	price, err := chain.AmountFromBig((*big.Int)(wei))
	if err != nil || maxPrice.Less(price) {
		return chain.Amount{}, e.Garbled("a gas price of %s wei", (*big.Int)(wei))
	}

	return price, nil
}

// amount returns a quantity of base units.
func (e *endpoint) amount(quantity *hexutil.Big) (chain.Amount, error) {
	amount, err := chain.AmountFromBig((*big.Int)(quantity))
	if err != nil {
		return amount, e.Garbled("an amount beyond 256 bits")
	}

	return amount, nil
}

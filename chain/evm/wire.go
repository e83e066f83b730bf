package evm

import (
	"encoding/json"
	"math/big"
	"slices"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/seed-8ee7f392/payments/chain"
)

// The JSON forms of blocks, transactions, receipts and logs. Source: Ethereum execution API specification
// (execution-apis). Fields that every network has must be present. Fields that only some networks have and
// verification needs are read by format.decodeTx and types.Header.

// headerJSON is a block without its transactions.
type headerJSON struct {
	Number           *hexutil.Uint64 `json:"number"`
	Hash             *common.Hash    `json:"hash"`
	ParentHash       *common.Hash    `json:"parentHash"`
	Timestamp        *hexutil.Uint64 `json:"timestamp"`
	LogsBloom        *types.Bloom    `json:"logsBloom"`
	TransactionsRoot *common.Hash    `json:"transactionsRoot"`
	ReceiptsRoot     *common.Hash    `json:"receiptsRoot"`
	BaseFeePerGas    *hexutil.Big    `json:"baseFeePerGas"`
	GasLimit         *hexutil.Uint64 `json:"gasLimit"`
}

// blockJSON is a block with its transactions.
type blockJSON struct {
	headerJSON
	Transactions []txJSON
	// header is the header as go-ethereum decodes it; nil if it cannot, with the reason in headerErr.
	header    *types.Header
	headerErr error
	// unknown lists the fields that no known header has.
	unknown []string
}

// knownFields are the fields of a block's JSON that go-ethereum knows, or that follow from those.
var knownFields = []string{
	"parentHash", "sha3Uncles", "miner", "stateRoot", "transactionsRoot", "receiptsRoot", "logsBloom",
	"difficulty", "number", "gasLimit", "gasUsed", "timestamp", "extraData", "mixHash", "nonce",
	"baseFeePerGas", "withdrawalsRoot", "blobGasUsed", "excessBlobGas", "parentBeaconBlockRoot",
	"requestsHash", "blockAccessListHash", "slotNumber",
	// Outside the header, from every node.
	"hash", "size", "totalDifficulty", "transactions", "uncles", "withdrawals",
	// Derived from other fields: Arbitrum's from extraData and mixHash, BNB Smart Chain's from mixHash.
	"l1BlockNumber", "sendCount", "sendRoot", "milliTimestamp",
}

// UnmarshalJSON reads a block. A header that go-ethereum cannot decode is no error.
func (b *blockJSON) UnmarshalJSON(raw []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return err
	}

	if list, ok := fields["transactions"]; ok {
		if err := json.Unmarshal(list, &b.Transactions); err != nil {
			return err
		}

		delete(fields, "transactions")
	}

	rest, err := json.Marshal(fields)
	if err != nil {
		return err
	}

	if err := json.Unmarshal(rest, &b.headerJSON); err != nil {
		return err
	}

	header := new(types.Header)
	if b.headerErr = header.UnmarshalJSON(rest); b.headerErr == nil {
		b.header = header
	}

	for name, value := range fields {
		if string(value) != "null" && !slices.Contains(knownFields, name) {
			b.unknown = append(b.unknown, name)
		}
	}

	slices.Sort(b.unknown)

	return nil
}

// txJSON is a transaction, in a block or pending. Verification replaces the node's claims about sender,
// receiver, value and nonce by the contents of the transaction's bytes.
type txJSON struct {
	Type        *hexutil.Uint64 `json:"type"`
	Hash        *common.Hash    `json:"hash"`
	From        *common.Address `json:"from"`
	To          *common.Address `json:"to"` // nil: creates a contract
	Value       *hexutil.Big    `json:"value"`
	Nonce       *hexutil.Uint64 `json:"nonce"`
	Input       hexutil.Bytes   `json:"input"`
	BlockHash   *common.Hash    `json:"blockHash"`
	BlockNumber *hexutil.Uint64 `json:"blockNumber"`

	raw     json.RawMessage    // the whole object
	encoded hexutil.Bytes      // from eth_getRawTransactionByHash
	signed  *types.Transaction // once its hash was checked
}

// UnmarshalJSON reads a transaction and keeps its JSON.
func (t *txJSON) UnmarshalJSON(raw []byte) error {
	type fields txJSON

	t.raw = slices.Clone(raw)

	return json.Unmarshal(raw, (*fields)(t))
}

// kind returns the type, or an error for a number above 255. A missing type, as from old nodes, is 0.
func (t *txJSON) kind(node *endpoint) (uint8, error) {
	switch {
	case t.Type == nil:
		return types.LegacyTxType, nil
	case *t.Type > 0xff:
		return 0, node.Garbled("transaction %s has type %#x", t.Hash.Hex(), uint64(*t.Type))
	}

	return uint8(*t.Type), nil
}

// spend returns the nonce that the transaction uses up in a block, or a shared spend of its sender if it has
// no nonce.
func (t *txJSON) spend(failed bool) chain.Spend {
	spend := chain.Spend{Sender: canonical(*t.From), By: t.Hash.Hex(), Failed: failed}
	if t.Nonce == nil {
		spend.Shared = true
	} else {
		spend.Nonce = uint64(*t.Nonce)
	}

	return spend
}

// nonceSpent returns the nonce that a pending transaction will use up; nil if it has no nonce.
func (t *txJSON) nonceSpent() []chain.Spend {
	if t.Nonce == nil {
		return nil
	}

	return []chain.Spend{t.spend(false)}
}

// receiptJSON is the receipt of a transaction.
type receiptJSON struct {
	TransactionHash   *common.Hash    `json:"transactionHash"`
	BlockHash         *common.Hash    `json:"blockHash"`
	BlockNumber       *hexutil.Uint64 `json:"blockNumber"`
	Status            *hexutil.Uint64 `json:"status"`
	GasUsed           *hexutil.Uint64 `json:"gasUsed"`
	CumulativeGasUsed *hexutil.Uint64 `json:"cumulativeGasUsed"`
	EffectiveGasPrice *hexutil.Big    `json:"effectiveGasPrice"`
	// L1Fee is the L1 data fee that an OP-stack rollup charged, in wei.
	L1Fee *hexutil.Big `json:"l1Fee"`
	// DepositNonce and DepositReceiptVersion are of OP-stack deposits.
	DepositNonce          *hexutil.Uint64 `json:"depositNonce"`
	DepositReceiptVersion *hexutil.Uint64 `json:"depositReceiptVersion"`
	Logs                  []logJSON       `json:"logs"`
}

// logJSON is one log of a receipt.
type logJSON struct {
	Address  *common.Address `json:"address"`
	Topics   []common.Hash   `json:"topics"`
	Data     hexutil.Bytes   `json:"data"`
	LogIndex *hexutil.Uint64 `json:"logIndex"`
	Removed  bool            `json:"removed"`
}

// isNull reports whether the node answered null: it does not have the object.
func (c *call) isNull() bool {
	return c.err == nil && (len(c.result) == 0 || string(c.result) == "null")
}

// decode reads the result into v. Null or a result of another form is a failure of the node.
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

	if b.LogsBloom == nil || b.TransactionsRoot == nil || b.ReceiptsRoot == nil || b.Transactions == nil {
		return ref, node.Garbled("block %d without logs bloom, roots or transactions", height)
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
	if r.TransactionHash == nil || *r.TransactionHash != tx || r.Status == nil || *r.Status > 1 ||
		r.GasUsed == nil || r.BlockNumber == nil {
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

// maxPrice bounds gas prices of nodes, in wei: 10^28. No product with a gas amount overflows; price.Bound
// bounds the prices that we offer.
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

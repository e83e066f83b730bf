package tron

import (
	"encoding/hex"
	"encoding/json"
	"strings"

	"github.com/ethereum/go-ethereum/common"

	"github.com/seed-8ee7f392/payments/chain"
)

// The JSON forms of blocks, transactions and receipts, as far as they are read. Source: TRON documentation,
// docs/api/http. Nodes omit numbers of value 0 and empty lists. Transactions are decoded from their bytes
// (raw_data_hex), not from the JSON beside them.

type numRequest struct {
	Num uint64 `json:"num"`
}

type valueRequest struct {
	Value string `json:"value"`
}

type addressRequest struct {
	Address string `json:"address"`
}

type blockJSON struct {
	BlockID string `json:"blockID"`
	Header  struct {
		Raw headerJSON `json:"raw_data"`
	} `json:"block_header"`
	Transactions []txJSON `json:"transactions"`
}

type txJSON struct {
	TxID       string       `json:"txID"`
	RawDataHex string       `json:"raw_data_hex"`
	Signatures []string     `json:"signature"`
	Results    []resultJSON `json:"ret"`

	unknown bool // it has other fields than these, and than those that only explain them
}

// UnmarshalJSON decodes a transaction and notes unknown fields.
func (t *txJSON) UnmarshalJSON(text []byte) error {
	type fields txJSON

	var known fields
	if err := json.Unmarshal(text, &known); err != nil {
		return err
	}

	*t = txJSON(known)
	t.unknown = hasOtherFields(
		text, "txID", "raw_data_hex", "signature", "ret", "raw_data", "visible", "contract_address",
	)

	return nil
}

type infoJSON struct {
	ID          string       `json:"id"`
	Fee         int64        `json:"fee"`
	BlockNumber int64        `json:"blockNumber"`
	Result      string       `json:"result"`
	Receipt     receiptJSON  `json:"receipt"`
	Logs        []logJSON    `json:"log"`
	Internal    []internalTx `json:"internal_transactions"`
}

type receiptJSON struct {
	Result string `json:"result"`
}

type logJSON struct {
	Address string   `json:"address"` // 20 bytes, without the prefix
	Topics  []string `json:"topics"`
	Data    string   `json:"data"`
}

// internalTx is an internal transaction: a call by a contract.
type internalTx struct {
	Caller string `json:"caller_address"`
	To     string `json:"transferTo_address"`
	Values []struct {
		Value int64  `json:"callValue"`
		Token string `json:"tokenId"`
	} `json:"callValueInfo"`
	Note     string `json:"note"`
	Rejected bool   `json:"rejected"`
}

// emptyTxRoot is the transaction root of an empty block. Source: java-tron, BlockCapsule.calcMerkleRoot.
var emptyTxRoot = strings.Repeat("0", 64)

// isLowerHex reports whether a text is so many lower-case hexadecimal digits.
func isLowerHex(s string, digits int) bool {
	if len(s) != digits {
		return false
	}

	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}

	return true
}

// ref returns the reference to a block and checks that its id is that of its header. The first 8 bytes of an
// id are the height. The id of a header with unknown fields is not checked; see verify.
func (b *blockJSON) ref(node *endpoint) (chain.Ref, error) {
	h := &b.Header.Raw

	at, ok := millis(h.Timestamp)
	if !ok || h.Number < 0 || !hasHeight(b.BlockID, uint64(h.Number)) {
		return chain.Ref{}, node.Garbled("a block whose id, height or time does not fit together")
	}

	if h.Number > 0 && !hasHeight(h.Parent, uint64(h.Number)-1) {
		return chain.Ref{}, node.Garbled("block %d without a parent of the height before it", h.Number)
	}

	if id, ok := h.id(); !h.unknown && (!ok || id != b.BlockID) {
		return chain.Ref{}, node.Garbled("block %d has a header of another id", h.Number)
	}

	return chain.Ref{Height: uint64(h.Number), Hash: b.BlockID, Time: at}, nil
}

// hasHeight reports whether a block id has a height.
func hasHeight(id string, height uint64) bool {
	if !isLowerHex(id, 64) {
		return false
	}

	raw, err := hex.DecodeString(id[:16])

	return err == nil && common.BytesToHash(raw).Big().Uint64() == height
}

// blockTx is a transaction decoded from its bytes.
type blockTx struct {
	hash string
	raw  []byte
	// tx is nil for a contract type that this package does not decode.
	tx *transaction
	// owners are the accounts that it acts for.
	owners []address
	// failed is what its block says of its execution, where hasResult is set.
	failed, hasResult bool
	outOfEnergy       bool // the energy that was paid for did not suffice
}

// parse decodes a transaction, whose bytes must hash to its id.
func (t *txJSON) parse(node *endpoint) (blockTx, error) {
	raw, err := hex.DecodeString(t.RawDataHex)
	if err != nil || len(raw) == 0 {
		return blockTx{}, node.Garbled("transaction %s without its bytes", node.Clean(t.TxID))
	}

	id := txID(raw)
	if hash := hex.EncodeToString(id[:]); hash != t.TxID {
		return blockTx{}, node.Garbled("transaction %s has bytes whose id is %s", node.Clean(t.TxID), hash)
	}

	parsed := blockTx{hash: t.TxID, raw: raw, owners: ownersOf(raw)}
	for i := range t.Results {
		parsed.failed = parsed.failed || t.Results[i].failed()
		parsed.hasResult = parsed.hasResult || t.Results[i].ContractRet != ""
		parsed.outOfEnergy = parsed.outOfEnergy || t.Results[i].ContractRet == "OUT_OF_ENERGY"
	}

	if decoded, ok := decodeTransaction(raw); ok {
		parsed.tx = decoded
	}

	return parsed, nil
}

// failed reports whether the execution failed. A transfer of TRX has no result in its receipt. Source: TRON
// documentation, gettransactioninfobyid.
func (i *infoJSON) failed() bool {
	return i.Result == "FAILED" || isFailure(i.Receipt.Result)
}

// fee returns the burnt fee in sun.
func (i *infoJSON) fee(node *endpoint) (chain.Amount, error) {
	if i.Fee < 0 {
		return chain.Amount{}, node.Garbled("transaction %s has a fee of %d", i.ID, i.Fee)
	}

	return chain.Units(uint64(i.Fee)), nil
}

// check verifies that the receipt is that of the transaction in the block.
func (i *infoJSON) check(node *endpoint, tx blockTx, height uint64) error {
	if i == nil || i.ID != tx.hash || i.BlockNumber < 0 || uint64(i.BlockNumber) != height {
		return node.Garbled("the receipt of transaction %s is missing or another's", tx.hash)
	}

	// The block's result is under its root, the receipt is not.
	if tx.hasResult && tx.failed != i.failed() {
		return node.Garbled("the receipt of transaction %s has another result than its block", tx.hash)
	}

	if tx.tx != nil && tx.tx.kind == triggerContract && i.Receipt.Result == "" {
		return node.Garbled("the receipt of call %s has no result", tx.hash)
	}

	return nil
}

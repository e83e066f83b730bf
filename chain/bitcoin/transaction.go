package bitcoin

// Transactions: lookup, bytes and weights, and amounts in satoshi.

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"
	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Transaction returns a transaction of the mempool or of a verified canonical block. It errors:
//   - fault.Invalid (tx_hash_invalid): the text is not a transaction hash
//   - fault.NotFound (transaction_unknown): it is in neither the mempool nor the chain of any node
//   - fault.Unavailable (txindex_missing): it is not in the mempool, and a node has no complete index of
//     transactions (-txindex=1) that would find it in a block
func (d *driver) Transaction(ctx context.Context, hash string) (chain.FoundTx, error) {
	hash, err := parseHash(hash)
	if err != nil {
		return chain.FoundTx{}, err
	}

	found := chain.FoundTx{TxHash: hash}

	err = d.ask(ctx, func(ctx context.Context, node *endpoint) error {
		lookup, err := node.lookUp(ctx, hash)
		if err != nil {
			return err
		}

		if lookup.tx == nil {
			if err := node.checkTxIndex(ctx); err != nil {
				return err
			}

			return failover.ErrMissing // another node may have it
		}

		found.Block, found.Transfers = chain.Ref{}, d.transfers(lookup.tx, hash, "")
		found.Spent = spendsOf(lookup.tx, hash)

		if lookup.blockHash != "" {
			found.Block, err = d.includingBlock(ctx, node, hash, lookup.blockHash)
		}

		return err
	})
	if err != nil {
		return chain.FoundTx{}, err
	}

	return found, nil
}

// txLookup is a node's answer about a hash. It is a hint: only a block proves that it includes a transaction.
type txLookup struct {
	// tx is nil when the node does not have it.
	tx *wire.MsgTx
	// blockHash is the hash of a block of the best chain that should include it; "" while it is unconfirmed.
	blockHash string
}

// lookUp looks up a transaction in the mempool and, where the node has an index, in the best chain.
func (e *endpoint) lookUp(ctx context.Context, hash string) (txLookup, error) {
	var answer struct {
		Hex           string `json:"hex"`
		BlockHash     string `json:"blockhash"`
		Confirmations int64  `json:"confirmations"`
	}

	err := e.call(ctx, &answer, "getrawtransaction", hash, 1)
	if failover.RefusedWith(err, codeNotFound) {
		return txLookup{}, nil
	}

	if err != nil {
		return txLookup{}, err
	}

	tx, err := decodeTx(answer.Hex)
	if err != nil || tx.TxHash().String() != hash {
		return txLookup{}, e.Garbled("asked for transaction %s, it answered another", hash)
	}

	if answer.BlockHash == "" {
		return txLookup{tx: tx}, nil
	}

	if _, err := parseHash(answer.BlockHash); err != nil {
		return txLookup{}, e.Garbled("transaction %s is in a block without a hash", hash)
	}

	if answer.Confirmations < 1 {
		return txLookup{}, nil // in a block that left the chain
	}

	return txLookup{tx: tx, blockHash: answer.BlockHash}, nil
}

// includingBlock returns the verified block of the best chain that a node reports for a transaction. If the
// block does not hold the transaction, the error is a *failover.Failure.
func (d *driver) includingBlock(
	ctx context.Context,
	node *endpoint,
	txHash, blockHash string,
) (chain.Ref, error) {
	header, err := node.header(ctx, blockHash)
	if err != nil {
		return chain.Ref{}, err
	}

	at := header.ref()

	canonical, err := node.hashAt(ctx, at.Height)
	if err != nil && !errors.Is(err, fault.NotFound) {
		return chain.Ref{}, err
	}

	if canonical != blockHash {
		return chain.Ref{}, node.Garbled(
			"its block %s of transaction %s is not in its chain", blockHash, txHash,
		)
	}

	content, err := d.rawBlock(ctx, node, at.Height, blockHash)
	if err != nil {
		return chain.Ref{}, err
	}

	for _, tx := range content.Transactions {
		if tx.TxHash().String() == txHash {
			return blockRef(at.Height, content), nil
		}
	}

	return chain.Ref{}, node.Garbled("its block %s does not hold transaction %s", blockHash, txHash)
}

// blockRef returns the reference to a verified block.
func blockRef(height uint64, block *wire.MsgBlock) chain.Ref {
	return chain.Ref{Height: height, Hash: block.BlockHash().String(), Time: block.Header.Timestamp.UTC()}
}

// checkTxIndex returns a *failover.Failure (txindex_missing) unless the node's index of transactions is
// complete.
func (e *endpoint) checkTxIndex(ctx context.Context) error {
	var indexes map[string]struct {
		Synced bool `json:"synced"`
	}

	err := e.call(ctx, &indexes, "getindexinfo")
	if failover.RefusedWith(err, codeNoMethod) {
		return nil // btcd, which without an index answers getrawtransaction with another code
	}

	if err == nil && !indexes["txindex"].Synced {
		err = &failover.Failure{
			Host: e.Host,
			Code: "txindex_missing",
			What: "it has no complete index of transactions: start it with -txindex=1",
		}
	}

	return err
}

// Amounts inside this package are satoshi in an int64, as on the wire. Every amount from outside is checked
// against maxSatoshi.
const (
	decimals   = 8
	maxSatoshi = 21_000_000 * 100_000_000
)

// satoshi returns an amount in satoshi; ok is false for 0 and for more than maxSatoshi.
func satoshi(a chain.Amount) (n int64, ok bool) {
	u, fits := a.Uint64()
	if !fits || u == 0 || u > maxSatoshi {
		return 0, false
	}

	return int64(u), true
}

// satoshiAmount returns n satoshi as an amount.
func satoshiAmount(n int64) chain.Amount { return chain.Units(uint64(n)) }

// satoshiOf returns a node's decimal number of whole bitcoins in satoshi.
func satoshiOf(number string) (int64, error) {
	if len(number) > 32 {
		return 0, errors.New("the number is too long")
	}

	d, err := decimal.NewFromString(number)
	if err != nil {
		return 0, err
	}

	d = d.Shift(decimals)
	if d.IsNegative() || d.GreaterThan(decimal.NewFromInt(maxSatoshi)) || !d.IsInteger() {
		return 0, errors.New("the number is no amount of satoshi")
	}

	return d.IntPart(), nil
}

// Weights of a transaction's parts, in weight units (BIP-141: a byte counts 4, a byte of witness 1). A
// signature counts with its maximum size, so that no transaction weighs more than its fee pays for.
const (
	// emptyWeight is version and lock time of 4 bytes each, and segwit marker and flag, which count as
	// witness. countsWeight adds the two counts.
	emptyWeight = 4*(4+4) + 2
	// inputWeight is outpoint 36, empty script 1, sequence 4 bytes.
	inputWeight = 4 * (36 + 1 + 4)
	// p2wpkhWeight adds count, signature of at most 72 bytes with its type, and key of 33 bytes,
	// each with its length.
	p2wpkhWeight = inputWeight + 1 + 1 + 72 + 1 + 33
	// p2trWeight, spent by key, adds count and signature of 64 bytes with its length.
	p2trWeight = inputWeight + 1 + 1 + 64
	// maxWeight is the heaviest transaction that nodes relay. Source: Bitcoin Core, MAX_STANDARD_TX_WEIGHT.
	maxWeight = 400_000
)

// outputWeight returns the weight of an output in weight units: value of 8 bytes, script with its length.
func outputWeight(script []byte) int64 {
	return 4 * int64(8+wire.VarIntSerializeSize(uint64(len(script)))+len(script))
}

// countsWeight returns the weight of the counts of inputs and outputs, in weight units.
func countsWeight(inputs, outputs int) int64 {
	return 4 * int64(wire.VarIntSerializeSize(uint64(inputs))+wire.VarIntSerializeSize(uint64(outputs)))
}

// roundToVBytes rounds a weight up to whole virtual bytes, in weight units, as miners do.
func roundToVBytes(weight int64) int64 { return (weight + 3) / 4 * 4 }

// weightOf returns the weight of a transaction in weight units (BIP-141).
func weightOf(tx *wire.MsgTx) int64 {
	return int64(3*tx.SerializeSizeStripped() + tx.SerializeSize())
}

// feeAt returns the fee in satoshi, rounded up, for a weight in weight units at a rate in satoshi per 1000
// virtual bytes.
func feeAt(rate, weight int64) int64 { return (rate*weight + 3999) / 4000 }

// dustRate is the rate that defines dust, in satoshi per 1000 virtual bytes. Source: Bitcoin Core,
// DUST_RELAY_TX_FEE.
const dustRate = 3000

// dustLimit returns the lowest value of an output that nodes relay, in satoshi: the cost, at dustRate, of
// making and spending it. Spending takes 148 bytes, or 67 with a witness. Source: Bitcoin Core,
// GetDustThreshold.
func dustLimit(script []byte) int64 {
	spending := int64(32 + 4 + 1 + 107 + 4)
	if txscript.IsWitnessProgram(script) {
		spending = 32 + 4 + 1 + 107/4 + 4
	}

	return dustRate * (outputWeight(script)/4 + spending) / 1000
}

// replaceable is the sequence number of our inputs: it signals replace-by-fee (BIP-125) and enables the lock
// time.
const replaceable = wire.MaxTxInSequenceNum - 2

// decodeTx decodes the bytes of exactly one transaction in hex.
func decodeTx(s string) (*wire.MsgTx, error) {
	raw, err := hex.DecodeString(s)
	if err != nil {
		return nil, err
	}

	return decodeRawTx(raw)
}

// decodeRawTx decodes the bytes of exactly one transaction.
func decodeRawTx(raw []byte) (*wire.MsgTx, error) {
	tx := new(wire.MsgTx)

	r := bytes.NewReader(raw)
	if err := tx.Deserialize(r); err != nil {
		return nil, err
	}

	if r.Len() != 0 || len(tx.TxIn) == 0 || len(tx.TxOut) == 0 {
		return nil, errors.New("the bytes are not one whole transaction")
	}

	return tx, nil
}

// signedTx decodes the bytes of our transaction. Bytes with another hash are fault.Invalid
// (transaction_malformed).
func signedTx(signed chain.Signed) (*wire.MsgTx, error) {
	tx, err := decodeRawTx(signed.Raw)
	if err != nil {
		return nil, fault.Wrap(
			err, fault.Invalid, "transaction_malformed",
			"the bytes of transaction %q are no transaction",
			truncate(signed.TxHash),
		)
	}

	if tx.TxHash().String() != signed.TxHash {
		return nil, fault.New(
			fault.Invalid, "transaction_malformed", "the bytes of transaction %q have another hash",
			truncate(signed.TxHash),
		)
	}

	return tx, nil
}

// parseHash returns the canonical form of a transaction's hash, or fault.Invalid (tx_hash_invalid).
func parseHash(s string) (string, error) {
	if len(s) == 64 {
		s = strings.ToLower(s)
		if strings.Trim(s, "0123456789abcdef") == "" {
			return s, nil
		}
	}

	return "", fault.New(
		fault.Invalid, "tx_hash_invalid", "%q is not a transaction hash: write 64 hexadecimal digits",
		truncate(s),
	)
}

// truncate returns at most 70 bytes of a text, for an error.
func truncate(s string) string {
	if len(s) > 70 {
		return s[:70] + "…"
	}

	return s
}

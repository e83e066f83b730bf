package bitcoin

// Satoshi, weights and transaction bytes: the arithmetic of the network.

import (
	"bytes"
	"errors"
	"strings"

	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"
	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Inside this package amounts are satoshi in an int64, as they are on the wire. There are never more than
// maxSatoshi of them, and every amount that enters is checked against that.
const (
	decimals   = 8
	maxSatoshi = 21_000_000 * 100_000_000
)

// satoshi converts an amount of at least 1 satoshi; ok is false when there are not so many.
func satoshi(a chain.Amount) (n int64, ok bool) {
	u, fits := a.Uint64()
	if !fits || u == 0 || u > maxSatoshi {
		return 0, false
	}

	return int64(u), true
}

func satoshiAmount(n int64) chain.Amount { return chain.Units(uint64(n)) }

// satoshiOf reads a node's number of whole bitcoins, which JSON writes as a decimal.
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

// Weights of a transaction's parts, in weight units (BIP-141: a byte counts 4, a byte of witness 1).
// The signatures are taken at their longest, so that what is paid for is never less than what is sent.
const (
	// version and lock time 4 bytes each, segwit marker and flag as witness; the two counts are
	// added by sizeOf.
	emptyWeight = 4*(4+4) + 2
	// outpoint 36, empty script 1, sequence 4.
	inputWeight = 4 * (36 + 1 + 4)
	// P2WPKH: count, signature of at most 72 bytes with its type, key of 33 bytes, each with its length.
	p2wpkhWeight = inputWeight + 1 + 1 + 72 + 1 + 33
	// P2TR by key: count, signature of 64 bytes with its length.
	p2trWeight = inputWeight + 1 + 1 + 64
	// maxWeight is the heaviest transaction that nodes relay. Source: Bitcoin Core, MAX_STANDARD_TX_WEIGHT.
	maxWeight = 400_000
)

// outputWeight is the weight of an output: value 8, script with its length.
func outputWeight(script []byte) int64 {
	return 4 * int64(8+wire.VarIntSerializeSize(uint64(len(script)))+len(script))
}

// countsWeight is the weight of the two counts of inputs and outputs.
func countsWeight(inputs, outputs int) int64 {
	return 4 * int64(wire.VarIntSerializeSize(uint64(inputs))+wire.VarIntSerializeSize(uint64(outputs)))
}

// roundToVBytes rounds a weight up to whole virtual bytes, in weight units: miners count one that is begun.
func roundToVBytes(weight int64) int64 { return (weight + 3) / 4 * 4 }

// feeAt is what a weight costs at a rate in satoshi per 1000 virtual bytes, rounded up.
func feeAt(rate, weight int64) int64 { return (rate*weight + 3999) / 4000 }

// dustRate is the rate at which spending an output must not cost more than it holds, in satoshi per 1000
// virtual bytes. Source: Bitcoin Core, DUST_RELAY_TX_FEE.
const dustRate = 3000

// dustLimit is the least that an output of a script must hold to be relayed: what it costs, at
// dustRate, to make it and to spend it. Source: Bitcoin Core, GetDustThreshold: spending takes 148
// bytes, or 67 with a witness.
func dustLimit(script []byte) int64 {
	spending := int64(32 + 4 + 1 + 107 + 4)
	if txscript.IsWitnessProgram(script) {
		spending = 32 + 4 + 1 + 107/4 + 4
	}

	return dustRate * (outputWeight(script)/4 + spending) / 1000
}

// replaceable is the sequence number of every input of ours: it signals replacement by fee (BIP-125) and
// lets the lock time count.
const replaceable = wire.MaxTxInSequenceNum - 2

// decodeRawTx reads the bytes of one transaction, all of them.
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

// signedTx reads the bytes of a transaction of ours, which must be those of its hash.
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

// parseHash returns the canonical form of a transaction's hash, or fault.Invalid.
func parseHash(s string) (string, error) {
	if len(s) == 64 {
		s = strings.ToLower(s)
		if strings.Trim(s, "0123456789abcdef") == "" {
			return s, nil
		}
	}

	return "", fault.New(
		fault.Invalid, "hash_invalid", "%q is not a transaction hash: write 64 hexadecimal digits",
		truncate(s),
	)
}

func truncate(s string) string {
	if len(s) > 70 {
		return s[:70] + "…"
	}

	return s
}

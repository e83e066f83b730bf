package sim

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math/bits"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// The wire format, big-endian: offset, length, field. A transaction has exactly one encoding.
//
//	 0   1  version, 2
//	 1   8  network: the first 8 bytes of the SHA-256 of its CAIP-2 name
//	 9   8  salt: of a block reward a number of its own, else 0
//	17   2  number of inputs
//	19   2  number of outputs
//	21  36  each input: transaction hash 32, output 4
//	    28  each output: account 20, amount 8
//	    65  each input's signature r, s, recovery id; absent from the base form
//
// The transaction hash is the SHA-256 of "sim utxo id\n" and the base form: signatures do not change it.
// Input i signs the SHA-256 of "sim utxo transaction\n", the base form and i in 4 bytes. A byte of the
// base form weighs 4, one of a signature 1; the virtual size is a quarter of the weight, rounded up.
const (
	utxoVersion    = 2
	utxoHeaderSize = 21
	utxoInputSize  = 36
	utxoOutputSize = 28
	maxUTXOUnits   = 21_000_000 * 100_000_000
)

// utxoPayment is an output; amount is in base units.
type utxoPayment struct {
	to     account
	amount uint64
}

// utxoTx is a transaction that spends outputs.
type utxoTx struct {
	network    [8]byte
	salt       uint64
	inputs     []chain.Outpoint
	outputs    []utxoPayment
	signatures [][signatureSize]byte // one per input
}

// base returns the form without signatures.
func (t *utxoTx) base() []byte {
	raw := append([]byte{utxoVersion}, t.network[:]...)
	raw = binary.BigEndian.AppendUint64(raw, t.salt)
	raw = binary.BigEndian.AppendUint16(raw, uint16(len(t.inputs)))
	raw = binary.BigEndian.AppendUint16(raw, uint16(len(t.outputs)))

	for _, input := range t.inputs {
		hash, _ := hex.DecodeString(input.TxHash) // checked where the outpoint came in
		raw = append(raw, hash...)
		raw = binary.BigEndian.AppendUint32(raw, input.Vout)
	}

	for _, output := range t.outputs {
		raw = append(raw, output.to[:]...)
		raw = binary.BigEndian.AppendUint64(raw, output.amount)
	}

	return raw
}

func (t *utxoTx) raw() []byte {
	raw := t.base()
	for _, signature := range t.signatures {
		raw = append(raw, signature[:]...)
	}

	return raw
}

func (t *utxoTx) hash() string {
	hash := sha256.Sum256(append([]byte("sim utxo id\n"), t.base()...))
	return hex.EncodeToString(hash[:])
}

// digest returns what an input signs.
func (t *utxoTx) digest(input int) [32]byte {
	preimage := append([]byte("sim utxo transaction\n"), t.base()...)
	return sha256.Sum256(binary.BigEndian.AppendUint32(preimage, uint32(input)))
}

// utxoWeight returns the weight of a transaction, in weight units.
func utxoWeight(inputs, outputs int) uint64 {
	base := utxoHeaderSize + inputs*utxoInputSize + outputs*utxoOutputSize
	return uint64(4*base + inputs*signatureSize)
}

// vsizeOf returns a weight in whole virtual bytes, rounded up.
func vsizeOf(weight uint64) uint64 { return (weight + 3) / 4 }

func (t *utxoTx) vsize() uint64 { return vsizeOf(utxoWeight(len(t.inputs), len(t.outputs))) }

// feeAt returns the fee of a virtual size at a rate per 1000 vB, rounded up.
func feeAt(rate, vsize uint64) uint64 { return (rate*vsize + 999) / 1000 }

// compareRates compares the fee rates of two sizes.
func compareRates(feeA, sizeA, feeB, sizeB uint64) int {
	highA, lowA := bits.Mul64(feeA, sizeB)
	highB, lowB := bits.Mul64(feeB, sizeA)

	switch {
	case highA < highB || highA == highB && lowA < lowB:
		return -1
	case highA == highB && lowA == lowB:
		return 0
	default:
		return 1
	}
}

// paid returns the sum of the outputs; ok is false when it is more than there can be.
func (t *utxoTx) paid() (sum uint64, ok bool) {
	for _, output := range t.outputs {
		if output.amount > maxUTXOUnits {
			return 0, false
		}

		if sum += output.amount; sum > maxUTXOUnits {
			return 0, false
		}
	}

	return sum, true
}

// spends returns the outputs that the transaction uses up.
func (t *utxoTx) spends(hash string) []chain.Spend {
	spent := make([]chain.Spend, 0, len(t.inputs))
	for _, input := range t.inputs {
		spent = append(spent, chain.Spend{Outpoint: input, By: hash})
	}

	return spent
}

// decodeUTXO parses a signed transaction. A wrong form is fault.Invalid.
func decodeUTXO(raw []byte) (*utxoTx, error) {
	t, rest, err := decodeUTXOBase(raw)
	if err != nil {
		return nil, err
	}

	if len(rest) != len(t.inputs)*signatureSize {
		return nil, errTxMalformed
	}

	for signature := range slices.Chunk(rest, signatureSize) {
		t.signatures = append(t.signatures, [signatureSize]byte(signature))
	}

	return t, nil
}

// decodeUTXOBase parses the base form and returns what follows it.
func decodeUTXOBase(raw []byte) (t *utxoTx, rest []byte, err error) {
	if len(raw) < utxoHeaderSize || raw[0] != utxoVersion {
		return nil, nil, errTxMalformed
	}

	t = &utxoTx{network: [8]byte(raw[1:9]), salt: binary.BigEndian.Uint64(raw[9:])}
	inputs, outputs := int(binary.BigEndian.Uint16(raw[17:])), int(binary.BigEndian.Uint16(raw[19:]))

	rest = raw[utxoHeaderSize:]
	if outputs == 0 || len(rest) < inputs*utxoInputSize+outputs*utxoOutputSize {
		return nil, nil, errTxMalformed
	}

	for range inputs {
		outpoint := chain.Outpoint{
			TxHash: hex.EncodeToString(rest[:32]),
			Vout:   binary.BigEndian.Uint32(rest[32:]),
		}
		if slices.Contains(t.inputs, outpoint) {
			return nil, nil, errTxMalformed
		}

		t.inputs, rest = append(t.inputs, outpoint), rest[utxoInputSize:]
	}

	for range outputs {
		output := utxoPayment{to: account(rest[:20]), amount: binary.BigEndian.Uint64(rest[20:])}
		t.outputs, rest = append(t.outputs, output), rest[utxoOutputSize:]
	}

	if _, ok := t.paid(); !ok {
		return nil, nil, errTxMalformed
	}

	return t, rest, nil
}

// unsignedUTXO returns the form of Unsigned.Raw: the base form, then the owner and the amount of the
// output that each input spends.
func unsignedUTXO(t *utxoTx, spent []utxoPayment) []byte {
	raw := t.base()
	for _, output := range spent {
		raw = append(raw, output.to[:]...)
		raw = binary.BigEndian.AppendUint64(raw, output.amount)
	}

	return raw
}

// decodeUnsignedUTXO parses the form of unsignedUTXO.
func decodeUnsignedUTXO(raw []byte) (t *utxoTx, spent []utxoPayment, err error) {
	t, rest, err := decodeUTXOBase(raw)
	if err != nil {
		return nil, nil, err
	}

	if len(rest) != len(t.inputs)*utxoOutputSize {
		return nil, nil, errTxMalformed
	}

	for part := range slices.Chunk(rest, utxoOutputSize) {
		spent = append(spent, utxoPayment{to: account(part[:20]), amount: binary.BigEndian.Uint64(part[20:])})
	}

	return t, spent, nil
}

// verifyInput returns fault.Invalid when an input's signature is not the owner's.
func (t *utxoTx) verifyInput(input int, owner account) error {
	digest := t.digest(input)

	key, err := recoverKey(digest[:], t.signatures[input][:])
	if err != nil {
		return fault.Wrap(
			err, fault.Invalid, "signature_invalid", "the signature of input %d cannot be read",
			input,
		)
	}

	if hash := sha256.Sum256(key); account(hash[:20]) != owner {
		return fault.New(
			fault.Invalid, "signature_invalid", "input %d of %s is signed by another key",
			input, owner.address(),
		)
	}

	return nil
}

// isOutpoint reports whether an outpoint has the form of this network's.
func isOutpoint(outpoint chain.Outpoint) bool {
	hash, err := hex.DecodeString(outpoint.TxHash)
	return err == nil && len(hash) == 32 && hex.EncodeToString(hash) == outpoint.TxHash
}

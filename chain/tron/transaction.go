package tron

// The encoding of transactions, with the field numbers of java-tron, protocol/src/main/protos/core:
// Tron.proto (Transaction), contract/balance_contract.proto (TransferContract, DelegateResourceContract and
// UnDelegateResourceContract) and contract/smart_contract.proto (TriggerSmartContract).

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"math/big"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/crypto"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/seed-8ee7f392/payments/fault"
)

// contractType is the kind of a transaction.
type contractType uint64

// The types that this package encodes and decodes.
const (
	transferContract   contractType = 1
	triggerContract    contractType = 31
	delegateContract   contractType = 57
	undelegateContract contractType = 58
)

// movesStake reports whether a contract of the type delegates stake or takes it back: no balance changes.
func (c contractType) movesStake() bool { return c == delegateContract || c == undelegateContract }

// energyResource is ResourceCode.ENERGY.
const energyResource = 1

// typeURLs are the message types in a contract's parameter (google.protobuf.Any).
var typeURLs = map[contractType]string{
	transferContract:   "type.googleapis.com/protocol.TransferContract",
	triggerContract:    "type.googleapis.com/protocol.TriggerSmartContract",
	delegateContract:   "type.googleapis.com/protocol.DelegateResourceContract",
	undelegateContract: "type.googleapis.com/protocol.UnDelegateResourceContract",
}

// transaction is the raw_data of a transaction with one contract.
type transaction struct {
	refBytes   []byte // the last 2 bytes of the reference block's height
	refHash    []byte // bytes 8 to 15 of its id
	expiration int64  // milliseconds since 1970
	timestamp  int64  // milliseconds since 1970
	feeLimit   int64  // sun, the largest cost of energy
	memo       []byte

	kind       contractType
	permission int64   // id of the owner's permission that signs
	owner      address // who sends and pays
	// to and amount are payee and payment of a TransferContract, contract and call value of a
	// TriggerSmartContract, receiver of the energy and stake of the others.
	to     address
	amount int64  // sun
	data   []byte // input of a TriggerSmartContract
}

// encode returns the serialized raw_data as every protobuf library writes it: fields in ascending order,
// those of value 0 omitted.
func (t *transaction) encode() []byte {
	var b []byte

	b = appendBytes(b, 1, t.refBytes)
	b = appendBytes(b, 4, t.refHash)
	b = appendInt(b, 8, t.expiration)
	b = appendBytes(b, 10, t.memo)
	b = appendBytes(b, 11, t.contract())
	b = appendInt(b, 14, t.timestamp)

	return appendInt(b, 18, t.feeLimit)
}

// contract returns the serialized contract of the transaction.
func (t *transaction) contract() []byte {
	var value []byte

	value = appendBytes(value, 1, prefixedBytes(t.owner))

	if t.kind.movesStake() {
		value = appendInt(value, 2, energyResource)
		value = appendInt(value, 3, t.amount)
		value = appendBytes(value, 4, prefixedBytes(t.to))
	} else {
		value = appendBytes(value, 2, prefixedBytes(t.to))
		value = appendInt(value, 3, t.amount)
		value = appendBytes(value, 4, t.data)
	}

	var parameter []byte

	parameter = appendBytes(parameter, 1, []byte(typeURLs[t.kind]))
	parameter = appendBytes(parameter, 2, value)

	return appendInt(appendBytes(appendInt(nil, 1, int64(t.kind)), 2, parameter), 5, t.permission)
}

// appendBytes appends a field of bytes, unless it is empty.
func appendBytes(b []byte, number protowire.Number, v []byte) []byte {
	if len(v) == 0 {
		return b
	}

	return appendMessage(b, number, v)
}

// appendMessage appends a field of bytes, also when it is empty.
func appendMessage(b []byte, number protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), v)
}

// appendInt appends a field of an integer, unless it is 0.
func appendInt(b []byte, number protowire.Number, v int64) []byte {
	if v == 0 {
		return b
	}

	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), uint64(v))
}

// field is one field of a message: varint of an integer, bytes of a byte string.
type field struct {
	number protowire.Number
	kind   protowire.Type
	varint uint64
	bytes  []byte
}

// forEachField calls f with each field of a message in its order, and reports whether b is a message.
func forEachField(b []byte, f func(field)) bool {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return false
		}

		b = b[n:]

		x := field{number: number, kind: kind}
		switch kind {
		case protowire.VarintType:
			x.varint, n = protowire.ConsumeVarint(b)
		case protowire.BytesType:
			x.bytes, n = protowire.ConsumeBytes(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}

		if n < 0 {
			return false
		}

		f(x)

		b = b[n:]
	}

	return true
}

// setBytes stores the bytes of a field. A field of another wire type is ignored, as protobuf does.
func (x field) setBytes(raw *[]byte) {
	if x.kind == protowire.BytesType {
		*raw = x.bytes
	}
}

// setInt stores the integer of a field. A field of another wire type is ignored.
func (x field) setInt(v *int64) {
	if x.kind == protowire.VarintType {
		*v = int64(x.varint)
	}
}

// sameMessage reports whether type URLs name the same message: the part after the last slash, as in
// google.protobuf.Any.
func sameMessage(a, b string) bool {
	return strings.Contains(a, "/") && a[strings.LastIndex(a, "/"):] == b[strings.LastIndex(b, "/"):]
}

// decodeTransaction decodes raw_data of any wallet; ok is false unless it is a transaction of one contract of
// this package's types.
func decodeTransaction(raw []byte) (tx *transaction, ok bool) {
	tx = new(transaction)

	var contract []byte

	contracts := 0

	ok = forEachField(raw, func(x field) {
		switch x.number {
		case 1:
			x.setBytes(&tx.refBytes)
		case 4:
			x.setBytes(&tx.refHash)
		case 8:
			x.setInt(&tx.expiration)
		case 10:
			x.setBytes(&tx.memo)
		case 11:
			contracts++

			x.setBytes(&contract)
		case 14:
			x.setInt(&tx.timestamp)
		case 18:
			x.setInt(&tx.feeLimit)
		}
	})
	if !ok || contracts != 1 {
		return nil, false
	}

	var (
		kind                      int64
		parameter, typeURL, value []byte
	)

	ok = forEachField(contract, func(x field) {
		switch x.number {
		case 1:
			x.setInt(&kind)
		case 2:
			x.setBytes(&parameter)
		case 5:
			x.setInt(&tx.permission)
		}
	}) && forEachField(parameter, func(x field) {
		switch x.number {
		case 1:
			x.setBytes(&typeURL)
		case 2:
			x.setBytes(&value)
		}
	})
	tx.kind = contractType(kind)

	want, known := typeURLs[tx.kind]
	if !ok || !known || !sameMessage(string(typeURL), want) || !tx.readContract(value) {
		return nil, false
	}

	return tx, true
}

// readContract decodes the message in a contract's parameter. It reads over the resource and the lock of a delegation.
func (t *transaction) readContract(value []byte) bool {
	var owner, to []byte

	ok := forEachField(value, func(x field) {
		switch x.number {
		case 1:
			x.setBytes(&owner)
		case 2:
			if !t.kind.movesStake() {
				x.setBytes(&to)
			}
		case 3:
			x.setInt(&t.amount)
		case 4:
			switch {
			case t.kind.movesStake():
				x.setBytes(&to)
			case t.kind == triggerContract:
				x.setBytes(&t.data)
			}
		}
	})

	var ownerOK, toOK bool

	t.owner, ownerOK = addressFromBytes(owner)
	t.to, toOK = addressFromBytes(to)

	return ok && ownerOK && toOK && t.amount >= 0
}

// txID returns the hash of a transaction, which its owner signs: SHA-256 of raw_data.
func txID(raw []byte) [32]byte { return sha256.Sum256(raw) }

// encodeSigned returns the message Transaction of raw_data and one signature.
func encodeSigned(raw, signature []byte) []byte {
	return appendBytes(appendBytes(nil, 1, raw), 2, signature)
}

// decodeSigned decodes the output of encodeSigned and recovers the signer. Other bytes are fault.Invalid
// (transaction_malformed).
func decodeSigned(b []byte) (tx *transaction, raw []byte, signer address, err error) {
	var signature []byte

	parts := 0

	ok := forEachField(b, func(x field) {
		parts++

		switch x.number {
		case 1:
			x.setBytes(&raw)
		case 2:
			x.setBytes(&signature)
		}
	})
	if ok = ok && parts == 2; ok {
		tx, ok = decodeTransaction(raw)
	}

	if !ok {
		return nil, nil, signer, malformed("they are no transfer or call with one signature")
	}

	signer, ok = recoverSigner(txID(raw), signature)
	if !ok {
		return nil, nil, signer, malformed("the signature is not one of secp256k1 in its lower half")
	}

	return tx, raw, signer, nil
}

// signatureLength is the length of r, s and the recovery byte.
const signatureLength = 65

// recoveryOffset is added to the recovery id. Source: java-tron and tronweb.
const recoveryOffset = 27

// recoverSigner returns the address whose key signed a hash; ok is false for a signature with s in the upper
// half.
func recoverSigner(hash [32]byte, signature []byte) (signer address, ok bool) {
	if len(signature) != signatureLength {
		return address{}, false
	}

	rsv := append([]byte(nil), signature...)
	if rsv[64] >= recoveryOffset {
		rsv[64] -= recoveryOffset
	}

	r, s := new(big.Int).SetBytes(rsv[:32]), new(big.Int).SetBytes(rsv[32:64])
	if rsv[64] > 1 || !crypto.ValidateSignatureValues(rsv[64], r, s, true) {
		return address{}, false
	}

	pub, err := crypto.SigToPub(hash[:], rsv)
	if err != nil {
		return address{}, false
	}

	return crypto.PubkeyToAddress(*pub), true
}

func malformed(what string) error {
	return fault.New(
		fault.Invalid, "transaction_malformed",
		"the bytes are not a Tron transaction of this driver: %s",
		what,
	)
}

// resultSize is the size in bytes that bandwidth counts for a transaction's result. Source: java-tron,
// Constant.MAX_RESULT_SIZE_IN_TX, BandwidthProcessor.consume.
const resultSize = 64

// bandwidthOf returns the bandwidth of raw_data with one signature, in bytes.
func bandwidthOf(raw []byte) uint64 {
	return uint64(len(encodeSigned(raw, make([]byte, signatureLength)))) + resultSize
}

// millis returns the time of milliseconds since 1970; ok is false for a negative or an absurd one.
func millis(ms int64) (time.Time, bool) {
	return time.UnixMilli(ms).UTC(), ms >= 0 && ms < math.MaxInt64/1_000_000
}

// parseTxID returns a transaction hash, with or without the prefix 0x of some explorers. Another text is
// fault.Invalid (tx_hash_invalid).
func parseTxID(s string) ([32]byte, error) {
	var id [32]byte

	digits := s
	if len(s) == 66 && s[:2] == "0x" {
		digits = s[2:]
	}

	if len(digits) == 64 {
		if _, err := hex.Decode(id[:], []byte(digits)); err == nil {
			return id, nil
		}
	}

	if len(s) > 80 {
		s = s[:80] + "…"
	}

	return id, fault.New(
		fault.Invalid, "tx_hash_invalid",
		"%q is not a transaction hash: write 64 hexadecimal digits",
		s,
	)
}

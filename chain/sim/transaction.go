package sim

// The transaction: its bytes, its digest, its signature.

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"time"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// The wire form, big-endian. There is exactly one encoding of a transaction.
//
//	 0   1  version, 1
//	 1   8  network: the first 8 bytes of the SHA-256 of its CAIP-2 name
//	 9  20  sender
//	29   8  nonce
//	37   8  max price of gas
//	45   8  priority price of gas, at most the max price
//	53   8  last height it may be included at; 0 without bound
//	61   8  last block time it may be included at, Unix milliseconds; 0 without bound
//	69   1  number of movements, 1 to 64
//	70  65  each movement: kind 1, asset id 12 (zero for the native coin), recipient 20, amount 32
//	    65  signature r, s, recovery id; left out of the unsigned form
//
// The digest that is signed is the SHA-256 of "sim transaction\n" and the unsigned form; the
// transaction's hash is the SHA-256 of the signed form, in hex.
const (
	txVersion     = 1
	txHeader      = 70
	movementSize  = 65
	signatureSize = 65
	maxMovements  = 64
	maxUnixMilli  = 253_402_300_799_999 // the end of year 9999
)

// The kinds of movement. Values come first; the first one's index is 0, that of others counts from
// furtherIndex.
const (
	moveValue    = 0 // native coin, shown by a block scan
	moveToken    = 1 // a token, shown as the log that it leaves
	moveInternal = 2 // native coin moved by a contract: in no block scan
)

// internalIndex is the index of the first internal transfer; see chain.Transfer. furtherIndex is
// that of the second value.
const (
	internalIndex = 1 << 20
	furtherIndex  = 1 << 19
)

type movement struct {
	kind   byte
	asset  [12]byte
	to     account
	amount chain.Amount
}

type transaction struct {
	network       [8]byte
	from          account
	nonce         uint64
	maxPrice      uint64
	priority      uint64
	validToHeight uint64
	validTo       uint64 // Unix milliseconds
	moves         []movement
	signature     [signatureSize]byte
}

func (t *transaction) unsigned() []byte {
	b := make([]byte, 0, txHeader+len(t.moves)*movementSize+signatureSize)
	b = append(b, txVersion)
	b = append(b, t.network[:]...)

	b = append(b, t.from[:]...)
	for _, n := range []uint64{t.nonce, t.maxPrice, t.priority, t.validToHeight, t.validTo} {
		b = binary.BigEndian.AppendUint64(b, n)
	}

	b = append(b, byte(len(t.moves)))
	for _, m := range t.moves {
		b = append(b, m.kind)
		b = append(b, m.asset[:]...)
		b = append(b, m.to[:]...)
		amount := m.amount.Bytes32()
		b = append(b, amount[:]...)
	}

	return b
}

func (t *transaction) raw() []byte { return append(t.unsigned(), t.signature[:]...) }

func (t *transaction) hash() string {
	h := sha256.Sum256(t.raw())
	return hex.EncodeToString(h[:])
}

func (t *transaction) digest() [32]byte {
	return sha256.Sum256(append([]byte("sim transaction\n"), t.unsigned()...))
}

// decode reads a signed transaction; decodeUnsigned one without its signature.
func decode(raw []byte) (*transaction, error) {
	if len(raw) < signatureSize {
		return nil, errTxMalformed
	}

	t, err := decodeUnsigned(raw[:len(raw)-signatureSize])
	if err != nil {
		return nil, err
	}

	copy(t.signature[:], raw[len(raw)-signatureSize:])

	return t, nil
}

var errTxMalformed = fault.New(
	fault.Invalid, "transaction_malformed",
	"the bytes are not a transaction of this network's form",
)

func decodeUnsigned(b []byte) (*transaction, error) {
	if len(b) < txHeader || b[0] != txVersion {
		return nil, errTxMalformed
	}

	t := &transaction{network: [8]byte(b[1:9]), from: account(b[9:29])}
	for i, n := range []*uint64{&t.nonce, &t.maxPrice, &t.priority, &t.validToHeight, &t.validTo} {
		*n = binary.BigEndian.Uint64(b[29+8*i:])
	}

	count := int(b[69])
	if count == 0 || count > maxMovements || len(b) != txHeader+count*movementSize ||
		t.priority > t.maxPrice || t.validTo > maxUnixMilli {
		return nil, errTxMalformed
	}

	for i := range count {
		p := b[txHeader+i*movementSize:]
		m := movement{kind: p[0], asset: [12]byte(p[1:13]), to: account(p[13:33])}
		m.amount, _ = chain.AmountFromBytes(p[33:65]) // 32 bytes always fit

		native := m.asset == [12]byte{}
		if m.kind > moveInternal || native == (m.kind == moveToken) ||
			(m.kind == moveValue && i > 0 && t.moves[i-1].kind != moveValue) {
			return nil, errTxMalformed
		}

		t.moves = append(t.moves, m)
	}

	return t, nil
}

// values counts the movements of native coin that a block scan shows, calls the others.
func (t *transaction) values() (n uint64) {
	for _, m := range t.moves {
		if m.kind == moveValue {
			n++
		}
	}

	return n
}

func (t *transaction) calls() uint64 { return uint64(len(t.moves)) - t.values() }

// gas is what the transaction uses; see GasNative.
func (t *transaction) gas() uint64 {
	calls, values := t.calls(), t.values()
	if calls == 0 {
		return values * GasNative
	}

	return calls*GasToken + (max(values, 1)-1)*GasNative
}

func (t *transaction) maxFee() chain.Amount { return chain.Units(t.maxPrice).Mul(t.gas()) }

// price is what a unit of gas costs at a base fee; ok is false while the transaction pays too
// little to be included.
func (t *transaction) price(base uint64) (price uint64, ok bool) {
	if t.maxPrice < base {
		return 0, false
	}

	return base + min(t.priority, t.maxPrice-base), true
}

// spendsNative is the native coin that it moves, the network fee not counted; ok is false when the
// sum overflows.
func (t *transaction) spendsNative() (sum chain.Amount, ok bool) {
	for _, m := range t.moves {
		if m.kind != moveToken {
			if sum, ok = sum.AddOK(m.amount); !ok {
				return sum, false
			}
		}
	}

	return sum, true
}

// expired reports whether a block of that height and time comes too late for it.
func (t *transaction) expired(height uint64, at time.Time) bool {
	return (t.validToHeight != 0 && height > t.validToHeight) ||
		(t.validTo != 0 && at.UnixMilli() > int64(t.validTo))
}

func (t *transaction) validToTime() time.Time {
	if t.validTo == 0 {
		return time.Time{}
	}

	return time.UnixMilli(int64(t.validTo)).UTC()
}

// transfers lists what the transaction moves when it succeeds, internal movements only on demand.
// Amounts of 0 are left out, but count in the indices, as a log of 0 does.
func (c *Chain) transfers(t *transaction, hash string, internal bool) []chain.Transfer {
	var (
		out                  []chain.Transfer
		further, logs, inner uint32
	)

	for _, m := range t.moves {
		var index uint32

		switch m.kind {
		case moveValue:
			if further > 0 {
				index = furtherIndex + further - 1
			}

			further++
		case moveToken:
			index = 1 + logs
			logs++
		case moveInternal:
			index = internalIndex + inner
			inner++
		}

		asset, known := c.network.AssetByID(c.assetID(m))
		if m.amount.IsZero() || !known || (m.kind == moveInternal && !internal) {
			continue
		}

		out = append(out, chain.Transfer{
			TxHash:  hash,
			Index:   index,
			From:    t.from.address(),
			To:      m.to.address(),
			AssetID: asset.ID,
			Amount:  m.amount,
		})
	}

	return out
}

func (c *Chain) assetID(m movement) string {
	if m.kind != moveToken {
		return c.native.ID
	}

	return hex.EncodeToString(m.asset[:])
}

func (c *Chain) outputs(t *transaction) []chain.Output {
	out := make([]chain.Output, 0, len(t.moves))
	for _, m := range t.moves {
		out = append(out, chain.Output{To: m.to.address(), AssetID: c.assetID(m), Amount: m.amount})
	}

	return out
}

func (c *Chain) movement(o chain.Output) (movement, error) {
	to, err := parseAccount(string(o.To))
	if err != nil {
		return movement{}, err
	}

	asset, ok := c.network.AssetByID(o.AssetID)
	if !ok {
		return movement{}, fault.New(
			fault.Invalid, "asset_unknown", "network %s has no asset with id %q",
			c.network.Slug, o.AssetID,
		)
	}

	m := movement{kind: moveValue, to: to, amount: o.Amount}
	if asset.Kind == chain.Token {
		m.kind = moveToken
		if _, err := hex.Decode(m.asset[:], []byte(asset.ID)); err != nil {
			return movement{}, fault.Wrap(
				err, fault.Invalid, "asset_unknown", "asset %s has an id that is not hex",
				asset.Symbol,
			)
		}
	}

	return m, nil
}

func accountOf(key chain.PublicKey) (account, error) {
	if key.Curve != chain.Secp256k1 || len(key.Bytes) != secp256k1.PubKeyBytesLenCompressed {
		return account{}, fault.New(
			fault.Invalid, "public_key_invalid",
			"a key of this network is a compressed secp256k1 key of 33 bytes",
		)
	}

	if _, err := secp256k1.ParsePubKey(key.Bytes); err != nil {
		return account{}, fault.Wrap(
			err, fault.Invalid, "public_key_invalid", "the public key is not a point of secp256k1",
		)
	}

	h := sha256.Sum256(key.Bytes)

	return account(h[:20]), nil
}

// verify checks the transaction's signature against its sender.
func (t *transaction) verify() error {
	digest := t.digest()

	key, err := recoverKey(digest[:], t.signature[:])
	if err != nil {
		return fault.Wrap(
			err, fault.Invalid, "signature_invalid",
			"the signature of the transaction cannot be read",
		)
	}

	h := sha256.Sum256(key)
	if !bytes.Equal(h[:20], t.from[:]) {
		return fault.New(
			fault.Invalid, "signature_invalid", "the transaction of %s is signed by another key",
			t.from.address(),
		)
	}

	return nil
}

// recoverKey returns the compressed key that made a signature of 65 bytes (r, s, recovery id) with
// s in the lower half.
func recoverKey(digest, signature []byte) ([]byte, error) {
	var s secp256k1.ModNScalar
	if overflow := s.SetByteSlice(signature[32:64]); overflow || s.IsOverHalfOrder() {
		return nil, errors.New("s is not in the lower half of the group order")
	}

	if signature[64] > 1 {
		return nil, errors.New("the recovery id is neither 0 nor 1")
	}

	compact := append([]byte{27 + 4 + signature[64]}, signature[:64]...)

	key, _, err := ecdsa.RecoverCompact(compact, digest)
	if err != nil {
		return nil, err
	}

	return key.SerializeCompressed(), nil
}

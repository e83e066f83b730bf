package sim

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// The wire format, big-endian: offset, length, field. A transaction has exactly one encoding.
//
//	 0   1  version, 1
//	 1   8  network: the first 8 bytes of the SHA-256 of its CAIP-2 name
//	 9  20  sender
//	29   8  nonce
//	37   8  max price, base units of the native coin per gas
//	45   8  priority price, likewise; at most the max price
//	53   8  last height of a block that may include it; 0 for no limit
//	61   8  last time of a block that may include it, Unix milliseconds; 0 for no limit
//	69   8  gas limit; 0 for what the rules of GasNative and GasToken take
//	77   1  number of transfers, 1 to 64
//	78  65  each transfer: kind 1, asset id 12 (zero for the native coin), recipient 20, amount 32
//	    65  signature r, s, recovery id; absent from the unsigned form
//
// The signed digest is the SHA-256 of "sim transaction\n" and the unsigned form. The transaction hash
// is the SHA-256 of the signed form, in hex.
const (
	txVersion     = 1
	headerSize    = 78
	transferSize  = 65
	signatureSize = 65
	maxTransfers  = 64
	maxUnixMilli  = 253_402_300_799_999 // the end of year 9999
	maxGasLimit   = 1 << 40
)

// The kinds of transfer. Value transfers come first.
const (
	kindValue    = 0 // native coin, visible in a block
	kindToken    = 1 // a token, visible in a block as a log
	kindInternal = 2 // native coin sent by a contract, visible in no block unless it logs
	kindLogged   = 3 // native coin sent by a contract and visible as a log; of no transaction
)

// transfer is one transfer of a transaction; amount is in base units.
type transfer struct {
	kind   byte
	asset  [12]byte
	to     account
	amount chain.Amount
}

// transaction is a transaction; prices are base units of the native coin per gas.
type transaction struct {
	network       [8]byte
	from          account
	nonce         uint64
	maxPrice      uint64
	priority      uint64
	validToHeight uint64
	validTo       uint64 // Unix milliseconds; 0 for no limit
	gasLimit      uint64 // 0 for what the default rules take
	transfers     []transfer
	signature     [signatureSize]byte
}

// unsigned returns the unsigned form.
func (t *transaction) unsigned() []byte {
	raw := make([]byte, 0, headerSize+len(t.transfers)*transferSize+signatureSize)
	raw = append(raw, txVersion)
	raw = append(raw, t.network[:]...)

	raw = append(raw, t.from[:]...)
	for _, n := range []uint64{t.nonce, t.maxPrice, t.priority, t.validToHeight, t.validTo, t.gasLimit} {
		raw = binary.BigEndian.AppendUint64(raw, n)
	}

	raw = append(raw, byte(len(t.transfers)))
	for _, moved := range t.transfers {
		amount := moved.amount.Bytes32()

		raw = append(raw, moved.kind)
		raw = append(raw, moved.asset[:]...)
		raw = append(raw, moved.to[:]...)
		raw = append(raw, amount[:]...)
	}

	return raw
}

func (t *transaction) raw() []byte { return append(t.unsigned(), t.signature[:]...) }

func (t *transaction) hash() string {
	hash := sha256.Sum256(t.raw())
	return hex.EncodeToString(hash[:])
}

func (t *transaction) digest() [32]byte {
	return sha256.Sum256(append([]byte("sim transaction\n"), t.unsigned()...))
}

// decode parses a signed transaction. A wrong form is fault.Invalid.
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

// decodeUnsigned parses a transaction without its signature.
func decodeUnsigned(raw []byte) (*transaction, error) {
	if len(raw) < headerSize || raw[0] != txVersion {
		return nil, errTxMalformed
	}

	t := &transaction{network: [8]byte(raw[1:9]), from: account(raw[9:29])}

	fields := []*uint64{&t.nonce, &t.maxPrice, &t.priority, &t.validToHeight, &t.validTo, &t.gasLimit}
	for i, n := range fields {
		*n = binary.BigEndian.Uint64(raw[29+8*i:])
	}

	count := int(raw[headerSize-1])
	if count == 0 || count > maxTransfers || len(raw) != headerSize+count*transferSize ||
		t.priority > t.maxPrice || t.validTo > maxUnixMilli || t.gasLimit > maxGasLimit {
		return nil, errTxMalformed
	}

	for i := range count {
		part := raw[headerSize+i*transferSize:]
		moved := transfer{kind: part[0], asset: [12]byte(part[1:13]), to: account(part[13:33])}
		moved.amount, _ = chain.AmountFromBytes(part[33:65]) // 32 bytes always fit

		native := moved.asset == [12]byte{}
		if moved.kind > kindInternal || native == (moved.kind == kindToken) ||
			(moved.kind == kindValue && i > 0 && t.transfers[i-1].kind != kindValue) {
			return nil, errTxMalformed
		}

		t.transfers = append(t.transfers, moved)
	}

	return t, nil
}

// valueTransfers returns the number of transfers of kindValue.
func (t *transaction) valueTransfers() (n uint64) {
	for _, moved := range t.transfers {
		if moved.kind == kindValue {
			n++
		}
	}

	return n
}

// contractCalls returns the number of token and internal transfers.
func (t *transaction) contractCalls() uint64 { return uint64(len(t.transfers)) - t.valueTransfers() }

// gas returns the most gas that the transaction may use: its limit, or what the default rules take.
func (t *transaction) gas() uint64 {
	if t.gasLimit > 0 {
		return t.gasLimit
	}

	return defaultGas.of(t)
}

// maxFee returns the most that the transaction can cost, in base units of the native coin.
func (t *transaction) maxFee() chain.Amount { return chain.Units(t.maxPrice).Mul(t.gas()) }

// price returns the price per gas at a base fee, as EIP-1559 defines it. ok is false when the maximum
// price is below the base fee.
func (t *transaction) price(baseFee uint64) (price uint64, ok bool) {
	if t.maxPrice < baseFee {
		return 0, false
	}

	return baseFee + min(t.priority, t.maxPrice-baseFee), true
}

// nativeValue returns the sum of its native transfers, without the fee. ok is false when it overflows.
func (t *transaction) nativeValue() (sum chain.Amount, ok bool) {
	for _, moved := range t.transfers {
		if moved.kind != kindToken {
			if sum, ok = sum.AddOK(moved.amount); !ok {
				return sum, false
			}
		}
	}

	return sum, true
}

// expired reports whether a block of that height and time is after its validity.
func (t *transaction) expired(height uint64, at time.Time) bool {
	return (t.validToHeight != 0 && height > t.validToHeight) ||
		(t.validTo != 0 && at.UnixMilli() > int64(t.validTo))
}

// validToTime returns the end of its validity; zero for no limit.
func (t *transaction) validToTime() time.Time {
	if t.validTo == 0 {
		return time.Time{}
	}

	return time.UnixMilli(int64(t.validTo)).UTC()
}

func (c *Chain) assetID(t transfer) string {
	if t.kind != kindToken {
		return c.native.ID
	}

	return hex.EncodeToString(t.asset[:])
}

// outputs returns the transaction's transfers as outputs of an order.
func (c *Chain) outputs(tx *transaction) []chain.Output {
	outputs := make([]chain.Output, 0, len(tx.transfers))
	for _, t := range tx.transfers {
		outputs = append(outputs, chain.Output{To: t.to.address(), AssetID: c.assetID(t), Amount: t.amount})
	}

	return outputs
}

// transferOf returns the transfer of an output. A bad address or an unknown asset is fault.Invalid.
func (c *Chain) transferOf(output chain.Output) (transfer, error) {
	to, err := parseAccount(string(output.To))
	if err != nil {
		return transfer{}, err
	}

	asset, ok := c.network.AssetByID(output.AssetID)
	if !ok {
		return transfer{}, fault.New(
			fault.Invalid, "asset_unknown", "network %s has no asset with id %q",
			c.network.Slug, output.AssetID,
		)
	}

	t := transfer{kind: kindValue, to: to, amount: output.Amount}
	if asset.Kind == chain.Token {
		t.kind = kindToken
		if _, err := hex.Decode(t.asset[:], []byte(asset.ID)); err != nil {
			return transfer{}, fault.Wrap(
				err, fault.Invalid, "asset_unknown", "asset %s has an id that is not hex",
				asset.Symbol,
			)
		}
	}

	return t, nil
}

// accountOf returns the account of a compressed secp256k1 public key. Another key is fault.Invalid.
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

	hash := sha256.Sum256(key.Bytes)

	return account(hash[:20]), nil
}

// verify returns fault.Invalid when the signature is not the sender's.
func (t *transaction) verify() error {
	digest := t.digest()

	key, err := recoverKey(digest[:], t.signature[:])
	if err != nil {
		return fault.Wrap(
			err, fault.Invalid, "signature_invalid",
			"the signature of the transaction cannot be read",
		)
	}

	hash := sha256.Sum256(key)
	if !bytes.Equal(hash[:20], t.from[:]) {
		return fault.New(
			fault.Invalid, "signature_invalid", "the transaction of %s is signed by another key",
			t.from.address(),
		)
	}

	return nil
}

// recoverKey returns the compressed public key of a signature of 65 bytes (r, s, recovery id). s must
// be in the lower half of the group order.
func recoverKey(digest, signature []byte) ([]byte, error) {
	var s secp256k1.ModNScalar
	if overflow := s.SetByteSlice(signature[32:64]); overflow || s.IsOverHalfOrder() {
		return nil, errors.New("s is not in the lower half of the group order")
	}

	if signature[64] > 1 {
		return nil, errors.New("the recovery id is neither 0 nor 1")
	}

	return recovered.key(digest, signature)
}

// recoveries are keys that were recovered: a transaction is verified when it is built, and at each broadcast.
type recoveries struct {
	mu   sync.Mutex
	keys map[string][]byte // by digest and signature
}

// mostRecoveries is the number of recovered keys that are kept.
const mostRecoveries = 4096

var recovered = recoveries{keys: map[string][]byte{}}

func (r *recoveries) key(digest, signature []byte) ([]byte, error) {
	name := string(digest) + string(signature)

	r.mu.Lock()
	defer r.mu.Unlock()

	if key, known := r.keys[name]; known {
		return key, nil
	}

	compact := append([]byte{27 + 4 + signature[64]}, signature[:64]...)

	key, _, err := ecdsa.RecoverCompact(compact, digest)
	if err != nil {
		return nil, err
	}

	if len(r.keys) >= mostRecoveries {
		clear(r.keys)
	}

	r.keys[name] = key.SerializeCompressed()

	return r.keys[name], nil
}

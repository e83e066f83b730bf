package bitcoin

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/btcsuite/btcd/psbt/v2"
	"github.com/btcsuite/btcd/txscript/v2"
	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// KeyPaths returns the BIP-32 names of a signer's keys, so that a device finds them. hdkey.Signer implements
// it.
type KeyPaths interface {
	// Fingerprint returns the fingerprint of the root key, 8 hexadecimal digits.
	Fingerprint() string
	// Path returns the path of a key from the root, such as "m/84'/0'/2'/0/7".
	Path(key chain.KeyRef) (string, error)
	// PublicKey returns the public key of a reference.
	PublicKey(ctx context.Context, key chain.KeyRef) (chain.PublicKey, error)
}

// psbtHints are data in a PSBT for an external signer, in addition to the outputs that it spends.
type psbtHints struct {
	// keys are the keys of inputs and change, by reference.
	keys map[chain.KeyRef]keyPath
	// previous are the transactions whose outputs P2WPKH inputs spend, by hash. A device that computes the
	// fee needs them, because it does not trust the amounts in the PSBT.
	previous map[string]*wire.MsgTx
}

// keyPath is a key with its path.
type keyPath struct {
	public      []byte // compressed
	fingerprint uint32 // as in the PSBT, little-endian
	path        []uint32
}

// hints returns the hints for a selection; none without Config.Keys. It leaves out a previous transaction
// that the node does not have.
func (d *driver) hints(
	ctx context.Context,
	node *endpoint,
	order chain.Order,
	selected selection,
) (psbtHints, error) {
	if d.config.Keys == nil {
		return psbtHints{}, nil
	}

	hints := psbtHints{keys: map[chain.KeyRef]keyPath{}}

	parties := []chain.Party{order.From}
	for _, coin := range selected.coins {
		parties = append(parties, coin.Owner)
	}

	for _, party := range parties {
		if _, known := hints.keys[party.Key]; known {
			continue
		}

		key, err := d.keyPathOf(ctx, party)
		if err != nil {
			return psbtHints{}, err
		}

		if key.public != nil {
			hints.keys[party.Key] = key
		}
	}

	var err error

	hints.previous, err = node.previousTxs(ctx, selected.coins)

	return hints, err
}

// keyPathOf returns the path of a party's key; zero if the party's address is not that of the key.
func (d *driver) keyPathOf(ctx context.Context, party chain.Party) (keyPath, error) {
	public, err := d.config.Keys.PublicKey(ctx, party.Key)
	if err != nil {
		return keyPath{}, err
	}

	_, script, err := d.parse(string(party.Address))
	if err != nil {
		return keyPath{}, err
	}

	address, err := d.derive(public, txscript.IsPayToTaproot(script))
	if err != nil || address != party.Address {
		return keyPath{}, nil
	}

	text, err := d.config.Keys.Path(party.Key)
	if err != nil {
		return keyPath{}, err
	}

	path, ok := parsePath(text)

	fingerprint, err := hex.DecodeString(d.config.Keys.Fingerprint())
	if !ok || err != nil || len(fingerprint) != 4 {
		return keyPath{}, fault.New(
			fault.Invalid,
			"config_invalid",
			"Config.Keys names key %s by %q of root %q: that is no BIP-32 path",
			party.Key,
			text,
			d.config.Keys.Fingerprint(),
		)
	}

	return keyPath{
		public:      public.Bytes,
		fingerprint: binary.LittleEndian.Uint32(fingerprint),
		path:        path,
	}, nil
}

// parsePath returns the elements of a path in BIP-32 notation.
func parsePath(text string) (path []uint32, ok bool) {
	const hardened = 1 << 31

	elements, ok := strings.CutPrefix(text, "m/")
	if !ok {
		return nil, false
	}

	for element := range strings.SplitSeq(elements, "/") {
		digits, isHardened := strings.CutSuffix(element, "'")

		number, err := strconv.ParseUint(digits, 10, 31)
		if err != nil {
			return nil, false
		}

		if isHardened {
			number += hardened
		}

		path = append(path, uint32(number))
	}

	return path, true
}

// previousTxs returns the transactions that made P2WPKH coins, by hash, as far as the node has them. Each is
// checked against its hash, and holds the coin as it is on record.
func (e *endpoint) previousTxs(ctx context.Context, coins []candidate) (map[string]*wire.MsgTx, error) {
	var (
		spent  []candidate
		blocks []*rpcCall
	)

	for _, coin := range coins {
		if !coin.taproot { // a signature of BIP-341 commits to the amounts
			spent = append(spent, coin)
			blocks = append(blocks, newCall("getblockhash", coin.Height))
		}
	}

	if err := e.batchCall(ctx, blocks...); err != nil {
		return nil, err
	}

	calls := make([]*rpcCall, len(spent))
	for i, coin := range spent {
		var block string

		calls[i] = newCall("getrawtransaction", coin.Outpoint.TxHash, 0)
		if coin.Height > 0 && blocks[i].decode(e, &block) == nil {
			// It lets a node without an index of transactions find it.
			calls[i].args = append(calls[i].args, block)
		}
	}

	if err := e.batchCall(ctx, calls...); err != nil {
		return nil, err
	}

	txs := map[string]*wire.MsgTx{}

	for i, coin := range spent {
		var text string
		if calls[i].decode(e, &text) != nil {
			continue
		}

		tx, err := decodeTx(text)
		if err == nil && tx.TxHash().String() == coin.Outpoint.TxHash &&
			pays(tx, coin.Outpoint, spent[i:i+1]) {
			txs[coin.Outpoint.TxHash] = tx
		}
	}

	return txs, nil
}

// addTo adds the hints to a packet. Its change, if any, is the output after the ordered ones.
func (h psbtHints) addTo(packet *psbt.Packet, order chain.Order, target coinTarget, coins []candidate) {
	for i, coin := range coins {
		in := &packet.Inputs[i]
		in.NonWitnessUtxo = h.previous[coin.Outpoint.TxHash]

		key, known := h.keys[coin.Owner.Key]
		switch {
		case !known:
		case coin.taproot:
			in.TaprootInternalKey, in.TaprootBip32Derivation = key.taproot()
		default:
			in.Bip32Derivation = key.derivation()
		}
	}

	key, known := h.keys[order.From.Key]
	if !known {
		return
	}

	for i := len(order.Outputs); i < len(packet.Outputs); i++ {
		out := &packet.Outputs[i]
		if txscript.IsPayToTaproot(target.changeScript) {
			out.TaprootInternalKey, out.TaprootBip32Derivation = key.taproot()
		} else {
			out.Bip32Derivation = key.derivation()
		}
	}
}

// derivation returns the key in the form of BIP-174.
func (k keyPath) derivation() []*psbt.Bip32Derivation {
	return []*psbt.Bip32Derivation{{
		PubKey:               k.public,
		MasterKeyFingerprint: k.fingerprint,
		Bip32Path:            k.path,
	}}
}

// taproot returns the key in the form of BIP-371 for a key without scripts.
func (k keyPath) taproot() (internalKey []byte, derivations []*psbt.TaprootBip32Derivation) {
	internalKey = k.public[1:]

	return internalKey, []*psbt.TaprootBip32Derivation{{
		XOnlyPubKey:          internalKey,
		MasterKeyFingerprint: k.fingerprint,
		Bip32Path:            k.path,
	}}
}

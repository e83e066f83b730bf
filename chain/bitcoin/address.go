package bitcoin

// Addresses and their output scripts.

import (
	"strings"

	"github.com/btcsuite/btcd/address/v2"
	"github.com/btcsuite/btcd/btcec/v2"
	"github.com/btcsuite/btcd/btcec/v2/schnorr"
	"github.com/btcsuite/btcd/txscript/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// ParseAddress returns the canonical form of an address of this network: bech32 and bech32m in lower case,
// base58 unchanged. P2PKH, P2SH, P2WPKH, P2WSH and P2TR are accepted. Everything else is fault.Invalid
// (address_invalid): other networks' addresses, unknown witness versions and bare public keys. So are
// pay-to-anchor, which anybody can spend, and P2TR keys that are not on the curve, whose outputs nobody can
// ever spend.
//
// The test networks share their base58 prefixes, and Testnet4 and Signet their bech32 prefix: their
// addresses cannot be distinguished.
func (d *driver) ParseAddress(s string) (chain.Address, error) {
	a, _, err := d.parse(s)
	return a, err
}

// parse returns an address in canonical form, and its output script.
func (d *driver) parse(s string) (chain.Address, []byte, error) {
	if len(s) < 14 || len(s) > 90 { // BIP-173's limit; base58 addresses are shorter
		return "", nil, badAddress(s, d.network.DisplayName)
	}

	addr, err := address.DecodeAddress(s, d.params)
	if err != nil || !addr.IsForNet(d.params) {
		return "", nil, badAddress(s, d.network.DisplayName)
	}

	canonical := addr.EncodeAddress()
	switch addr.(type) {
	case *address.AddressPubKeyHash, *address.AddressScriptHash:
		if canonical != s {
			return "", nil, badAddress(s, d.network.DisplayName)
		}
	case *address.AddressWitnessPubKeyHash, *address.AddressWitnessScriptHash, *address.AddressTaproot:
		// A program of 20 bytes under a later witness version, which nobody can spend, must not pass for
		// P2WPKH.
		if canonical != strings.ToLower(s) {
			return "", nil, badAddress(s, d.network.DisplayName)
		}
	default:
		return "", nil, badAddress(s, d.network.DisplayName)
	}

	if taproot, ok := addr.(*address.AddressTaproot); ok {
		if _, err := schnorr.ParsePubKey(taproot.WitnessProgram()); err != nil {
			return "", nil, badAddress(s, d.network.DisplayName)
		}
	}

	script, err := txscript.PayToAddrScript(addr)
	if err != nil {
		return "", nil, badAddress(s, d.network.DisplayName)
	}

	return chain.Address(canonical), script, nil
}

func badAddress(s, network string) error {
	if len(s) > 100 {
		s = s[:100] + "…"
	}

	return fault.New(
		fault.Invalid, "address_invalid",
		"%q is not an address on %s: copy it again, and see that it is of this network",
		s, network,
	)
}

// addressOf returns the address that an output script pays; "" for data, bare keys and scripts, and unknown
// witness versions.
func (d *driver) addressOf(script []byte) chain.Address {
	class, addresses, _, err := txscript.ExtractPkScriptAddrs(script, d.params)
	if err != nil || len(addresses) != 1 {
		return ""
	}

	switch class {
	case txscript.PubKeyHashTy,
		txscript.ScriptHashTy,
		txscript.WitnessV0PubKeyHashTy,
		txscript.WitnessV0ScriptHashTy,
		txscript.WitnessV1TaprootTy:
		return chain.Address(addresses[0].EncodeAddress())
	default:
		return ""
	}
}

// DeriveAddress returns the address of a compressed secp256k1 public key: P2WPKH, or with Config.Taproot the
// P2TR address of BIP-86. Another key is fault.Invalid (key_invalid).
func (d *driver) DeriveAddress(key chain.PublicKey) (chain.Address, error) {
	return d.derive(key, d.config.Taproot)
}

// derive returns the address of a public key, P2TR or P2WPKH.
func (d *driver) derive(key chain.PublicKey, taproot bool) (chain.Address, error) {
	if key.Curve != chain.Secp256k1 || len(key.Bytes) != btcec.PubKeyBytesLenCompressed {
		return "", fault.New(
			fault.Invalid, "key_invalid",
			"a Bitcoin address needs a compressed secp256k1 key, not %d bytes of %s",
			len(key.Bytes), key.Curve,
		)
	}

	public, err := btcec.ParsePubKey(key.Bytes)
	if err != nil {
		return "", fault.Wrap(
			err, fault.Invalid, "key_invalid", "the public key is not a compressed secp256k1 point",
		)
	}

	var addr address.Address
	if taproot {
		addr, err = address.NewAddressTaproot(
			schnorr.SerializePubKey(txscript.ComputeTaprootKeyNoScript(public)), d.params,
		)
	} else {
		addr, err = address.NewAddressWitnessPubKeyHash(address.Hash160(key.Bytes), d.params)
	}

	if err != nil {
		return "", fault.Wrap(err, fault.Invalid, "key_invalid", "no address can be made of the public key")
	}

	return chain.Address(addr.EncodeAddress()), nil
}

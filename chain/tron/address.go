package tron

import (
	"encoding/hex"
	"strings"

	"github.com/btcsuite/btcd/address/v2/base58"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/crypto"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// addressPrefix is the first byte of every address, on every network. Source: TRON protocol documentation,
// "Account", section "Key pair and address generation".
const addressPrefix = 0x41

// address is an address without its prefix: the 20 bytes of the key's Ethereum address.
type address = common.Address

// ParseAddress returns the base58check form of an address ("T" and 33 more characters). The 42 hexadecimal
// digits of nodes, beginning with 41, are accepted. Anything else is fault.Invalid (address_invalid).
func (d *driver) ParseAddress(s string) (chain.Address, error) {
	a, err := parseAddress(s)
	if err != nil {
		return "", err
	}

	return canonical(a), nil
}

// parseAddress returns an address in either form.
func parseAddress(s string) (address, error) {
	switch len(s) {
	case 34:
		payload, version, err := base58.CheckDecode(s)
		if err != nil || version != addressPrefix || len(payload) != common.AddressLength {
			return address{}, invalidAddress(s, "its characters or its checksum are wrong: copy it again")
		}

		return address(payload), nil
	case 42:
		if a, ok := hexAddress(s); ok {
			return a, nil
		}
	}

	return address{}, invalidAddress(
		s, "write the 34 characters that begin with T, or 41 and 40 hexadecimal digits",
	)
}

// hexAddress returns an address of 41 and 40 hexadecimal digits, the form of nodes.
func hexAddress(s string) (address, bool) {
	raw, err := hex.DecodeString(s)
	if err != nil {
		return address{}, false
	}

	return addressFromBytes(raw)
}

// addressFromBytes returns an address of 21 bytes.
func addressFromBytes(raw []byte) (address, bool) {
	if len(raw) != 1+common.AddressLength || raw[0] != addressPrefix {
		return address{}, false
	}

	return address(raw[1:]), true
}

func invalidAddress(s, what string) error {
	if len(s) > 64 {
		s = strings.ToValidUTF8(s[:64], "") + "…"
	}

	return fault.New(fault.Invalid, "address_invalid", "%q is not a Tron address: %s", s, what)
}

// canonical returns the base58check form.
func canonical(a address) chain.Address {
	return chain.Address(base58.CheckEncode(a[:], addressPrefix))
}

// prefixedBytes returns the 21 bytes of an address in transactions.
func prefixedBytes(a address) []byte { return append([]byte{addressPrefix}, a[:]...) }

// nodeHex returns an address in the hexadecimal form of nodes.
func nodeHex(a address) string { return hex.EncodeToString(prefixedBytes(a)) }

// DeriveAddress returns the address of a compressed secp256k1 public key: the last 20 bytes of the Keccak-256
// of the uncompressed point, with the prefix 41. Another key is fault.Invalid (key_invalid).
func (d *driver) DeriveAddress(key chain.PublicKey) (chain.Address, error) {
	if key.Curve != chain.Secp256k1 {
		return "", fault.New(
			fault.Invalid, "key_invalid", "a Tron address needs a secp256k1 key, not %s",
			key.Curve,
		)
	}

	pub, err := crypto.DecompressPubkey(key.Bytes)
	if err != nil {
		return "", fault.Wrap(
			err, fault.Invalid, "key_invalid", "the public key is not a compressed secp256k1 point",
		)
	}

	return canonical(crypto.PubkeyToAddress(*pub)), nil
}

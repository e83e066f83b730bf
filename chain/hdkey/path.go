package hdkey

import (
	"strconv"
	"strings"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// hardened is added to a path element to harden it (BIP-32).
const hardened = 1 << 31

// solanaIndexBits is the number of low bits of Solana's account element that hold the index.
const solanaIndexBits = 29

// path is a derivation path from the root, one number per element.
type path []uint32

// String returns the path in BIP-32 notation, such as "m/44'/60'/0'/0/7".
func (p path) String() string {
	var text strings.Builder
	text.WriteByte('m')

	for _, element := range p {
		text.WriteByte('/')
		text.WriteString(strconv.FormatUint(uint64(element&^hardened), 10))

		if element >= hardened {
			text.WriteByte('\'')
		}
	}

	return text.String()
}

// bitcoinPurpose is the purpose element of Bitcoin paths: BIP-84, or BIP-86 with WithTaproot.
type bitcoinPurpose uint32

const (
	bip84 bitcoinPurpose = 84
	bip86 bitcoinPurpose = 86
)

// pathOf returns the path of a key by the table in the package comment, which never changes.
// Errors:
//
//   - fault.Invalid (key_role_invalid, key_index_invalid)
//   - fault.Unsupported (key_family_unsupported)
func pathOf(key chain.KeyRef, bitcoin bitcoinPurpose) (path, error) {
	account, err := accountOf(key)
	if err != nil {
		return nil, err
	}

	purpose, coin := uint32(44), uint32(0)

	switch key.Family {
	case chain.EVM:
		coin = 60
	case chain.Tron:
		coin = 195
	case chain.Sim:
		coin = 1
	case chain.Bitcoin:
		purpose = uint32(bitcoin)

		if !key.Livemode {
			coin = 1
		}
	case chain.Solana:
		if key.Index >= 1<<solanaIndexBits {
			return nil, invalidIndex(key, solanaIndexBits)
		}

		return path{
			hardened + 44,
			hardened + 501,
			hardened + account<<solanaIndexBits + key.Index,
			hardened,
		}, nil
	default:
		return nil, fault.New(
			fault.Unsupported, "key_family_unsupported",
			"key %s: this signer has no path for the family %q; use a signer that knows it",
			key, key.Family,
		)
	}

	if key.Index >= hardened {
		return nil, invalidIndex(key, 31)
	}

	return path{hardened + purpose, hardened + coin, hardened + account, 0, key.Index}, nil
}

// accountOf returns the account element of a path, which encodes role and mode.
func accountOf(key chain.KeyRef) (uint32, error) {
	var account uint32

	switch key.Role {
	case chain.RoleDeposit:
	case chain.RoleMaster:
		account = 2
	default:
		return 0, fault.New(
			fault.Invalid, "key_role_invalid", "key %s: the role must be deposit or master",
			key,
		)
	}

	if !key.Livemode {
		account++
	}

	return account, nil
}

// invalidIndex returns the error of an index that needs more than the given number of bits.
func invalidIndex(key chain.KeyRef, bits int) error {
	return fault.New(fault.Invalid, "key_index_invalid", "key %s: the index must be below 2^%d", key, bits)
}

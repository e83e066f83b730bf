package hdkey

import (
	"strconv"
	"strings"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// hardened marks an element of a path as hardened (BIP-32: 2^31 and above).
const hardened = 1 << 31

// solanaIndexBits is how much of Solana's one number is the index; the account is above it.
const solanaIndexBits = 29

// path is a derivation path from the root, one number per element.
type path []uint32

// String returns "m/44'/60'/0'/0/7".
func (p path) String() string {
	var b strings.Builder
	b.WriteByte('m')

	for _, e := range p {
		b.WriteByte('/')
		b.WriteString(strconv.FormatUint(uint64(e&^hardened), 10))

		if e >= hardened {
			b.WriteByte('\'')
		}
	}

	return b.String()
}

// bitcoinPurpose is the purpose of Bitcoin's paths: BIP-84, or BIP-86 under WithTaproot.
type bitcoinPurpose uint32

const (
	bip84 bitcoinPurpose = 84
	bip86 bitcoinPurpose = 86
)

// pathOf is the table of the package comment. It is fixed for ever.
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
			return nil, badIndex(key, solanaIndexBits)
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
		return nil, badIndex(key, 31)
	}

	return path{hardened + purpose, hardened + coin, hardened + account, 0, key.Index}, nil
}

// accountOf returns the account element of a path: role and mode.
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

func badIndex(key chain.KeyRef, bits int) error {
	return fault.New(fault.Invalid, "key_index_invalid", "key %s: the index must be below 2^%d", key, bits)
}

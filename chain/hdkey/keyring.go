package hdkey

import (
	"crypto/ed25519"
	"encoding/hex"

	"github.com/btcsuite/btcd/address/v2"
	"github.com/btcsuite/btcd/btcutil/v2/hdkeychain"
	"github.com/btcsuite/btcd/chaincfg/v2"
	"github.com/decred/dcrd/dcrec/secp256k1/v4"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// branch identifies the keys that differ only in their index.
type branch struct {
	family   chain.Family
	livemode bool
	role     chain.Role
}

// keyring holds the parent key of every branch, one derivation above the keys. It is immutable and
// safe for concurrent use.
type keyring struct {
	bitcoin     bitcoinPurpose
	fingerprint string
	parents     map[branch]*hdkeychain.ExtendedKey // secp256k1
	publics     map[branch]*publicParent           // of parents
	solana      *ed25519Node                       // m/44'/501'
}

// newKeyring derives the parents from a seed of 16 to 64 bytes and keeps nothing of the seed. Any
// other seed is fault.Invalid (seed_invalid).
func newKeyring(seed []byte, bitcoin bitcoinPurpose) (*keyring, error) {
	if len(seed) < hdkeychain.MinSeedBytes || len(seed) > hdkeychain.MaxSeedBytes {
		return nil, fault.New(
			fault.Invalid, "seed_invalid",
			"a seed of %d bytes cannot be used: it must have %d to %d bytes",
			len(seed), hdkeychain.MinSeedBytes, hdkeychain.MaxSeedBytes,
		)
	}

	// The network affects only how a key is printed, which never happens.
	root, err := hdkeychain.NewMaster(seed, &chaincfg.MainNetParams)
	if err != nil {
		return nil, fault.Wrap(
			err, fault.Invalid, "seed_invalid", "this seed gives no usable key; make another",
		)
	}
	defer root.Zero()

	rootKey, err := root.ECPubKey()
	if err != nil {
		return nil, fault.Wrap(
			err, fault.Invalid, "seed_invalid", "this seed gives no usable key; make another",
		)
	}

	parents, err := deriveParents(root, bitcoin)
	if err != nil {
		return nil, err
	}

	publics := make(map[branch]*publicParent, len(parents))
	for b, parent := range parents {
		if publics[b], err = newPublicParent(parent); err != nil {
			return nil, fault.Wrap(
				err, fault.Invalid, "seed_invalid", "this seed gives no usable key; make another",
			)
		}
	}

	solanaRoot := newEd25519Master(seed)
	defer solanaRoot.wipe()

	return &keyring{
		bitcoin:     bitcoin,
		fingerprint: hex.EncodeToString(address.Hash160(rootKey.SerializeCompressed())[:4]),
		parents:     parents,
		publics:     publics,
		solana:      solanaRoot.derive(path{hardened + 44, hardened + 501}),
	}, nil
}

// coinKeys holds the keys between the root and the accounts, by the first two elements of their paths:
// purpose and coin.
type coinKeys map[[2]uint32]*hdkeychain.ExtendedKey

// deriveParents returns the parent key of every secp256k1 branch.
func deriveParents(
	root *hdkeychain.ExtendedKey,
	bitcoin bitcoinPurpose,
) (map[branch]*hdkeychain.ExtendedKey, error) {
	parents := make(map[branch]*hdkeychain.ExtendedKey)

	coins := coinKeys{}
	defer coins.wipe()

	for _, family := range []chain.Family{chain.EVM, chain.Bitcoin, chain.Tron, chain.Sim} {
		for _, livemode := range []bool{true, false} {
			for _, role := range []chain.Role{chain.RoleDeposit, chain.RoleMaster} {
				keyPath, err := pathOf(chain.KeyRef{Family: family, Livemode: livemode, Role: role}, bitcoin)
				if err != nil {
					return nil, err
				}

				parent, err := coins.derive(root, keyPath[:len(keyPath)-1])
				if err != nil {
					return nil, fault.Wrap(
						err, fault.Invalid, "seed_invalid",
						"this seed gives no usable key at %s; make another",
						keyPath[:len(keyPath)-1],
					)
				}

				parents[branch{family, livemode, role}] = parent
			}
		}
	}

	return parents, nil
}

// derive returns the descendant of root at a path, through the coin's key, which it derives once.
func (c coinKeys) derive(root *hdkeychain.ExtendedKey, keyPath path) (*hdkeychain.ExtendedKey, error) {
	prefix := [2]uint32(keyPath[:2])

	if c[prefix] == nil {
		coin, err := derive(root, keyPath[:2])
		if err != nil {
			return nil, err
		}

		c[prefix] = coin
	}

	return derive(c[prefix], keyPath[2:])
}

// wipe zeroes the keys.
func (c coinKeys) wipe() {
	for _, coin := range c {
		coin.Zero()
	}
}

// derive returns the descendant of root at a path (BIP-32) and wipes the keys between them. Its
// public key is computed at once: hdkeychain caches it without a lock at the first child.
func derive(root *hdkeychain.ExtendedKey, keyPath path) (*hdkeychain.ExtendedKey, error) {
	key := root
	for _, element := range keyPath {
		next, err := key.Derive(element)
		if key != root {
			key.Zero()
		}

		if err != nil {
			return nil, err
		}

		key = next
	}

	_, err := key.ECPubKey()

	return key, err
}

// child returns the extended key of a reference. The caller wipes it with Zero.
func (k *keyring) child(ref chain.KeyRef) (*hdkeychain.ExtendedKey, error) {
	keyPath, err := pathOf(ref, k.bitcoin)
	if err != nil {
		return nil, err
	}

	child, err := k.parents[branch{ref.Family, ref.Livemode, ref.Role}].Derive(keyPath[len(keyPath)-1])
	if err != nil {
		return nil, unusableIndex(ref, err)
	}

	return child, nil
}

// secp256k1Key returns the private key of a reference. The caller wipes it with Zero.
func (k *keyring) secp256k1Key(ref chain.KeyRef) (*secp256k1.PrivateKey, error) {
	child, err := k.child(ref)
	if err != nil {
		return nil, err
	}
	defer child.Zero()

	private, err := child.ECPrivKey()
	if err != nil {
		return nil, unusableIndex(ref, err)
	}

	return private, nil
}

// ed25519Key returns the private key of a reference. The caller wipes it with clear.
func (k *keyring) ed25519Key(ref chain.KeyRef) (ed25519.PrivateKey, error) {
	keyPath, err := pathOf(ref, k.bitcoin)
	if err != nil {
		return nil, err
	}

	node := k.solana.derive(keyPath[2:])
	defer node.wipe()

	return node.private(), nil
}

// unusableIndex returns the error of an index for which BIP-32 has no key, fewer than 1 in 2^127.
func unusableIndex(ref chain.KeyRef, cause error) error {
	return fault.Wrap(
		cause, fault.Invalid, "key_index_invalid",
		"key %s: BIP-32 has no key at this index; use the next",
		ref,
	)
}

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

// branch names the keys that differ only in their index.
type branch struct {
	family   chain.Family
	livemode bool
	role     chain.Role
}

// keyring holds the parents of all branches, so that a key is one step away. It is complete when it is
// made and never changes, so any number of goroutines may use it.
type keyring struct {
	bitcoin     bitcoinPurpose
	fingerprint string
	parents     map[branch]*hdkeychain.ExtendedKey // of secp256k1 keys
	solana      *edNode                            // m/44'/501'
}

// newKeyring derives the parents. It keeps nothing of the seed.
func newKeyring(seed []byte, bitcoin bitcoinPurpose) (*keyring, error) {
	if len(seed) < hdkeychain.MinSeedBytes || len(seed) > hdkeychain.MaxSeedBytes {
		return nil, fault.New(
			fault.Invalid, "seed_invalid",
			"a seed of %d bytes cannot be used: it must have %d to %d bytes",
			len(seed), hdkeychain.MinSeedBytes, hdkeychain.MaxSeedBytes,
		)
	}
	// The network only decides how a key would be printed, which never happens.
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

	k := &keyring{
		bitcoin:     bitcoin,
		fingerprint: hex.EncodeToString(address.Hash160(rootKey.SerializeCompressed())[:4]),
		parents:     make(map[branch]*hdkeychain.ExtendedKey),
	}

	for _, family := range []chain.Family{chain.EVM, chain.Bitcoin, chain.Tron, chain.Sim} {
		for _, livemode := range []bool{true, false} {
			for _, role := range []chain.Role{chain.RoleDeposit, chain.RoleMaster} {
				p, err := pathOf(chain.KeyRef{Family: family, Livemode: livemode, Role: role}, bitcoin)
				if err != nil {
					return nil, err
				}

				parent, err := derive(root, p[:len(p)-1])
				if err != nil {
					return nil, fault.Wrap(
						err, fault.Invalid, "seed_invalid",
						"this seed gives no usable key at %s; make another",
						p[:len(p)-1],
					)
				}

				k.parents[branch{family, livemode, role}] = parent
			}
		}
	}

	edRoot := edMaster(seed)
	defer edRoot.wipe()

	k.solana = edRoot.derive(path{hardened + 44, hardened + 501})

	return k, nil
}

// derive walks down a path by BIP-32, wiping the keys passed on the way. The key returned has its public
// half computed: hdkeychain memoises it without a lock at the first child, which would be a data race.
func derive(root *hdkeychain.ExtendedKey, p path) (*hdkeychain.ExtendedKey, error) {
	key := root
	for _, element := range p {
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

// secp256k1Key returns the private key of a reference; the caller wipes it with Zero.
func (k *keyring) secp256k1Key(ref chain.KeyRef) (*secp256k1.PrivateKey, error) {
	p, err := pathOf(ref, k.bitcoin)
	if err != nil {
		return nil, err
	}

	child, err := k.parents[branch{ref.Family, ref.Livemode, ref.Role}].Derive(p[len(p)-1])
	if err != nil {
		return nil, unusable(ref, err)
	}
	defer child.Zero()

	private, err := child.ECPrivKey()
	if err != nil {
		return nil, unusable(ref, err)
	}

	return private, nil
}

// ed25519Key returns the private key of a reference; the caller wipes it with clear.
func (k *keyring) ed25519Key(ref chain.KeyRef) (ed25519.PrivateKey, error) {
	p, err := pathOf(ref, k.bitcoin)
	if err != nil {
		return nil, err
	}

	node := k.solana.derive(p[2:])
	defer node.wipe()

	return node.private(), nil
}

// unusable reports an index that BIP-32 skips: fewer than one in 2^127.
func unusable(ref chain.KeyRef, cause error) error {
	return fault.Wrap(
		cause, fault.Invalid, "key_index_invalid",
		"key %s: BIP-32 has no key at this index; use the next",
		ref,
	)
}

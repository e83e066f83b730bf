package hdkey

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"io"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Signer signs with keys derived from one seed. It is safe for concurrent use and shows no secret
// when printed. The zero value has no keys: use New or FromSeed.
type Signer struct {
	// keys is a pointer, and so is every key in it. fmt calls no method on an unexported field. For a wrong
	// verb (%s of a struct with a Signer) it follows only one pointer.
	keys     *keyring
	policies []Policy
}

var _ chain.Signer = (*Signer)(nil)

// Policy decides about a request before anything is signed; nil approves it. chain.Refuse(reason)
// rejects it for good. Any other error leaves the work pending, to be retried.
type Policy func(context.Context, chain.SignRequest) error

// Option configures a Signer.
type Option func(*settings)

type settings struct {
	bitcoin  bitcoinPurpose
	policies []Policy
}

// WithPolicy adds a policy. Each policy must approve every request; they are called in order.
func WithPolicy(policy Policy) Option {
	return func(chosen *settings) { chosen.policies = append(chosen.policies, policy) }
}

// WithTaproot derives Bitcoin keys by BIP-86 (m/86') instead of BIP-84 (m/84'), for P2TR addresses.
// It changes every Bitcoin key, so choose before the first address is shown. Keys of earlier
// addresses need a Signer with the earlier setting.
func WithTaproot() Option {
	return func(chosen *settings) { chosen.bitcoin = bip86 }
}

// New returns a Signer for a BIP-39 mnemonic and its passphrase, which is often empty. The mnemonic
// has 12 to 24 words of the English list, separated by white space.
//
// Every passphrase is valid and gives other keys: compare Fingerprint with its earlier value.
// Errors:
//
//   - fault.Invalid (mnemonic_invalid, passphrase_invalid)
//   - fault.Unsupported (mnemonic_unsupported): this build of Go lacks the key derivation
func New(mnemonic, passphrase string, opts ...Option) (*Signer, error) {
	seed, err := seedOf(mnemonic, passphrase)
	if err != nil {
		return nil, err
	}
	defer clear(seed)

	return FromSeed(seed, opts...)
}

// FromSeed returns a Signer for a raw seed of 16 to 64 bytes. The seed must come from a
// cryptographic random source, or from BIP-39. It is not kept, so the caller may wipe it. Errors:
//
//   - fault.Invalid (seed_invalid): another length, or a seed without usable keys
//   - fault.Invalid (policy_invalid): a nil policy
func FromSeed(seed []byte, opts ...Option) (*Signer, error) {
	chosen := settings{bitcoin: bip84}
	for _, opt := range opts {
		opt(&chosen)
	}

	for _, policy := range chosen.policies {
		if policy == nil {
			return nil, fault.New(
				fault.Invalid, "policy_invalid",
				"the signer's policy is nil: leave WithPolicy out to sign everything",
			)
		}
	}

	keys, err := newKeyring(seed, chosen.bitcoin)
	if err != nil {
		return nil, err
	}

	return &Signer{keys: keys, policies: chosen.policies}, nil
}

// Fingerprint returns the BIP-32 fingerprint of the root key, 8 hex digits. It is no secret and
// shows whether mnemonic and passphrase are the right ones.
func (s *Signer) Fingerprint() string { return s.keys.fingerprint }

// Path returns the derivation path of a key, such as "m/44'/60'/0'/0/7". A wallet with the mnemonic has the
// same key there. Errors are those of PublicKey.
func (s *Signer) Path(key chain.KeyRef) (string, error) {
	keyPath, err := pathOf(key, s.keys.bitcoin)
	if err != nil {
		return "", err
	}

	return keyPath.String(), nil
}

// PublicKey returns the public key of a reference. Errors:
//
//   - fault.Invalid (key_index_invalid): an index of 2^31 and above, on Solana of 2^29 and above
//   - fault.Invalid (key_role_invalid): an unknown role
//   - fault.Unsupported (key_family_unsupported): an unknown family
func (s *Signer) PublicKey(ctx context.Context, key chain.KeyRef) (chain.PublicKey, error) {
	if err := ctx.Err(); err != nil {
		return chain.PublicKey{}, err
	}

	if chain.CurveOf(key.Family) == chain.Ed25519 {
		private, err := s.keys.ed25519Key(key)
		if err != nil {
			return chain.PublicKey{}, err
		}
		defer clear(private)

		public := append([]byte(nil), private[ed25519.SeedSize:]...)

		return chain.PublicKey{Curve: chain.Ed25519, Bytes: public}, nil
	}

	public, err := s.keys.secp256k1PublicKeys([]chain.KeyRef{key})
	if err != nil {
		return chain.PublicKey{}, err
	}

	return chain.PublicKey{Curve: chain.Secp256k1, Bytes: public[0]}, nil
}

// PublicKeys returns the public keys of references. It costs less than one PublicKey for each. It fails as a
// whole, with the errors of PublicKey.
func (s *Signer) PublicKeys(ctx context.Context, keys []chain.KeyRef) ([]chain.PublicKey, error) {
	all := make([]chain.PublicKey, len(keys))

	var (
		refs []chain.KeyRef // those on secp256k1
		at   []int          // their places in all
	)

	for i, key := range keys {
		if chain.CurveOf(key.Family) != chain.Ed25519 {
			refs, at = append(refs, key), append(at, i)
			continue
		}

		var err error
		if all[i], err = s.PublicKey(ctx, key); err != nil {
			return nil, err
		}
	}

	if err := ctx.Err(); err != nil || len(refs) == 0 {
		return all, err
	}

	made, err := s.keys.secp256k1PublicKeys(refs)
	if err != nil {
		return nil, err
	}

	for i, public := range made {
		all[at[i]] = chain.PublicKey{Curve: chain.Secp256k1, Bytes: public}
	}

	return all, nil
}

// Format writes the type and the fingerprint for every verb, so that no verb reaches the fields.
func (s Signer) Format(f fmt.State, _ rune) {
	shown := "no keys"
	if s.keys != nil {
		shown = s.keys.fingerprint
	}

	_, _ = io.WriteString(f, "hdkey.Signer("+shown+")")
}

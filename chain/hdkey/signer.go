package hdkey

import (
	"context"
	"crypto/ed25519"
	"fmt"
	"log/slog"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Signer signs with keys derived from one seed. It is safe for concurrent use and never shows a secret
// when printed. The zero value has no keys; use New or FromSeed.
type Signer struct {
	// keys is a pointer, and every key in it lies behind another: fmt calls no method on an
	// unexported field, and for a wrong verb (%s on a struct that holds a Signer) it follows one
	// pointer. It does not follow two.
	keys     *keyring
	policies []Policy
}

var _ chain.Signer = (*Signer)(nil)

// Policy looks at a request before anything is signed. nil lets it pass. chain.Refuse(reason) refuses it
// for good; any other error leaves the work pending, to be tried again.
type Policy func(context.Context, chain.SignRequest) error

// Option changes how a Signer works.
type Option func(*settings)

type settings struct {
	bitcoin  bitcoinPurpose
	policies []Policy
}

// WithPolicy asks a policy about every request. Given several times, each policy must agree, in order.
func WithPolicy(policy Policy) Option {
	return func(s *settings) { s.policies = append(s.policies, policy) }
}

// WithTaproot derives Bitcoin keys by BIP-86 (m/86') instead of BIP-84 (m/84'), for addresses that pay to
// Taproot. Choose before the first address is shown: the option changes every Bitcoin key, and keys of
// earlier addresses are found only by a Signer made as it was then.
func WithTaproot() Option {
	return func(s *settings) { s.bitcoin = bip86 }
}

// New returns a Signer for a BIP-39 mnemonic of 12 to 24 words of the English list, separated by any white
// space, and its passphrase, which is often empty. Every passphrase is valid and gives other keys: compare
// Fingerprint with what it was before. A malformed mnemonic is fault.Invalid with code mnemonic_invalid.
func New(mnemonic, passphrase string, opts ...Option) (*Signer, error) {
	seed, err := seedOf(mnemonic, passphrase)
	if err != nil {
		return nil, err
	}
	defer clear(seed)

	return FromSeed(seed, opts...)
}

// FromSeed returns a Signer for a raw seed of 16 to 64 bytes, which must come from a source of
// cryptographic randomness (or be what BIP-39 makes of a mnemonic). The seed is not kept; the caller may
// wipe it. Any other length is fault.Invalid with code seed_invalid.
func FromSeed(seed []byte, opts ...Option) (*Signer, error) {
	s := settings{bitcoin: bip84}
	for _, opt := range opts {
		opt(&s)
	}

	for _, policy := range s.policies {
		if policy == nil {
			return nil, fault.New(
				fault.Invalid, "policy_invalid",
				"the signer's policy is nil: leave WithPolicy out to sign everything",
			)
		}
	}

	keys, err := newKeyring(seed, s.bitcoin)
	if err != nil {
		return nil, err
	}

	return &Signer{keys: keys, policies: s.policies}, nil
}

// Fingerprint returns BIP-32's fingerprint of the root key, 8 hex characters: no secret, and enough to
// tell whether the right mnemonic and passphrase were given.
func (s *Signer) Fingerprint() string { return s.keys.fingerprint }

// Path returns the derivation path of a key, such as "m/44'/60'/0'/0/7", with which any wallet that has
// the mnemonic finds it. Errors as PublicKey.
func (s *Signer) Path(key chain.KeyRef) (string, error) {
	p, err := pathOf(key, s.keys.bitcoin)
	if err != nil {
		return "", err
	}

	return p.String(), nil
}

// PublicKey returns the public key of a reference. An index that the path cannot hold (2^31 and above,
// 2^29 and above on Solana) and an unknown role are fault.Invalid, an unknown family is fault.Unsupported.
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

	private, err := s.keys.secp256k1Key(key)
	if err != nil {
		return chain.PublicKey{}, err
	}
	defer private.Zero()

	return chain.PublicKey{Curve: chain.Secp256k1, Bytes: private.PubKey().SerializeCompressed()}, nil
}

// String names the signer by its fingerprint.
func (s Signer) String() string {
	if s.keys == nil {
		return "hdkey.Signer(no keys)"
	}

	return "hdkey.Signer(" + s.keys.fingerprint + ")"
}

// GoString is String.
func (s Signer) GoString() string { return s.String() }

// Format writes String for every verb, so that no verb reaches the fields.
func (s Signer) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte(s.String())) }

// LogValue is String.
func (s Signer) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String, for encoders that would otherwise look at the fields.
func (s Signer) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

package hdkey

import (
	"crypto/ed25519"

	"github.com/seed-8ee7f392/payments/chain"
)

// Secrets returns the private keys and chain codes that a Signer holds.
func Secrets(s *Signer) map[string][]byte {
	secrets := map[string][]byte{
		"solana key":        s.keys.solana.key[:],
		"solana chain code": s.keys.solana.chain[:],
	}
	for key, parent := range s.keys.parents {
		name := string(key.family) + "/" + string(key.role)
		if key.livemode {
			name += "/live"
		}

		private, err := parent.ECPrivKey()
		if err != nil {
			panic(err)
		}

		secrets[name+" key"] = private.Serialize()
		secrets[name+" chain code"] = parent.ChainCode()
	}

	return secrets
}

// PublicOfPrivate returns the public key of a reference by way of its private key.
func PublicOfPrivate(s *Signer, ref chain.KeyRef) ([]byte, error) {
	if chain.CurveOf(ref.Family) == chain.Ed25519 {
		private, err := s.keys.ed25519Key(ref)
		return private[ed25519.SeedSize:], err
	}

	child, err := s.keys.child(ref)
	if err != nil {
		return nil, err
	}

	public, err := child.ECPubKey()
	if err != nil {
		return nil, err
	}

	return public.SerializeCompressed(), nil
}

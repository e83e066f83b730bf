package hdkey

import (
	"context"
	"crypto/ed25519"

	"github.com/btcsuite/btcd/btcec/v2/schnorr"
	"github.com/btcsuite/btcd/chainhash/v2"
	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// digestSize is the size of what secp256k1 signs.
const digestSize = 32

// Sign checks the payloads, asks the policies, and returns one signature per payload, in order: all or
// none. Equal requests give equal signatures.
//
// secp256k1: 65 bytes, r and s (32 bytes each, big endian, s in the lower half of the order, nonce by RFC
// 6979), then the recovery id 0 or 1. With Taproot (Bitcoin only): 64 bytes by BIP-340, for the output key
// that BIP-86 makes of the public key. Ed25519: 64 bytes by RFC 8032.
//
// A digest that has not 32 bytes, an empty message, and Taproot elsewhere than on Bitcoin are fault.Invalid
// with code payload_invalid; errors of references as PublicKey; a policy's error is returned as it is.
func (s *Signer) Sign(ctx context.Context, request chain.SignRequest) ([][]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	for i, payload := range request.Payloads {
		if err := s.check(i, payload); err != nil {
			return nil, err
		}
	}

	for _, policy := range s.policies {
		if err := policy(ctx, request); err != nil {
			return nil, err
		}
	}

	signatures := make([][]byte, 0, len(request.Payloads))
	for _, payload := range request.Payloads {
		if err := ctx.Err(); err != nil {
			return nil, err
		}

		signature, err := s.keys.sign(payload)
		if err != nil {
			return nil, err
		}

		signatures = append(signatures, signature)
	}

	return signatures, nil
}

// check refuses a payload that cannot be signed, before a policy sees it.
func (s *Signer) check(i int, p chain.Payload) error {
	if _, err := pathOf(p.Key, s.keys.bitcoin); err != nil {
		return err
	}

	bad := func(what string) error {
		return fault.New(
			fault.Invalid, "payload_invalid", "payload %d for key %s was not signed: %s",
			i, p.Key, what,
		)
	}

	switch {
	case p.Taproot && p.Key.Family != chain.Bitcoin:
		return bad("Taproot signatures exist on Bitcoin only")
	case chain.CurveOf(p.Key.Family) == chain.Ed25519 && len(p.Data) == 0:
		return bad("the message is empty")
	case chain.CurveOf(p.Key.Family) == chain.Secp256k1 && len(p.Data) != digestSize:
		return bad("a digest must have 32 bytes")
	}

	return nil
}

func (k *keyring) sign(p chain.Payload) ([]byte, error) {
	if chain.CurveOf(p.Key.Family) == chain.Ed25519 {
		private, err := k.ed25519Key(p.Key)
		if err != nil {
			return nil, err
		}
		defer clear(private)

		return ed25519.Sign(private, p.Data), nil
	}

	private, err := k.secp256k1Key(p.Key)
	if err != nil {
		return nil, err
	}
	defer private.Zero()

	if p.Taproot {
		return signTaproot(private, p)
	}

	return signECDSA(private, p)
}

// signECDSA moves the recovery id of the compact form (27 + 4 for a compressed key + id, in front) to the
// end, as Ethereum and Tron write it.
func signECDSA(private *secp256k1.PrivateKey, p chain.Payload) ([]byte, error) {
	compact := ecdsa.SignCompact(private, p.Data, true)

	id := compact[0] - 27 - 4
	if id > 1 {
		// The nonce's x coordinate was above the order: fewer than one digest in 2^127.
		return nil, fault.New(
			fault.Unsupported, "signature_unsupported",
			"key %s: this digest has no signature with recovery id 0 or 1; build the transaction anew",
			p.Key,
		)
	}

	return append(compact[1:], id), nil
}

// signTaproot signs with the private key of BIP-86's output key: the key, negated when its point has an odd
// y, plus the tweak hash_TapTweak(x) of BIP-341 for an output without scripts.
func signTaproot(private *secp256k1.PrivateKey, p chain.Payload) ([]byte, error) {
	public := private.PubKey().SerializeCompressed()

	tweaked := secp256k1.NewPrivateKey(&private.Key)
	defer tweaked.Zero()

	if public[0] == secp256k1.PubKeyFormatCompressedOdd {
		tweaked.Key.Negate()
	}

	var tweak secp256k1.ModNScalar

	overflow := tweak.SetBytes((*[32]byte)(chainhash.TaggedHash(chainhash.TagTapTweak, public[1:])))
	tweaked.Key.Add(&tweak)

	if overflow != 0 || tweaked.Key.IsZero() {
		return nil, fault.New(
			fault.Unsupported, "signature_unsupported",
			"key %s has no Taproot output key; use the next index",
			p.Key,
		)
	}

	signature, err := schnorr.Sign(tweaked, p.Data)
	if err != nil {
		return nil, fault.Wrap(
			err, fault.Unsupported, "signature_unsupported",
			"key %s: no Taproot signature could be made",
			p.Key,
		)
	}

	return signature.Serialize(), nil
}

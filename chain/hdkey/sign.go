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

// digestSize is the length in bytes of a digest that secp256k1 signs.
const digestSize = 32

// Sign returns one signature per payload, in order, or an error and none. Payloads are checked first, then
// the policies are called. Equal requests give equal signatures:
//
//   - secp256k1: r and s (32 bytes each, big endian, low s, nonce by RFC 6979), recovery id 0 or 1
//   - Taproot (Bitcoin only): 64 bytes by BIP-340 for the output key of BIP-86
//   - Ed25519: 64 bytes by RFC 8032
//
// Errors are those of PublicKey, a policy's error unchanged, and:
//
//   - fault.Invalid (payload_invalid): a digest that is not 32 bytes long, an empty message, or Taproot
//     outside Bitcoin
//   - fault.Unsupported (signature_unsupported): the key cannot sign this digest
func (s *Signer) Sign(ctx context.Context, request chain.SignRequest) ([][]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}

	for i, payload := range request.Payloads {
		if err := s.checkPayload(i, payload); err != nil {
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

// checkPayload returns an error for a payload that cannot be signed.
func (s *Signer) checkPayload(i int, payload chain.Payload) error {
	if _, err := pathOf(payload.Key, s.keys.bitcoin); err != nil {
		return err
	}

	invalid := func(what string) error {
		return fault.New(
			fault.Invalid, "payload_invalid", "payload %d for key %s was not signed: %s",
			i, payload.Key, what,
		)
	}

	switch {
	case payload.Taproot && payload.Key.Family != chain.Bitcoin:
		return invalid("Taproot signatures exist on Bitcoin only")
	case chain.CurveOf(payload.Key.Family) == chain.Ed25519 && len(payload.Data) == 0:
		return invalid("the message is empty")
	case chain.CurveOf(payload.Key.Family) == chain.Secp256k1 && len(payload.Data) != digestSize:
		return invalid("a digest must have 32 bytes")
	}

	return nil
}

// sign returns the signature of one payload.
func (k *keyring) sign(payload chain.Payload) ([]byte, error) {
	if chain.CurveOf(payload.Key.Family) == chain.Ed25519 {
		private, err := k.ed25519Key(payload.Key)
		if err != nil {
			return nil, err
		}
		defer clear(private)

		return ed25519.Sign(private, payload.Data), nil
	}

	private, err := k.secp256k1Key(payload.Key)
	if err != nil {
		return nil, err
	}
	defer private.Zero()

	if payload.Taproot {
		return signTaproot(private, payload)
	}

	return signECDSA(private, payload)
}

// signECDSA returns the compact signature with its recovery id last, as Ethereum and Tron write it.
// The library's form begins with 27 + 4 (compressed key) + id.
func signECDSA(private *secp256k1.PrivateKey, payload chain.Payload) ([]byte, error) {
	compact := ecdsa.SignCompact(private, payload.Data, true)

	recoveryID := compact[0] - 27 - 4
	if recoveryID > 1 {
		// The nonce's x coordinate was above the order: fewer than one digest in 2^127.
		return nil, fault.New(
			fault.Unsupported, "signature_unsupported",
			"key %s: this digest has no signature with recovery id 0 or 1; build the transaction anew",
			payload.Key,
		)
	}

	return append(compact[1:], recoveryID), nil
}

// signTaproot signs with the private key of BIP-86's output key, which has no script tree. That key is the
// private key, negated if its point has an odd y, plus hash_TapTweak(x) (BIP-341).
func signTaproot(private *secp256k1.PrivateKey, payload chain.Payload) ([]byte, error) {
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
			payload.Key,
		)
	}

	signature, err := schnorr.Sign(tweaked, payload.Data)
	if err != nil {
		return nil, fault.Wrap(
			err, fault.Unsupported, "signature_unsupported",
			"key %s: no Taproot signature could be made",
			payload.Key,
		)
	}

	return signature.Serialize(), nil
}

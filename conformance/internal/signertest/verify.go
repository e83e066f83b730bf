package signertest

import (
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	"github.com/btcsuite/btcd/btcec/v2/schnorr"
	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"

	"github.com/seed-8ee7f392/payments/chain"
)

// verifySignature checks a signature in the form that chain.Curve demands: 64 bytes for Ed25519;
// r, s in the lower half of the group order, and the recovery id for secp256k1.
func verifySignature(key chain.PublicKey, data, signature []byte) error {
	if key.Curve == chain.Ed25519 {
		if len(signature) != ed25519.SignatureSize || !ed25519.Verify(key.Bytes, data, signature) {
			return fmt.Errorf("%x is no Ed25519 signature of the message", signature)
		}

		return nil
	}

	if len(signature) != 65 {
		return fmt.Errorf("%d bytes, want r, s and the recovery id: 65", len(signature))
	}

	if signature[64] > 1 {
		return fmt.Errorf("recovery id %d, want 0 or 1", signature[64])
	}

	var r, s secp256k1.ModNScalar
	if r.SetByteSlice(signature[:32]) || s.SetByteSlice(signature[32:64]) {
		return errors.New("r or s is not below the group order")
	}

	if s.IsOverHalfOrder() {
		return errors.New("s is in the upper half of the group order")
	}

	public, err := secp256k1.ParsePubKey(key.Bytes)
	if err != nil {
		return err
	}

	if !ecdsa.NewSignature(&r, &s).Verify(data, public) {
		return errors.New("it does not verify")
	}

	recovered, _, err := ecdsa.RecoverCompact(append([]byte{27 + 4 + signature[64]}, signature[:64]...), data)
	if err != nil || !recovered.IsEqual(public) {
		return fmt.Errorf("the recovery id leads to another key (%w)", err)
	}

	return nil
}

// verifyTaproot checks a BIP-340 signature by the key tweaked as in BIP-86:
// Q = P + hash_TapTweak(P)·G, with the y coordinate of P even.
func verifyTaproot(key chain.PublicKey, digest, signature []byte) error {
	internal, err := secp256k1.ParsePubKey(key.Bytes)
	if err != nil {
		return err
	}

	tag := sha256.Sum256([]byte("TapTweak"))
	x := internal.SerializeCompressed()[1:]
	tweak := sha256.Sum256(slices.Concat(tag[:], tag[:], x))

	var scalar secp256k1.ModNScalar
	if scalar.SetBytes(&tweak) != 0 {
		return errors.New("the key has no Taproot output key")
	}

	even, err := secp256k1.ParsePubKey(append([]byte{secp256k1.PubKeyFormatCompressedEven}, x...))
	if err != nil {
		return err
	}

	var p, tweakPoint, q secp256k1.JacobianPoint
	even.AsJacobian(&p)
	secp256k1.ScalarBaseMultNonConst(&scalar, &tweakPoint)
	secp256k1.AddNonConst(&p, &tweakPoint, &q)
	q.ToAffine()

	parsed, err := schnorr.ParseSignature(signature)
	if err != nil {
		return err
	}

	if !parsed.Verify(digest, secp256k1.NewPublicKey(&q.X, &q.Y)) {
		return errors.New("it does not verify under the tweaked key")
	}

	return nil
}

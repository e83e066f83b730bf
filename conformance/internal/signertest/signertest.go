// Package signertest is the suite behind conformance.TestSigner.
package signertest

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/btcsuite/btcd/btcec/v2/schnorr"
	"github.com/decred/dcrd/dcrec/secp256k1/v4"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Harness is conformance.SignerHarness: a signer and the keys that it is asked to sign with.
type Harness struct {
	Signer chain.Signer
	// Network is the slug that requests name.
	Network string
	// Keys are references that the signer has keys for: at least two.
	Keys []chain.KeyRef
	// Unknown are references that it has no key for.
	Unknown []chain.KeyRef
	// TaprootKeys are those of Keys that can sign for Taproot; none for a signer without Bitcoin.
	TaprootKeys []chain.KeyRef
	// Refused is a request that the signer's policy refuses; nil for a signer without a policy.
	Refused *chain.SignRequest
}

// Run runs every case against a signer of its own. PublicKeyIsStable takes two, as two processes
// with the same secrets are.
func Run(t *testing.T, factory func(t *testing.T) Harness) {
	for _, test := range []struct {
		name string
		run  func(t *testing.T, h Harness)
	}{
		{"SignaturesVerify", testVerifies},
		{"OneSignaturePerPayloadInOrder", testOrder},
		{"TaprootSignaturesVerify", testTaproot},
		{"PayloadOfAnotherSizeIsInvalid", testPayloadSize},
		{"UnknownKeyIsRefused", testUnknown},
		{"RefusalIsTyped", testRefusal},
		{"EndedContextIsHonoured", testCanceled},
		{"CallerKeepsItsBytes", testBytes},
		{"ConcurrentCalls", testConcurrent},
	} {
		t.Run(test.name, func(t *testing.T) {
			h := factory(t)
			if len(h.Keys) < 2 || len(h.Unknown) == 0 {
				t.Fatal("SignerHarness needs at least two Keys and one in Unknown")
			}

			test.run(t, h)
		})
	}

	t.Run("PublicKeyIsStable", func(t *testing.T) { testStable(t, factory(t), factory(t)) })
}

// publicKey returns the public key of a reference.
func publicKey(t *testing.T, h Harness, ref chain.KeyRef) chain.PublicKey {
	t.Helper()

	key, err := h.Signer.PublicKey(t.Context(), ref)
	if err != nil {
		t.Fatalf("PublicKey(%s): %v", ref, err)
	}

	return key
}

func testStable(t *testing.T, first, second Harness) {
	seen := map[string]chain.KeyRef{}

	for _, ref := range first.Keys {
		key := publicKey(t, first, ref)

		size := secp256k1.PubKeyBytesLenCompressed
		if key.Curve == chain.Ed25519 {
			size = ed25519.PublicKeySize
		}

		if key.Curve != chain.CurveOf(ref.Family) || len(key.Bytes) != size {
			t.Errorf(
				"key %s is %d bytes of %s, want %d of %s",
				ref, len(key.Bytes), key.Curve, size, chain.CurveOf(ref.Family),
			)
		}

		if other, twiceStore := seen[string(key.Bytes)]; twiceStore && other != ref {
			t.Errorf("%s and %s are the same key", other, ref)
		}

		seen[string(key.Bytes)] = ref
		for name, h := range map[string]Harness{"the same": first, "another": second} {
			if again := publicKey(t, h, ref); !bytes.Equal(again.Bytes, key.Bytes) {
				t.Errorf("key %s is %x, then %x from %s signer", ref, key.Bytes, again.Bytes, name)
			}
		}
	}
}

func testVerifies(t *testing.T, h Harness) {
	for _, ref := range h.Keys {
		key := publicKey(t, h, ref)
		for i := range 8 {
			payload := newPayload(ref, i)

			signatures, err := h.Signer.Sign(t.Context(), newRequest(h, payload))
			if err != nil {
				t.Fatalf("Sign with %s: %v", ref, err)
			}

			if len(signatures) != 1 {
				t.Fatalf("%d signatures of one payload", len(signatures))
			}

			if err := verifySignature(key, payload.Data, signatures[0]); err != nil {
				t.Errorf("signature of %s: %v", ref, err)
			}
		}
	}
}

// newPayload returns the i-th payload of a key: 32 bytes, a digest for one curve and a message for the
// other.
func newPayload(ref chain.KeyRef, i int) chain.Payload {
	digest := sha256.Sum256(fmt.Appendf(nil, "payload %d of %s", i, ref))
	return chain.Payload{Key: ref, Data: digest[:]}
}

func newRequest(h Harness, payloads ...chain.Payload) chain.SignRequest {
	return chain.SignRequest{
		Network:  h.Network,
		Unsigned: []byte("transaction"),
		Payloads: payloads,
		Intent: chain.Intent{
			Kind:      "payout",
			ObjectID:  "000000000000000000000001",
			AccountID: "000000000000000000000002",
		},
	}
}

func testOrder(t *testing.T, h Harness) {
	curve := chain.CurveOf(h.Keys[0].Family)

	var payloads []chain.Payload

	for i := range 3 {
		for _, ref := range h.Keys {
			if chain.CurveOf(ref.Family) == curve {
				payloads = append(payloads, newPayload(ref, i))
			}
		}
	}

	signatures, err := h.Signer.Sign(t.Context(), newRequest(h, payloads...))
	if err != nil {
		t.Fatalf("Sign: %v", err)
	}

	if len(signatures) != len(payloads) {
		t.Fatalf("%d signatures of %d payloads", len(signatures), len(payloads))
	}

	for i, payload := range payloads {
		if err := verifySignature(publicKey(t, h, payload.Key), payload.Data, signatures[i]); err != nil {
			t.Errorf("signature %d, which is to be that of %s: %v", i, payload.Key, err)
		}
	}
}

func testTaproot(t *testing.T, h Harness) {
	for _, ref := range h.TaprootKeys {
		payload := newPayload(ref, 0)
		payload.Taproot = true

		signatures, err := h.Signer.Sign(t.Context(), newRequest(h, payload))
		if err != nil || len(signatures) != 1 || len(signatures[0]) != schnorr.SignatureSize {
			t.Fatalf("Sign for Taproot with %s: %x, %v", ref, signatures, err)
		}

		if err := verifyTaproot(publicKey(t, h, ref), payload.Data, signatures[0]); err != nil {
			t.Errorf("Taproot signature of %s: %v", ref, err)
		}
	}

	for _, ref := range h.Keys {
		if slices.Contains(h.TaprootKeys, ref) {
			continue
		}

		payload := newPayload(ref, 0)
		payload.Taproot = true

		signatures, err := h.Signer.Sign(t.Context(), newRequest(h, payload))
		if err == nil || len(signatures) != 0 {
			t.Errorf("%s signed for Taproot, which it is not declared for", ref)
		} else if !isClassified(err) {
			t.Errorf(
				"Sign for Taproot with %s: %v, want an error that is one of package fault's kinds",
				ref, err,
			)
		}
	}
}

func testPayloadSize(t *testing.T, h Harness) {
	for _, ref := range h.Keys {
		sizes := []int{0}
		if chain.CurveOf(ref.Family) == chain.Secp256k1 {
			sizes = []int{0, 1, 31, 33, 64}
		}

		for _, size := range sizes {
			good, bad := newPayload(ref, 0), chain.Payload{Key: ref, Data: make([]byte, size)}

			signatures, err := h.Signer.Sign(t.Context(), newRequest(h, good, bad))
			if !errors.Is(err, fault.Invalid) || len(signatures) != 0 {
				t.Errorf(
					"%s signed a payload of %d bytes: %x, %v, want fault.Invalid",
					ref, size, signatures, err,
				)
			}
		}
	}
}

// isClassified reports whether an error is of a kind that a caller can act on.
func isClassified(err error) bool {
	for _, kind := range []error{fault.Forbidden, fault.Invalid, fault.NotFound, fault.Unsupported} {
		if errors.Is(err, kind) {
			return true
		}
	}

	return false
}

func testUnknown(t *testing.T, h Harness) {
	for _, ref := range h.Unknown {
		if key, err := h.Signer.PublicKey(t.Context(), ref); err == nil || len(key.Bytes) != 0 {
			t.Errorf("PublicKey(%s) = %x, %v: it is declared unknown", ref, key.Bytes, err)
		} else if !isClassified(err) {
			t.Errorf("PublicKey(%s): %v, want an error that is one of package fault's kinds", ref, err)
		}

		request := newRequest(h, newPayload(h.Keys[0], 0), newPayload(ref, 0))

		signatures, err := h.Signer.Sign(t.Context(), request)
		if err == nil || len(signatures) != 0 {
			t.Errorf("Sign with %s returned %d signatures, %v", ref, len(signatures), err)
		} else if !isClassified(err) {
			t.Errorf("Sign with %s: %v, want an error that is one of package fault's kinds", ref, err)
		}
	}
}

// testRefusal checks that a refusal by policy is typed and final, and that other requests are still
// signed.
func testRefusal(t *testing.T, h Harness) {
	if h.Refused == nil {
		return
	}

	for range 2 {
		signatures, err := h.Signer.Sign(t.Context(), *h.Refused)

		refusal, typed := errors.AsType[*chain.Refusal](err)
		if !typed || refusal.Reason == "" || !errors.Is(err, fault.Forbidden) || len(signatures) != 0 {
			t.Errorf(
				"a request that the policy refuses was answered by %d signatures, %v; want a "+
					"*chain.Refusal with a reason",
				len(signatures),
				err,
			)
		}
	}

	allowed := newRequest(h, newPayload(h.Keys[0], 0))
	if signatures, err := h.Signer.Sign(t.Context(), allowed); err != nil || len(signatures) != 1 {
		t.Errorf("after a refusal another request was answered by %d signatures, %v", len(signatures), err)
	}
}

func testCanceled(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	if _, err := h.Signer.PublicKey(ctx, h.Keys[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("PublicKey with a canceled context: %v", err)
	}

	signatures, err := h.Signer.Sign(ctx, newRequest(h, newPayload(h.Keys[0], 0)))
	if !errors.Is(err, context.Canceled) || len(signatures) != 0 {
		t.Errorf("Sign with a canceled context: %d signatures, %v", len(signatures), err)
	}
}

// testBytes checks that signer and caller share no memory.
func testBytes(t *testing.T, h Harness) {
	ref := h.Keys[0]
	key := publicKey(t, h, ref)
	want := bytes.Clone(key.Bytes)
	clear(key.Bytes)

	if again := publicKey(t, h, ref); !bytes.Equal(again.Bytes, want) {
		t.Error("a caller can change the signer's public key")
	}

	payload := newPayload(ref, 0)

	data := bytes.Clone(payload.Data)
	if _, err := h.Signer.Sign(t.Context(), newRequest(h, payload)); err != nil {
		t.Fatalf("Sign: %v", err)
	}

	if !bytes.Equal(payload.Data, data) {
		t.Error("Sign changed its payload")
	}
}

func testConcurrent(t *testing.T, h Harness) {
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			ref := h.Keys[i%len(h.Keys)]

			key, err := h.Signer.PublicKey(t.Context(), ref)
			if err != nil {
				t.Errorf("PublicKey: %v", err)
				return
			}

			payload := newPayload(ref, i)

			signatures, err := h.Signer.Sign(t.Context(), newRequest(h, payload))
			if err != nil || len(signatures) != 1 {
				t.Errorf("Sign: %d signatures, %v", len(signatures), err)
				return
			}

			if err := verifySignature(key, payload.Data, signatures[0]); err != nil {
				t.Errorf("signature of %s beside others: %v", ref, err)
			}
		})
	}

	wg.Wait()
}

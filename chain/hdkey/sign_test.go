package hdkey_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"testing"

	"github.com/btcsuite/btcd/btcec/v2/schnorr"
	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/fault"
)

func digestOf(i int) []byte {
	d := sha256.Sum256(fmt.Append(nil, "digest ", i))
	return d[:]
}

func sign(t testing.TB, s *hdkey.Signer, payloads ...chain.Payload) [][]byte {
	t.Helper()

	signatures, err := s.Sign(t.Context(), chain.SignRequest{Network: "test", Payloads: payloads})
	if err != nil {
		t.Fatal(err)
	}

	if len(signatures) != len(payloads) {
		t.Fatalf("%d signatures for %d payloads", len(signatures), len(payloads))
	}

	return signatures
}

func TestSecp256k1SignaturesRecoverTheKeyAndAreLow(t *testing.T) {
	s := newSigner(t, junkMnemonic)
	ids := map[byte]int{}

	for i := range 64 {
		for _, f := range []chain.Family{chain.EVM, chain.Bitcoin, chain.Tron, chain.Sim} {
			ref := liveDeposit(f, uint32(i))

			signature := sign(t, s, chain.Payload{Key: ref, Data: digestOf(i)})[0]
			if len(signature) != 65 || signature[64] > 1 {
				t.Fatalf("%s: signature %x", ref, signature)
			}

			ids[signature[64]]++
			compact := append([]byte{27 + signature[64]}, signature[:64]...)

			recovered, _, err := ecdsa.RecoverCompact(compact, digestOf(i))
			if err != nil || !bytes.Equal(recovered.SerializeCompressed(), publicKey(t, s, ref)) {
				t.Fatalf("%s: the signature recovers another key (error %v)", ref, err)
			}

			var half secp256k1.ModNScalar
			if half.SetByteSlice(signature[32:64]) || half.IsOverHalfOrder() {
				t.Fatalf("%s: s is in the upper half of the order", ref)
			}
		}
	}

	if ids[0] == 0 || ids[1] == 0 {
		t.Fatalf("recovery ids %v: both must occur", ids)
	}
}

// The first key of the well-known test mnemonic (ac0974be…ff80) signs by RFC 6979 elsewhere too.
// Its public half is checked in TestKeysAreThoseOfOtherWallets.
func TestSignatureIsThatOfTheKnownPrivateKey(t *testing.T) {
	raw, err := hex.DecodeString("ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
	if err != nil {
		t.Fatal(err)
	}

	want := ecdsa.SignCompact(secp256k1.PrivKeyFromBytes(raw), digestOf(0), false)

	got := sign(t, newSigner(t, junkMnemonic), chain.Payload{Key: liveDeposit(chain.EVM, 0), Data: digestOf(0)})[0]
	if !bytes.Equal(got[:64], want[1:]) || got[64] != want[0]-27 {
		t.Fatalf("signature %x, want %x and recovery id %d", got, want[1:], want[0]-27)
	}
}

func TestTaprootSignaturesFitTheOutputKey(t *testing.T) {
	s := newSigner(t, aboutMnemonic, hdkey.WithTaproot())

	for index, output := range []string{ // BIP-86, test vectors
		"a60869f0dbcf1dc659c9cecbaf8050135ea9e8cdc487053f1dc6880949dc684c",
		"a82f29944d65b86ae6b5e5cc75e294ead6c59391a1edc5e016e3498c67fc7bbb",
	} {
		raw, err := hex.DecodeString(output)
		if err != nil {
			t.Fatal(err)
		}

		key, err := schnorr.ParsePubKey(raw)
		if err != nil {
			t.Fatal(err)
		}

		for i := range 8 {
			bytes := sign(t, s, chain.Payload{
				Key:     liveDeposit(chain.Bitcoin, uint32(index)),
				Data:    digestOf(i),
				Taproot: true,
			})[0]

			signature, err := schnorr.ParseSignature(bytes)
			if err != nil || len(bytes) != 64 {
				t.Fatalf("signature %x: %v", bytes, err)
			}

			if !signature.Verify(digestOf(i), key) {
				t.Fatalf("index %d: the signature does not fit the output key", index)
			}

			if signature.Verify(digestOf(i+1), key) {
				t.Fatalf("index %d: the signature fits another digest", index)
			}
		}
	}
}

// The published vectors may all have keys of one parity. Here both occur, and the output key is
// computed from the public key as a driver does.
func TestTaprootSignaturesOfBothParities(t *testing.T) {
	s := newSigner(t, junkMnemonic)
	parities := map[byte]int{}

	for i := range 16 {
		ref := liveDeposit(chain.Bitcoin, uint32(i))
		compressed := publicKey(t, s, ref)
		parities[compressed[0]]++

		internal, err := schnorr.ParsePubKey(compressed[1:])
		if err != nil {
			t.Fatal(err)
		}

		tag := sha256.Sum256([]byte("TapTweak"))
		hash := sha256.Sum256(append(append(tag[:], tag[:]...), compressed[1:]...))

		var tweak secp256k1.ModNScalar
		tweak.SetBytes(&hash)

		var p, q, sum secp256k1.JacobianPoint
		internal.AsJacobian(&p)
		secp256k1.ScalarBaseMultNonConst(&tweak, &q)
		secp256k1.AddNonConst(&p, &q, &sum)
		sum.ToAffine()

		signature, err := schnorr.ParseSignature(
			sign(t, s, chain.Payload{Key: ref, Data: digestOf(i), Taproot: true})[0],
		)
		if err != nil || !signature.Verify(digestOf(i), secp256k1.NewPublicKey(&sum.X, &sum.Y)) {
			t.Fatalf(
				"%s (parity %d): the signature does not fit the output key (error %v)",
				ref, compressed[0], err,
			)
		}
	}

	if len(parities) != 2 {
		t.Fatalf("parities %v: both must occur", parities)
	}
}

func TestEd25519SignaturesVerify(t *testing.T) {
	s := newSigner(t, junkMnemonic)

	for i := range 8 {
		ref := liveDeposit(chain.Solana, uint32(i))
		message := bytes.Repeat([]byte{byte(i)}, 1+i*170)

		signature := sign(t, s, chain.Payload{Key: ref, Data: message})[0]
		if len(signature) != 64 || !ed25519.Verify(publicKey(t, s, ref), message, signature) {
			t.Fatalf("%s: signature %x does not verify", ref, signature)
		}
	}
}

func TestSignaturesComeInOrderAndAreRepeatable(t *testing.T) {
	s := newSigner(t, junkMnemonic)
	payloads := []chain.Payload{
		{Key: liveDeposit(chain.Solana, 1), Data: []byte("message")},
		{Key: liveDeposit(chain.EVM, 1), Data: digestOf(1)},
		{Key: liveDeposit(chain.EVM, 2), Data: digestOf(1)},
		{Key: liveDeposit(chain.Bitcoin, 1), Data: digestOf(1), Taproot: true},
	}

	together, repeated := sign(t, s, payloads...), sign(t, s, payloads...)
	for i, p := range payloads {
		if alone := sign(t, s, p)[0]; !bytes.Equal(together[i], alone) || !bytes.Equal(repeated[i], alone) {
			t.Errorf("payload %d: %x together, %x again, %x alone", i, together[i], repeated[i], alone)
		}
	}

	if len(sign(t, s)) != 0 {
		t.Error("signatures without a payload")
	}
}

func TestPayloadsThatAreNotSigned(t *testing.T) {
	asked := false
	s := newSigner(
		t, junkMnemonic,
		hdkey.WithPolicy(func(context.Context, chain.SignRequest) error { asked = true; return nil }),
	)

	good := chain.Payload{Key: liveDeposit(chain.EVM, 0), Data: digestOf(0)}
	for name, bad := range map[string]chain.Payload{
		"no digest":       {Key: liveDeposit(chain.EVM, 0)},
		"digest of 31":    {Key: liveDeposit(chain.EVM, 0), Data: make([]byte, 31)},
		"digest of 33":    {Key: liveDeposit(chain.Tron, 0), Data: make([]byte, 33)},
		"Taproot of 64":   {Key: liveDeposit(chain.Bitcoin, 0), Data: make([]byte, 64), Taproot: true},
		"empty message":   {Key: liveDeposit(chain.Solana, 0)},
		"Taproot on EVM":  {Key: liveDeposit(chain.EVM, 0), Data: digestOf(0), Taproot: true},
		"Taproot, Solana": {Key: liveDeposit(chain.Solana, 0), Data: digestOf(0), Taproot: true},
	} {
		signatures, err := s.Sign(t.Context(), chain.SignRequest{Payloads: []chain.Payload{good, bad}})
		if !errors.Is(err, fault.Invalid) || fault.Code(err) != "payload_invalid" || signatures != nil {
			t.Errorf(
				"%s: %d signatures, error %v; want none and fault.Invalid with payload_invalid",
				name, len(signatures), err,
			)
		}
	}

	if asked {
		t.Error("the policy was asked about a malformed request")
	}
}

func TestPolicy(t *testing.T) {
	request := chain.SignRequest{
		Network:  "sepolia",
		Payloads: []chain.Payload{{Key: liveDeposit(chain.EVM, 0), Data: digestOf(0)}},
		Intent:   chain.Intent{Kind: "payout", ObjectID: "0123456789abcdef01234567", MaxFee: chain.Units(9)},
	}

	busy := errors.New("the reviewer is asleep")
	for name, c := range map[string]struct {
		answers []error
		want    error
	}{
		"agrees":         {[]error{nil}, nil},
		"both agree":     {[]error{nil, nil}, nil},
		"refuses":        {[]error{chain.Refuse("amount")}, fault.Forbidden},
		"second refuses": {[]error{nil, chain.Refuse("amount")}, fault.Forbidden},
		"cannot say":     {[]error{busy}, busy},
	} {
		var (
			seen []chain.SignRequest
			opts []hdkey.Option
		)
		for _, answer := range c.answers {
			opts = append(opts, hdkey.WithPolicy(func(_ context.Context, r chain.SignRequest) error {
				seen = append(seen, r)
				return answer
			}))
		}

		signatures, err := newSigner(t, junkMnemonic, opts...).Sign(t.Context(), request)
		if !errors.Is(err, c.want) || (c.want == nil) != (len(signatures) == 1) {
			t.Errorf("%s: %d signatures, error %v, want error %v", name, len(signatures), err, c.want)
		}

		refusal, ok := errors.AsType[*chain.Refusal](err)
		if ok != errors.Is(c.want, fault.Forbidden) || ok && refusal.Reason != "amount" {
			t.Errorf("%s: refusal %v", name, refusal)
		}

		if len(seen) != len(c.answers) || seen[0].Network != request.Network ||
			seen[0].Intent.ObjectID != request.Intent.ObjectID ||
			len(seen[0].Payloads) != 1 {
			t.Errorf("%s: the policies saw %+v", name, seen)
		}
	}

	if _, err := hdkey.New(junkMnemonic, "", hdkey.WithPolicy(nil)); !errors.Is(err, fault.Invalid) {
		t.Errorf("nil policy: error %v, want fault.Invalid", err)
	}
}

func TestCanceledContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()

	s := newSigner(t, junkMnemonic)
	if _, err := s.PublicKey(ctx, liveDeposit(chain.EVM, 0)); !errors.Is(err, context.Canceled) {
		t.Errorf("PublicKey: error %v", err)
	}

	if _, err := s.Sign(ctx, chain.SignRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Sign: error %v", err)
	}
}

func BenchmarkSign(b *testing.B) {
	s := newSigner(b, junkMnemonic)
	for name, payload := range map[string]chain.Payload{
		"secp256k1": {Key: liveDeposit(chain.EVM, 1), Data: digestOf(1)},
		"taproot":   {Key: liveDeposit(chain.Bitcoin, 1), Data: digestOf(1), Taproot: true},
		"ed25519":   {Key: liveDeposit(chain.Solana, 1), Data: make([]byte, 400)},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()

			request := chain.SignRequest{Payloads: []chain.Payload{payload}}
			for b.Loop() {
				if _, err := s.Sign(b.Context(), request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	for b.Loop() {
		newSigner(b, junkMnemonic)
	}
}

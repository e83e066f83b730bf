package hdkey_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/fault"
)

// TestPublicKeysAreThoseOfThePrivateKeys compares public derivation, one by one and together, with the keys that sign.
func TestPublicKeysAreThoseOfThePrivateKeys(t *testing.T) {
	s := newSigner(t, junkMnemonic)

	var refs []chain.KeyRef

	for _, family := range []chain.Family{chain.EVM, chain.Bitcoin, chain.Solana, chain.Tron, chain.Sim} {
		for _, role := range []chain.Role{chain.RoleDeposit, chain.RoleMaster} {
			for index := range uint32(40) {
				refs = append(
					refs,
					chain.KeyRef{Family: family, Livemode: index%2 == 0, Role: role, Index: index},
				)
			}

			if family != chain.Solana {
				refs = append(refs, chain.KeyRef{Family: family, Role: role, Index: math.MaxInt32})
			}
		}
	}

	together, err := s.PublicKeys(t.Context(), refs)
	if err != nil {
		t.Fatal(err)
	}

	for i, ref := range refs {
		want, err := hdkey.PublicOfPrivate(s, ref)
		if err != nil {
			t.Fatal(err)
		}

		if got := publicKey(t, s, ref); !bytes.Equal(got, want) {
			t.Errorf("PublicKey(%s) is %x, want %x", ref, got, want)
		}

		if got := together[i]; got.Curve != chain.CurveOf(ref.Family) || !bytes.Equal(got.Bytes, want) {
			t.Errorf("PublicKeys gives %x of %s for %s, want %x", got.Bytes, got.Curve, ref, want)
		}
	}
}

func TestPublicKeysFailTogether(t *testing.T) {
	s := newSigner(t, junkMnemonic)

	if none, err := s.PublicKeys(t.Context(), nil); err != nil || len(none) != 0 {
		t.Errorf("no references give %d keys and error %v", len(none), err)
	}

	for _, bad := range []chain.KeyRef{liveDeposit(chain.EVM, 1<<31), liveDeposit(chain.Solana, 1<<29)} {
		keys, err := s.PublicKeys(t.Context(), []chain.KeyRef{liveDeposit(chain.EVM, 1), bad})
		if keys != nil || !errors.Is(err, fault.Invalid) || fault.Code(err) != "key_index_invalid" {
			t.Errorf("with %s: %d keys and error %v, want key_index_invalid", bad, len(keys), err)
		}
	}
}

// BenchmarkPublicKeys measures the keys of one branch, of which 64 are asked for at once.
func BenchmarkPublicKeys(b *testing.B) {
	const together = 64

	s, refs := newSigner(b, junkMnemonic), make([]chain.KeyRef, together)

	for n := uint32(0); b.Loop(); n++ {
		for i := range refs {
			refs[i] = liveDeposit(chain.EVM, n*together&0xFFFFFF+uint32(i))
		}

		if _, err := s.PublicKeys(b.Context(), refs); err != nil {
			b.Fatal(err)
		}
	}

	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*together), "ns/key")
}

// BenchmarkPublicOfPrivate measures one key by way of its private key.
func BenchmarkPublicOfPrivate(b *testing.B) {
	s := newSigner(b, junkMnemonic)

	for i := uint32(0); b.Loop(); i++ {
		if _, err := hdkey.PublicOfPrivate(s, liveDeposit(chain.EVM, i&0xFFFF)); err != nil {
			b.Fatal(err)
		}
	}
}

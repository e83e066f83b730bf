package hdkey_test

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/btcsuite/btcd/address/v2/base58"
	"github.com/decred/dcrd/dcrec/secp256k1/v4"
	"golang.org/x/crypto/sha3"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/fault"
)

const (
	aboutMnemonic = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"
	junkMnemonic  = "test test test test test test test test test test test junk"
)

func newSigner(t testing.TB, mnemonic string, opts ...hdkey.Option) *hdkey.Signer {
	t.Helper()

	s, err := hdkey.New(mnemonic, "", opts...)
	if err != nil {
		t.Fatal(err)
	}

	return s
}

func liveDeposit(family chain.Family, index uint32) chain.KeyRef {
	return chain.KeyRef{Family: family, Livemode: true, Role: chain.RoleDeposit, Index: index}
}

func publicKey(t testing.TB, s *hdkey.Signer, ref chain.KeyRef) []byte {
	t.Helper()

	key, err := s.PublicKey(t.Context(), ref)
	if err != nil {
		t.Fatal(err)
	}

	if key.Curve != chain.CurveOf(ref.Family) {
		t.Fatalf("%s has a key of curve %s", ref, key.Curve)
	}

	return key.Bytes
}

// ethereumAddress returns the last 20 bytes of the Keccak-256 of the uncompressed point.
func ethereumAddress(t *testing.T, compressed []byte) []byte {
	t.Helper()

	key, err := secp256k1.ParsePubKey(compressed)
	if err != nil {
		t.Fatal(err)
	}

	hash := sha3.NewLegacyKeccak256()
	hash.Write(key.SerializeUncompressed()[1:])

	return hash.Sum(nil)[12:]
}

// The keys are those that other wallets show for the same mnemonic at the first live paths.
func TestKeysAreThoseOfOtherWallets(t *testing.T) {
	junk, about := newSigner(t, junkMnemonic), newSigner(t, aboutMnemonic)
	taproot := newSigner(t, aboutMnemonic, hdkey.WithTaproot())

	for index, want := range []string{
		"f39fd6e51aad88f6f4ce6ab8827279cfffb92266",
		"70997970c51812dc3a010c7d01b50e0d17dc79c8",
	} {
		key := publicKey(t, junk, liveDeposit(chain.EVM, uint32(index)))
		if got := hex.EncodeToString(ethereumAddress(t, key)); got != want {
			t.Errorf("EVM address %d is %s, want %s", index, got, want)
		}
	}

	for index, want := range []string{ // BIP-84, test vectors
		"0330d54fd0dd420a6e5f8d3624f5f3482cae350f79d5f0753bf5beef9c2d91af3c",
		"03e775fd51f0dfb8cd865d9ff1cca2a158cf651fe997fdc9fee9c1d3b5e995ea77",
	} {
		key := publicKey(t, about, liveDeposit(chain.Bitcoin, uint32(index)))
		if got := hex.EncodeToString(key); got != want {
			t.Errorf("BIP-84 key %d is %s, want %s", index, got, want)
		}
	}

	for index, want := range []string{ // BIP-86, test vectors: the internal keys
		"cc8a4bc64d897bddc5fbc2f670f7a8ba0b386779106cf1223c6fc5d7cd6fc115",
		"83dfe85a3151d2517290da461fe2815591ef69f2b18a2ce63f01697a8b313145",
	} {
		key := publicKey(t, taproot, liveDeposit(chain.Bitcoin, uint32(index)))
		if got := hex.EncodeToString(key[1:]); got != want {
			t.Errorf("BIP-86 key %d is %s, want %s", index, got, want)
		}
	}

	tronKey := publicKey(t, about, liveDeposit(chain.Tron, 0))
	tronAddress := base58.CheckEncode(ethereumAddress(t, tronKey), 0x41)

	if got, want := tronAddress, "TUEZSdKsoDHQMeZwihtdoBiN46zxhGWYdH"; got != want {
		t.Errorf("the first Tron address is %s, want %s", got, want)
	}

	solanaAddress := base58.Encode(publicKey(t, about, liveDeposit(chain.Solana, 0)))
	if got, want := solanaAddress, "HAgk14JpMQLgt6rVgv7cBQFJWFto5Dqxi472uT3DKpqk"; got != want {
		t.Errorf("the first Solana address is %s, want %s", got, want)
	}

	if got, want := about.Fingerprint(), "73c5da0a"; got != want {
		t.Errorf("the fingerprint is %s, want %s", got, want)
	}
}

// The table of the package comment: whoever changes it loses keys.
func TestPathsNeverChange(t *testing.T) {
	s, taproot := newSigner(t, junkMnemonic), newSigner(t, junkMnemonic, hdkey.WithTaproot())
	for _, c := range []struct {
		signer *hdkey.Signer
		family chain.Family
		want   [4]string // live deposit 7, test deposit 7, live master 7, test master 7
	}{
		{s, chain.EVM, [4]string{"m/44'/60'/0'/0/7", "m/44'/60'/1'/0/7", "m/44'/60'/2'/0/7", "m/44'/60'/3'/0/7"}},
		{s, chain.Bitcoin, [4]string{"m/84'/0'/0'/0/7", "m/84'/1'/1'/0/7", "m/84'/0'/2'/0/7", "m/84'/1'/3'/0/7"}},
		{taproot, chain.Bitcoin, [4]string{"m/86'/0'/0'/0/7", "m/86'/1'/1'/0/7", "m/86'/0'/2'/0/7", "m/86'/1'/3'/0/7"}},
		{s, chain.Tron, [4]string{"m/44'/195'/0'/0/7", "m/44'/195'/1'/0/7", "m/44'/195'/2'/0/7", "m/44'/195'/3'/0/7"}},
		{
			s,
			chain.Solana,
			[4]string{
				"m/44'/501'/7'/0'",
				"m/44'/501'/536870919'/0'",
				"m/44'/501'/1073741831'/0'",
				"m/44'/501'/1610612743'/0'",
			},
		},
		{s, chain.Sim, [4]string{"m/44'/1'/0'/0/7", "m/44'/1'/1'/0/7", "m/44'/1'/2'/0/7", "m/44'/1'/3'/0/7"}},
	} {
		for account, want := range c.want {
			ref := chain.KeyRef{Family: c.family, Livemode: account%2 == 0, Role: chain.RoleDeposit, Index: 7}
			if account >= 2 {
				ref.Role = chain.RoleMaster
			}

			if got, err := c.signer.Path(ref); err != nil || got != want {
				t.Errorf("%s is at %q (error %v), want %q", ref, got, err, want)
			}
		}
	}
}

func TestPublicKeysAreFixedAndDistinct(t *testing.T) {
	s, second := newSigner(t, junkMnemonic), newSigner(t, junkMnemonic)
	seen := map[string]chain.KeyRef{}

	for _, family := range []chain.Family{chain.EVM, chain.Bitcoin, chain.Tron, chain.Solana, chain.Sim} {
		last := uint32(math.MaxInt32)
		if family == chain.Solana {
			last = 1<<29 - 1
		}

		for _, livemode := range []bool{true, false} {
			for _, role := range []chain.Role{chain.RoleDeposit, chain.RoleMaster} {
				for _, index := range []uint32{0, 1, 2, 255, 1 << 28, last} {
					ref := chain.KeyRef{Family: family, Livemode: livemode, Role: role, Index: index}

					key := publicKey(t, s, ref)
					if other, twice := seen[string(key)]; twice {
						t.Fatalf("%s and %s have the same key", other, ref)
					}

					seen[string(key)] = ref
					if !bytes.Equal(key, publicKey(t, second, ref)) {
						t.Fatalf("%s has two keys", ref)
					}
				}
			}
		}
	}
}

func TestReferencesWithoutAKey(t *testing.T) {
	s := newSigner(t, junkMnemonic)

	for name, c := range map[string]struct {
		ref  chain.KeyRef
		word error
		code string
	}{
		"hardened index":    {liveDeposit(chain.EVM, 1<<31), fault.Invalid, "key_index_invalid"},
		"largest index":     {liveDeposit(chain.Bitcoin, math.MaxUint32), fault.Invalid, "key_index_invalid"},
		"Solana above 2^29": {liveDeposit(chain.Solana, 1<<29), fault.Invalid, "key_index_invalid"},
		"no role":           {chain.KeyRef{Family: chain.EVM}, fault.Invalid, "key_role_invalid"},
		"unknown role":      {chain.KeyRef{Family: chain.Solana, Role: "cold"}, fault.Invalid, "key_role_invalid"},
		"unknown family":    {liveDeposit("dogecoin", 0), fault.Unsupported, "key_family_unsupported"},
	} {
		check := func(call string, err error) {
			if !errors.Is(err, c.word) || fault.Code(err) != c.code {
				t.Errorf("%s, %s: error %v, want %v with code %s", name, call, err, c.word, c.code)
			}
		}
		_, err := s.PublicKey(t.Context(), c.ref)
		check("PublicKey", err)
		_, err = s.Path(c.ref)
		check("Path", err)

		request := chain.SignRequest{Payloads: []chain.Payload{{Key: c.ref, Data: make([]byte, 32)}}}
		_, err = s.Sign(t.Context(), request)
		check("Sign", err)
	}
}

func TestSeedLimits(t *testing.T) {
	for size, ok := range map[int]bool{0: false, 15: false, 16: true, 32: true, 64: true, 65: false} {
		_, err := hdkey.FromSeed(bytes.Repeat([]byte{7}, size))
		if (err == nil) != ok ||
			(!ok && !(errors.Is(err, fault.Invalid) && fault.Code(err) == "seed_invalid")) {
			t.Errorf("seed of %d bytes: error %v", size, err)
		}
	}
}

func TestSeedIsNotKept(t *testing.T) {
	seed := bytes.Repeat([]byte{7}, 32)

	s, err := hdkey.FromSeed(seed)
	if err != nil {
		t.Fatal(err)
	}

	before := publicKey(t, s, liveDeposit(chain.EVM, 3))

	clear(seed)

	if !bytes.Equal(before, publicKey(t, s, liveDeposit(chain.EVM, 3))) {
		t.Fatal("wiping the caller's seed changed the keys")
	}
}

// Everything that can print a Signer is checked for everything secret in it.
func TestSignerNeverShowsASecret(t *testing.T) {
	seed := bytes.Repeat([]byte{0xA7}, 32)

	s, err := hdkey.FromSeed(seed)
	if err != nil {
		t.Fatal(err)
	}

	type service struct {
		Signer chain.Signer
		hidden *hdkey.Signer
		copied hdkey.Signer
	}

	var out bytes.Buffer

	for _, v := range []any{
		s,
		*s,
		service{s, s, *s},
		&service{s, s, *s},
		[]*hdkey.Signer{s},
		map[string]any{"signer": *s},
	} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d", "%t", "%p", "%T"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}

		slog.New(slog.NewTextHandler(&out, nil)).Info("started", "signer", v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("started", "signer", v)

		if err := json.NewEncoder(&out).Encode(v); err != nil {
			t.Fatal(err)
		}

		fmt.Fprintln(&out, fmt.Errorf("wrapped: %v", v))
	}

	if !strings.Contains(out.String(), "hdkey.Signer("+s.Fingerprint()+")") {
		t.Fatalf("the signer does not name itself:\n%s", out.String())
	}

	text := strings.ToLower(out.String())

	secrets := map[string][]byte{"seed": seed}
	for name, secret := range hdkey.Secrets(s) {
		secrets[name] = secret
	}

	if len(secrets) < 30 {
		t.Fatalf("only %d secrets to look for", len(secrets))
	}

	for name, secret := range secrets {
		for _, form := range []string{
			hex.EncodeToString(secret),
			string(secret),
			strings.ToLower(base58.Encode(secret)),
			strings.Trim(fmt.Sprintf("%v", secret), "[]"),  // 167 167 167
			strings.Trim(fmt.Sprintf("%#v", secret), "{}"), // 0xa7, 0xa7
		} {
			// The first 8 bytes are enough to give a form away.
			form = form[:len(form)/4]
			if strings.Contains(text, strings.ToLower(form)) {
				t.Errorf("%s is shown as %q", name, form)
			}
		}
	}

	if strings.Contains(text, "xprv") {
		t.Error("an extended private key is shown")
	}
}

func TestSignerIsSafeForConcurrentUse(t *testing.T) {
	s := newSigner(t, junkMnemonic)
	refs := []chain.KeyRef{
		liveDeposit(chain.EVM, 1),
		liveDeposit(chain.Bitcoin, 1),
		liveDeposit(chain.Tron, 1),
		liveDeposit(chain.Solana, 1),
		liveDeposit(chain.Sim, 1),
	}

	want := make([][]byte, len(refs))
	for i, ref := range refs {
		want[i] = publicKey(t, newSigner(t, junkMnemonic), ref)
	}

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for i, ref := range refs {
				key, err := s.PublicKey(context.Background(), ref)
				if err != nil || !bytes.Equal(key.Bytes, want[i]) {
					t.Errorf("%s: key %x, error %v, want %x", ref, key.Bytes, err, want[i])
				}

				request := chain.SignRequest{Payloads: []chain.Payload{{Key: ref, Data: make([]byte, 32)}}}
				if _, err := s.Sign(context.Background(), request); err != nil {
					t.Errorf("%s: %v", ref, err)
				}
			}
		})
	}

	wg.Wait()
}

func BenchmarkPublicKey(b *testing.B) {
	s := newSigner(b, junkMnemonic)
	for _, f := range []chain.Family{chain.EVM, chain.Solana} {
		b.Run(string(f), func(b *testing.B) {
			b.ReportAllocs()

			for i := uint32(0); b.Loop(); i++ {
				if _, err := s.PublicKey(b.Context(), liveDeposit(f, i&0xFFFF)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

package seal_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/seal"
)

var (
	oldKey = bytes.Repeat([]byte{0xA1}, seal.KeySize)
	newKey = bytes.Repeat([]byte{0xB2}, seal.KeySize)
	row    = []byte("webhook_endpoints/0123456789abcdef01234567/secret")
	secret = []byte("whsec_c2VjcmV0IHNlY3JldCBzZWNyZXQgc2VjcmV0IQ==")
)

// stored is secret, sealed with newKey for row.
const stored = "01db117197254a2e1f735a5c4e132bb46b40970d2270c4b92e656ff88c75e601eefbcef349c3cb131872688825482b055275" +
	"b6c6ea4b5436ca77384704728fb63801645cd445c2a9cd78074139e566b11e32237a46a9ec1d2e8f99"

func newSealer(t testing.TB, keys ...[]byte) *seal.Sealer {
	t.Helper()

	b, err := seal.New(keys...)
	if err != nil {
		t.Fatal(err)
	}

	return b
}

func TestRoundTrip(t *testing.T) {
	b := newSealer(t, newKey)

	for name, plaintext := range map[string][]byte{
		"nothing":       {},
		"a byte":        {0},
		"a secret":      secret,
		"a long answer": bytes.Repeat(secret, 10_000),
	} {
		for context, where := range map[string][]byte{"no context": nil, "a row": row} {
			before := bytes.Clone(plaintext)

			sealed := b.Seal(plaintext, where)
			if len(sealed) != len(plaintext)+seal.Overhead || !bytes.Equal(plaintext, before) {
				t.Errorf("%s, %s: %d bytes sealed are %d", name, context, len(plaintext), len(sealed))
			}

			if len(plaintext) > 1 && bytes.Contains(sealed, plaintext[:8]) {
				t.Errorf("%s, %s: the plaintext is in the sealed text", name, context)
			}

			got, err := b.Open(sealed, where)
			if err != nil || !bytes.Equal(got, plaintext) {
				t.Errorf("%s, %s: opened to %d bytes, error %v", name, context, len(got), err)
			}
		}
	}
}

func TestSealingTwiceGivesDifferentTexts(t *testing.T) {
	b := newSealer(t, newKey)
	seen := map[string]bool{}

	for range 1000 {
		sealed := b.Seal(secret, row)

		nonce := string(sealed[5:29])
		if seen[nonce] {
			t.Fatal("a nonce was used twice")
		}

		seen[nonce] = true

		if bytes.Equal(sealed[29:], b.Seal(secret, row)[29:]) {
			t.Fatal("equal plaintexts have equal ciphertexts")
		}
	}
}

func damaged(t *testing.T, what string, got []byte, err error) {
	t.Helper()

	if !errors.Is(err, fault.Unavailable) || fault.Code(err) != "sealed_data_damaged" || got != nil {
		t.Errorf(
			"%s: opened to %q, error %v; want fault.Unavailable with sealed_data_damaged",
			what, got, err,
		)

		return
	}

	if strings.Contains(err.Error(), "whsec") {
		t.Errorf("%s: the error shows the plaintext: %v", what, err)
	}
}

func TestEveryAlteredBitIsNoticed(t *testing.T) {
	b := newSealer(t, newKey)

	sealed := b.Seal(secret, row)
	for i := range sealed {
		for bit := range 8 {
			altered := bytes.Clone(sealed)
			altered[i] ^= 1 << bit

			got, err := b.Open(altered, row)
			if i >= 1 && i < 5 { // the key id
				if !errors.Is(err, fault.Unavailable) || fault.Code(err) != "secret_key_unknown" ||
					got != nil {
					t.Errorf("byte %d, bit %d: opened to %q, error %v", i, bit, got, err)
				}

				continue
			}

			damaged(t, fmt.Sprintf("byte %d, bit %d", i, bit), got, err)

			if i == 0 && !strings.Contains(err.Error(), fmt.Sprintf("version is %d", altered[0])) {
				t.Errorf("another version: the error does not name it: %v", err)
			}
		}
	}

	for size := range len(sealed) {
		got, err := b.Open(sealed[:size], row)
		damaged(t, fmt.Sprintf("cut to %d bytes", size), got, err)
	}

	got, err := b.Open(append(bytes.Clone(sealed), 0), row)
	damaged(t, "a byte more", got, err)
}

// The key id is authenticated as well: relabelled for another configured key, a text does not open.
func TestRelabelledForAnotherKey(t *testing.T) {
	b := newSealer(t, newKey, oldKey)
	sealed := b.Seal(secret, row)
	copy(sealed[1:5], newSealer(t, oldKey).Seal(nil, nil)[1:5])
	got, err := b.Open(sealed, row)
	damaged(t, "relabelled", got, err)
}

func TestAnotherRowDoesNotOpen(t *testing.T) {
	b := newSealer(t, newKey)

	sealed := b.Seal(secret, row)
	for name, context := range map[string][]byte{
		"none":        nil,
		"another row": []byte("webhook_endpoints/0123456789abcdef01234568/secret"),
		"shorter":     row[1:],
		"longer":      append(bytes.Clone(row), 0),
	} {
		got, err := b.Open(sealed, context)
		damaged(t, name, got, err)
	}
	// A context cannot pass for a part of the header.
	got, err := b.Open(b.Seal(secret, sealed[:5]), nil)
	damaged(t, "header as context", got, err)
}

func TestRotation(t *testing.T) {
	before, after, without := newSealer(t, oldKey), newSealer(t, newKey, oldKey), newSealer(t, newKey)

	old := before.Seal(secret, row)
	if got, err := after.Open(old, row); err != nil || !bytes.Equal(got, secret) {
		t.Fatalf("after rotation the old text opens to %q, error %v", got, err)
	}

	if got, err := without.Open(after.Seal(secret, row), row); err != nil || !bytes.Equal(got, secret) {
		t.Fatalf("the first key does not seal: opened to %q, error %v", got, err)
	}

	got, err := without.Open(old, row)
	if !errors.Is(err, fault.Unavailable) || fault.Code(err) != "secret_key_unknown" || got != nil {
		t.Fatalf("without the old key: opened to %q, error %v", got, err)
	}

	if id := hex.EncodeToString(
		old[1:5],
	); !strings.Contains(err.Error(), id) ||
		!strings.Contains(err.Error(), "add that key") {
		t.Fatalf("the error does not say what to do about key %s: %v", id, err)
	}
}

func TestKeysThatCannotBeUsed(t *testing.T) {
	for name, keys := range map[string][][]byte{
		"none":           nil,
		"nil":            {nil},
		"31 bytes":       {newKey[1:]},
		"33 bytes":       {append(bytes.Clone(newKey), 1)},
		"zeros":          {make([]byte, seal.KeySize)},
		"second invalid": {newKey, oldKey[:16]},
	} {
		b, err := seal.New(keys...)
		if !errors.Is(err, fault.Invalid) || fault.Code(err) != "secret_key_invalid" || b != nil {
			t.Errorf("%s: error %v, want fault.Invalid with secret_key_invalid", name, err)
		}
	}
}

func TestKeysAreCopied(t *testing.T) {
	raw := bytes.Clone(newKey)
	b := newSealer(t, raw)
	sealed := b.Seal(secret, row)

	clear(raw)

	if got, err := newSealer(t, newKey).Open(sealed, row); err != nil || !bytes.Equal(got, secret) {
		t.Fatalf("error %v", err)
	}

	if _, err := b.Open(b.Seal(secret, row), row); err != nil {
		t.Fatalf("wiping the caller's key broke the sealer: %v", err)
	}
}

// A text sealed by the first release has to open in every later one.
func TestStoredTextsKeepOpening(t *testing.T) {
	sealed, err := hex.DecodeString(stored)
	if err != nil {
		t.Fatal(err)
	}

	if got, err := newSealer(t, newKey).Open(sealed, row); err != nil || !bytes.Equal(got, secret) {
		t.Fatalf("opened to %q, error %v", got, err)
	}
}

func TestSealerNeverShowsAKey(t *testing.T) {
	b := newSealer(t, newKey, oldKey)

	type service struct {
		Sealer *seal.Sealer
		hidden *seal.Sealer
		copied seal.Sealer
	}

	var out bytes.Buffer

	for _, v := range []any{b, *b, service{b, b, *b}, &service{b, b, *b}, []seal.Sealer{*b}} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&out, verb+"\n", v)
		}

		slog.New(slog.NewTextHandler(&out, nil)).Info("started", "sealer", v)
		slog.New(slog.NewJSONHandler(&out, nil)).Info("started", "sealer", v)

		if err := json.NewEncoder(&out).Encode(v); err != nil {
			t.Fatal(err)
		}
	}

	if !strings.Contains(out.String(), "seal.Sealer[") {
		t.Fatalf("the sealer does not name itself:\n%s", out.String())
	}

	for _, derived := range append(seal.Derived(newKey, oldKey), newKey, oldKey) {
		for _, form := range []string{
			hex.EncodeToString(derived[:8]),
			strings.ToUpper(hex.EncodeToString(derived[:8])),
			string(derived[:8]),
			strings.Trim(fmt.Sprint(string(derived[:8])), "[]"),
			strings.TrimSuffix(strings.TrimPrefix(fmt.Sprintf("%#v", derived[:8]), "[]byte{"), "}"),
			// The cipher holds its key as eight little-endian words.
			fmt.Sprint(uint32(derived[0]) | uint32(derived[1])<<8 | uint32(derived[2])<<16 | uint32(derived[3])<<24),
		} {
			if strings.Contains(out.String(), form) {
				t.Errorf("a key is shown as %q", form)
			}
		}
	}
}

func TestConcurrentUse(t *testing.T) {
	b := newSealer(t, newKey, oldKey)

	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				if got, err := b.Open(b.Seal(secret, row), row); err != nil || !bytes.Equal(got, secret) {
					t.Errorf("opened to %q, error %v", got, err)
				}
			}
		})
	}

	wg.Wait()
}

func FuzzOpen(f *testing.F) {
	b := newSealer(f, newKey, oldKey)
	f.Add(b.Seal(secret, row), row)
	f.Add(newSealer(f, oldKey).Seal(nil, nil), []byte(nil))
	f.Add([]byte{}, []byte{})
	f.Add(bytes.Repeat([]byte{1}, seal.Overhead), row)
	f.Fuzz(func(t *testing.T, sealed, context []byte) {
		got, err := b.Open(sealed, context)
		if err == nil {
			if len(got)+seal.Overhead != len(sealed) {
				t.Fatalf("%x opened to %d bytes", sealed, len(got))
			}

			return
		}

		if code := fault.Code(
			err,
		); got != nil || !errors.Is(err, fault.Unavailable) ||
			code != "sealed_data_damaged" && code != "secret_key_unknown" {
			t.Fatalf("%x: opened to %x, error %v", sealed, got, err)
		}
	})
}

func FuzzSealOpen(f *testing.F) {
	b := newSealer(f, newKey)
	f.Add(secret, row)
	f.Add([]byte{}, []byte{})
	f.Fuzz(func(t *testing.T, plaintext, context []byte) {
		got, err := b.Open(b.Seal(plaintext, context), context)
		if err != nil || !bytes.Equal(got, plaintext) {
			t.Fatalf("%x in %x opened to %x, error %v", plaintext, context, got, err)
		}
	})
}

func BenchmarkSeal(b *testing.B) {
	sealer, answer := newSealer(b, newKey), bytes.Repeat([]byte("x"), 1024)
	b.SetBytes(int64(len(answer)))
	b.ReportAllocs()

	for b.Loop() {
		sealer.Seal(answer, row)
	}
}

func BenchmarkOpen(b *testing.B) {
	sealer := newSealer(b, newKey)
	sealed := sealer.Seal(bytes.Repeat([]byte("x"), 1024), row)

	b.SetBytes(1024)
	b.ReportAllocs()

	for b.Loop() {
		if _, err := sealer.Open(sealed, row); err != nil {
			b.Fatal(err)
		}
	}
}

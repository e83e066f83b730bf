package account_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"math/big"
	"regexp"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/fault"
)

const zeros = "acme_live_sk_0000000000000000000000000000000000000000000"

func TestGenerateKeyWritesTheEntropyItRead(t *testing.T) {
	one := append(make([]byte, 31), 61)
	for _, c := range []struct {
		livemode, publishable bool
		entropy               []byte
		want                  string
	}{
		{true, false, make([]byte, 32), zeros},
		{false, false, one, "acme_test_sk_000000000000000000000000000000000000000000Z"},
		// 256 = 4·62 + 8
		{true, true, append(make([]byte, 30), 1, 0), "acme_live_pk_0000000000000000000000000000000000000000048"},
		{false, true, bytes.Repeat([]byte{0xff}, 32), "acme_test_pk_" + largest()},
	} {
		secret, hash, err := account.GenerateKey(
			"acme", c.livemode, c.publishable, bytes.NewReader(c.entropy),
		)
		if err != nil || secret != c.want {
			t.Errorf("%x gives %q, error %v, want %q", c.entropy, secret, err, c.want)
		}

		if hash != sha256.Sum256([]byte(c.want)) {
			t.Errorf("%q has hash %x", secret, hash)
		}
	}
}

// largest is 2^256−1 in base 62 by long division.
func largest() string {
	n := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 256), big.NewInt(1))

	var digits []byte

	for n.Sign() > 0 {
		digit := new(big.Int)
		n.DivMod(n, big.NewInt(62), digit)
		digits = append(
			[]byte{"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"[digit.Int64()]},
			digits...)
	}

	return string(digits)
}

func TestGenerateKeyHasItsShapeAndParses(t *testing.T) {
	shape := regexp.MustCompile(`^a1_(live|test)_(sk|pk)_[0-9a-zA-Z]{43}$`)
	seen := map[string]bool{}

	for i := range 400 {
		want := account.Parsed{Livemode: i%2 == 0, Publishable: i%4 < 2}

		secret, hash, err := account.GenerateKey("a1", want.Livemode, want.Publishable, nil)
		if err != nil || !shape.MatchString(secret) || seen[secret] {
			t.Fatalf(
				"key %d of its shape: %v, seen before: %v, error %v",
				i, shape.MatchString(secret), seen[secret], err,
			)
		}

		seen[secret] = true
		if got, err := account.ParseKey(
			secret,
		); err != nil || got != want ||
			account.HashKey(secret) != hash {
			t.Fatalf("key %d parses as %+v, error %v, want %+v", i, got, err, want)
		}
	}
}

func TestGenerateKeyRefusals(t *testing.T) {
	for _, prefix := range []string{
		"",
		"Acme",
		"ac_me",
		"ac-me",
		"acmé",
		" acme",
		"acme ",
		strings.Repeat("a", account.MaxPrefix+1),
		strings.Repeat("a", 1<<20),
	} {
		secret, hash, err := account.GenerateKey(prefix, true, false, nil)
		if !errors.Is(err, fault.Invalid) || fault.Code(err) != "key_prefix_invalid" || secret != "" ||
			hash != [32]byte{} {
			t.Errorf("prefix %.20q: error %v, want fault.Invalid with key_prefix_invalid", prefix, err)
		}
	}

	if _, _, err := account.GenerateKey(
		strings.Repeat("a", account.MaxPrefix), true, false, nil,
	); err != nil {
		t.Errorf("the longest prefix: %v", err)
	}

	secret, hash, err := account.GenerateKey("acme", true, false, bytes.NewReader(make([]byte, 31)))
	if !errors.Is(err, fault.Unavailable) || !errors.Is(err, io.ErrUnexpectedEOF) || secret != "" ||
		hash != [32]byte{} {
		t.Errorf("31 bytes of entropy: %q, error %v", secret, err)
	}
}

func TestParseKeyRefusals(t *testing.T) {
	if got, err := account.ParseKey(zeros); err != nil || got != (account.Parsed{Livemode: true}) {
		t.Fatalf("%q parses as %+v, error %v", zeros, got, err)
	}

	for name, s := range map[string]string{
		"empty":           "",
		"no parts":        "acme",
		"no prefix":       zeros[4:],
		"empty mode":      strings.Replace(zeros, "live", "", 1),
		"other mode":      strings.Replace(zeros, "live", "prod", 1),
		"upper-case mode": strings.Replace(zeros, "live", "LIVE", 1),
		"other kind":      strings.Replace(zeros, "sk", "rk", 1),
		"bad prefix":      "A" + zeros,
		"long prefix":     strings.Repeat("a", 13) + zeros,
		"no digits":       "acme_live_sk_",
		"a digit short":   zeros[:len(zeros)-1],
		"a digit more":    zeros + "0",
		"bad digit":       zeros[:len(zeros)-1] + "-",
		"underscore":      zeros[:len(zeros)-1] + "_",
		"space before":    " " + zeros,
		"newline after":   zeros + "\n",
		"two keys":        zeros + zeros,
		"not ASCII":       zeros[:len(zeros)-2] + "é",
		"bearer":          "Bearer " + zeros,
		"huge":            strings.Repeat("_", 1<<20),
	} {
		got, err := account.ParseKey(s)
		if !errors.Is(err, fault.Unauthenticated) || fault.Code(err) != "api_key_invalid" ||
			got != (account.Parsed{}) {
			t.Errorf("%s: %+v, error %v, want fault.Unauthenticated with api_key_invalid", name, got, err)
			continue
		}

		if strings.Contains(err.Error(), "0000") {
			t.Errorf("%s: the error shows the key: %v", name, err)
		}
	}
}

func TestHashKey(t *testing.T) {
	got := account.HashKey("abc") // FIPS 180-2, appendix B.1
	if want := "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"; hex.EncodeToString(
		got[:],
	) != want {
		t.Fatalf("got %x, want %s", got, want)
	}
}

func FuzzParseKey(f *testing.F) {
	shape := regexp.MustCompile(`^[a-z0-9]{1,16}_(live|test)_(sk|pk)_[0-9a-zA-Z]{43}$`)

	for _, s := range []string{
		"",
		zeros,
		zeros + "0",
		strings.ToUpper(zeros),
		"acme_test_pk_" + largest(),
		"___",
		"a_live_sk_" + strings.Repeat("_", 43),
	} {
		f.Add(s)
	}

	f.Fuzz(func(t *testing.T, s string) {
		got, err := account.ParseKey(s)
		// The expression's $ stands before the end of the text only, for it is not multi-line.
		if want := shape.MatchString(s); (err == nil) != want {
			t.Fatalf("%q: error %v, want valid %v", s, err, want)
		}

		if err != nil {
			if !errors.Is(err, fault.Unauthenticated) || got != (account.Parsed{}) {
				t.Fatalf("%q: %+v, error %v", s, got, err)
			}

			return
		}

		if got.Livemode != strings.Contains(s, "_live_") || got.Publishable != strings.Contains(s, "_pk_") {
			t.Fatalf("%q parses as %+v", s, got)
		}
	})
}

func FuzzGenerateKey(f *testing.F) {
	f.Add("acme", true, false, make([]byte, 32))
	f.Add("", false, true, []byte{1})
	f.Fuzz(func(t *testing.T, prefix string, livemode, publishable bool, entropy []byte) {
		secret, hash, err := account.GenerateKey(prefix, livemode, publishable, bytes.NewReader(entropy))
		if err != nil {
			if secret != "" || hash != [32]byte{} {
				t.Fatalf("%q beside error %v", secret, err)
			}

			return
		}

		got, err := account.ParseKey(secret)
		if err != nil || got != (account.Parsed{Livemode: livemode, Publishable: publishable}) {
			t.Fatalf("%q parses as %+v, error %v", secret, got, err)
		}

		n, ok := new(big.Int).SetString(secret[len(secret)-43:], 62)
		if !ok || n.Cmp(new(big.Int).SetBytes(entropy[:32])) != 0 {
			t.Fatalf("%q does not hold the entropy %x", secret, entropy[:32])
		}
	})
}

func BenchmarkParseAndHashKey(b *testing.B) {
	b.ReportAllocs()

	for b.Loop() {
		if _, err := account.ParseKey(zeros); err != nil {
			b.Fatal(err)
		}

		_ = account.HashKey(zeros)
	}
}

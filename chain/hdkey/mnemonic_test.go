package hdkey

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/fault"
)

const (
	aboutMnemonic = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"
	junkMnemonic  = "test test test test test test test test test test test junk"
)

func TestNewMnemonicHasTheSizeAskedFor(t *testing.T) {
	for bits, words := range map[int]int{128: 12, 160: 15, 192: 18, 224: 21, 256: 24} {
		first, err := NewMnemonic(nil, bits)
		if err != nil {
			t.Fatal(err)
		}

		second, _ := NewMnemonic(nil, bits)
		if first == second {
			t.Errorf("%d bits: the same mnemonic twice", bits)
		}

		entropy, normal, err := decodeMnemonic(first)
		if err != nil || len(entropy)*8 != bits || len(strings.Fields(first)) != words || normal != first {
			t.Errorf(
				"%d bits: %d words, %d bytes of entropy, error %v",
				bits, len(strings.Fields(first)), len(entropy), err,
			)
		}
	}

	for _, bits := range []int{-128, 0, 96, 127, 129, 136, 288, 512} {
		if _, err := NewMnemonic(nil, bits); !errors.Is(err, fault.Invalid) {
			t.Errorf("%d bits: error %v, want fault.Invalid", bits, err)
		}
	}
}

func TestNewMnemonicReadsTheEntropyGiven(t *testing.T) {
	got, err := NewMnemonic(bytes.NewReader(make([]byte, 16)), 128)
	if err != nil || got != aboutMnemonic {
		t.Fatalf("got %q and error %v", got, err)
	}

	_, err = NewMnemonic(bytes.NewReader(make([]byte, 15)), 128)
	if !errors.Is(err, fault.Unavailable) || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("short entropy: error %v", err)
	}
}

func TestMnemonicRefusals(t *testing.T) {
	for name, mnemonic := range map[string]string{
		"empty":          "",
		"one word":       "abandon",
		"eleven words":   strings.TrimSuffix(aboutMnemonic, " about"),
		"thirteen words": aboutMnemonic + " about",
		"27 words":       strings.Repeat("abandon ", 26) + "about",
		"wrong checksum": strings.Repeat("abandon ", 12),
		"swapped words": "about abandon abandon abandon abandon abandon abandon abandon abandon abandon " +
			"abandon abandon",
		"unknown word":   strings.Replace(aboutMnemonic, "about", "satoshis", 1),
		"prefix of word": strings.Replace(aboutMnemonic, "about", "abou", 1),
		"upper case":     strings.ToUpper(aboutMnemonic),
		"not UTF-8":      aboutMnemonic + "\xff",
		"a whole file":   strings.Repeat(aboutMnemonic+"\n", 100),
		"another list": "abaisser abaisser abaisser abaisser abaisser abaisser abaisser abaisser " +
			"abaisser abaisser abaisser abeille",
		"separator comma": strings.ReplaceAll(aboutMnemonic, " ", ","),
	} {
		_, err := New(mnemonic, "")
		if !errors.Is(err, fault.Invalid) || fault.Code(err) != "mnemonic_invalid" {
			t.Errorf("%s: error %v, want fault.Invalid with mnemonic_invalid", name, err)
			continue
		}

		for _, word := range strings.Fields(mnemonic) {
			if strings.Contains(err.Error(), word) {
				t.Errorf("%s: the error shows the word %q: %v", name, word, err)
			}
		}
	}
}

func TestMnemonicIgnoresWhiteSpaceAndWidth(t *testing.T) {
	want, err := New(aboutMnemonic, "")
	if err != nil {
		t.Fatal(err)
	}

	for _, mnemonic := range []string{
		" " + aboutMnemonic + "\r\n",
		strings.ReplaceAll(aboutMnemonic, " ", "\n"),
		strings.ReplaceAll(aboutMnemonic, " ", "\u3000"), // ideographic space
		strings.ReplaceAll(aboutMnemonic, "a", "\uff41"), // full-width a, an a in NFKD
	} {
		got, err := New(mnemonic, "")
		if err != nil || got.Fingerprint() != want.Fingerprint() {
			t.Errorf("%q: signer %v, error %v, want %v", mnemonic, got, err, want)
		}
	}
}

func TestPassphraseIsNormalised(t *testing.T) {
	composed, err := seedOf(aboutMnemonic, "caf\u00e9 \ufb01") // é and the ligature fi
	if err != nil {
		t.Fatal(err)
	}

	decomposed, err := seedOf(aboutMnemonic, "cafe\u0301 fi")
	if err != nil || !bytes.Equal(composed, decomposed) {
		t.Fatalf("two ways to write one passphrase give different seeds (error %v)", err)
	}

	other, err := seedOf(aboutMnemonic, "cafe fi")
	if err != nil || bytes.Equal(composed, other) {
		t.Fatalf("two passphrases give the same seed (error %v)", err)
	}

	_, err = seedOf(aboutMnemonic, "caf\xe9")
	if !errors.Is(err, fault.Invalid) || fault.Code(err) != "passphrase_invalid" {
		t.Fatalf("passphrase in Latin-1: error %v", err)
	}
}

func FuzzDecodeMnemonic(f *testing.F) {
	for _, seed := range []string{
		"",
		aboutMnemonic,
		junkMnemonic,
		strings.ToUpper(junkMnemonic),
		"zoo zoo zoo",
		"\u3000\xff",
		strings.Repeat("zoo ", 23) + "vote",
	} {
		f.Add(seed)
	}

	f.Fuzz(func(t *testing.T, mnemonic string) {
		entropy, normal, err := decodeMnemonic(mnemonic)
		if err != nil {
			if !errors.Is(err, fault.Invalid) || entropy != nil || normal != "" {
				t.Fatalf("refused with %v, but returned %x %q", err, entropy, normal)
			}

			return
		}

		if encodeMnemonic(entropy) != normal {
			t.Fatalf("%q decodes to %x, which encodes to another mnemonic", normal, entropy)
		}

		decoded, _, err := decodeMnemonic(normal)
		if err != nil || !bytes.Equal(decoded, entropy) {
			t.Fatalf("the normal form %q decodes to %x, error %v", normal, decoded, err)
		}
	})
}

func FuzzMnemonicRoundTrip(f *testing.F) {
	f.Add(make([]byte, 32), uint8(4))
	f.Add([]byte("sixteen bytes...and a little more"), uint8(0))
	f.Fuzz(func(t *testing.T, raw []byte, size uint8) {
		bits := 128 + 32*int(size%5)

		mnemonic, err := NewMnemonic(bytes.NewReader(raw), bits)
		if len(raw)*8 < bits {
			if !errors.Is(err, fault.Unavailable) {
				t.Fatalf("%d bytes for %d bits: error %v", len(raw), bits, err)
			}

			return
		}

		entropy, _, decodeErr := decodeMnemonic(mnemonic)
		if err != nil || decodeErr != nil || !bytes.Equal(entropy, raw[:bits/8]) {
			t.Fatalf(
				"%x became %q and then %x (errors %v, %v)",
				raw[:bits/8], mnemonic, entropy, err, decodeErr,
			)
		}
	})
}

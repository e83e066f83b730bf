package hdkey

// The published vectors of the standards. testdata/bip39_english.json is the English list of
// https://github.com/trezor/python-mnemonic (passphrase "TREZOR"), bip32.json are test vectors 1 to 4 of
// BIP-32, slip10_ed25519.json those of SLIP-10 for Ed25519.

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/btcsuite/btcd/btcutil/v2/hdkeychain"
	"github.com/btcsuite/btcd/chaincfg/v2"
)

// loadVectors returns the vectors of a JSON file, at least as many as given.
func loadVectors[T any](t *testing.T, file string, atLeast int) []T {
	t.Helper()

	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}

	var vectors []T
	if err := json.Unmarshal(raw, &vectors); err != nil {
		t.Fatal(err)
	}

	if len(vectors) < atLeast {
		t.Fatalf("%s holds %d vectors, want at least %d", file, len(vectors), atLeast)
	}

	return vectors
}

func decodeHex(t testing.TB, s string) []byte {
	t.Helper()

	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}

	return b
}

func parsePath(t *testing.T, s string) path {
	t.Helper()

	var p path

	for _, e := range strings.Split(s, "/")[1:] {
		n, err := strconv.ParseUint(strings.TrimSuffix(e, "'"), 10, 31)
		if err != nil {
			t.Fatal(err)
		}

		if strings.HasSuffix(e, "'") {
			n += hardened
		}

		p = append(p, uint32(n))
	}

	if p.String() != s {
		t.Fatalf("path %s is written %s", s, p)
	}

	return p
}

func TestEnglishListIsThatOfBIP39(t *testing.T) {
	const want = "2f5eed53a4727b4bf8880d8f3f199efc90e58503646d9ff8eff3a2ed3b24dbda"

	sum := sha256.Sum256([]byte(englishText))
	if got := hex.EncodeToString(sum[:]); got != want {
		t.Fatalf("SHA-256 of the word list is %s, want %s", got, want)
	}

	if words := english(); len(words) != 1<<wordBits || !slices.IsSorted(words) {
		t.Fatalf("the list has %d words; it must have 2,048, sorted", len(words))
	}
}

func TestBIP39Vectors(t *testing.T) {
	type vector struct{ Entropy, Mnemonic, Seed, XPrv string }

	for _, v := range loadVectors[vector](t, "testdata/bip39_english.json", 24) {
		if got := encodeMnemonic(decodeHex(t, v.Entropy)); got != v.Mnemonic {
			t.Errorf("entropy %s gives %q, want %q", v.Entropy, got, v.Mnemonic)
		}

		entropy, _, err := decodeMnemonic(v.Mnemonic)
		if err != nil || hex.EncodeToString(entropy) != v.Entropy {
			t.Errorf("%q gives entropy %x and error %v, want %s", v.Mnemonic, entropy, err, v.Entropy)
		}

		seed, err := seedOf(v.Mnemonic, "TREZOR")
		if err != nil || hex.EncodeToString(seed) != v.Seed {
			t.Errorf("%q gives seed %x and error %v, want %s", v.Mnemonic, seed, err, v.Seed)
		}

		root, err := hdkeychain.NewMaster(seed, &chaincfg.MainNetParams)
		if err != nil || root.String() != v.XPrv {
			t.Errorf("%q gives root %v and error %v, want %s", v.Mnemonic, root, err, v.XPrv)
		}
	}
}

func TestBIP32Vectors(t *testing.T) {
	for _, vector := range loadVectors[struct {
		Vector                 int
		Seed, Path, XPrv, XPub string
	}](t, "testdata/bip32.json", 17) {
		root, err := hdkeychain.NewMaster(decodeHex(t, vector.Seed), &chaincfg.MainNetParams)
		if err != nil {
			t.Fatal(err)
		}

		key, err := derive(root, parsePath(t, vector.Path))
		if err != nil {
			t.Fatal(err)
		}

		public, err := key.Neuter()
		if err != nil {
			t.Fatal(err)
		}

		if key.String() != vector.XPrv || public.String() != vector.XPub {
			t.Errorf(
				"vector %d, %s: got %s and %s, want %s and %s",
				vector.Vector, vector.Path, key, public, vector.XPrv, vector.XPub,
			)
		}
	}
}

func TestSLIP10Vectors(t *testing.T) {
	for _, vector := range loadVectors[struct {
		Vector                             int
		Seed, Path, Chain, Private, Public string
	}](t, "testdata/slip10_ed25519.json", 12) {
		node := newEd25519Master(decodeHex(t, vector.Seed)).derive(parsePath(t, vector.Path))

		public := node.private().Public().(ed25519.PublicKey)
		if hex.EncodeToString(node.key[:]) != vector.Private ||
			hex.EncodeToString(node.chain[:]) != vector.Chain ||
			hex.EncodeToString(public) != vector.Public {
			t.Errorf(
				"vector %d, %s: got key %x, chain code %x, public key %x",
				vector.Vector, vector.Path, node.key, node.chain, public,
			)
		}
	}
}

package account

// API keys as text: how they are made, recognised and hashed. The permissions of a key, and its end, are in
// the stored record.

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"io"
	"math/big"
	"strings"

	"github.com/seed-8ee7f392/payments/fault"
)

const (
	// maxPrefix is the longest prefix of API keys, in characters.
	maxPrefix = 16

	keyBytes  = 32 // of entropy
	keyDigits = 43 // 62^43 is the first power of 62 above 2^256
)

// parsed holds the claims in the text of a key. They are unverified until the hash is found in the store.
type parsed struct {
	// Livemode is true for "live" keys, false for "test" keys.
	Livemode bool
	// Publishable is true for "pk" keys, which read reference data only, false for "sk" keys.
	Publishable bool
}

// GenerateKey returns a new API key and its hash: <prefix>_<live|test>_<sk|pk>_ and 32 random bytes
// as 43 base62 digits (0-9, a-z, A-Z; a big-endian number, padded with zeros on the left). The
// secret is shown to its owner once; only the hash is stored. A nil entropy is crypto/rand.
//
// Errors:
//   - fault.Invalid, code key_prefix_invalid: the prefix is not 1 to 16 of a-z and 0-9
//   - fault.Unavailable: entropy failed
func GenerateKey(
	prefix string,
	livemode, publishable bool,
	entropy io.Reader,
) (secret string, hash [32]byte, err error) { // spec D9.9
	if !validPrefix(prefix) {
		return "", hash, fault.New(
			fault.Invalid, "key_prefix_invalid",
			"API keys cannot have a prefix like this one of %d bytes: write 1 to %d of a-z and 0-9",
			len(prefix), maxPrefix,
		)
	}

	if entropy == nil {
		entropy = rand.Reader
	}

	var raw [keyBytes]byte
	if _, err := io.ReadFull(entropy, raw[:]); err != nil {
		return "", hash, fault.Wrap(
			err, fault.Unavailable, "entropy_unavailable",
			"no API key was made, for want of %d bytes of entropy",
			keyBytes,
		)
	}

	mode, kind := "test", "sk"
	if livemode {
		mode = "live"
	}

	if publishable {
		kind = "pk"
	}

	secret = fmt.Sprintf("%s_%s_%s_%s", prefix, mode, kind, encodeBase62(raw))

	return secret, HashKey(secret), nil
}

// parseKey parses mode and kind from the text of a key of any prefix. The error never shows the text.
//
// Errors: fault.Unauthenticated, code api_key_invalid, for text of another form.
func parseKey(s string) (parsed, error) { // spec 5.2
	prefix, rest, ok := strings.Cut(s, "_")
	mode, rest, ok2 := strings.Cut(rest, "_")

	kind, digits, ok3 := strings.Cut(rest, "_")
	if !ok || !ok2 || !ok3 || !validPrefix(prefix) || (mode != "live" && mode != "test") ||
		(kind != "sk" && kind != "pk") ||
		!validDigits(digits) {
		return parsed{}, fault.New(
			fault.Unauthenticated, "api_key_invalid",
			"this is not an API key: check that it was copied whole",
		)
	}

	return parsed{Livemode: mode == "live", Publishable: kind == "pk"}, nil
}

// HashKey returns SHA-256 of a key's text, which is stored in its place. The key has 256 random
// bits, so it needs neither a slow hash nor a salt. Compare hashes in constant time
// (crypto/subtle), or look them up by equality.
func HashKey(s string) [32]byte { return sha256.Sum256([]byte(s)) }

func validPrefix(prefix string) bool {
	return len(prefix) >= 1 && len(prefix) <= maxPrefix &&
		strings.Trim(prefix, "abcdefghijklmnopqrstuvwxyz0123456789") == ""
}

func validDigits(digits string) bool {
	if len(digits) != keyDigits {
		return false
	}

	for i := range len(digits) {
		if c := digits[i]; (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}

	return true
}

// encodeBase62 writes a big-endian number as keyDigits digits.
func encodeBase62(raw [keyBytes]byte) string {
	digits := new(big.Int).SetBytes(raw[:]).Text(62)
	return strings.Repeat("0", keyDigits-len(digits)) + digits
}

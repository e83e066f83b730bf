// Package seal encrypts the few secrets that have to be stored: webhook signing secrets and stored answers. A
// row that leaks reveals nothing, and a row that is swapped with another or altered does not open.
//
// The cipher is XChaCha20-Poly1305 (draft-irtf-cfrg-xchacha-03, golang.org/x/crypto/chacha20poly1305). Its
// nonces of 192 bits are random: after n seals with one key the chance that any two share a nonce is below
// n²/2^193. For 2^64 seals it is below 2^-65, so a key has no practical limit of uses.
//
// The layout of Seal's result is
//
//	version  1 byte, 1
//	key id   4 bytes, the first of SHA-256("payments/seal key id v1" + NUL + key)
//	nonce    24 bytes, random
//	sealed   the ciphertext, as long as the plaintext, and a tag of 16 bytes
//
// and the additional data are version, key id and the caller's context. The cipher's key is HKDF-SHA256 of
// the configured one, so that the configured key may serve other purposes too.
package seal

import (
	"bytes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"

	"golang.org/x/crypto/chacha20poly1305"

	"github.com/seed-8ee7f392/payments/fault"
)

const (
	// KeySize is the size of a key in bytes.
	KeySize = 32
	// Overhead is the length of a sealed text minus that of its plaintext, in bytes.
	Overhead = headerSize + chacha20poly1305.NonceSizeX + chacha20poly1305.Overhead

	version    = 1
	keyIDSize  = 4
	headerSize = 1 + keyIDSize
)

// Sealer seals and opens. It is safe for concurrent use and never shows a key when printed.
type Sealer struct {
	// ring is a pointer, and so is each cipher in it, because fmt calls no method on an unexported field. For
	// a wrong verb (%s on a struct that holds a Sealer) it follows one pointer, but not two.
	ring *ring
}

type ring struct {
	keys    []key
	entropy io.Reader
}

type key struct {
	id   [keyIDSize]byte
	aead cipher.AEAD
	// macKey is a pointer for the same reason as ring.
	macKey *[]byte
}

// New returns a Sealer that seals with the first key and opens with any of them. To rotate, put the new key
// first, and keep the old ones while anything sealed with them is stored. Without a key, with a key that does
// not have 32 bytes, or with one of zeros, it is fault.Invalid with code secret_key_invalid. New keeps no
// reference to the given keys; the caller may wipe them.
func New(keys ...[]byte) (*Sealer, error) {
	if len(keys) == 0 {
		return nil, badKey("there is none: set one of %d random bytes", KeySize)
	}

	r := &ring{keys: make([]key, 0, len(keys)), entropy: rand.Reader}
	for i, raw := range keys {
		if len(raw) != KeySize {
			return nil, badKey("key %d has %d bytes: it must have %d, made at random", i+1, len(raw), KeySize)
		}

		if bytes.Equal(raw, make([]byte, KeySize)) {
			return nil, badKey("key %d is all zeros: make %d random bytes", i+1, KeySize)
		}

		derived, err := hkdf.Key(
			sha256.New, raw, nil, "payments/seal v1 xchacha20poly1305",
			chacha20poly1305.KeySize,
		)
		if err != nil {
			return nil, fault.Wrap(
				err, fault.Unsupported, "secret_key_unsupported",
				"this build of Go cannot derive the sealing key",
			)
		}

		aead, err := chacha20poly1305.NewX(derived)
		clear(derived)

		if err != nil {
			return nil, fault.Wrap(
				err, fault.Unsupported, "secret_key_unsupported",
				"this build of Go has no XChaCha20-Poly1305",
			)
		}

		macKey, err := deriveMACKey(raw)
		if err != nil {
			return nil, fault.Wrap(
				err, fault.Unsupported, "secret_key_unsupported",
				"this build of Go cannot derive the authentication key",
			)
		}

		r.keys = append(r.keys, key{keyID(raw), aead, &macKey})
	}

	return &Sealer{r}, nil
}

func badKey(format string, args ...any) error {
	return fault.New(
		fault.Invalid, "secret_key_invalid", "the secret key for stored secrets cannot be used: %s",
		fmt.Sprintf(format, args...),
	)
}

func keyID(raw []byte) [keyIDSize]byte {
	h := sha256.New()
	h.Write([]byte("payments/seal key id v1\x00"))
	h.Write(raw)

	return [keyIDSize]byte(h.Sum(nil)[:keyIDSize])
}

// UseEntropy replaces the source of nonces, which is crypto/rand. It is called before the first Seal. A nonce
// that repeats breaks the encryption, so only tests use another source.
func (b *Sealer) UseEntropy(source io.Reader) { b.ring.entropy = source }

// Seal encrypts plaintext with the first key. context states where the result will be stored (table, row and
// column, such as "webhook_endpoints/<id>/secret"). It is not part of the result, and Open must be given the
// same, so that a sealed text opens nowhere else. Equal plaintexts give different results.
func (b *Sealer) Seal(plaintext, context []byte) []byte { // spec D9.6
	k := b.ring.keys[0]
	out := make([]byte, headerSize+chacha20poly1305.NonceSizeX, Overhead+len(plaintext))
	out[0] = version
	copy(out[1:], k.id[:])

	nonce := out[headerSize:]
	if _, err := io.ReadFull(b.ring.entropy, nonce); err != nil { // crypto/rand never fails
		panic("seal: cannot read entropy: " + err.Error())
	}

	return k.aead.Seal(out, nonce, plaintext, authenticated(out[:headerSize], context))
}

// Open decrypts the result of Seal for the same context.
//
// Both errors are fault.Unavailable, because the fault lies with the stored or configured data and never with
// the request. It is secret_key_unknown if no configured key has the id of the sealing one. It is
// sealed_data_damaged if the bytes were altered, cut, moved from another row, or never sealed.
func (b *Sealer) Open(sealed, context []byte) ([]byte, error) {
	if len(sealed) < Overhead {
		return nil, damaged("%d bytes are fewer than any sealed text has", len(sealed))
	}

	if sealed[0] != version {
		return nil, damaged("its version is %d and this release knows only %d", sealed[0], version)
	}

	nonceEnd := Overhead - chacha20poly1305.Overhead
	header, nonce, text := sealed[:headerSize], sealed[headerSize:nonceEnd], sealed[nonceEnd:]

	id, known := [keyIDSize]byte(header[1:]), false
	for _, k := range b.ring.keys { // two keys may share an id
		if k.id != id {
			continue
		}

		known = true

		if plaintext, err := k.aead.Open(nil, nonce, text, authenticated(header, context)); err == nil {
			return plaintext, nil
		}
	}

	if !known {
		return nil, unknownKey(id)
	}

	return nil, damaged("it was altered, or belongs to another row")
}

func unknownKey(id [keyIDSize]byte) error {
	return fault.New(
		fault.Unavailable,
		"secret_key_unknown",
		"a stored secret was sealed with the secret key of id %x, which is not configured: add that "+
			"key after the current one",
		id,
	)
}

func damaged(format string, args ...any) error {
	return fault.New(
		fault.Unavailable, "sealed_data_damaged",
		"a stored secret does not open: %s; restore the row or make a new secret",
		fmt.Sprintf(format, args...),
	)
}

// authenticated joins header and context; the header's fixed size keeps them apart.
func authenticated(header, context []byte) []byte { return slices.Concat(header, context) }

// Format writes the ids of the keys for every verb; they reveal nothing about the keys.
func (b Sealer) Format(f fmt.State, _ rune) {
	var ids []string

	if b.ring != nil {
		for _, k := range b.ring.keys {
			ids = append(ids, hex.EncodeToString(k.id[:]))
		}
	}

	_, _ = fmt.Fprintf(f, "seal.Sealer%v", ids)
}

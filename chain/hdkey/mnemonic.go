package hdkey

// Mnemonics as BIP-39 defines them: https://github.com/bitcoin/bips/blob/master/bip-0039.mediawiki

import (
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/seed-8ee7f392/payments/fault"
)

//go:embed english.txt
var englishText string

// english returns the 2,048 words of BIP-39's English list, in alphabetical order.
var english = sync.OnceValue(func() []string { return strings.Fields(englishText) })

const wordBits = 11 // 2^11 words

// NewMnemonic returns an English mnemonic of fresh entropy; a nil reader is crypto/rand. 128, 160,
// 192, 224 or 256 bits give 12, 15, 18, 21 or 24 words. Errors:
//
//   - fault.Invalid (mnemonic_invalid): another number of bits
//   - fault.Unavailable (entropy_unavailable): an error of the reader
func NewMnemonic(entropy io.Reader, bits int) (string, error) {
	if bits < 128 || bits > 256 || bits%32 != 0 {
		return "", fault.New(
			fault.Invalid, "mnemonic_invalid",
			"a mnemonic cannot hold %d bits: ask for 128, 160, 192, 224 or 256",
			bits,
		)
	}

	if entropy == nil {
		entropy = rand.Reader
	}

	raw := make([]byte, bits/8)
	defer clear(raw)

	if _, err := io.ReadFull(entropy, raw); err != nil {
		return "", fault.Wrap(
			err, fault.Unavailable, "entropy_unavailable",
			"no mnemonic was made, for want of %d bits of entropy",
			bits,
		)
	}

	return encodeMnemonic(raw), nil
}

// encodeMnemonic returns entropy and its checksum as words of 11 bits. The checksum is the first
// bit of the SHA-256 per 32 bits of entropy.
func encodeMnemonic(entropy []byte) string {
	sum := sha256.Sum256(entropy)

	data := append(slices.Clone(entropy), sum[0])
	defer clear(data)

	words := make([]string, len(entropy)*8*33/32/wordBits)
	for i := range words {
		words[i] = english()[wordIndexAt(data, i*wordBits)]
	}

	return strings.Join(words, " ")
}

// wordIndexAt returns the 11 bits of data that begin at firstBit.
func wordIndexAt(data []byte, firstBit int) int {
	index := 0
	for bit := firstBit; bit < firstBit+wordBits; bit++ {
		index = index<<1 | int(data[bit/8]>>(7-bit%8)&1)
	}

	return index
}

// decodeMnemonic returns the entropy of a mnemonic and its normal form: NFKD, one space between
// words. A wrong count, word or checksum is fault.Invalid (mnemonic_invalid). No error shows a
// word.
func decodeMnemonic(mnemonic string) (entropy []byte, normal string, err error) {
	// 24 words of 8 letters are shorter. Do not normalise a whole file given by mistake.
	if len(mnemonic) > 4096 {
		return nil, "", invalidMnemonic("it is %d bytes long", len(mnemonic))
	}

	if !utf8.ValidString(mnemonic) {
		return nil, "", invalidMnemonic("it is not UTF-8 text")
	}

	words := strings.Fields(norm.NFKD.String(mnemonic))
	if len(words) < 12 || len(words) > 24 || len(words)%3 != 0 {
		return nil, "", invalidMnemonic("it has %d words, not 12, 15, 18, 21 or 24", len(words))
	}

	bits := len(words) * wordBits
	data := make([]byte, (bits+7)/8)

	for i, word := range words {
		index, found := slices.BinarySearch(english(), word)
		if !found {
			return nil, "", invalidMnemonic(
				"word %d is not in the English list of BIP-39, whose words are in lower case",
				i+1,
			)
		}

		for offset := range wordBits {
			bit := i*wordBits + offset
			data[bit/8] |= byte(index>>(wordBits-1-offset)&1) << (7 - bit%8)
		}
	}

	size := bits * 32 / 33 / 8

	normal = strings.Join(words, " ")
	if encodeMnemonic(data[:size]) != normal {
		return nil, "", invalidMnemonic("its checksum does not match: a word is wrong or in the wrong place")
	}

	return data[:size], normal, nil
}

// invalidMnemonic returns the error of a mnemonic that cannot be used.
func invalidMnemonic(format string, args ...any) error {
	return fault.New(
		fault.Invalid, "mnemonic_invalid", "the mnemonic cannot be used: %s",
		fmt.Sprintf(format, args...),
	)
}

// seedOf returns the 64-byte seed of a mnemonic (BIP-39): PBKDF2 with HMAC-SHA512 and 2,048
// iterations. The salt is "mnemonic" and the passphrase, both in NFKD.
func seedOf(mnemonic, passphrase string) ([]byte, error) {
	entropy, normal, err := decodeMnemonic(mnemonic)
	if err != nil {
		return nil, err
	}

	clear(entropy)

	if !utf8.ValidString(passphrase) {
		return nil, fault.New(
			fault.Invalid, "passphrase_invalid", "the mnemonic's passphrase is not UTF-8 text",
		)
	}

	seed, err := pbkdf2.Key(sha512.New, normal, []byte("mnemonic"+norm.NFKD.String(passphrase)), 2048, 64)
	if err != nil {
		return nil, fault.Wrap(
			err, fault.Unsupported, "mnemonic_unsupported",
			"this build of Go does not derive seeds from mnemonics; use a raw seed",
		)
	}

	return seed, nil
}

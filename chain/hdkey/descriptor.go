package hdkey

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/btcsuite/btcd/btcutil/v2/hdkeychain"
	"github.com/btcsuite/btcd/chaincfg/v2"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/redact"
)

// Descriptor is an output descriptor (BIP-380) with its checksum, for a wallet to import.
type Descriptor struct {
	// Text is "wpkh([73c5da0a/84h/0h/0h/0]xpub…/*)#…" for a range of keys. For one key it has the index in
	// place of the star. WithTaproot makes it "tr(…)".
	Text string
	// Ranged is set for a range of keys, with the indexes 0 to Last. First is the lowest index in use. For
	// one key, First and Last are its index.
	Ranged      bool
	First, Last uint32
}

// Format writes the name of the type for every verb: Text may hold a private key.
func (d Descriptor) Format(state fmt.State, _ rune) {
	redact.Format(state, redact.Text("hdkey.Descriptor"))
}

// MarshalText returns the text that Format writes, for encoders that would read the fields.
func (d Descriptor) MarshalText() ([]byte, error) {
	return []byte(redact.Text("hdkey.Descriptor")), nil
}

// maxRange is the highest index of a ranged descriptor. Bitcoin Core derives every key from 0 on, about 100
// seconds for a million, and a wallet accepts only one range of a descriptor.
const maxRange = 100_000

// Descriptors returns descriptors with which a wallet finds the Bitcoin keys of one key space. It returns one
// descriptor with the lowest of the given indexes as a range. Each key beyond that range has its own
// descriptor, such as those after a new payments.Config.Epoch. The index of space is ignored. Whoever has the
// descriptors sees the addresses but can spend nothing: they are no secret, but private. Errors:
//
//   - fault.Unsupported (key_family_unsupported): the keys are not of Bitcoin
//   - fault.Invalid (key_role_invalid, key_index_invalid): an unknown role, or an index of 2^31 and above
func (s *Signer) Descriptors(space chain.KeyRef, indexes []uint32) ([]Descriptor, error) {
	return s.descriptors(space, indexes, (*hdkeychain.ExtendedKey).Neuter)
}

// PrivateDescriptors returns the same as Descriptors with the private key in each. Whoever has one can spend
// all money in its key space. Errors are those of Descriptors.
func (s *Signer) PrivateDescriptors(space chain.KeyRef, indexes []uint32) ([]Descriptor, error) {
	return s.descriptors(
		space,
		indexes,
		func(parent *hdkeychain.ExtendedKey) (*hdkeychain.ExtendedKey, error) {
			return parent, nil
		},
	)
}

func (s *Signer) descriptors(
	space chain.KeyRef,
	indexes []uint32,
	shown func(*hdkeychain.ExtendedKey) (*hdkeychain.ExtendedKey, error),
) ([]Descriptor, error) {
	key, err := s.descriptorKey(space, shown)
	if err != nil {
		return nil, err
	}

	form := "wpkh(%s/%s)"
	if s.keys.bitcoin == bip86 {
		form = "tr(%s/%s)"
	}

	with := func(index string) string {
		text := fmt.Sprintf(form, key, index)
		return text + "#" + descriptorChecksum(text)
	}

	var found []Descriptor

	for _, index := range slices.Compact(slices.Sorted(slices.Values(indexes))) {
		switch {
		case index >= hardened:
			space.Index = index
			return nil, invalidIndex(space, 31)
		case index > maxRange:
			found = append(
				found,
				Descriptor{Text: with(strconv.FormatUint(uint64(index), 10)), First: index, Last: index},
			)
		case len(found) == 0:
			found = append(found, Descriptor{Text: with("*"), Ranged: true, First: index, Last: index})
		default:
			found[0].Last = index
		}
	}

	return found, nil
}

// descriptorKey returns the extended key of a key space with its origin, in the form of descriptors.
func (s *Signer) descriptorKey(
	space chain.KeyRef,
	shown func(*hdkeychain.ExtendedKey) (*hdkeychain.ExtendedKey, error),
) (string, error) {
	if space.Family != chain.Bitcoin {
		return "", fault.New(
			fault.Unsupported,
			"key_family_unsupported",
			"key %s: only keys of Bitcoin have descriptors",
			space,
		)
	}

	space.Index = 0

	keyPath, err := pathOf(space, s.keys.bitcoin)
	if err != nil {
		return "", err
	}

	params := &chaincfg.MainNetParams
	if !space.Livemode {
		params = &chaincfg.TestNet3Params // its prefix is that of all test networks
	}

	parent := s.keys.parents[branch{space.Family, space.Livemode, space.Role}]

	key, err := parent.CloneWithVersion(params.HDPrivateKeyID[:])
	if err == nil {
		key, err = shown(key)
	}

	if err != nil {
		return "", fmt.Errorf("hdkey: key %s has no descriptor: %w", space, err)
	}

	elements := strings.TrimPrefix(keyPath[:len(keyPath)-1].String(), "m")

	return "[" + s.keys.fingerprint + strings.ReplaceAll(elements, "'", "h") + "]" + key.String(), nil
}

// The characters of a descriptor in the order of their symbols, and those of its checksum. Source: BIP-380, "Checksum".
const (
	descriptorChars = "0123456789()[],'/*abcdefgh@:$%{}" +
		"IJKLMNOPQRSTUVWXYZ&+-.;<=>?!^_|~" +
		"ijklmnopqrstuvwxyzABCDEFGH`#\"\\ "
	checksumChars = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
)

// descriptorChecksum returns the checksum of a descriptor. Source: BIP-380, "Checksum".
func descriptorChecksum(text string) string {
	check, group, size := uint64(1), 0, 0

	for _, char := range text {
		symbol := strings.IndexRune(descriptorChars, char)
		check = polymod(check, symbol&31)

		group = group*3 + symbol>>5
		if size++; size == 3 {
			check = polymod(check, group)
			group, size = 0, 0
		}
	}

	if size > 0 {
		check = polymod(check, group)
	}

	for range 8 {
		check = polymod(check, 0)
	}

	check ^= 1

	sum := make([]byte, 8)
	for i := range sum {
		sum[i] = checksumChars[check>>(5*(7-i))&31]
	}

	return string(sum)
}

// polymod adds a symbol of 5 bits to a checksum. Source: BIP-380, "Checksum".
func polymod(check uint64, symbol int) uint64 {
	top := check >> 35
	check = check&0x7ffffffff<<5 ^ uint64(symbol)

	for i, generator := range []uint64{0xf5dee51989, 0xa9fdca3312, 0x1bab10e32d, 0x3706b1677a, 0x644d626ffd} {
		if top>>i&1 == 1 {
			check ^= generator
		}
	}

	return check
}

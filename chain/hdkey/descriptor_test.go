package hdkey

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/btcsuite/btcd/btcutil/v2/hdkeychain"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Source: BIP-380, "Test Vectors".
func TestDescriptorChecksum(t *testing.T) {
	if got := descriptorChecksum("raw(deadbeef)"); got != "89f8spxm" {
		t.Errorf("the checksum is %s", got)
	}
}

// The descriptor of a key space gives the keys that the signer has, as another library derives them, and only the
// private one can spend.
func TestDescriptorHasTheKeysOfTheSigner(t *testing.T) {
	const mnemonic = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"

	for name, c := range map[string]struct {
		opts           []Option
		live           bool
		role           chain.Role
		begins         string
		public, secret string
	}{
		"live deposits": {nil, true, chain.RoleDeposit, "wpkh([73c5da0a/84h/0h/0h/0]", "xpub", "xprv"},
		"live masters":  {nil, true, chain.RoleMaster, "wpkh([73c5da0a/84h/0h/2h/0]", "xpub", "xprv"},
		"test deposits": {nil, false, chain.RoleDeposit, "wpkh([73c5da0a/84h/1h/1h/0]", "tpub", "tprv"},
		"test masters, taproot": {
			[]Option{WithTaproot()}, false, chain.RoleMaster, "tr([73c5da0a/86h/1h/3h/0]", "tpub", "tprv",
		},
		"live deposits, taproot": {
			[]Option{WithTaproot()}, true, chain.RoleDeposit, "tr([73c5da0a/86h/0h/0h/0]", "xpub", "xprv",
		},
	} {
		signer, err := New(mnemonic, "", c.opts...)
		if err != nil {
			t.Fatal(err)
		}

		space := chain.KeyRef{Family: chain.Bitcoin, Livemode: c.live, Role: c.role, Index: 7}
		publics, err := signer.Descriptors(space, []uint32{7})
		privates, privateErr := signer.PrivateDescriptors(space, []uint32{7})

		if err = errors.Join(err, privateErr); err != nil {
			t.Fatal(err)
		}

		public, private := publics[0].Text, privates[0].Text

		if !strings.HasPrefix(public, c.begins+c.public) || !strings.HasPrefix(private, c.begins+c.secret) {
			t.Errorf("%s: %s", name, public)
		}

		for _, text := range []string{public, private} {
			key, _, _ := strings.Cut(text[strings.Index(text, "]")+1:], "/*)#")

			parent, err := hdkeychain.NewKeyFromString(key)
			if err != nil || parent.IsPrivate() != (text == private) {
				t.Fatalf("%s: %v", name, err)
			}

			for _, index := range []uint32{0, 7, 1<<20 + 64} {
				child, err := parent.Derive(index)
				if err != nil {
					t.Fatal(err)
				}

				derived, err := child.ECPubKey()
				if err != nil {
					t.Fatal(err)
				}

				space.Index = index

				own, err := signer.PublicKey(t.Context(), space)
				if err != nil || !slices.Equal(derived.SerializeCompressed(), own.Bytes) {
					t.Errorf(
						"%s: key %d is %x, the signer's %x, %v",
						name,
						index,
						derived.SerializeCompressed(),
						own.Bytes,
						err,
					)
				}
			}
		}
	}

	signer, err := New(mnemonic, "")
	if err != nil {
		t.Fatal(err)
	}

	if _, err := signer.Descriptors(
		chain.KeyRef{Family: chain.EVM, Role: chain.RoleMaster},
		nil,
	); !errors.Is(
		err,
		fault.Unsupported,
	) {
		t.Errorf("of another family: %v", err)
	}

	if _, err := signer.Descriptors(
		chain.KeyRef{Family: chain.Bitcoin},
		nil,
	); !errors.Is(
		err,
		fault.Invalid,
	) {
		t.Errorf("without a role: %v", err)
	}
}

// Low indexes are one range, whatever their order and the gaps between them, and each high one is a descriptor of its
// own.
func TestDescriptorsCoverTheIndexes(t *testing.T) {
	signer, err := FromSeed(make([]byte, 32))
	if err != nil {
		t.Fatal(err)
	}

	space := chain.KeyRef{Family: chain.Bitcoin, Livemode: true, Role: chain.RoleDeposit}

	for _, c := range []struct {
		indexes []uint32
		want    []Descriptor
	}{
		{nil, nil},
		{[]uint32{7}, []Descriptor{{"/*)", true, 7, 7}}},
		{[]uint32{70, 3, 64, 99_999, 3}, []Descriptor{{"/*)", true, 3, 99_999}}},
		{[]uint32{1<<20 + 4}, []Descriptor{{"/1048580)", false, 1<<20 + 4, 1<<20 + 4}}},
		{[]uint32{1<<31 - 1, 0, 1 << 20}, []Descriptor{
			{"/*)", true, 0, 0},
			{"/1048576)", false, 1 << 20, 1 << 20},
			{"/2147483647)", false, 1<<31 - 1, 1<<31 - 1},
		}},
	} {
		got, err := signer.Descriptors(space, c.indexes)
		if err != nil || len(got) != len(c.want) {
			t.Fatalf("%v: %+v, %v", c.indexes, got, err)
		}

		for i, want := range c.want {
			if !strings.Contains(got[i].Text, want.Text) || got[i].Ranged != want.Ranged ||
				got[i].First != want.First ||
				got[i].Last != want.Last {
				t.Errorf("%v: %+v, want %+v", c.indexes, got[i], want)
			}
		}
	}

	if _, err := signer.Descriptors(space, []uint32{1 << 31}); !errors.Is(err, fault.Invalid) {
		t.Errorf("an index without a key: %v", err)
	}
}

package bitcoin_test

// Addresses, digests and witnesses against the examples that the standards print.

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/btcsuite/btcd/btcec/v2"
	"github.com/btcsuite/btcd/psbt/v2"
	"github.com/btcsuite/btcd/wire/v2"
	"github.com/decred/dcrd/dcrec/secp256k1/v4/ecdsa"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/fault"
)

func unhex(t *testing.T, s string) []byte {
	t.Helper()

	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}

	return b
}

func parseTx(t *testing.T, s string) *wire.MsgTx {
	t.Helper()

	tx := new(wire.MsgTx)
	if err := tx.DeserializeNoWitness(bytes.NewReader(unhex(t, s))); err != nil {
		t.Fatal(err)
	}

	return tx
}

func newDriver(t *testing.T, c bitcoin.Config, change ...func(*bitcoin.Config)) *bitcoin.Driver {
	t.Helper()

	for _, f := range change {
		f(&c)
	}

	d, err := bitcoin.NewDriver(c)
	if err != nil {
		t.Fatal(err)
	}

	return d
}

// offline is a driver whose node is never asked.
func offline(t *testing.T, network chain.Network, change ...func(*bitcoin.Config)) *bitcoin.Driver {
	t.Helper()
	return newDriver(t, bitcoin.Config{Network: network, RPC: "http://127.0.0.1:1", Attempts: 1}, change...)
}

// TestAddressesOfBIP84And86: from the mnemonic to the address.
func TestAddressesOfBIP84And86(t *testing.T) {
	const mnemonic = "abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon abandon about"
	for _, v := range []struct {
		name    string
		options []hdkey.Option
		want    []chain.Address
	}{
		{
			"BIP84",
			nil,
			[]chain.Address{"bc1qcr8te4kr609gcawutmrza0j4xv80jy8z306fyu", "bc1qnjg0jd8228aq7egyzacy8cys3knf9xvrerkf9g"},
		},
		{
			"BIP86",
			[]hdkey.Option{hdkey.WithTaproot()},
			[]chain.Address{
				"bc1p5cyxnuxmeuwuvkwfem96lqzszd02n6xdcjrs20cac6yqjjwudpxqkedrcr",
				"bc1p4qhjn9zdvkux4e44uhx8tc55attvtyu358kutcqkudyccelu0was9fqzwh",
			},
		},
	} {
		signer, err := hdkey.New(mnemonic, "", v.options...)
		if err != nil {
			t.Fatal(err)
		}

		d := offline(t, bitcoin.Mainnet, func(c *bitcoin.Config) { c.Taproot = v.options != nil })
		for i, want := range v.want {
			key, err := signer.PublicKey(
				t.Context(),
				chain.KeyRef{
					Family:   chain.Bitcoin,
					Livemode: true,
					Role:     chain.RoleDeposit,
					Index:    uint32(i),
				},
			)
			if err != nil {
				t.Fatal(err)
			}

			if got, err := d.DeriveAddress(key); err != nil || got != want {
				t.Errorf("%s, address %d: %q, %v, want %q", v.name, i, got, err, want)
			}
		}
	}
}

// TestDigestAndWitnessOfBIP143 is the standard's example "Native P2WPKH": digest, signature, witness.
func TestDigestAndWitnessOfBIP143(t *testing.T) {
	tx := parseTx(
		t,
		"0100000002fff7f7881a8099afa6940d42d1e7f6362bec38171ea3edf433541db4e4ad969f0000000000eeffffffef51"+
			"e1b804cc89d182d279655c3aa89e815b1b309fe287d9b2b55d57b90ec68a0100000000ffffffff02202cb2060000"+
			"00001976a9148280b37df378db99f66f85c95a783a76ac7a6d5988ac9093510d000000001976a9143bde42dbee7e"+
			"4dbe6a21b2d50ce2f0167faa815988ac11000000",
	)
	p2wpkh := unhex(t, "00141d0f172a0ecb48aee1be1f2687d2963ae33f71a1")

	digest, err := bitcoin.Digest(tx, 1, []*wire.TxOut{
		wire.NewTxOut(
			625_000_000,
			unhex(t, "2103c9f4836b9a4f77fc0d81f7bcb01b7f1b35916864b9476c241ce9fc198bd25432ac"),
		),
		wire.NewTxOut(600_000_000, p2wpkh),
	})
	if got := hex.EncodeToString(digest); err != nil ||
		got != "c37af31116d1b27caf68aae9e3ac82f1477929014d5b917657d0eb49478cb670" {
		t.Fatalf("the digest is %s, %v", got, err)
	}

	private, public := btcec.PrivKeyFromBytes(
		unhex(t, "619c335025c7f4012e556c2a58b2506e30b8511b53ade95ea316fd8c3286feb9"),
	)
	compact := ecdsa.SignCompact(private, digest, true)
	signature := append(compact[1:], compact[0]-27-4) // as chain.Signer gives it

	witness, err := bitcoin.Witness(
		p2wpkh, chain.PublicKey{Curve: chain.Secp256k1, Bytes: public.SerializeCompressed()},
		signature,
	)
	if err != nil || len(witness) != 2 {
		t.Fatalf("witness %x, %v", witness, err)
	}

	const wantSignature = "304402203609e17b84f6a7d30c80bfa610b5b4542f32a8a0d5447a12fb1366d7f01cc44a0220573a954c451833" +
		"1561406f90300e8f3358f51928d43c212a8caed02de67eebee01"

	if got := hex.EncodeToString(witness[0]); got != wantSignature {
		t.Errorf("the signature is %s", got)
	}

	const wantKey = "025476c2e83188368da1ff3e292e7acafcdb3566bb0ad253f62fc70f07aeee6357"

	if got := hex.EncodeToString(witness[1]); got != wantKey {
		t.Errorf("the key is %s", got)
	}
}

// TestDigestOfBIP341 is the input of the standard's wallet vectors that is signed with SIGHASH_DEFAULT.
func TestDigestOfBIP341(t *testing.T) {
	tx := parseTx(
		t,
		"02000000097de20cbff686da83a54981d2b9bab3586f4ca7e48f57f5b55963115f3b334e9c010000000000000000d7b7"+
			"cab57b1393ace2d064f4d4a2cb8af6def61273e127517d44759b6dafdd990000000000fffffffff8e1f583384333"+
			"689228c5d28eac13366be082dc57441760d957275419a418420000000000fffffffff0689180aa63b30cb162a73c"+
			"6d2a38b7eeda2a83ece74310fda0843ad604853b0100000000feffffffaa5202bdf6d8ccd2ee0f0202afbbb7461d"+
			"9264a25e5bfd3c5a52ee1239e0ba6c0000000000feffffff956149bdc66faa968eb2be2d2faa29718acbfe394121"+
			"5893a2a3446d32acd050000000000000000000e664b9773b88c09c32cb70a2a3e4da0ced63b7ba3b22f848531bbb"+
			"1d5d5f4c94010000000000000000e9aa6b8e6c9de67619e6a3924ae25696bb7b694bb677a632a74ef7eadfd4eabf"+
			"0000000000ffffffffa778eb6a263dc090464cd125c466b5a99667720b1c110468831d058aa1b82af10100000000"+
			"ffffffff0200ca9a3b000000001976a91406afd46bcdfd22ef94ac122aa11f241244a37ecc88ac807840cb000000"+
			"0020ac9a87f5594be208f8532db38cff670c450ed2fea8fcdefcc9a663f78bab962b0065cd1d",
	)

	var spent []*wire.TxOut
	for _, o := range []struct {
		script string
		value  int64
	}{
		{"512053a1f6e454df1aa2776a2814a721372d6258050de330b3c6d10ee8f4e0dda343", 420000000},
		{"5120147c9c57132f6e7ecddba9800bb0c4449251c92a1e60371ee77557b6620f3ea3", 462000000},
		{"76a914751e76e8199196d454941c45d1b3a323f1433bd688ac", 294000000},
		{"5120e4d810fd50586274face62b8a807eb9719cef49c04177cc6b76a9a4251d5450e", 504000000},
		{"512091b64d5324723a985170e4dc5a0f84c041804f2cd12660fa5dec09fc21783605", 630000000},
		{"00147dd65592d0ab2fe0d0257d571abf032cd9db93dc", 378000000},
		{"512075169f4001aa68f15bbed28b218df1d0a62cbbcf1188c6665110c293c907b831", 672000000},
		{"5120712447206d7a5238acc7ff53fbe94a3b64539ad291c7cdbc490b7577e4b17df5", 546000000},
		{"512077e30a5522dd9f894c3f8b8bd4c4b2cf82ca7da8a3ea6a239655c39c050ab220", 588000000},
	} {
		spent = append(spent, wire.NewTxOut(o.value, unhex(t, o.script)))
	}

	digest, err := bitcoin.Digest(tx, 4, spent)
	if got := hex.EncodeToString(digest); err != nil ||
		got != "4f900a0bae3f1446fd48490c2958b5a023228f01661cda3496a11da502a7f7ef" {
		t.Errorf("the digest is %s, %v", got, err)
	}
}

// TestPSBTsOfBIP174: what the standard calls invalid is refused as no transaction of ours; what it
// calls valid is read, and refused as none that Build made.
func TestPSBTsOfBIP174(t *testing.T) {
	text, err := os.ReadFile("testdata/bip174.json")
	if err != nil {
		t.Fatal(err)
	}

	var vectors struct{ Valid, Invalid []string }

	err = json.Unmarshal(text, &vectors)
	if err != nil || len(vectors.Valid) != 6 || len(vectors.Invalid) != 20 {
		t.Fatalf("%d valid and %d invalid vectors: %v", len(vectors.Valid), len(vectors.Invalid), err)
	}

	d := offline(t, bitcoin.Regtest)
	for i, v := range append(vectors.Valid, vectors.Invalid...) {
		raw := unhex(t, v)

		_, err := psbt.NewFromRawBytes(bytes.NewReader(raw), false)
		if valid := i < len(vectors.Valid); valid != (err == nil) {
			t.Errorf("vector %d: valid %v, read with %v", i, valid, err)
		}

		_, err = d.Assemble(
			chain.Order{}, chain.Unsigned{Raw: raw, Payloads: []chain.Payload{{}}},
			[]chain.PublicKey{{}}, [][]byte{{}},
		)
		if !errors.Is(err, fault.Invalid) {
			t.Errorf("vector %d was assembled: %v", i, err)
		}
	}
}

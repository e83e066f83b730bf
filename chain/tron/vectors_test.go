package tron

import (
	"encoding/hex"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
)

// vectors are what tronweb makes; internal/testing/testenv/tron/vectors.js writes them, and `make vectors`
// runs it again.
type vectors struct {
	Source    string `json:"source"`
	Mnemonic  string `json:"mnemonic"`
	Contract  string `json:"contract"`
	Addresses []struct {
		Path       string `json:"path"`
		PrivateKey string `json:"private_key"`
		PublicKey  string `json:"public_key"`
		Base58     string `json:"base58"`
		Hex        string `json:"hex"`
	} `json:"addresses"`
	Transactions []vectorTx `json:"transactions"`
}

type vectorTx struct {
	Name     string `json:"name"`
	From     string `json:"from"`
	To       string `json:"to"`
	Amount   string `json:"amount"`
	FeeLimit int64  `json:"fee_limit"`
	Memo     string `json:"memo"`
	Block    struct {
		RefBytes   string `json:"ref_block_bytes"`
		RefHash    string `json:"ref_block_hash"`
		Expiration int64  `json:"expiration"`
		Timestamp  int64  `json:"timestamp"`
	} `json:"block"`
	PrivateKey string `json:"private_key"`
	Raw        string `json:"raw_data_hex"`
	TxID       string `json:"tx_id"`
	Signature  string `json:"signature"`
	Signer     string `json:"signer"`
}

func readVectors(t testing.TB) vectors {
	t.Helper()

	text, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}

	var v vectors
	if err := json.Unmarshal(text, &v); err != nil {
		t.Fatal(err)
	}

	if len(v.Addresses) < 6 || len(v.Transactions) < 14 {
		t.Fatalf("%d addresses and %d transactions", len(v.Addresses), len(v.Transactions))
	}

	return v
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()

	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}

	return b
}

// testDriver is a driver without a node.
func testDriver(t testing.TB, change ...func(*Config)) *driver {
	t.Helper()

	c := Config{Network: Mainnet, Nodes: []Node{{URL: "http://127.0.0.1:1"}}}
	for _, f := range change {
		f(&c)
	}

	d, err := newDriver(c)
	if err != nil {
		t.Fatal(err)
	}

	return d
}

func TestAddressesAreTronwebs(t *testing.T) {
	v, d := readVectors(t), testDriver(t)
	for _, a := range v.Addresses {
		for _, spelling := range []string{a.Base58, a.Hex} {
			if got, err := d.ParseAddress(spelling); err != nil || string(got) != a.Base58 {
				t.Errorf("ParseAddress(%s) = %s, %v; tronweb says %s", spelling, got, err, a.Base58)
			}
		}

		if a.PublicKey == "" {
			continue
		}

		key, err := crypto.UnmarshalPubkey(unhex(t, a.PublicKey))
		if err != nil {
			t.Fatal(err)
		}

		got, err := d.DeriveAddress(
			chain.PublicKey{Curve: chain.Secp256k1, Bytes: crypto.CompressPubkey(key)},
		)
		if err != nil || string(got) != a.Base58 {
			t.Errorf("%s: %s, %v; tronweb says %s", a.Path, got, err, a.Base58)
		}
	}
}

// The signer of a seed derives what wallets derive at Tron's own path (SLIP-44: 195).
func TestSeedDerivesTronwebsAddresses(t *testing.T) {
	v, d := readVectors(t), testDriver(t)

	signer, err := hdkey.New(v.Mnemonic, "")
	if err != nil {
		t.Fatal(err)
	}

	for index := range uint32(3) {
		key, err := signer.PublicKey(
			t.Context(),
			chain.KeyRef{Family: chain.Tron, Livemode: true, Role: chain.RoleDeposit, Index: index},
		)
		if err != nil {
			t.Fatal(err)
		}

		if got, err := d.DeriveAddress(key); err != nil || string(got) != v.Addresses[index].Base58 {
			t.Errorf(
				"%s: %s, %v; tronweb says %s", v.Addresses[index].Path, got, err,
				v.Addresses[index].Base58,
			)
		}
	}
}

// build builds the transaction of a vector.
func (v vectorTx) build(t *testing.T, contract string) *transaction {
	t.Helper()

	must := func(s string) address {
		a, err := parseAddress(s)
		if err != nil {
			t.Fatal(err)
		}

		return a
	}

	amount, err := chain.ParseAmount(v.Amount)
	if err != nil {
		t.Fatal(err)
	}

	payment := paymentParams{from: must(v.From), payee: must(v.To), amount: amount}

	switch v.Name {
	case "trc20":
		c := must(contract)
		payment.contract = &c
	case "delegate":
		payment.stake = delegateContract
	case "undelegate":
		payment.stake = undelegateContract
	}

	tx := payment.draft(uint64(v.FeeLimit))
	tx.refBytes, tx.refHash = unhex(t, v.Block.RefBytes), unhex(t, v.Block.RefHash)
	tx.expiration, tx.timestamp, tx.memo = v.Block.Expiration, v.Block.Timestamp, []byte(v.Memo)

	return tx
}

// What we build is what tronweb builds, to the byte, and signs.
func TestBytesIDsAndSignaturesAreTronwebs(t *testing.T) {
	v := readVectors(t)

	kinds := map[string]int{}
	for _, x := range v.Transactions {
		kinds[x.Name]++

		raw := x.build(t, v.Contract).encode()
		if got := hex.EncodeToString(raw); got != x.Raw {
			t.Errorf("%s of %s: raw data\n%s, tronweb has\n%s", x.Name, x.Amount, got, x.Raw)
			continue
		}

		id := txID(raw)
		if got := hex.EncodeToString(id[:]); got != x.TxID {
			t.Errorf("%s of %s: id %s, tronweb has %s", x.Name, x.Amount, got, x.TxID)
		}

		key, err := crypto.ToECDSA(unhex(t, x.PrivateKey))
		if err != nil {
			t.Fatal(err)
		}

		signature, err := crypto.Sign(id[:], key)
		if err != nil {
			t.Fatal(err)
		}

		signature[64] += recoveryOffset
		// tronweb writes the recovery byte in upper case
		if got := hex.EncodeToString(signature); got != strings.ToLower(x.Signature) {
			t.Errorf("%s of %s: signature %s, tronweb has %s", x.Name, x.Amount, got, x.Signature)
		}

		if x.Signer != x.From {
			t.Errorf("tronweb recovers %s from its own signature of %s", x.Signer, x.From)
		}
	}

	for _, name := range []string{"trx", "trc20", "memo", "delegate", "undelegate"} {
		if kinds[name] < 2 {
			t.Errorf("%d vectors of %s", kinds[name], name)
		}
	}
}

// What tronweb builds and signs we read: who pays whom how much, and who signed.
func TestTronwebsBytesAreRead(t *testing.T) {
	v, d := readVectors(t), testDriver(t)
	for _, x := range v.Transactions {
		raw := unhex(t, x.Raw)

		tx, gotRaw, signer, err := decodeSigned(encodeSigned(raw, unhex(t, x.Signature)))
		if err != nil || string(gotRaw) != string(raw) || string(canonical(signer)) != x.From {
			t.Errorf("%s: signer %s, %v", x.Name, canonical(signer), err)
			continue
		}

		if string(tx.memo) != x.Memo || tx.expiration != x.Block.Expiration ||
			tx.timestamp != x.Block.Timestamp ||
			tx.feeLimit != x.FeeLimit {
			t.Errorf("%s: read %+v", x.Name, tx)
		}

		var got chain.Transfer
		if transfers := d.pendingTransfers(blockTx{hash: x.TxID, raw: raw, tx: tx}); len(transfers) == 1 {
			got = transfers[0]
		}

		want := chain.Transfer{
			TxHash:  x.TxID,
			From:    chain.Address(x.From),
			To:      chain.Address(x.To),
			AssetID: d.native.ID,
			Amount:  chain.MustAmount(x.Amount),
		}
		if x.Name == "trc20" {
			usdt, _ := d.network.Asset("USDT")
			want.Index, want.AssetID = 1, usdt.ID
		}
		// Amounts beyond what any sum could hold are no payments, and neither is stake.
		if chain.MaxTransfer.Less(want.Amount) || tx.kind.movesStake() {
			want = chain.Transfer{}
		}

		if got != want {
			t.Errorf("%s: %+v, want %+v", x.Name, got, want)
		}

		again := tx.encode()
		if string(again) != string(raw) {
			t.Errorf("%s does not survive reading and writing", x.Name)
		}
	}
}

//go:build unix

package tron

import (
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum/crypto"
	"pgregory.net/rapid"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
)

// decoded is what tronweb reads in a transaction; internal/testing/testenv/tron/decode.js writes it.
type decoded struct {
	TxID       string `json:"tx_id"`
	Signer     string `json:"signer"`
	Type       string `json:"type"`
	Permission int64  `json:"permission"`
	From       string `json:"from"`
	To         string `json:"to"`
	Payee      string `json:"payee"`
	Amount     string `json:"amount"`
	Resource   string `json:"resource"`
	Memo       string `json:"memo"`
	FeeLimit   int64  `json:"fee_limit"`
	Expiration int64  `json:"expiration"`
	Timestamp  int64  `json:"timestamp"`
	RefBlock   string `json:"ref_block"`
}

// What we build and sign, tronweb reads and verifies: many transactions of every kind, with values
// of every size.
func TestTronwebReadsWhatWeBuild(t *testing.T) {
	key, err := crypto.HexToECDSA(testenv.WellKnownDevAccounts[0].Key)
	if err != nil {
		t.Fatal(err)
	}

	var (
		requests []map[string]string
		want     []decoded
	)

	example := 0

	gen := rapid.Custom(func(t *rapid.T) paymentParams {
		payment := paymentParams{
			from:  crypto.PubkeyToAddress(key.PublicKey),
			payee: address(rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, "payee")),

			permission: rapid.SampledFrom([]int64{0, 2, 9}).Draw(t, "permission"),
		}
		bits := rapid.IntRange(0, 52).Draw(t, "bits") // tronweb holds amounts of TRX in JavaScript's numbers

		payment.amount = chain.Units(1<<bits | rapid.Uint64Range(0, 1<<bits-1+1).Draw(t, "low")>>1)
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			payment.stake = delegateContract
		case 1:
			payment.stake = undelegateContract
		case 2:
			contract := address(rapid.SliceOfN(rapid.Byte(), 20, 20).Draw(t, "contract"))
			payment.contract = &contract
			payment.amount = payment.amount.Mul(rapid.Uint64().Draw(t, "factor") | 1)
		}

		return payment
	})
	for ; example < 60; example++ {
		payment := gen.Example(example)

		tx := payment.draft(0)
		if payment.contract != nil {
			tx.feeLimit = int64(1) << (example % 40)
		}

		tx.refBytes, tx.refHash = []byte{byte(example), 0}, []byte{0, 1, 2, 3, 4, 5, 6, byte(example)}

		tx.expiration, tx.timestamp = 1_800_000_000_000+int64(example), 1_799_999_000_000-int64(example)
		if example%3 == 0 {
			tx.memo = []byte(strings.Repeat("é", example))
		}

		raw := tx.encode()
		id := txID(raw)

		signature, err := crypto.Sign(id[:], key)
		if err != nil {
			t.Fatal(err)
		}

		signature[64] += recoveryOffset

		w := decoded{
			TxID:       hex.EncodeToString(id[:]),
			Signer:     string(canonical(payment.from)),
			Type:       "TransferContract",
			Permission: payment.permission,
			From:       string(canonical(payment.from)),
			To:         string(canonical(payment.payee)),
			Amount:     payment.amount.String(),
			Memo:       string(tx.memo),
			FeeLimit:   tx.feeLimit,
			Expiration: tx.expiration,
			Timestamp:  tx.timestamp,
			RefBlock:   hex.EncodeToString(append(append([]byte(nil), tx.refBytes...), tx.refHash...)),
		}
		if payment.contract != nil {
			w.Type = "TriggerSmartContract"
			w.To, w.Payee = string(canonical(*payment.contract)), string(canonical(payment.payee))
		}

		if payment.stake != 0 {
			w.Type = strings.TrimPrefix(typeURLs[payment.stake], "type.googleapis.com/protocol.")
			w.Resource = "ENERGY"
		}

		want = append(want, w)
		requests = append(requests, map[string]string{
			"type":         w.Type,
			"raw_data_hex": hex.EncodeToString(raw),
			"signature":    hex.EncodeToString(signature),
		})
	}

	var got []decoded
	testenv.Tronweb(t, "decode.js", requests, &got)

	if len(got) != len(want) {
		t.Fatalf("tronweb read %d of %d transactions", len(got), len(want))
	}

	for i := range want {
		if got[i] != want[i] {
			t.Errorf("tronweb reads\n%+v, we built\n%+v", got[i], want[i])
		}
	}
}

// The committed vectors are what the pinned tronweb makes.
func TestVectorsAreTronwebs(t *testing.T) {
	if testing.Short() {
		t.Skip("needs Node and tronweb; run without -short")
	}

	fresh := filepath.Join(t.TempDir(), "vectors.json")

	cmd := exec.CommandContext(t.Context(), "bash", filepath.Join("..", "..", "scripts", "vectors.sh"), fresh)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	made, err := os.ReadFile(fresh)
	if err != nil {
		t.Fatal(err)
	}

	committed, err := os.ReadFile("testdata/vectors.json")
	if err != nil {
		t.Fatal(err)
	}

	if string(made) != string(committed) {
		t.Error("testdata/vectors.json is not what scripts/vectors.sh makes: run make vectors")
	}
}

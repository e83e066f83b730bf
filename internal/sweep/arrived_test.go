package sweep

import (
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/settlement"
)

// Row 42 of the pitfalls, for sweeps: what a token takes from the wallet by a second log of the sweep did not arrive.
func TestNetReleasedIsTheNetOfTheLogs(t *testing.T) {
	r := &settlement.Sweep{Master: chain.Party{Address: "master"}, AssetID: "gross"}
	sweep := wallet.Transaction{Transfers: []chain.Transfer{
		{From: "deposit", To: "master", AssetID: "gross", Amount: chain.Units(1000)},
		{From: "master", To: "token", AssetID: "gross", Amount: chain.Units(10)},
		{From: "master", To: "token", AssetID: "other", Amount: chain.Units(5)},
		{From: "deposit", To: "stranger", AssetID: "gross", Amount: chain.Units(7)},
	}}

	if got := arrivedBy(r, sweep); got != chain.Units(990) {
		t.Errorf("%s arrived, want 990", got)
	}
}

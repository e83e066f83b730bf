package auditor

import (
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/payout"
)

// A fork took the block in which a payout was reverted, and a cancel at its nonce is in another, which is not final
// yet. A cancel has a maximum of its own, which network prices since then may have raised above the payout's.
func TestACancelMayCostMoreThanItsPayout(t *testing.T) {
	p := payout.Payout{
		ID:            "p",
		TransactionID: "t",
		Status:        payout.Failed,
		Destination:   "to",
		AssetID:       "x",
		Amount:        chain.Units(5),
		TxHash:        "h",
		MaxNetworkFee: chain.Units(10),
	}

	for _, c := range []struct {
		name    string
		fee     uint64
		block   chain.Ref
		differs bool
	}{
		{"in its block, within its maximum", 10, chain.Ref{Height: 7, Hash: "b"}, false},
		{"in its block, above its maximum", 11, chain.Ref{Height: 7, Hash: "b"}, true},
		{"its block left, and a cancel costs more", 11, chain.Ref{}, false},
	} {
		row := wallet.Transaction{
			ID:      "t",
			Kind:    wallet.Payout,
			State:   wallet.Failed,
			Failure: wallet.FailReverted,
			Order:   chain.Order{Outputs: []chain.Output{{To: "to", AssetID: "x", Amount: chain.Units(5)}}},
			TxHash:  "h",
			Fee:     chain.Units(c.fee),
			Block:   c.block,
		}

		if got := payoutMismatch(p, row); (got != "") != c.differs {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

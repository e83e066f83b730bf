package e2e

import (
	"fmt"
	"math/big"
	"testing"

	"github.com/ethereum/go-ethereum/core/types"

	"github.com/seed-8ee7f392/payments/chain"
)

// A payer who cancels a waiting payment takes it back at once, not when it has not been seen
// for a day: its nonce is used by another transaction in a block. A fork that takes that one out of
// the chain and lets the payment in brings it back.
func TestReplacedOnAnvil(t *testing.T) {
	t.Parallel()

	if testing.Short() {
		t.Skip("needs anvil; run without -short")
	}

	s, p, m, slug := reorgStage(t, chain.RuleConfirmations, 0)
	inv := s.order("100", "ETH", slug)
	pays := p.signedNative(inv.Options[0].Address, amount(t, inv.Options[0].AmountDue))
	p.send(pays)
	s.await(
		inv.ID, "pending: the payment waits in the pool",
		func(v invoiceView) bool { return v.Status == "pending" },
	)
	first := s.payments(inv.ID)

	cancels, err := types.SignNewTx(p.key, types.LatestSignerForChainID(p.chainID), &types.DynamicFeeTx{
		ChainID:   p.chainID,
		Nonce:     pays.Nonce(),
		To:        &p.address,
		Value:     big.NewInt(1),
		Gas:       21_000,
		GasTipCap: new(big.Int).Mul(pays.GasTipCap(), big.NewInt(2)),
		GasFeeCap: new(big.Int).Mul(pays.GasFeeCap(), big.NewInt(2)),
	})
	if err != nil {
		t.Fatal(err)
	}

	p.send(cancels)
	m.mine(1)
	s.await(inv.ID, "open again", func(v invoiceView) bool { return v.Status == "open" })

	if lost := s.payments(
		inv.ID,
	); len(lost) != 1 || lost[0].Status != "dropped" ||
		lost[0].ID != first[0].ID {
		t.Fatalf("the payments are %+v, before they were %+v", lost, first)
	}

	if !s.happened("payment.dropped") {
		t.Error("nobody was told")
	}

	m.call("anvil_reorg", 1, []any{})
	m.call("anvil_dropAllTransactions")
	p.send(pays)
	m.mine(1)
	s.await(inv.ID, "paid after all", func(v invoiceView) bool {
		if v.Status != "paid" {
			m.mine(1)
		}

		return v.Status == "paid"
	})

	if back := s.payments(
		inv.ID,
	); len(back) != 1 || back[0].ID != first[0].ID ||
		back[0].TxHash != pays.Hash().Hex() {
		t.Errorf("the payment came back as %s, it was %+v", fmt.Sprintf("%+v", back), first)
	}
}

package sim_test

import (
	"slices"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// parentAndChild broadcasts a transaction of 50,000 of two coins' 200,000 and one that spends its change
// at a high rate, and returns the first with its order.
func parentAndChild(
	t *testing.T,
	u *sim.UTXO,
	signer *sim.Signer,
	wallet chain.Party,
) (chain.Order, chain.Signed, chain.Signed) {
	t.Helper()

	u.Fund(wallet.Address, chain.Units(100_000))
	order := utxoOrder(u, wallet, u.NewAddress(), 50_000)
	parent := signedBy(t, u, signer, order)

	if err := u.Broadcast(t.Context(), parent); err != nil {
		t.Fatal(err)
	}

	u.SetFeeRate(50_000)

	change := utxoOrder(u, wallet, u.NewAddress(), 10_000)
	change.Coins = []chain.Coin{{
		Outpoint: chain.Outpoint{TxHash: parent.TxHash, Vout: 1},
		Owner:    wallet,
		Amount:   chain.Units(50_000).Sub(parent.MaxFee),
	}}
	child := signedBy(t, u, signer, change)

	if err := u.Broadcast(t.Context(), child); err != nil {
		t.Fatal(err)
	}

	u.SetFeeRate(sim.DefaultFeeRate)

	return order, parent, child
}

// A replacement pays the fees of the descendants that it displaces, and Build knows them.
func TestUTXOReplacementPaysForDescendants(t *testing.T) {
	u, signer := newUTXO(t), sim.NewSigner(1, nil)
	order, parent, child := parentAndChild(t, u, signer, utxoParty(t, u, signer, 0))

	rival := order
	rival.Outputs = []chain.Output{{To: u.NewAddress(), AssetID: nativeOf(u).ID, Amount: chain.Units(50_000)}}

	u.SetFeeRate(20_000)
	expectCode(
		t, "a rival that pays for the parent alone",
		u.Broadcast(t.Context(), signedBy(t, u, signer, rival)),
		fault.Unavailable, "replacement_underpriced",
	)
	expectPooled(t, u, parent.TxHash, child.TxHash)

	rival.Replaces = &parent
	replacement := signedBy(t, u, signer, rival)

	if err := u.Broadcast(t.Context(), replacement); err != nil {
		t.Errorf("what Build made: %v", err)
	}

	expectPooled(t, u, replacement.TxHash)
}

// A replacement may pay more and be larger, but not at a lower rate, and adds no unconfirmed coin.
func TestUTXOReplacementRateAndInputs(t *testing.T) {
	u, signer := newUTXO(t), sim.NewSigner(1, nil)
	wallet := utxoParty(t, u, signer, 0)
	u.Fund(wallet.Address, chain.Units(100_000))
	order := utxoOrder(u, wallet, u.NewAddress(), 50_000)
	old := signedBy(t, u, signer, order)

	if err := u.Broadcast(t.Context(), old); err != nil {
		t.Fatal(err)
	}

	u.Fund(wallet.Address, chain.Units(90_000))

	larger := utxoOrder(u, wallet, u.NewAddress(), 180_000) // both coins
	u.SetFeeRate(9_900)
	expectCode(
		t, "a higher fee at a lower rate",
		u.Broadcast(t.Context(), signedBy(t, u, signer, larger)),
		fault.Unavailable, "replacement_underpriced",
	)

	u.SetFeeRate(30_000)

	waiting := u.Pay(wallet.Address, chain.Units(70_000))
	larger.Coins = append(order.Coins, chain.Coin{
		Outpoint: chain.Outpoint{TxHash: waiting},
		Owner:    wallet,
		Amount:   chain.Units(70_000),
	})
	larger.Outputs[0].Amount = chain.Units(150_000)
	expectCode(
		t, "a new unconfirmed coin",
		u.Broadcast(t.Context(), signedBy(t, u, signer, larger)),
		fault.Unavailable, "replacement_invalid",
	)
	expectPooled(t, u, old.TxHash, waiting)
}

func TestUTXOBroadcastVerifies(t *testing.T) {
	u, signer := newUTXO(t), sim.NewSigner(1, nil)
	wallet := utxoParty(t, u, signer, 0)
	u.Fund(wallet.Address, chain.Units(100_000))
	tx := signedBy(t, u, signer, utxoOrder(u, wallet, u.NewAddress(), 1_000))

	forged := tx
	forged.Raw = slices.Clone(tx.Raw)
	forged.Raw[len(forged.Raw)-40] ^= 1
	expectCode(t, "a forged signature", u.Broadcast(t.Context(), forged), fault.Invalid, "signature_invalid")

	strict := newUTXO(t, func(c *sim.UTXOConfig) { c.DustLimit = 1_001 })
	strict.Fund(wallet.Address, chain.Units(100_000))
	expectCode(t, "dust", strict.Broadcast(t.Context(), tx), fault.Unavailable, "output_dust")
	expectPooled(t, u)
}

func TestUTXODropTakesDescendantsAlong(t *testing.T) {
	u := newUTXO(t)
	parent := send(t, u, 2_000, "")
	send(t, u, 2_000, parent)

	other := send(t, u, 2_000, "")
	if !u.Drop(parent) || u.Drop(parent) {
		t.Error("Drop did not say whether it was there")
	}

	expectPooled(t, u, other)
}

func TestUTXOBumpIsWorthIt(t *testing.T) {
	for name, test := range map[string]struct {
		amount, rate, maxFee uint64
		want                 bool
	}{
		"a cheap payment":               {1_000_000, 1_000, 100_000, true},
		"one that pays enough":          {1_000_000, 10_000, 100_000, false},
		"more than a tenth of it":       {20_000, 1_000, 100_000, false},
		"more than CPFPMaxFee":          {1_000_000, 1_000, 2_000, false},
		"nothing bumped by the network": {1_000_000, 1_000, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUTXO(t, func(c *sim.UTXOConfig) { c.CPFPMaxFee = test.maxFee })
			signer := sim.NewSigner(1, nil)
			wallet := utxoParty(t, u, signer, 0)
			u.Fund(wallet.Address, chain.Units(100_000))

			hash, err := u.Send(sim.UTXOPayment{
				Outputs: []chain.Output{{To: wallet.Address, Amount: chain.Units(test.amount)}},
				FeeRate: test.rate,
			})
			if err != nil {
				t.Fatal(err)
			}

			coin := chain.Coin{
				Outpoint: chain.Outpoint{TxHash: hash},
				Owner:    wallet,
				Amount:   chain.Units(test.amount),
			}

			_, ok, err := u.Bump(t.Context(), coin, wallet, u.Coins(wallet))
			if ok != test.want || err != nil {
				t.Errorf("Bump = %v, %v, want %v", ok, err, test.want)
			}
		})
	}
}

func TestUTXOLostResponsesEnd(t *testing.T) {
	u, signer := newUTXO(t), sim.NewSigner(1, nil)
	wallet := utxoParty(t, u, signer, 0)
	u.Fund(wallet.Address, chain.Units(100_000))
	tx := signedBy(t, u, signer, utxoOrder(u, wallet, u.NewAddress(), 1_000))
	u.LoseNextResponses(1)
	expectCode(t, "the first", u.Broadcast(t.Context(), tx), fault.Unavailable, "node_unavailable")

	if err := u.Broadcast(t.Context(), tx); err != nil {
		t.Errorf("the second: %v", err)
	}
}

package sim_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

func TestUTXOPoolFloor(t *testing.T) {
	for name, test := range map[string]struct {
		rate, floor uint64
		code        string
	}{
		"at the floor":    {2_000, 2_000, ""},
		"below the floor": {1_990, 2_000, "fee_below_floor"},
		"above it":        {2_001, 2_000, ""},
	} {
		t.Run(name, func(t *testing.T) {
			u := newUTXO(t)
			u.SetFloor(test.floor)

			hash, err := u.Send(utxoPayment(u, test.rate, ""))
			if test.code != "" {
				expectCode(t, "Send", err, fault.Unavailable, test.code)
				expectPooled(t, u)

				return
			}

			if err != nil {
				t.Error(err)
			}

			expectPooled(t, u, hash)
		})
	}
}

func TestUTXORaisedFloorEvictsPackages(t *testing.T) {
	u := newUTXO(t)
	cheap := send(t, u, 1_000, "")
	dear := send(t, u, 9_000, "")
	rescued := send(t, u, 1_000, "")
	child := send(t, u, 20_000, rescued)

	u.SetFloor(3_000)
	expectPooled(t, u, dear, rescued, child)

	if _, err := u.Transaction(t.Context(), cheap); !errors.Is(err, fault.NotFound) {
		t.Errorf("the evicted transaction: %v", err)
	}
}

func TestUTXOFullPoolEvictsTheCheapest(t *testing.T) {
	u := newUTXO(t)
	cheap := send(t, u, 2_000, "")
	child := send(t, u, 2_000, cheap) // the newest of the lowest rate
	dear := send(t, u, 9_000, "")

	u.SetPoolSize(300) // two of 130 vB
	expectPooled(t, u, cheap, dear)

	_, err := u.Send(utxoPayment(u, 2_500, ""))
	expectCode(t, "what pays less than was evicted and its relay", err, fault.Unavailable, "fee_below_floor")

	_, err = u.Send(utxoPayment(u, 4_000, ""))
	if err != nil {
		t.Errorf("what pays more than the raised floor: %v", err)
	}

	_, err = u.Send(utxoPayment(u, 3_500, ""))
	expectCode(t, "the cheapest of a full pool", err, fault.Unavailable, "pool_full")

	u.Mine(1)

	if _, err := u.Send(utxoPayment(u, 1_000, "")); err != nil {
		t.Errorf("after a block the floor is still up: %v", err)
	}

	for _, hash := range []string{cheap, child} {
		if slices.Contains(utxoPooled(t, u), hash) {
			t.Errorf("%s is back", hash)
		}
	}
}

func TestUTXOReplacementRules(t *testing.T) {
	for name, test := range map[string]struct {
		fee       func(old chain.Signed) chain.Amount // of the replacement
		childRate uint64                              // of a payer's child of what is replaced; 0 for none
		code      string
	}{
		"more by its own relay": {
			fee: func(old chain.Signed) chain.Amount { return old.MaxFee.Add(chain.Units(200)) },
		},
		"the same fee": {
			fee:  func(old chain.Signed) chain.Amount { return old.MaxFee },
			code: "replacement_underpriced",
		},
		"more by less than its relay": {
			fee:  func(old chain.Signed) chain.Amount { return old.MaxFee.Add(chain.Units(50)) },
			code: "replacement_underpriced",
		},
	} {
		t.Run(name, func(t *testing.T) {
			u, signer := newUTXO(t), sim.NewSigner(1, nil)
			wallet := utxoParty(t, u, signer, 0)
			u.Fund(wallet.Address, chain.Units(100_000))
			order := utxoOrder(u, wallet, u.NewAddress(), 100_000)
			order.SubtractFee = true
			old := signedBy(t, u, signer, order)

			if err := u.Broadcast(t.Context(), old); err != nil {
				t.Fatal(err)
			}

			// The same coin without Replaces: the pool alone decides. The amount sets the rate.
			rival := order
			size := uint64(102) // 84 + 209 + 112 = 405
			fee, _ := test.fee(old).Uint64()
			u.SetFeeRate(fee * 1000 / size)

			rival.Outputs = []chain.Output{order.Outputs[0]}
			rival.Outputs[0].To = u.NewAddress()
			replacement := signedBy(t, u, signer, rival)

			err := u.Broadcast(t.Context(), replacement)
			if test.code != "" {
				expectCode(t, "Broadcast", err, fault.Unavailable, test.code)
				expectPooled(t, u, old.TxHash)

				return
			}

			if err != nil {
				t.Fatal(err)
			}

			expectPooled(t, u, replacement.TxHash)
		})
	}
}

// What a replacement displaces includes the descendants, and their fees.
func TestUTXOReplacementTakesDescendantsAlong(t *testing.T) {
	u := newUTXO(t)
	parent := send(t, u, 1_000, "")
	child := send(t, u, 50_000, parent)
	grandchild := send(t, u, 2_000, child)
	other := send(t, u, 2_000, "")
	expectPooled(t, u, parent, child, grandchild, other)

	replacement := u.DoubleSpend(parent)
	expectPooled(t, u, other, replacement)

	u.Mine(1)

	for _, hash := range []string{parent, child, grandchild} {
		if _, err := u.Transaction(t.Context(), hash); !errors.Is(err, fault.NotFound) {
			t.Errorf("%s: %v, want not found", hash, err)
		}
	}
}

func TestUTXOReplacePaysTheSame(t *testing.T) {
	u := newUTXO(t)
	to := u.NewAddress()
	old := u.Pay(to, chain.Units(70_000))
	u.Replace(old)
	u.Mine(1)

	if got := u.Balance(to); got != chain.Units(70_000) {
		t.Errorf("%s arrived, want 70000 once", got)
	}

	if _, err := u.Transaction(t.Context(), old); !errors.Is(err, fault.NotFound) {
		t.Errorf("the replaced transaction: %v", err)
	}
}

func TestUTXOChainsAreBounded(t *testing.T) {
	u := newUTXO(t)
	last := send(t, u, 2_000, "")

	for range 24 {
		last = send(t, u, 2_000, last)
	}

	_, err := u.Send(utxoPayment(u, 2_000, last))
	expectCode(t, "the 26th of a chain", err, fault.Unavailable, "ancestors_exceeded")

	u.Mine(1)

	if left := utxoPooled(t, u); len(left) != 0 {
		t.Errorf("%d of the chain were left out of an empty block", len(left))
	}
}

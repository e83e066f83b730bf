package sweep_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
)

// pricedUTXO is a network on which each input costs the same.
type pricedUTXO struct {
	utxo
	fee chain.Amount
}

func (u pricedUTXO) InputFees(_ context.Context, coins []chain.Coin) ([]chain.Amount, error) {
	fees := make([]chain.Amount, len(coins))
	for i := range fees {
		fees[i] = u.fee
	}

	return fees, nil
}

// Pitfall 49. An input that costs more than half of what it holds is held; the others go without it.
func TestInputsPayForThemselves(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.driver = pricedUTXO{utxo{w.chain}, milli(10)}
	w.boot()

	opened := map[string]settlement.Settlement{}

	for i, deposit := range []struct {
		payment string
		amount  chain.Amount
	}{{"dust", milli(19)}, {"honest", coin(1)}, {"least", milli(20)}} {
		s := w.open(deposit.payment, w.deposit(uint32(i+1)), "SIM", deposit.amount, 2000)
		opened[deposit.payment] = s

		held := wallet.Coin{
			Network: network,
			Coin: chain.Coin{
				Outpoint: chain.Outpoint{TxHash: deposit.payment},
				Owner:    s.Deposit,
				Amount:   deposit.amount,
				Height:   1,
			},
		}

		if err := w.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			return tx.PutCoin(ctx, &held)
		}); err != nil {
			t.Fatal(err)
		}
	}

	if _, err := w.sweeper.Step(t.Context(), network); err != nil {
		t.Fatal(err)
	}

	release := w.get(opened["honest"].ID).SweepID
	if release == "" || w.get(opened["least"].ID).SweepID != release {
		t.Errorf(
			"what pays for its input is in releases %q and %q",
			release,
			w.get(opened["least"].ID).SweepID,
		)
	}

	if got := w.get(opened["dust"].ID); got.Status != settlement.Held || got.Reason != settlement.Uneconomic {
		t.Errorf("the dust is %s %s", got.Status, got.Reason)
	}
}

// Of many coins that are not worth spending each is held with its reason, not only as many as one release takes; those
// that are worth it are released.
func TestEachUneconomicCoinIsHeld(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.driver = pricedUTXO{utxo{w.chain}, milli(10)}
	w.boot()

	const dust = 320

	var opened []settlement.Settlement

	for i := range dust + 2 {
		amount := milli(uint64(1 + i%19)) // less than twice an input's fee
		if i >= dust {
			amount = coin(1)
		}

		payment := fmt.Sprint("p", i)
		s := w.open(payment, w.deposit(uint32(i+1)), "SIM", amount, 0)
		opened = append(opened, s)

		held := wallet.Coin{
			Network: network,
			Coin: chain.Coin{
				Outpoint: chain.Outpoint{TxHash: payment},
				Owner:    s.Deposit,
				Amount:   amount,
				Height:   1,
			},
		}

		if err := w.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			return tx.PutCoin(ctx, &held)
		}); err != nil {
			t.Fatal(err)
		}
	}

	for steps, did := 0, true; did; steps++ {
		var err error
		if did, err = w.sweeper.Step(t.Context(), network); err != nil || steps > 20 {
			t.Fatalf("step %d: %v", steps, err)
		}
	}

	for i, s := range opened {
		got := w.get(s.ID)
		if i >= dust && got.SweepID == "" ||
			i < dust && (got.Status != settlement.Held || got.Reason != settlement.Uneconomic) {
			t.Fatalf("%s of %s is %s (%q)", s.PaymentID, s.Gross, got.Status, got.Reason)
		}
	}
}

// A release is left with a deposit of dust once its fee was paid, as a fork took the other payment away. It ends: the
// dust is held, and what else comes to the address is released.
func TestReleaseThatIsLeftWithDustEnds(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.chain.Fund(w.master().Address, "SIM", coin(1))

	deposit := w.deposit(1)
	dust := w.until(w.pay("p1", deposit, "SIM", chain.Units(8), 0).ID, settlement.Held)
	gone := w.pay("p2", deposit, "SIM", coin(1), 2000)

	goOn := w.stopPlanning(func() bool { return !w.get(gone.ID).FeePaid.IsZero() })
	w.run("the fee is paid", func() bool { return !w.get(gone.ID).FeePaid.IsZero() })

	if s := w.get(dust.ID); s.SweepID == "" || s.SweepID != w.get(gone.ID).SweepID {
		t.Fatalf("the dust is %s in release %q", s.Status, s.SweepID)
	}

	w.lose("p2")
	goOn()

	tokens := w.pay("p3", deposit, "USDX", dollars(400), 400)
	w.until(tokens.ID, settlement.Released)
	w.until(dust.ID, settlement.Held)
	w.run("nothing is under way", func() bool { return w.live(deposit) == 0 })
	w.costsAreOnChain("in the end", dust.ID, gone.ID, tokens.ID)
}

// What a release took for a payment that left it is owed at the address, when the release ends without a sweep: the
// money that is there again, by another transaction, is released for what is left of it.
func TestCostsOfADetachedSettlementAreOwed(t *testing.T) {
	w := newHarness(t, account.Settings{})
	deposit := w.deposit(1)
	dust := w.until(w.pay("p1", deposit, "SIM", chain.Units(8), 0).ID, settlement.Held)
	gone := w.pay("p2", deposit, "SIM", coin(1), 2000)

	goOn := w.stopPlanning(func() bool { return !w.get(gone.ID).FeePaid.IsZero() })
	w.run("the fee is paid", func() bool { return !w.get(gone.ID).FeePaid.IsZero() })
	w.lose("p2")
	goOn()
	w.until(dust.ID, settlement.Held)

	again := w.open("p3", deposit, "SIM", coin(1), 2000)
	more := w.pay("p4", deposit, "SIM", coin(1), 2000)
	w.run("both are over", func() bool {
		for _, id := range []string{again.ID, more.ID} {
			if s := w.get(id); s.Status == settlement.Failed {
				t.Fatalf("a settlement failed as %s; %s is owed at the address", s.Reason, w.owed(deposit))
			}
		}

		return w.get(again.ID).Status == settlement.Released && w.get(more.ID).Status == settlement.Released
	})
	w.costsAreOnChain("in the end", dust.ID, gone.ID, again.ID, more.ID)
}

// A transaction that is not on record took what a payment without a price had brought: its settlement is not open yet.
// Of another payment there next to nothing is left by that, and it goes with the settlement once that is open. While a
// person may still say that the transaction was its sweep, it waits for that.
func TestWhatIsOwedIsNotSweptAtALoss(t *testing.T) {
	for name, c := range map[string]struct {
		to     chain.Address
		status settlement.Status
	}{
		"a stranger took it":         {"stranger", settlement.Held},
		"it is at the master wallet": {"", settlement.Pending},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, account.Settings{})
			w.chain.Fund(w.master().Address, "SIM", coin(1))
			deposit := w.deposit(1)

			if c.to == "" {
				c.to = w.master().Address
			}

			w.foreignTransfer(deposit, c.to, dollars(100))
			w.chain.Pay(deposit.Address, "USDX", dollars(100).Add(chain.Units(1)))
			w.chain.Mine(3)

			later := w.open("p2", deposit, "USDX", dollars(100).Add(chain.Units(1)), 100)
			for range 20 {
				w.work()
				w.pass(5 * time.Second)
			}

			s := w.get(later.ID)
			if s.Status != c.status || c.status == settlement.Held && s.Reason != settlement.Uneconomic {
				t.Fatalf("it is %s %s", s.Status, s.Reason)
			}

			w.check("left", w.chain.Balance(deposit.Address, "USDX"), dollars(100).Add(chain.Units(1)))

			earlier := w.open("p1", deposit, "USDX", dollars(100), 100)
			earlier, later = w.until(earlier.ID, settlement.Released), w.until(later.ID, settlement.Released)
			w.check("released", earlier.NetReleased.Add(*later.NetReleased), dollars(100).Add(chain.Units(1)))
			w.check("left in the end", w.chain.Balance(deposit.Address, "USDX"), chain.Amount{})
			w.check("owed in the end", w.owedToken(deposit, "USDX"), chain.Amount{})
		})
	}
}

// foreignTransfer records a transaction of a deposit's address that nobody here made, which sent tokens away, and that
// a person said so.
func (w *harness) foreignTransfer(from chain.Party, to chain.Address, amount chain.Amount) {
	w.t.Helper()
	w.putForeign(from, wallet.Outgoing{
		Block: chain.Ref{Height: 1, Hash: "b", Time: w.now},
		Transfers: []chain.Transfer{{
			TxHash:  "foreign",
			From:    from.Address,
			To:      to,
			AssetID: w.asset("USDX").ID,
			Amount:  amount,
		}},
	})
}

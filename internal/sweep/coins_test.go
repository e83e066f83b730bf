package sweep_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/store"
)

// utxo plans as on a network that spends outputs: one transaction for the deposits of several addresses.
type utxo struct{ *sim.Chain }

func (utxo) Unspent(context.Context, []chain.Outpoint) (chain.Ref, []chain.Amount, error) {
	return chain.Ref{}, nil, fault.New(fault.Unavailable, "unspent_unknown", "nobody asks here")
}

func (u utxo) PlanSweep(_ context.Context, r chain.SweepRequest) ([]chain.SweepStep, error) {
	native, _ := u.Network().Native()

	return []chain.SweepStep{
		{
			Kind:       chain.StepSweep,
			NetworkFee: milli(1),
			Order: chain.Order{
				From:        r.Deposit,
				SubtractFee: true,
				Coins:       r.Coins,
				MaxFee:      milli(2),
				Outputs:     []chain.Output{{To: r.Master.Address, AssetID: native.ID, Amount: r.Amount}},
			},
		},
	}, nil
}

// outputOf says that every payment is the first output of a transaction that is called like it.
func outputOf(
	_ context.Context,
	payments []string,
) (map[string]chain.Outpoint, error) {
	out := map[string]chain.Outpoint{}
	for _, id := range payments {
		out[id] = chain.Outpoint{TxHash: id}
	}

	return out, nil
}

// arrive puts the output that pays one coin to a deposit's address into the UTXO index.
func (w *harness) arrive(payment string, deposit chain.Party) {
	w.t.Helper()

	c := wallet.Coin{
		Network: network,
		Coin: chain.Coin{
			Outpoint: chain.Outpoint{TxHash: payment},
			Owner:    deposit,
			Amount:   coin(1),
			Height:   1,
		},
	}

	if err := w.store.Update(
		w.t.Context(),
		func(ctx context.Context, tx store.Tx) error { return tx.PutCoin(ctx, &c) },
	); err != nil {
		w.t.Fatal(err)
	}
}

// A deposit whose coin is not in the UTXO index keeps none of the others waiting, joins a later release
// when its coin comes, and fails by itself when it does not.
func TestMissingCoinDelaysNobodyElse(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.driver = utxo{w.chain}
	w.boot()

	opened := map[string]settlement.Settlement{}
	arrive := func(payment string) { w.arrive(payment, opened[payment].Deposit) }
	plan := func() {
		t.Helper()

		if _, err := w.sweeper.Step(t.Context(), network); err != nil {
			t.Fatal(err)
		}
	}

	for i, payment := range []string{"p1", "p2", "p3", "p4"} {
		opened[payment] = w.open(payment, w.deposit(uint32(i+1)), "SIM", coin(1), 2000)
	}

	arrive("p1")
	arrive("p3")
	plan()

	now := func(payment string) settlement.Settlement { return w.get(opened[payment].ID) }

	first := now("p1").SweepID
	if first == "" || now("p3").SweepID != first {
		t.Errorf("the coins that are there are in releases %q and %q", first, now("p3").SweepID)
	}

	r, err := w.store.Sweep(t.Context(), first)
	if err != nil || len(r.SettlementIDs) != 2 || r.Amount != coin(2) {
		t.Errorf("released together are %v, %s: %v", r.SettlementIDs, r.Amount, err)
	}

	for _, payment := range []string{"p2", "p4"} {
		if s := now(payment); s.Status != settlement.Pending || s.SweepID != "" || !s.DueAt.After(w.now) {
			t.Errorf("without its coin %s is %+v", payment, s)
		}
	}

	arrive("p2")

	w.now = w.now.Add(time.Minute)

	plan()

	if id := now("p2").SweepID; id == "" || id == first || now("p4").SweepID != "" {
		t.Errorf("when its coin had come, p2 was in release %q and p4 in %q", id, now("p4").SweepID)
	}

	w.now = w.now.Add(15 * time.Minute)
	opened["p5"] = w.open("p5", w.deposit(5), "SIM", coin(1), 2000)

	arrive("p5")
	plan()

	if s := now("p4"); s.Status != settlement.Failed || s.Reason != settlement.FundsMissing {
		t.Errorf("after 16 minutes without its coin p4 is %s %s", s.Status, s.Reason)
	}

	if now("p5").SweepID == "" {
		t.Error("p5 is in no release")
	}

	if failed := slices.DeleteFunc(
		slices.Clone(w.events),
		func(e event.Event) bool { return e.Type != event.SettlementFailed },
	); len(failed) != 1 ||
		failed[0].ObjectID != opened["p4"].ID {
		t.Errorf("published as failed are %v", failed)
	}
}

// A foreign transaction spent another coin of an address, and paid its fee out of that: a release that spends the coin
// which is left bears none of it.
func TestForeignTransactionOfACoinIsNotBorne(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.driver = utxo{w.chain}
	w.boot()

	deposit := w.deposit(1)
	s := w.open("p1", deposit, "SIM", coin(1), 2000)
	w.arrive("p1", deposit)
	w.putForeign(deposit, wallet.Outgoing{
		Block:    chain.Ref{Height: 1, Hash: "b"},
		Outpoint: chain.Outpoint{TxHash: "gone"},
		Fee:      milli(1),
	})

	if _, err := w.sweeper.Step(t.Context(), network); err != nil {
		t.Fatal(err)
	}

	w.check("borne", w.borne(w.get(s.ID)), chain.Amount{})
}

// A transaction of lost records spent the coins of two addresses: it is acknowledged as that of both settlements, or of
// the one that is on record. Then the other's coin was not released by it.
func TestLostSweepOfTwoAddresses(t *testing.T) {
	for name, known := range map[string][]string{"both on record": {"p1", "p2"}, "one on record": {"p1"}} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, account.Settings{ManualRelease: true})
			w.driver = utxo{w.chain}
			w.boot()

			block := chain.Ref{Height: 7, Hash: "taken", Time: w.now}
			lost := txmgr.Fulfillment{
				Network: network,
				Status: chain.TxStatus{
					State: chain.TxIncluded,
					Block: block,
					Final: true,
					Fee:   milli(2),
					Transfers: []chain.Transfer{{
						TxHash:  "taken",
						To:      w.master().Address,
						AssetID: w.asset("SIM").ID,
						Amount:  coin(2).Sub(milli(2)),
					}},
				},
			}

			var (
				ids   []string
				gross chain.Amount
			)

			for i, payment := range known {
				deposit := w.deposit(uint32(i + 1))
				ids = append(ids, w.open(payment, deposit, "SIM", coin(1), 2000).ID)
				gross = gross.Add(coin(1))

				lost.Rows = append(lost.Rows, wallet.Outgoing{
					TxHash:   "taken",
					Address:  deposit.Address,
					Outpoint: chain.Outpoint{TxHash: payment},
					Block:    block,
				})
			}

			err := w.update(t.Context(), w.services, func(ctx context.Context, tx store.Tx) error {
				return w.sweeper.FulfillTx(ctx, tx, ids, w.master(), lost)
			})
			if err != nil {
				t.Fatal(err)
			}

			var released chain.Amount

			for i, id := range ids {
				s := w.get(id)
				if s.Status != settlement.Released || s.SweepTx != "taken" {
					t.Fatalf("settlement %d is %+v", i, s)
				}

				released = released.Add(*s.NetReleased).Add(s.NetworkFees).Add(s.FeePaid)

				w.check("owed", w.owed(w.deposit(uint32(i+1))), chain.Amount{})
			}

			w.check("released, with its costs", released, gross)
		})
	}
}

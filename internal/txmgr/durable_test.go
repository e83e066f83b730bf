package txmgr_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// durable is a harness on a network of windows with nonce accounts, which is read by block or by address.
type durable struct {
	*harness
	windows *sim.Windows
}

// eachReading runs a test on both readings of a network.
func eachReading(t *testing.T, accounts int, test func(t *testing.T, w *durable)) {
	t.Helper()

	for name, byAddress := range map[string]bool{"Blocks": false, "Addresses": true} {
		t.Run(name, func(t *testing.T) { test(t, newDurable(t, accounts, byAddress)) })
	}
}

func newDurable(t *testing.T, accounts int, byAddress bool) *durable {
	t.Helper()

	w := &durable{harness: &harness{t: t, now: start, store: memory.New()}}
	clock := func() time.Time { return w.now }

	w.chain = sim.New(sim.Config{Clock: clock}) // the same addresses and assets
	w.windows = sim.NewWindows(sim.WindowsConfig{
		Network:       sim.DefaultNetwork(),
		Clock:         clock,
		NonceAccounts: accounts,
	})
	w.signer = sim.NewSigner(7, func(r chain.SignRequest) error {
		if w.policy != nil {
			return w.policy(r)
		}

		return nil
	})
	w.driver = func() chain.Driver {
		if byAddress {
			return w.windows.ByAddress()
		}

		return w.windows
	}
	w.windows.SetIntercept(func(_ context.Context, m sim.Method) error {
		if w.reading {
			return nil
		}

		return w.process.Call(string(m))
	})
	w.windows.Fund(w.master().Address, "SIM", coin(100))
	w.windows.Mine(10)
	w.outbox = w.boot("one")

	if !byAddress {
		w.follow()
	}

	w.read()

	return w
}

func (w *durable) follow() {
	var err error

	w.follower, err = follow.New(follow.Config{
		Driver:       w.windows,
		Handler:      handler{w.harness},
		DB:           scanDB{w.store},
		Owner:        "follower",
		FirstAddress: longAgo,
		Now:          func() time.Time { return w.now },
		Log:          slog.New(slog.DiscardHandler),
	})
	if err != nil {
		w.t.Fatal(err)
	}
}

// until works and mines until a transaction is in a state.
func (w *durable) until(id string, state wallet.State) wallet.Transaction {
	w.t.Helper()

	for range 400 {
		w.work()

		if t := w.get(id); t.State == state {
			return t
		}

		w.now = w.now.Add(5 * time.Second)
		w.windows.Mine(1)
	}

	w.t.Fatalf("transaction never became %s: %+v", state, w.get(id))

	return wallet.Transaction{}
}

// waits lets time pass with a block each minute.
func (w *durable) waits(d time.Duration) {
	for ; d > 0; d -= time.Minute {
		w.now = w.now.Add(time.Minute)
		w.windows.Mine(1)
		w.work()
	}
}

// paid returns what the destination of a payout has.
func (w *durable) paid(t wallet.Transaction) chain.Amount {
	return w.windows.Balance(t.Order.Outputs[0].To, "SIM")
}

// nonceOf returns the durable nonce of the last attempt; all attempts must have the same.
func (w *durable) nonceOf(t wallet.Transaction) chain.DurableNonce {
	w.t.Helper()

	last := walletstate.LastAttempt(&t).Signed.DurableNonce
	for _, a := range t.Attempts {
		if n := a.Signed.DurableNonce; n == nil || *n != *last {
			w.t.Fatalf("an attempt uses %+v, another %+v", n, last)
		}
	}

	return *last
}

// rival includes a transaction of the wallet's key that uses a nonce and is on no record.
func (w *durable) rival(nonce chain.DurableNonce) {
	w.t.Helper()
	w.send(&nonce, chain.Output{To: w.master().Address, AssetID: w.asset("SIM").ID, Amount: milli(1)})
}

// send includes a transaction of the wallet's key that is on no record, and returns its hash.
func (w *durable) send(nonce *chain.DurableNonce, output chain.Output) string {
	w.t.Helper()

	w.reading = true
	defer func() { w.reading = false }()

	order := chain.Order{
		From:         w.master(),
		DurableNonce: nonce,
		MaxFee:       milli(50),
		Outputs:      []chain.Output{output},
	}

	unsigned, err := w.windows.Build(w.t.Context(), order)
	if err != nil {
		w.t.Fatal(err)
	}

	signatures, err := w.signer.Sign(w.t.Context(), chain.SignRequest{Payloads: unsigned.Payloads})
	if err != nil {
		w.t.Fatal(err)
	}

	key, err := w.signer.PublicKey(w.t.Context(), order.From.Key)
	if err != nil {
		w.t.Fatal(err)
	}

	signed, err := w.windows.Assemble(order, unsigned, []chain.PublicKey{key}, signatures)
	if err == nil {
		err = w.windows.Broadcast(w.t.Context(), signed)
	}

	if err != nil {
		w.t.Fatal(err)
	}

	return signed.TxHash
}

// No two live transactions have one nonce account, none of which is used twice, and all payouts are paid.
func TestNonceAccountsTakeTurns(t *testing.T) {
	eachReading(t, 2, func(t *testing.T, w *durable) {
		var payouts []wallet.Transaction
		for n := range uint64(7) {
			payouts = append(payouts, w.payout("SIM", milli(n+1)))
		}

		used := map[string]string{}

		for range 400 {
			w.work()

			inFlight := map[chain.Address]string{}

			for _, p := range payouts {
				now := w.get(p.ID)
				if len(now.Attempts) == 0 {
					continue
				}

				nonce := w.nonceOf(now)
				if other := used[chaindata.SpendKey(chaindata.NonceSpend(nonce))]; other != "" &&
					other != p.ID {
					t.Fatalf("%+v is used by %s and %s", nonce, other, p.ID)
				}

				used[chaindata.SpendKey(chaindata.NonceSpend(nonce))] = p.ID

				if other := inFlight[nonce.Account]; walletstate.Live(now) && other != "" {
					t.Fatalf("%s and %s have one nonce account", other, p.ID)
				}

				if walletstate.Live(now) {
					inFlight[nonce.Account] = p.ID
				}
			}

			w.now = w.now.Add(5 * time.Second)
			w.windows.Mine(1)
		}

		for n, p := range payouts {
			if w.until(p.ID, wallet.Confirmed); w.paid(p) != milli(uint64(n+1)) {
				t.Errorf("payout %d: %s arrived", n, w.paid(p))
			}
		}
	})
}

// A node that is behind shows a nonce that was used: nothing is signed with it again.
func TestNodeBehindShowsAUsedNonce(t *testing.T) {
	eachReading(t, 1, func(t *testing.T, w *durable) {
		first := w.until(w.payout("SIM", milli(1)).ID, wallet.Confirmed)

		w.windows.Lag(6)

		second := w.payout("SIM", milli(2))
		w.wait(time.Minute)

		if now := w.get(second.ID); len(now.Attempts) > 0 {
			t.Fatalf("signed with %+v after %+v", w.nonceOf(now), w.nonceOf(first))
		}

		w.windows.Lag(0)

		if w.until(second.ID, wallet.Confirmed); w.paid(second) != milli(2) {
			t.Errorf("%s arrived", w.paid(second))
		}
	})
}

// forgetful is a node that knows no transaction by its hash.
type forgetful struct{ *sim.Windows }

func (forgetful) Status(context.Context, chain.Signed) (chain.TxStatus, error) {
	return chain.TxStatus{}, nil
}

// A payout is in a block that was not read yet, its nonce is used in the final one, and its node denies it: that proves
// nothing until the blocks up to there were read.
func TestUsedNonceProvesNoUnreadBlock(t *testing.T) {
	w := newDurable(t, 1, false)
	p := w.payout("SIM", milli(5))
	w.work()

	follower := w.follower
	w.follower = nil // nothing is read
	w.driver = func() chain.Driver { return forgetful{w.windows} }
	w.outbox = w.boot("two")
	w.windows.Mine(40)

	for range 10 {
		w.now = w.now.Add(10 * time.Minute)
		w.work()
	}

	if now := w.get(p.ID); now.State == wallet.Failed {
		t.Fatalf("it failed by %+v, and %s arrived", now.Conflict, w.paid(p))
	}

	w.follower, w.driver = follower, func() chain.Driver { return w.windows }
	w.outbox = w.boot("three")
	w.until(p.ID, wallet.Confirmed)
}

// Bytes that wait are replaced at their nonce, for more; of all attempts one is included.
func TestReplacementKeepsTheDurableNonce(t *testing.T) {
	eachReading(t, 1, func(t *testing.T, w *durable) {
		p := w.payout("SIM", milli(5))
		w.work()
		w.windows.SetPrice(sim.DefaultBaseFee * 13 / 10) // the first attempt offers five quarters
		w.waits(10 * time.Minute)

		now := w.until(p.ID, wallet.Confirmed)
		if len(now.Attempts) < 2 || now.TxHash == now.Attempts[0].Signed.TxHash || w.paid(p) != milli(5) {
			t.Errorf("paid %s with %d attempts", w.paid(p), len(now.Attempts))
		}

		w.nonceOf(now)
	})
}

// Bytes that cannot be replaced within their maximum never run out: a cancel at their nonce ends them, and the payout
// fails because of it, at its cost.
func TestCancelUsesTheDurableNonce(t *testing.T) {
	eachReading(t, 1, func(t *testing.T, w *durable) {
		p := w.payout("SIM", milli(5))
		w.work()
		w.windows.SetPrice(1000 * sim.DefaultBaseFee)
		w.waits(5 * time.Hour)

		if now := w.get(p.ID); now.State != wallet.Broadcast {
			t.Fatalf("after 5 hours it is %s", now.State)
		}

		next := w.payout("SIM", milli(3)) // waits for the account
		w.waits(90 * time.Minute)

		now := w.until(p.ID, wallet.Failed)
		if now.Failure != wallet.FailConflict || !now.Conflict.Own || now.Fee.IsZero() ||
			!w.paid(p).IsZero() {
			t.Errorf("ended as %s by %+v at %s, paid %s", now.Failure, now.Conflict, now.Fee, w.paid(p))
		}

		w.windows.SetPrice(sim.DefaultBaseFee)

		if w.until(next.ID, wallet.Confirmed); w.paid(next) != milli(3) {
			t.Errorf("%s arrived of the next", w.paid(next))
		}
	})
}

// Somebody else with the key uses the nonce: the payout fails once that is final, and was paid by nobody. Where the
// block leaves the chain before, it is paid.
func TestNonceUsedByOthersIsAConflict(t *testing.T) {
	eachReading(t, 1, func(t *testing.T, w *durable) {
		lost := w.payout("SIM", milli(5))
		w.work()

		now := w.get(lost.ID)
		w.windows.Drop(now.TxHash)
		w.rival(w.nonceOf(now))
		w.windows.Mine(1)
		w.work()

		if now = w.get(lost.ID); now.State != wallet.Broadcast {
			t.Fatalf("before the other is final it is %s, %s", now.State, now.Failure)
		}

		now = w.until(lost.ID, wallet.Failed)
		if now.Failure != wallet.FailConflict || now.Conflict.Own || !w.paid(lost).IsZero() {
			t.Errorf("ended as %s by %+v, paid %s", now.Failure, now.Conflict, w.paid(lost))
		}

		forked := w.payout("SIM", milli(7))
		w.work()

		now = w.get(forked.ID)
		w.windows.Drop(now.TxHash)
		w.rival(w.nonceOf(now))
		w.windows.Mine(1)
		w.work()
		w.windows.Fork(sim.Fork{Depth: 1, Fate: sim.DropOrphan})
		w.now = w.now.Add(time.Minute)

		if w.until(forked.ID, wallet.Confirmed); w.paid(forked) != milli(7) {
			t.Errorf("%s arrived after the fork", w.paid(forked))
		}
	})
}

// With accounts that cannot be used, payouts run out instead, and Health names the accounts until they can be.
func TestUnusableNonceAccountsAreNamed(t *testing.T) {
	eachReading(t, 2, func(t *testing.T, w *durable) {
		w.windows.CloseNonces(w.master().Address, true)

		p := w.until(w.payout("SIM", milli(5)).ID, wallet.Confirmed)
		if signed := walletstate.LastAttempt(
			&p,
		).Signed; signed.DurableNonce != nil ||
			signed.ValidToHeight == 0 {
			t.Errorf("paid by %+v", signed)
		}

		named := w.outbox.UnusableNonces(network)
		if len(named) != 2 || named[0].Address != string(w.master().Address) ||
			named[0].AccountID != owner.AccountID || !strings.Contains(named[1].Reason, "nonce-1") {
			t.Errorf("named are %+v", named)
		}

		w.windows.CloseNonces(w.master().Address, false)

		if p := w.until(
			w.payout("SIM", milli(6)).ID,
			wallet.Confirmed,
		); walletstate.LastAttempt(&p).Signed.DurableNonce == nil {
			t.Error("the next payout uses no nonce account")
		}

		if named := w.outbox.UnusableNonces(network); len(named) != 0 {
			t.Errorf("still named are %+v", named)
		}
	})
}

// What waits at a nonce that the network takes no more is signed without, and paid once.
func TestRefusedNonceIsLeft(t *testing.T) {
	eachReading(t, 1, func(t *testing.T, w *durable) {
		waits := w.payout("SIM", milli(5))
		w.work()
		w.nonceOf(w.get(waits.ID))
		w.windows.RefuseNonces()

		next := w.payout("SIM", milli(3)) // waits for the account

		for _, p := range []wallet.Transaction{waits, next} {
			now := w.until(p.ID, wallet.Confirmed)
			if walletstate.LastAttempt(&now).Signed.DurableNonce != nil ||
				w.paid(p) != p.Order.Outputs[0].Amount {
				t.Errorf("paid %s by %+v", w.paid(p), walletstate.LastAttempt(&now).Signed)
			}
		}
	})
}

// Payouts with durable nonces are paid once, wherever a process dies.
func TestDurableNoncesPayOnceWhereverAProcessDies(t *testing.T) {
	for _, byAddress := range []bool{false, true} {
		for at, killed := 1, true; killed; at++ {
			killed = false

			for _, after := range []bool{false, true} {
				t.Run(fmt.Sprint(byAddress, at, after), func(t *testing.T) {
					w := newDurable(t, 1, byAddress)
					first, second := w.payout("SIM", milli(5)), w.payout("SIM", milli(6))

					w.process.Arm(at, after)
					w.work()
					w.windows.SetPrice(sim.DefaultBaseFee * 13 / 10)
					w.waits(5 * time.Minute) // replaced
					w.until(second.ID, wallet.Confirmed)

					killed = killed || len(w.process.Disarm()) >= at

					for p, want := range map[string]chain.Amount{first.ID: milli(5), second.ID: milli(6)} {
						now := w.until(p, wallet.Confirmed)
						if w.nonceOf(now); w.paid(now) != want {
							t.Errorf("%s arrived, want %s", w.paid(now), want)
						}
					}
				})
			}
		}
	}
}

// Stake that nobody takes back is named by Health, with what stands in the way, until it is back.
func TestStakeThatIsOutIsNamed(t *testing.T) {
	w := newDurable(t, 0, false)

	undelegation := func() wallet.Transaction {
		return w.enqueue(wallet.Transaction{
			Owner:    owner,
			Network:  network,
			Kind:     wallet.Undelegate,
			ObjectID: "delegation",
			Order: chain.Order{
				From:   w.master(),
				MaxFee: milli(10),
				Outputs: []chain.Output{
					{To: w.windows.NewAddress(), AssetID: w.asset("SIM").ID, Amount: milli(7)},
				},
			},
		})
	}
	named := func() string {
		t.Helper()

		wallets, err := w.outbox.StuckWallets(t.Context(), network)
		if err != nil || len(wallets) > 1 {
			t.Fatal(wallets, err)
		}

		if len(wallets) == 0 {
			return ""
		}

		named := wallets[0]
		if named.Address != string(w.master().Address) || named.AccountID != owner.AccountID {
			t.Errorf("named is %+v", named)
		}

		return named.Reason
	}

	w.policy = func(chain.SignRequest) error { return chain.Refuse("policy") }
	w.until(undelegation().ID, wallet.Failed)

	again := undelegation()

	if got := named(); got != "" {
		t.Errorf("named at once: %s", got)
	}

	w.now = w.now.Add(20 * time.Minute)

	if got := named(); !strings.Contains(got, "signer_refused:policy") ||
		!strings.Contains(got, string(again.Order.Outputs[0].To)) {
		t.Errorf("named is %q", got)
	}

	w.policy = nil
	w.until(again.ID, wallet.Confirmed)

	if got := named(); got != "" {
		t.Errorf("named when it is back: %s", got)
	}
}

// A person says that a transaction of lost records paid a payout whose own bytes never run out: these are canceled at
// their nonce, and pay nobody.
func TestFulfilledPayoutsDurableBytesAreCanceled(t *testing.T) {
	eachReading(t, 1, func(t *testing.T, w *durable) {
		p := w.payout("SIM", milli(5))
		w.work()

		own := w.get(p.ID).TxHash
		nonce := w.nonceOf(w.get(p.ID))
		w.windows.Drop(own)

		hash := w.send(nil, p.Order.Outputs[0])
		out := p.Order.Outputs[0]
		status := chain.TxStatus{
			State: chain.TxIncluded,
			Block: w.windows.Mine(1),
			Final: true,
			Transfers: []chain.Transfer{{
				TxHash:  hash,
				From:    w.master().Address,
				To:      out.To,
				AssetID: out.AssetID,
				Amount:  out.Amount,
			}},
		}

		err := db{w.store, w.harness}.Update(t.Context(), func(ctx context.Context, tx wallet.Tx) error {
			return w.outbox.FulfillTx(ctx, tx, txmgr.Fulfillment{
				Network: network,
				Rows: []wallet.Outgoing{
					{Network: network, Address: w.master().Address, TxHash: hash},
				},
				Status:         status,
				TransactionIDs: []string{p.ID},
			})
		})
		if err != nil {
			t.Fatal(err)
		}

		w.waits(30 * time.Minute)

		cancels := w.cancels()
		if len(cancels) != 1 || cancels[0].State != wallet.Confirmed || w.nonceOf(cancels[0]) != nonce {
			t.Fatalf("the cancels are %+v", cancels)
		}

		if got := w.get(p.ID); got.State != wallet.Confirmed || got.TxHash != hash || w.paid(p) != milli(5) {
			t.Errorf("it is %s by %s, paid %s", got.State, got.TxHash, w.paid(p))
		}
	})
}

// A fork deeper than finality takes the block of a reverted payout away, and its nonce is free again: its bytes, which
// never run out, are displaced by a cancel, so that nothing pays what failed, and the account is used by the next.
func TestForkTakesARevertedDurablePayoutAway(t *testing.T) {
	eachReading(t, 1, func(t *testing.T, w *durable) {
		p := w.payout("SIM", milli(5))
		w.work()
		w.windows.Freeze(p.Order.Outputs[0].To, "SIM", true)

		if got := w.until(p.ID, wallet.Failed); got.Failure != wallet.FailReverted {
			t.Fatalf("failed as %s", got.Failure)
		}

		w.windows.Fork(sim.Fork{Depth: 6, Fate: sim.DropOrphan})
		w.windows.Freeze(p.Order.Outputs[0].To, "SIM", false)
		w.read()
		w.waits(2 * time.Hour)

		next := w.payout("SIM", milli(3))
		if w.until(next.ID, wallet.Confirmed); w.paid(next) != milli(3) {
			t.Errorf("%s arrived of the next", w.paid(next))
		}

		failed := w.get(p.ID)
		if failed.State != wallet.Failed || !w.paid(p).IsZero() {
			t.Errorf("it is %s, and %s arrived", failed.State, w.paid(p))
		}

		cancels := w.cancels()
		if len(cancels) != 1 || failed.Failure != wallet.FailConflict || failed.Fee != cancels[0].Fee ||
			failed.Conflict != (wallet.Conflict{TxHash: cancels[0].TxHash, Own: true}) {
			t.Errorf(
				"it failed as %s by %+v at %s, the cancels are %+v",
				failed.Failure,
				failed.Conflict,
				failed.Fee,
				cancels,
			)
		}

		_ = w.windows.Broadcast(
			t.Context(),
			walletstate.LastAttempt(&failed).Signed,
		) // somebody kept its bytes
		w.waits(10 * time.Minute)

		if !w.paid(p).IsZero() {
			t.Errorf("what failed paid %s", w.paid(p))
		}
	})
}

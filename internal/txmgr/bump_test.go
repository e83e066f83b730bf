package txmgr_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/crashtest"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
)

// pond is a network that spends outputs, with a payment "p" that waits in its pool. What it does is
// an effect that a process can die at.
type pond struct {
	*outputs
	book     *ledgerBook
	deposit  chain.Party
	off      bool
	waits    bool // the payment does
	replaced bool // it was, by another transaction that is final
	careless bool // Build leaves the payment out
	rival    func()
}

func newPond(t *testing.T) *pond {
	k := newBook(t)
	p := &pond{book: k, waits: true, deposit: k.signer.Party(chain.RoleDeposit, 3, k.chain)}
	p.outputs = &outputs{Driver: k.chain, offered: map[string]int{}, status: map[string]chain.TxStatus{}}
	k.ours[p.deposit.Address] = p.deposit
	p.boot()

	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	must(k.update(t.Context(), func(ctx context.Context, tx wallet.Tx) error {
		return k.outbox.TrackTx(ctx, tx, owner, network, k.master())
	}))
	master := k.master().Address
	k.take(
		follow.Batch{
			Blocks: []chain.Block{block(2, "a", []chain.Transfer{k.pays("m", master), k.pays("n", master)})},
		},
	)
	must(k.outbox.RefreshBalances(t.Context(), network))

	return p
}

// boot starts a process over what is stored.
func (p *pond) boot() {
	registry, err := chain.NewRegistry(p)
	if err != nil {
		p.book.t.Fatal(err)
	}

	p.book.process.Next()
	p.book.processes++
	clock := func() time.Time { return p.book.now }
	p.book.outbox = txmgr.New(txmgr.Config{
		DB:       db{p.book.store, p.book.world},
		Registry: registry,
		Signer:   p.book.signer,
		IDs:      id.New(clock, nil),
		Now:      clock,
		Process:  "pond",
	})
}

func (p *pond) BumpAfter() (time.Duration, bool) { return time.Hour, !p.off }

func (p *pond) Bump(
	_ context.Context,
	c chain.Coin,
	wallet chain.Party,
	coins []chain.Coin,
) (chain.Order, bool, error) {
	if err := p.book.process.Call("Lift"); err != nil {
		return chain.Order{}, false, err
	}

	if rival := p.rival; rival != nil {
		p.rival = nil
		rival()
	}

	native, _ := p.Network().Native()

	return chain.Order{
		From:    wallet,
		Bumps:   &c,
		MaxFee:  milli(50),
		Outputs: []chain.Output{{To: c.Owner.Address, AssetID: native.ID, Amount: c.Amount}},
	}, p.waits && len(coins) > 0, nil
}

func (p *pond) Build(ctx context.Context, order chain.Order) (chain.Unsigned, error) {
	if err := p.book.process.Call("Build"); err != nil {
		return chain.Unsigned{}, err
	}

	if order.Replaces != nil {
		for _, in := range order.Replaces.Inputs {
			if !slices.ContainsFunc(order.Coins, func(c chain.Coin) bool { return c.Outpoint == in }) &&
				(order.Bumps == nil || order.Bumps.Outpoint != in) {
				return chain.Unsigned{}, fault.New(
					fault.Invalid, "replacement_invalid",
					"it has to spend %s, which it was not given",
					in.TxHash,
				)
			}
		}
	}

	if order.Bumps == nil {
		u, err := p.outputs.Build(ctx, order)
		if err == nil && order.SubtractFee {
			u.Outputs = []chain.Output{
				{
					To:      u.Outputs[0].To,
					AssetID: u.Outputs[0].AssetID,
					Amount:  u.Outputs[0].Amount.Sub(u.MaxFee),
				},
			}
		}

		return u, err
	}

	if !p.waits {
		return chain.Unsigned{}, fault.New(fault.NotFound, "lift_over", "it does not wait")
	}

	u, err := p.outputs.Build(ctx, order)
	if err == nil && !p.careless {
		u.Inputs = append([]chain.Outpoint{order.Bumps.Outpoint}, u.Inputs...)
	}

	return u, err
}

func (p *pond) Broadcast(ctx context.Context, tx chain.Signed) error {
	if err := p.book.process.Call("Broadcast"); err != nil {
		return err
	}

	own, err := p.book.store.OwnTransactions(ctx, network, []string{tx.TxHash})
	if err != nil || len(own) != 1 {
		p.book.t.Errorf("bytes were sent before they were stored: %v %v", own, err)
	}

	return p.outputs.Broadcast(ctx, tx)
}

func (p *pond) Status(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
	if err := p.book.process.Call("Status"); err != nil {
		return chain.TxStatus{}, err
	}

	if p.replaced && slices.Contains(tx.Inputs, chain.Outpoint{TxHash: "p"}) {
		return chain.TxStatus{State: chain.TxDead, Reason: chain.ReasonConflict}, nil
	}

	if _, known := p.status[tx.TxHash]; !known && !slices.Contains(p.sent, tx.TxHash) {
		return chain.TxStatus{State: chain.TxUnknown}, nil
	}

	return p.outputs.Status(ctx, tx)
}

// payment is the one that waits.
func (p *pond) payment() txmgr.Waiting {
	return txmgr.Waiting{
		Owner:     owner,
		PaymentID: "payment",
		Network:   network,
		Since:     start,
		Coin:      chain.Coin{Outpoint: chain.Outpoint{TxHash: "p"}, Owner: p.deposit, Amount: coin(5)},
	}
}

// turn does what the engine's worker does, until nothing is due; a process that dies is followed by another.
func (p *pond) turn() {
	k := p.book
	k.t.Helper()

	for range 200 {
		_, err := k.outbox.Bump(k.t.Context(), p.payment(), k.master())

		did := false
		if err == nil {
			did, err = k.outbox.Step(k.t.Context(), network)
		}

		switch {
		case k.process.Dead():
			p.boot()
		case err != nil && !errors.Is(err, crashtest.ErrKilled):
			k.t.Fatal(err)
		case !did:
			return
		}
	}

	k.t.Fatal("the worker runs hot")
}

func (p *pond) wait(d time.Duration) {
	p.book.now = p.book.now.Add(d)
	p.turn()
}

// lifts are the transactions made for the payment.
func (p *pond) lifts() []wallet.Transaction {
	p.book.t.Helper()

	all, err := p.book.store.TransactionsOf(p.book.t.Context(), "payment")
	if err != nil {
		p.book.t.Fatal(err)
	}

	return all
}

func (p *pond) lift() wallet.Transaction {
	p.book.t.Helper()

	all := p.lifts()
	if len(all) != 1 {
		p.book.t.Fatalf("%d transactions were made for the payment: %+v", len(all), all)
	}

	return all[0]
}

// mine makes a block that includes the payment and what lifts it.
func (p *pond) mine(height uint64, branch string, child string) string {
	k, master := p.book, p.book.master().Address
	p.waits = false

	var spent []chain.Spend

	transfers := []chain.Transfer{k.pays("p", p.deposit.Address)}
	if child != "" {
		back := k.pays(child, master)
		back.Index = 1
		transfers = append(transfers, k.pays(child, p.deposit.Address), back)
		spent = spends(child, "p", "m")
		p.status[child] = chain.TxStatus{
			State: chain.TxIncluded,
			Final: true,
			Block: block(height, branch, nil).Ref,
		}
	}

	return k.take(
		follow.Batch{PoolRead: true, Blocks: []chain.Block{block(height, branch, transfers, spent...)}},
	)
}

func (p *pond) held() (held, lifted string) {
	k := p.book
	k.t.Helper()

	coins, waits, err := txmgr.CoinsOfPayments(
		k.t.Context(),
		k.store,
		network,
		[]chain.Outpoint{{TxHash: "p"}},
	)
	if err != nil {
		k.t.Fatal(err)
	}

	for _, c := range coins {
		held += c.Outpoint.TxHash
	}

	for o := range waits {
		lifted += o.TxHash
	}

	return held, lifted
}

func (p *pond) balance() wallet.Balance {
	k := p.book
	k.t.Helper()

	if err := k.outbox.RefreshBalances(k.t.Context(), network); err != nil {
		k.t.Fatal(err)
	}

	native, _ := k.network.Native()

	b, _, err := k.store.Balance(k.t.Context(), network, k.master().Address, native.ID)
	if err != nil {
		k.t.Fatal(err)
	}

	return b
}

func TestPaymentIsLifted(t *testing.T) {
	p := newPond(t)
	k := p.book
	p.turn()

	if all := p.lifts(); len(all) != 0 {
		t.Fatalf("lifted at once: %+v", all)
	}

	if err := k.update(t.Context(), func(ctx context.Context, tx wallet.Tx) error {
		return tx.PutAttemptHash(ctx, network, "change", "x", wallet.Payout)
	}); err != nil {
		t.Fatal(err)
	}

	k.take(
		follow.Batch{
			PoolRead: true,
			Pool: []chain.PoolTx{
				{TxHash: "change", Transfers: []chain.Transfer{k.pays("change", k.master().Address)}},
			},
		},
	)
	p.wait(time.Hour)

	got := p.lift()
	if got.State != wallet.Broadcast || got.Kind != wallet.Bump || got.Order.From != k.master() ||
		len(got.Order.Coins) != 0 {
		t.Fatalf("lifted as %+v", got)
	}

	if n := p.offered[string(p.deposit.Address)]; n != 2 {
		t.Errorf("%d coins were offered, want the two in blocks", n)
	}

	if b := p.balance(); b.Reserved != coin(5) {
		t.Errorf("%s are reserved of what the lift takes", b.Reserved)
	}
	// Its outputs in the pool are nobody's yet: neither another payment nor change to build upon.
	pooled := chain.PoolTx{
		TxHash: got.TxHash,
		Transfers: []chain.Transfer{
			k.pays(got.TxHash, p.deposit.Address),
			k.pays(got.TxHash, k.master().Address),
		},
		Spent: spends(got.TxHash, "p", "m"),
	}
	k.want(
		"the lift in the pool", k.take(follow.Batch{PoolRead: true, Pool: []chain.PoolTx{pooled}}),
		"m:0@2, n:0@2, p:0@0",
	)

	if held, lifted := p.held(); held != "" || lifted != "p" {
		t.Errorf("while it waits, %q holds the money and %q is lifted", held, lifted)
	}

	state := p.mine(3, "a", got.TxHash)
	k.want(
		"both in a block",
		state,
		fmt.Sprintf(
			"%s:0@3, %s:1@3, m:0@2 spent by %[1]s@3, n:0@2, p:0@3 spent by %[1]s@3",
			got.TxHash, got.TxHash,
		),
	)

	if held, lifted := p.held(); held != "" || lifted != "p" {
		t.Errorf("before it is final, %q holds the money and %q is lifted", held, lifted)
	}

	p.wait(time.Minute)

	if got = p.lift(); got.State != wallet.Confirmed {
		t.Fatalf("in a block it is %+v", got)
	}

	if held, lifted := p.held(); held != got.TxHash || lifted != "" {
		t.Errorf("in the end %q holds the money and %q is lifted", held, lifted)
	}

	if b := p.balance(); !b.Reserved.IsZero() || len(b.Reservations) != 0 {
		t.Errorf("in the end %+v are reserved", b.Reservations)
	}
}

// Both leave the chain and come back in another block.
func TestLiftInAReorganisation(t *testing.T) {
	p := newPond(t)
	k := p.book
	p.wait(time.Hour)
	child := p.lift().TxHash
	p.mine(3, "a", child)
	p.wait(time.Minute)
	p.status[child] = chain.TxStatus{State: chain.TxPooled}
	fork := follow.Batch{
		Rewound:    true,
		ForkedFrom: chain.Ref{Height: 2, Hash: "a2"},
		PoolRead:   true,
		Blocks:     []chain.Block{block(3, "b", nil)},
	}
	fork.Network = p.Network()

	if err := k.update(
		t.Context(),
		func(ctx context.Context, tx wallet.Tx) error { return k.outbox.ForkTx(ctx, tx, fork) },
	); err != nil {
		t.Fatal(err)
	}

	k.want("the block is gone", k.take(fork), "m:0@2, n:0@2, p:0@0")

	if got := p.lift(); got.State != wallet.Broadcast {
		t.Fatalf("out of its block it is %s", got.State)
	}

	if held, lifted := p.held(); held != "" || lifted != "p" {
		t.Errorf("out of its block, %q holds the money and %q is lifted", held, lifted)
	}

	if b := p.balance(); b.Reserved != p.lift().Attempts[0].Signed.MaxFee {
		t.Errorf("out of its block, %s are reserved", b.Reserved)
	}

	p.mine(4, "b", child)
	p.wait(10 * time.Minute)

	if got := p.lift(); got.State != wallet.Confirmed || len(got.Attempts) != 1 {
		t.Fatalf("in the other block it is %+v", got)
	}

	if held, _ := p.held(); held != child {
		t.Errorf("in the end %q holds the money", held)
	}

	if b := p.balance(); len(b.Reservations) != 0 {
		t.Errorf("in the end %+v are reserved", b.Reservations)
	}
}

func TestLiftDiesWithItsPayment(t *testing.T) {
	p := newPond(t)
	p.wait(time.Hour)
	p.waits, p.replaced = false, true
	p.wait(time.Minute)

	if got := p.lift(); got.Failure != wallet.FailConflict {
		t.Fatalf("it is %s %s", got.State, got.Failure)
	}

	p.book.want("its coins are free", p.book.take(follow.Batch{PoolRead: true}), "m:0@2, n:0@2")

	for _, c := range p.book.coins() {
		if c.ReservedBy != "" {
			t.Errorf("coin %+v is still reserved", c)
		}
	}

	if b := p.balance(); len(b.Reservations) != 0 {
		t.Errorf("still reserved: %+v", b.Reservations)
	}

	p.waits, p.replaced = true, false
	p.wait(time.Hour)
	p.lift() // no second one
}

// Whose transaction left all pools without another one in its place cannot be proven dead: the
// wallet's coin is taken back by a transaction to oneself, and the payment is left alone.
func TestLiftOutOfSightGivesItsCoinsBack(t *testing.T) {
	p := newPond(t)
	p.wait(time.Hour)
	lift := p.lift()
	p.waits = false
	p.status[lift.TxHash] = chain.TxStatus{State: chain.TxPooled}
	p.wait(7 * time.Hour)

	if all := p.book.cancels(); len(all) != 0 {
		t.Fatalf("one that waits in the pool is cancelled: %+v", all)
	}

	p.status[lift.TxHash] = chain.TxStatus{State: chain.TxUnknown}
	p.wait(time.Hour)

	all := p.book.cancels()
	if len(all) != 1 || all[0].State != wallet.Broadcast {
		t.Fatalf("it is cancelled by %+v", all)
	}

	cancel := all[0].Attempts[0].Signed
	if want := []chain.Outpoint{
		{TxHash: "m"},
	}; !slices.Equal(cancel.Inputs, want) ||
		all[0].Order.Outputs[0].Amount != coin(5) {
		t.Errorf("it spends %+v and gives back %s", cancel.Inputs, all[0].Order.Outputs[0].Amount)
	}

	p.status[cancel.TxHash] = chain.TxStatus{
		State: chain.TxIncluded,
		Final: true,
		Block: block(3, "a", nil).Ref,
	}
	p.status[lift.TxHash] = chain.TxStatus{State: chain.TxDead, Reason: chain.ReasonConflict}
	p.wait(10 * time.Minute)

	if got := p.lift(); got.Failure != wallet.FailConflict {
		t.Errorf("it is %s %s", got.State, got.Failure)
	}

	if b := p.balance(); len(b.Reservations) != 0 {
		t.Errorf("still reserved: %+v", b.Reservations)
	}
}

func (w *world) cancels() (out []wallet.Transaction) {
	w.t.Helper()

	all, err := w.store.Transactions(w.t.Context(), network, "", 0)
	if err != nil {
		w.t.Fatal(err)
	}

	return append(
		out,
		slices.DeleteFunc(all, func(t wallet.Transaction) bool { return t.Kind != wallet.Cancel })...)
}

func TestNothingIsLifted(t *testing.T) {
	for name, change := range map[string]func(p *pond){
		"off":               func(p *pond) { p.off = true },
		"it does not wait":  func(p *pond) { p.waits = false },
		"a driver at fault": func(p *pond) { p.careless = true },
		"the wallet is empty": func(p *pond) {
			p.book.take(follow.Batch{Blocks: []chain.Block{block(3, "a", nil, spends("x", "m", "n")...)}})
		},
		"all of it is pledged": func(p *pond) { p.book.reserve("payout", coin(10)) },
		"most of it is pledged, so the coin is": func(p *pond) {
			p.book.reserve("payout", coin(6)) // 4 are free, the lift's coin has 5
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPond(t)
			change(p)
			p.wait(time.Hour)

			if len(p.sent) != 0 {
				t.Errorf("sent %v", p.sent)
			}

			p.wait(time.Hour)

			for _, l := range p.lifts() {
				if l.Live() && l.GiveUpAt.Before(p.book.now) {
					t.Errorf("%+v was not given up", l)
				}
			}

			p.off = true
			p.wait(time.Hour)

			if b := p.balance(); slices.ContainsFunc(
				b.Reservations, func(r wallet.Reservation) bool { return r.ObjectID != "payout" },
			) {
				t.Errorf("reserved: %+v", b.Reservations)
			}
		})
	}
}

func (w *world) reserve(object string, amount chain.Amount) {
	w.t.Helper()

	if err := w.update(w.t.Context(), func(ctx context.Context, tx wallet.Tx) error {
		return w.outbox.ReserveTx(
			ctx, tx, owner, network, w.master().Address, w.asset("SIM").ID, object, amount,
		)
	}); err != nil {
		w.t.Fatal(err)
	}
}

// Another process is faster, while the node is asked.
func TestTwoProcessesLiftOnce(t *testing.T) {
	p := newPond(t)
	p.book.now = p.book.now.Add(time.Hour)
	lift := func() bool {
		queued, err := p.book.outbox.Bump(t.Context(), p.payment(), p.book.master())
		if err != nil {
			t.Error(err)
		}

		return queued
	}
	p.rival = func() {
		if !lift() {
			t.Error("the rival lifts nothing")
		}
	}

	if lift() {
		t.Error("both lift it")
	}

	p.lift()

	if b := p.balance(); len(b.Reservations) != 1 {
		t.Errorf("reserved: %+v", b.Reservations)
	}
}

// The payment gets its block between the lift's row and its signature.
func TestLiftThatIsNotNeededAnyMore(t *testing.T) {
	p := newPond(t)

	p.book.now = p.book.now.Add(time.Hour)
	if queued, err := p.book.outbox.Bump(t.Context(), p.payment(), p.book.master()); err != nil || !queued {
		t.Fatal(queued, err)
	}

	p.mine(3, "a", "")
	p.turn()

	if got := p.lift(); got.Failure != wallet.FailCanceled || len(p.sent) != 0 {
		t.Errorf("it is %s %s, sent %v", got.State, got.Failure, p.sent)
	}

	if held, lifted := p.held(); held != "p" || lifted != "" {
		t.Errorf("%q holds the money and %q is lifted", held, lifted)
	}

	if b := p.balance(); len(b.Reservations) != 0 {
		t.Errorf("still reserved: %+v", b.Reservations)
	}
}

// A process dies at every update and every call of its node, before and after it took effect: one
// lift is made, and nothing is left reserved.
func TestLiftSurvivesDeathAtEveryStep(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("replaced=%v after=%v", replaced, after), func(t *testing.T) {
				for at := 1; ; at++ {
					p := newPond(t)
					booted := p.book.processes
					p.book.process.Arm(at, after)
					p.wait(time.Hour)
					p.wait(2 * time.Minute) // the lease of a dead process runs out

					if replaced {
						p.waits, p.replaced = false, true
					} else {
						p.mine(3, "a", p.lift().TxHash)
					}

					for range 4 {
						p.wait(2 * time.Minute)
					}

					counted := len(p.book.process.Disarm())
					got := p.lift()
					want := map[bool]wallet.State{false: wallet.Confirmed, true: wallet.Failed}[replaced]

					hashes := slices.Compact(slices.Sorted(slices.Values(p.sent)))
					if b := p.balance(); got.State != want || len(got.Attempts) != 1 || len(hashes) != 1 ||
						len(b.Reservations) != 0 {
						t.Fatalf(
							"killed at %d: %s with %d attempts, sent %s, reserved %+v",
							at, got.State, len(got.Attempts), strings.Join(hashes, " and "),
							b.Reservations,
						)
					}

					if p.book.processes == booted {
						if at < 8 {
							t.Fatalf("only %d effects were counted", counted)
						}

						t.Logf("%d deaths survived", at-1)

						return
					}
				}
			})
		}
	}
}

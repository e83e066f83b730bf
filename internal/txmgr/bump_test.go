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
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/internal/testing/crashtest"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// bumpNode is a network that spends outputs, with a payment "p" that waits in its pool. What it does is
// an effect that a process can die at.
type bumpNode struct {
	*outputs
	index    *coinIndex
	deposit  chain.Party
	off      bool
	waits    bool // the payment does
	careless bool // Build leaves the payment out
	rival    func()
}

func newBumpNode(t *testing.T) *bumpNode {
	k := newCoinIndex(t)
	p := &bumpNode{index: k, waits: true, deposit: k.signer.Party(chain.RoleDeposit, 3, k.chain)}
	p.outputs = &outputs{
		Driver:  spy{k.chain, k.harness},
		offered: map[string]int{},
		status:  map[string]chain.TxStatus{},
	}
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
func (p *bumpNode) boot() {
	registry, err := chain.NewRegistry(p)
	if err != nil {
		p.index.t.Fatal(err)
	}

	p.index.process.Next()
	p.index.processes++
	clock := func() time.Time { return p.index.now }
	p.index.outbox = txmgr.New(txmgr.Config{
		DB:       db{p.index.store, p.index.harness},
		Registry: registry,
		Signer:   p.index.signer,
		IDs:      id.New(clock, nil),
		Now:      clock,
		Process:  "pond",
	})
}

func (p *bumpNode) BumpAfter() (time.Duration, bool) { return time.Hour, !p.off }

func (p *bumpNode) Bump(
	_ context.Context,
	c chain.Coin,
	wallet chain.Party,
	coins []chain.Coin,
) (chain.Order, bool, error) {
	if err := p.index.process.Call("Lift"); err != nil {
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

func (p *bumpNode) Build(ctx context.Context, order chain.Order) (chain.Unsigned, error) {
	if err := p.index.process.Call("Build"); err != nil {
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
		return chain.Unsigned{}, fault.New(fault.NotFound, "bump_not_needed", "it does not wait")
	}

	u, err := p.outputs.Build(ctx, order)
	if err == nil && !p.careless {
		u.Inputs = append([]chain.Outpoint{order.Bumps.Outpoint}, u.Inputs...)
		u.UnconfirmedParents = spends("p", "payer")
	}

	return u, err
}

func (p *bumpNode) Broadcast(ctx context.Context, tx chain.Signed) error {
	if err := p.index.process.Call("Broadcast"); err != nil {
		return err
	}

	own, err := p.index.store.OwnTransactions(ctx, network, []string{tx.TxHash})
	if err != nil || len(own) != 1 {
		p.index.t.Errorf("bytes were sent before they were stored: %v %v", own, err)
	}

	return p.outputs.Broadcast(ctx, tx)
}

func (p *bumpNode) Status(ctx context.Context, tx chain.Signed) (chain.TxStatus, error) {
	if err := p.index.process.Call("Status"); err != nil {
		return chain.TxStatus{}, err
	}

	if _, known := p.status[tx.TxHash]; !known && !slices.Contains(p.sent, tx.TxHash) {
		return chain.TxStatus{State: chain.TxUnknown}, nil
	}

	return p.outputs.Status(ctx, tx)
}

// payment is the one that waits.
func (p *bumpNode) payment() txmgr.WaitingPayment {
	return txmgr.WaitingPayment{
		Owner:     owner,
		PaymentID: "payment",
		Network:   network,
		Since:     start,
		Coin:      chain.Coin{Outpoint: chain.Outpoint{TxHash: "p"}, Owner: p.deposit, Amount: coin(5)},
	}
}

// turn does what the engine's worker does, until nothing is due; a process that dies is followed by another.
func (p *bumpNode) turn() {
	k := p.index
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

func (p *bumpNode) wait(d time.Duration) {
	p.index.now = p.index.now.Add(d)
	p.turn()
}

// bumpTxs returns the transactions made for the payment.
func (p *bumpNode) bumpTxs() []wallet.Transaction {
	p.index.t.Helper()

	all, err := p.index.store.TransactionsOf(p.index.t.Context(), "payment")
	if err != nil {
		p.index.t.Fatal(err)
	}

	return all
}

func (p *bumpNode) bumpTx() wallet.Transaction {
	p.index.t.Helper()

	all := p.bumpTxs()
	if len(all) != 1 {
		p.index.t.Fatalf("%d transactions were made for the payment: %+v", len(all), all)
	}

	return all[0]
}

// mine makes a block that includes the payment and its CPFP bump.
func (p *bumpNode) mine(height uint64, branch string, child string) string {
	k, master := p.index, p.index.master().Address
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
			Block: block(height, branch, nil).Ref,
		}
	}

	b := buried(block(height, branch, transfers, spent...), branch)
	b.PoolRead = true

	return k.take(b)
}

// displace makes a final block with another transaction of the payer instead of the payment.
func (p *bumpNode) displace() string {
	p.waits = false

	b := buried(block(3, "a", nil, spends("rival", "payer")...), "a")
	b.PoolRead = true

	return p.index.take(b)
}

func (p *bumpNode) fundingCoin() (held, bumped string) {
	k := p.index
	k.t.Helper()

	coins, waits, err := txmgr.CoinsOfPayments(
		k.t.Context(), k.store, network, []chain.Outpoint{{TxHash: "p"}},
	)
	if err != nil {
		k.t.Fatal(err)
	}

	for _, c := range coins {
		held += c.Outpoint.TxHash
	}

	for o := range waits {
		bumped += o.TxHash
	}

	return held, bumped
}

func (p *bumpNode) balance() wallet.Balance {
	k := p.index
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

func TestPaymentIsBumped(t *testing.T) {
	p := newBumpNode(t)
	k := p.index
	p.turn()

	if all := p.bumpTxs(); len(all) != 0 {
		t.Fatalf("bumped at once: %+v", all)
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

	got := p.bumpTx()
	if got.State != wallet.Broadcast || got.Kind != wallet.Bump || got.Order.From != k.master() ||
		len(got.Order.Coins) != 0 {
		t.Fatalf("bumped as %+v", got)
	}

	if n := p.offered[string(p.deposit.Address)]; n != 2 {
		t.Errorf("%d coins were offered, want the two in blocks", n)
	}

	if b := p.balance(); b.Reserved != coin(5) {
		t.Errorf("%s are reserved of what the bump takes", b.Reserved)
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
		"the bump in the pool", k.take(follow.Batch{PoolRead: true, Pool: []chain.PoolTx{pooled}}),
		"m:0@2, n:0@2, p:0@0",
	)

	if held, bumped := p.fundingCoin(); held != "" || bumped != "p" {
		t.Errorf("while it waits, %q holds the money and %q is bumped", held, bumped)
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

	if held, bumped := p.fundingCoin(); held != "" || bumped != "p" {
		t.Errorf("before it is final, %q holds the money and %q is bumped", held, bumped)
	}

	p.wait(time.Minute)

	if got = p.bumpTx(); got.State != wallet.Confirmed {
		t.Fatalf("in a block it is %+v", got)
	}

	if held, bumped := p.fundingCoin(); held != got.TxHash || bumped != "" {
		t.Errorf("in the end %q holds the money and %q is bumped", held, bumped)
	}

	if b := p.balance(); !b.Reserved.IsZero() || len(b.Reservations) != 0 {
		t.Errorf("in the end %+v are reserved", b.Reservations)
	}
}

// Both leave the chain and come back in another block.
func TestBumpInAReorganisation(t *testing.T) {
	p := newBumpNode(t)
	k := p.index
	p.wait(time.Hour)
	child := p.bumpTx().TxHash
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

	k.want("the block is gone", k.take(fork), "m:0@2, n:0@2, p:0@0")

	if got := p.bumpTx(); got.State != wallet.Broadcast {
		t.Fatalf("out of its block it is %s", got.State)
	}

	if held, bumped := p.fundingCoin(); held != "" || bumped != "p" {
		t.Errorf("out of its block, %q holds the money and %q is bumped", held, bumped)
	}

	if b := p.balance(); b.Reserved != p.bumpTx().Attempts[0].Signed.MaxFee {
		t.Errorf("out of its block, %s are reserved", b.Reserved)
	}

	p.mine(4, "b", child)
	p.wait(10 * time.Minute)

	if got := p.bumpTx(); got.State != wallet.Confirmed || len(got.Attempts) != 1 {
		t.Fatalf("in the other block it is %+v", got)
	}

	if held, _ := p.fundingCoin(); held != child {
		t.Errorf("in the end %q holds the money", held)
	}

	if b := p.balance(); len(b.Reservations) != 0 {
		t.Errorf("in the end %+v are reserved", b.Reservations)
	}
}

func TestBumpFailsWithItsPayment(t *testing.T) {
	p := newBumpNode(t)
	p.wait(time.Hour)
	p.displace()
	p.wait(time.Minute)

	got := p.bumpTx()
	if got.Failure != wallet.FailConflict || got.Conflict != (wallet.Conflict{TxHash: "rival"}) {
		t.Fatalf("it is %s %s, against %+v", got.State, got.Failure, got.Conflict)
	}

	p.index.want("its coins are free", p.index.take(follow.Batch{PoolRead: true}), "m:0@2, n:0@2")

	for _, c := range p.index.coins() {
		if c.ReservedBy != "" {
			t.Errorf("coin %+v is still reserved", c)
		}
	}

	if b := p.balance(); len(b.Reservations) != 0 {
		t.Errorf("still reserved: %+v", b.Reservations)
	}

	p.waits = true
	p.wait(time.Hour)
	p.bumpTx() // no second one
}

// The payment was in a block, and a fork has another transaction of the payer in its place.
func TestBumpFailsWithItsPaymentInAFork(t *testing.T) {
	p := newBumpNode(t)
	p.wait(time.Hour)
	p.mine(3, "a", "") // the payment, without its bump

	b := buried(block(3, "b", nil, spends("rival", "payer")...), "b")
	b.Rewound, b.ForkedFrom = true, chain.Ref{Height: 2, Hash: "a2"}
	p.index.scripted(b) // before the coins are indexed
	p.wait(time.Minute)

	if got := p.bumpTx(); got.Conflict != (wallet.Conflict{TxHash: "rival"}) {
		t.Errorf("it is %s %s, against %+v", got.State, got.Failure, got.Conflict)
	}
}

// Whose transaction left all pools without another one in its place cannot be proven dead: the
// wallet's coin is taken back by a transaction to oneself, and the payment is left alone.
func TestUnknownBumpReleasesItsCoins(t *testing.T) {
	p := newBumpNode(t)
	p.wait(time.Hour)
	bump := p.bumpTx()
	p.waits = false
	p.status[bump.TxHash] = chain.TxStatus{State: chain.TxPooled}
	p.wait(7 * time.Hour)

	if all := p.index.cancels(); len(all) != 0 {
		t.Fatalf("one that waits in the pool is cancelled: %+v", all)
	}

	p.status[bump.TxHash] = chain.TxStatus{State: chain.TxUnknown}
	p.wait(time.Hour)

	all := p.index.cancels()
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

	p.status[cancel.TxHash] = chain.TxStatus{State: chain.TxIncluded, Block: block(3, "a", nil).Ref}
	p.index.take(buried(block(3, "a", nil, spends(cancel.TxHash, "m")...), "a"))
	p.wait(10 * time.Minute)

	got := p.bumpTx()
	if got.Failure != wallet.FailConflict ||
		got.Conflict != (wallet.Conflict{TxHash: cancel.TxHash, Own: true}) {
		t.Errorf("it is %s %s, against %+v", got.State, got.Failure, got.Conflict)
	}

	if b := p.balance(); len(b.Reservations) != 0 {
		t.Errorf("still reserved: %+v", b.Reservations)
	}
}

func (w *harness) cancels() (out []wallet.Transaction) {
	w.t.Helper()

	all, err := w.store.Transactions(w.t.Context(), network, "", 0)
	if err != nil {
		w.t.Fatal(err)
	}

	return append(
		out,
		slices.DeleteFunc(all, func(t wallet.Transaction) bool { return t.Kind != wallet.Cancel })...)
}

func TestNothingIsBumped(t *testing.T) {
	for name, change := range map[string]func(p *bumpNode){
		"off":               func(p *bumpNode) { p.off = true },
		"it does not wait":  func(p *bumpNode) { p.waits = false },
		"a driver at fault": func(p *bumpNode) { p.careless = true },
		"the wallet is empty": func(p *bumpNode) {
			p.index.take(follow.Batch{Blocks: []chain.Block{block(3, "a", nil, spends("x", "m", "n")...)}})
		},
		"all of it is pledged": func(p *bumpNode) { p.index.reserve("payout", coin(10)) },
		"most of it is pledged, so the coin is": func(p *bumpNode) {
			p.index.reserve("payout", coin(6)) // 4 are free, the bump's coin has 5
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newBumpNode(t)
			change(p)
			p.wait(time.Hour)

			if len(p.sent) != 0 {
				t.Errorf("sent %v", p.sent)
			}

			p.wait(time.Hour)

			for _, l := range p.bumpTxs() {
				if walletstate.Live(l) && l.GiveUpAt.Before(p.index.now) {
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

func (w *harness) reserve(object string, amount chain.Amount) {
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
func TestTwoProcessesBumpOnce(t *testing.T) {
	p := newBumpNode(t)
	p.index.now = p.index.now.Add(time.Hour)
	bump := func() bool {
		queued, err := p.index.outbox.Bump(t.Context(), p.payment(), p.index.master())
		if err != nil {
			t.Error(err)
		}

		return queued
	}
	p.rival = func() {
		if !bump() {
			t.Error("the rival bumps nothing")
		}
	}

	if bump() {
		t.Error("both bump it")
	}

	p.bumpTx()

	if b := p.balance(); len(b.Reservations) != 1 {
		t.Errorf("reserved: %+v", b.Reservations)
	}
}

// The payment gets its block between the bump's row and its signature.
func TestBumpThatIsNoLongerNeeded(t *testing.T) {
	p := newBumpNode(t)

	p.index.now = p.index.now.Add(time.Hour)
	if queued, err := p.index.outbox.Bump(t.Context(), p.payment(), p.index.master()); err != nil || !queued {
		t.Fatal(queued, err)
	}

	p.mine(3, "a", "")
	p.turn()

	if got := p.bumpTx(); got.Failure != wallet.FailCanceled || len(p.sent) != 0 {
		t.Errorf("it is %s %s, sent %v", got.State, got.Failure, p.sent)
	}

	if held, bumped := p.fundingCoin(); held != "p" || bumped != "" {
		t.Errorf("%q holds the money and %q is bumped", held, bumped)
	}

	if b := p.balance(); len(b.Reservations) != 0 {
		t.Errorf("still reserved: %+v", b.Reservations)
	}
}

// A process dies at every update and every call of its node, before and after it took effect: one
// bump is made, and nothing is left reserved.
func TestBumpSurvivesCrashAtEveryStep(t *testing.T) {
	for _, replaced := range []bool{false, true} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("replaced=%v after=%v", replaced, after), func(t *testing.T) {
				for at := 1; ; at++ {
					p := newBumpNode(t)
					booted := p.index.processes
					p.index.process.Arm(at, after)
					p.wait(time.Hour)

					for range 6 { // the heartbeat of a dead process stands still
						p.wait(20 * time.Second)
					}

					if replaced {
						p.displace()
					} else {
						p.mine(3, "a", p.bumpTx().TxHash)
					}

					for range 4 {
						p.wait(2 * time.Minute)
					}

					counted := len(p.index.process.Disarm())
					got := p.bumpTx()
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

					if p.index.processes == booted {
						if at < 8 {
							t.Fatalf("only %d effects were counted", counted)
						}

						t.Logf("%d crashes survived", at-1)

						return
					}
				}
			})
		}
	}
}

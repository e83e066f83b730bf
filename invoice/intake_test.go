package invoice_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/ingest"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
)

// apply takes a made-up batch in, with the cursor at its last block.
func (w *harness) apply(b follow.Batch, at chain.Ref) {
	w.t.Helper()

	ctx := context.Background()

	b.Network = w.chains[0].Network()
	if b.Head.Tip.IsZero() {
		b.Head.Tip = at
	}

	w.show(b.Blocks)

	err := invoice.ErrUnprepared
	for try := 0; try < 3 && errors.Is(err, invoice.ErrUnprepared); try++ {
		var p ingest.PreparedBatch

		p, err = w.ingester.PrepareBatch(ctx, b)
		w.must(err)

		err = w.update(ctx, func(ctx context.Context, tx *tx) error {
			return w.ingester.ApplyTx(ctx, tx, p, scan.Cursor{Network: b.Network.Slug, At: at, Tip: at})
		})
	}

	w.must(err)
}

// show makes the first network's node show the blocks when they are read again.
func (w *harness) show(blocks []chain.Block) {
	shown := make(map[uint64]chain.Block, len(blocks))
	for _, b := range blocks {
		shown[b.Height] = b

		for w.chains[0].MineEmpty(0).Height < b.Height {
			w.chains[0].MineEmpty(1)
		}
	}

	w.chains[0].SetNode(0, sim.NodeFaults{Blocks: shown})
}

func block(height uint64, hash string, transfers ...chain.Transfer) chain.Block {
	return chain.Block{Ref: chain.Ref{Height: height, Hash: hash, Time: start}, Transfers: transfers}
}

func (w *harness) transfer(inv invoice.Invoice, hash string, index uint32, amount string) chain.Transfer {
	return chain.Transfer{
		TxHash:  hash,
		Index:   index,
		To:      inv.Options[0].Address,
		AssetID: inv.Options[0].AssetID,
		Amount:  chain.MustAmount(amount),
	}
}

func TestWhatIsNoPayment(t *testing.T) {
	w := newHarness(t, account.Settings{})
	inv := w.sell()
	n := w.chains[0].Network()
	signer := sim.NewSigner(1, nil)
	party := signer.Party(chain.RoleMaster, 0, w.chains[0])
	ctx := context.Background()
	w.must(w.store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		for hash, kind := range map[string]wallet.Kind{
			"topup":  wallet.TopUp,
			"fee":    wallet.Fee,
			"sweep":  wallet.Sweep,
			"cancel": wallet.Cancel,
			"payout": wallet.Payout,
		} {
			if err := tx.PutAttemptHash(ctx, n.Slug, hash, "t"+hash, kind); err != nil {
				return err
			}
		}

		return tx.PutAddress(
			ctx,
			invoice.Address{
				Space:   n.Space(),
				Address: party.Address,
				Kind:    invoice.ForWallet,
				Owner:   w.owner,
				Network: n.Slug,
				Key:     party.Key,
			},
		)
	}))
	tooMuch := w.transfer(inv, "toomuch", 0, "1")
	tooMuch.Amount = chain.MaxTransfer.Add(chain.Units(1))
	toWallet := w.transfer(inv, "wallet", 0, "1")
	toWallet.To = party.Address
	foreign := w.transfer(inv, "foreign", 0, "1")
	foreign.AssetID = "ffffffffffffffffffffffff"
	w.apply(follow.Batch{
		Blocks: []chain.Block{
			block(
				1,
				"b1",
				w.transfer(inv, "zero", 0, "0"),
				tooMuch,
				toWallet,
				foreign,
				w.transfer(
					inv, "topup", 0, "1",
				),
				w.transfer(inv, "fee", 0, "1"),
				w.transfer(inv, "sweep", 0, "1"),
				w.transfer(inv, "cancel", 0, "1"),
				w.transfer(inv, "payout", 0, "7"),
			),
		},
	}, chain.Ref{Height: 1, Hash: "b1"})

	if p := w.onlyPayment(inv.ID); p.TxHash != "payout" || p.Amount != chain.Units(7) {
		t.Errorf("the one payment is %+v", p)
	}
}

func TestManyTransfersOfOneTransaction(t *testing.T) {
	w := newHarness(t, account.Settings{})
	inv := w.sell()
	third := "16666666666666667"
	one := w.transfer(inv, "many", 1, third)
	b := follow.Batch{
		Blocks: []chain.Block{
			block(1, "b1", one, w.transfer(inv, "many", 2, third), w.transfer(inv, "many", 3, third), one),
		},
	}
	w.apply(b, chain.Ref{Height: 3, Hash: "b3"})
	w.want(w.get(inv.ID), invoice.Paid)

	if n := len(w.paymentsOf(inv.ID)); n != 3 {
		t.Errorf("%d payments, want 3", n)
	}
}

// Row 12 of the pitfalls: a transaction whose coin or nonce another one took is dropped at once,
// wherever it was seen, and is back when it is mined after all.
func TestReplacedTransactionIsDropped(t *testing.T) {
	for kind, used := range map[string]chain.Spend{
		"coin":  {Outpoint: chain.Outpoint{TxHash: "coin", Vout: 1}},
		"nonce": {Sender: "payer", Nonce: 7},
	} {
		by := func(hash string) []chain.Spend {
			s := used
			s.By = hash

			return []chain.Spend{s}
		}
		other := block(1, "b1'")

		other.Spent = by("other")
		for name, c := range map[string]struct {
			inBlock bool // first seen there, and not in the pool
			next    follow.Batch
		}{
			"in the pool by the pool": {
				false,
				follow.Batch{PoolRead: true, Pool: []chain.PoolTx{{TxHash: "other", Spent: by("other")}}},
			},
			"in the pool by a block": {false, follow.Batch{Blocks: []chain.Block{other}}},
			"with its block, by a fork": {
				true,
				follow.Batch{Rewound: true, ForkedFrom: chain.Ref{Height: 0, Hash: "b0"}, Blocks: []chain.Block{other}},
			},
		} {
			name = kind + ", " + name
			w := newHarness(t, account.Settings{})
			inv := w.sell()

			first := []chain.Transfer{w.transfer(inv, "first", 0, due)}
			if c.inBlock {
				b := block(1, "b1", first...)
				b.Spent = by("first")
				w.apply(follow.Batch{Blocks: []chain.Block{b}}, b.Ref)
			} else {
				w.apply(
					follow.Batch{
						PoolRead: true,
						Pool:     []chain.PoolTx{{TxHash: "first", Transfers: first, Spent: by("first")}},
					},
					chain.Ref{Height: 0, Hash: "b0"},
				)
			}

			w.want(w.get(inv.ID), invoice.Pending)
			w.apply(c.next, chain.Ref{Height: 1, Hash: "b1'"})
			w.want(w.get(inv.ID), invoice.Open)

			if p := w.onlyPayment(inv.ID); p.Status != invoice.Dropped {
				t.Errorf("%s: the payment is %s", name, p.Status)
			}
			// A fork takes the other one out, and the first one is mined after all.
			w.apply(follow.Batch{
				Rewound:    true,
				ForkedFrom: chain.Ref{Height: 0, Hash: "b0"},
				Blocks:     []chain.Block{block(2, "b2", first...)},
			}, chain.Ref{Height: 4, Hash: "b4"})
			w.want(w.get(inv.ID), invoice.Paid)

			if t.Failed() {
				t.Fatal(name)
			}
		}
	}
}

// A transaction in the chain stays there whatever a pool that lags behind shows.
func TestInTheChainIsNotReplaced(t *testing.T) {
	w := newHarness(t, account.Settings{})
	inv := w.sell()
	b := block(1, "b1", w.transfer(inv, "first", 0, due))
	b.Spent = []chain.Spend{{Sender: "payer", Nonce: 7, By: "first"}}
	pool := []chain.PoolTx{{TxHash: "other", Spent: []chain.Spend{{Sender: "payer", Nonce: 7, By: "other"}}}}
	w.apply(follow.Batch{Blocks: []chain.Block{b}, PoolRead: true, Pool: pool}, b.Ref)
	w.want(w.get(inv.ID), invoice.Pending)
	w.apply(follow.Batch{PoolRead: true, Pool: pool}, b.Ref)

	if p := w.onlyPayment(inv.ID); p.Status != invoice.Detected || p.Block.Hash != "b1" {
		t.Errorf("the payment is %+v", p)
	}
}

func TestDroppedAfterADayMissing(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.follow()
	inv := w.create(invoice.CreateParams{
		Price:     &invoice.Price{Currency: "EUR", Amount: "90"},
		Options:   []invoice.OptionParams{{Asset: "SIM", Network: "simnet"}},
		ExpiresIn: 168 * time.Hour,
	})
	hash := w.pay(inv, due)
	w.follow()
	w.chains[0].Drop(hash)
	w.chains[0].MineEmpty(1)
	w.follow()

	p := w.onlyPayment(inv.ID)
	if p.Status != invoice.Detected || p.LostAt.IsZero() {
		t.Fatalf("out of the pool: %+v", p)
	}

	w.pass(24*time.Hour - time.Millisecond)
	w.doDueWork()

	if p := w.onlyPayment(inv.ID); p.Status != invoice.Detected {
		t.Errorf("dropped too early: %+v", p)
	}
	// The node is not in reach: nothing is decided.
	w.pass(time.Millisecond)
	w.chains[0].FailNext(sim.MethodTransaction, errors.New("down"), 1)

	if _, err := w.ingester.Step(context.Background()); err == nil {
		t.Error("a node that is down went unnoticed")
	}

	if p := w.onlyPayment(inv.ID); p.Status != invoice.Detected {
		t.Errorf("dropped without asking the node: %+v", p)
	}

	w.pass(time.Minute)
	w.doDueWork()

	if p := w.onlyPayment(inv.ID); p.Status != invoice.Dropped || !p.DueAt.IsZero() {
		t.Errorf("after a day: %+v", p)
	}

	w.want(w.get(inv.ID), invoice.Open)
}

// A failing host hook keeps one payment back, not the network.
func TestOneBadTransferDoesNotStallTheRest(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.follow()
	bad, good := w.sell(), w.sell()
	broken := true
	w.refuse = func(e event.Event) error {
		if broken && e.InvoiceID == bad.ID && e.Type == event.InvoicePaymentDetected {
			return errors.New("the hook is broken")
		}

		return nil
	}
	w.pay(bad, due)
	w.pay(good, due)
	w.mine(1)
	w.follow()
	w.want(w.get(good.ID), invoice.Pending)

	if len(w.paymentsOf(bad.ID)) != 0 {
		t.Error("the refused payment was stored")
	}

	rows, err := w.store.Retries(context.Background(), "simnet", start.Add(time.Hour), 10)
	w.must(err)

	if len(rows) != 1 || rows[0].Attempts != 1 || !strings.Contains(rows[0].Error, "the hook is broken") ||
		rows[0].Block.IsZero() {
		t.Fatalf("retry rows: %+v", rows)
	}

	w.pass(time.Minute)
	w.retry()
	rows, err = w.store.Retries(context.Background(), "simnet", start.Add(time.Hour), 10)
	w.must(err)

	if len(rows) != 1 || rows[0].Attempts != 2 || !rows[0].DueAt.Equal(w.clock().Add(2*time.Minute)) {
		t.Fatalf("after another failure: %+v", rows)
	}

	broken = false

	w.pass(2 * time.Minute)
	w.retry()
	w.confirm()
	w.want(w.get(good.ID), invoice.Paid)
	w.want(w.get(bad.ID), invoice.Paid)

	if rows, _ = w.store.Retries(context.Background(), "simnet", start.AddDate(1, 0, 0), 10); len(rows) != 0 {
		t.Errorf("rows are left: %+v", rows)
	}
}

// A confirmation that the hook refuses waits in its row and is not tried with every block.
func TestRefusedConfirmationWaits(t *testing.T) {
	w := newHarness(t, account.Settings{}, sim.Config{NoFinality: true})
	w.follow()
	inv := w.sell()
	tried, broken := 0, true
	w.refuse = func(e event.Event) error {
		if broken && e.Type == event.InvoicePaymentConfirmed {
			tried++
			return errors.New("no")
		}

		return nil
	}
	w.pay(inv, due)
	w.mine(1)
	w.follow()
	w.mine(2)
	w.follow()

	if w.onlyPayment(inv.ID).Status != invoice.Detected {
		t.Fatal("the refused confirmation was stored")
	}

	before := tried

	w.confirm()

	if tried != before {
		t.Errorf("tried %d times more while it waits", tried-before)
	}
	// Meanwhile its block leaves the chain. The row must not confirm it.
	w.chains[0].Fork(sim.Fork{Depth: 6, Fate: sim.DropOrphan})

	broken = false

	w.pass(time.Minute)
	w.follow()
	w.retry()

	if p := w.onlyPayment(inv.ID); p.Status != invoice.Orphaned {
		t.Errorf("the payment is %s", p.Status)
	}

	w.follow()
	w.want(w.get(inv.ID), invoice.Open)
}

func TestHints(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.follow()

	ctx := context.Background()
	inv, other := w.sell(), w.sell()
	result := func(hash string) invoice.HintResult {
		t.Helper()

		r, err := w.svc.Hint(ctx, inv.ID, hash)
		w.must(err)

		return r
	}

	hash := w.pay(inv, "10000000000000000")
	if got := result(hash); got != invoice.HintFound {
		t.Errorf("in the pool: %s", got)
	}

	if got := result(w.pay(other, due)); got != invoice.HintForeign {
		t.Errorf("to somebody else: %s", got)
	}

	failing := w.chains[0].PayFailing(
		inv.Options[0].Address, inv.Options[0].Asset, chain.MustAmount("40000000000000000"),
	)
	w.mine(1)

	if got := result(failing); got != invoice.HintFailed || len(w.paymentsOf(inv.ID)) != 1 {
		t.Errorf("failed in its block: %s, %d payments", got, len(w.paymentsOf(inv.ID)))
	}

	if got := result("0xnever"); got != invoice.HintNotFound {
		t.Errorf("unknown: %s", got)
	}

	_, err := w.svc.Hint(ctx, inv.ID, " ")
	wantCode(t, err, fault.Invalid, "parameter_missing")
	w.chains[0].FailNext(sim.MethodTransaction, fault.New(fault.Unavailable, "node_down", "down"), 1)

	if _, err := w.svc.Hint(ctx, inv.ID, hash); !errors.Is(err, fault.Unavailable) {
		t.Errorf("a node that is down: %v", err)
	}

	if p := w.onlyPayment(inv.ID); p.DetectedBy != invoice.ByHint || !p.Block.IsZero() {
		t.Errorf("hinted: %+v", p)
	}

	// Row 4 of the pitfalls: what a contract sends shows in no scan. A hint finds it; its block
	// counts only once the follower has passed it.
	hidden := w.chains[0].PayInternal(inv.Options[0].Address, chain.MustAmount("40000000000000000"))
	w.mine(1)

	if got := result(hidden); got != invoice.HintFound {
		t.Errorf("hidden: %s", got)
	}

	if p := w.paymentsOf(inv.ID)[1]; !p.Block.IsZero() || p.TxIndex != 1<<20 {
		t.Errorf("in a block that was not read: %+v", p)
	}

	w.follow()
	w.pass(time.Minute)
	w.doDueWork()

	if p := w.paymentsOf(inv.ID)[1]; p.Block.IsZero() {
		t.Errorf("its block was not found: %+v", p)
	}

	w.confirm()
	w.want(w.get(inv.ID), invoice.Paid)

	if got := result(hidden); got != invoice.HintFound || len(w.paymentsOf(inv.ID)) != 2 {
		t.Errorf("hinted twice: %s, %d payments", got, len(w.paymentsOf(inv.ID)))
	}
}

func TestBalancePaymentIsExplained(t *testing.T) {
	for name, row := range map[string]struct {
		transfers []string
		want      map[string]string // amount by transaction
		published string
	}{
		"by one transfer": {[]string{due}, map[string]string{"t0": due}, "payment.transaction_attached"},
		"by two": {
			[]string{"20000000000000000", "30000000000000000"},
			map[string]string{"t0": "20000000000000000", "t1": "30000000000000000"},
			"payment.transaction_attached invoice.payment_detected",
		},
		"by one, in a part": {
			[]string{"20000000000000000"},
			map[string]string{"t0": "20000000000000000", "": "30000000000000000"},
			"payment.transaction_attached invoice.payment_detected",
		},
		"one after the read": {nil, map[string]string{"": due, "later": "1"}, "invoice.payment_detected"},
	} {
		w := newHarness(t, account.Settings{})
		inv := w.sell()
		o := inv.Options[0]
		ctx := context.Background()
		w.must(w.store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
			p := invoice.Payment{
				ID:         w.ids.Next(),
				Owner:      w.owner,
				Status:     invoice.Detected,
				InvoiceID:  inv.ID,
				OptionID:   o.ID,
				Network:    "simnet",
				Asset:      o.Asset,
				AssetID:    o.AssetID,
				Decimals:   o.Decimals,
				Address:    o.Address,
				Key:        o.Key,
				Amount:     chain.MustAmount(due),
				Block:      chain.Ref{Height: 5, Hash: "b5"},
				Rate:       o.Rate,
				Credit:     inv.Price,
				DetectedBy: invoice.ByBalance,
				DetectedAt: start,
				Required:   3,
			}

			return tx.PutPayments(ctx, &p)
		}))
		w.events = nil

		var transfers []chain.Transfer
		for i, amount := range row.transfers {
			transfers = append(transfers, w.transfer(inv, "t"+string(rune('0'+i)), 1<<20, amount))
		}

		b := follow.Batch{Blocks: []chain.Block{block(4, "b4", transfers...)}}
		if transfers == nil {
			b.Blocks = []chain.Block{block(6, "b6", w.transfer(inv, "later", 0, "1"))}
		}

		w.apply(b, chain.Ref{Height: 5, Hash: "b5"})

		got := map[string]string{}
		for _, p := range w.paymentsOf(inv.ID) {
			got[p.TxHash] = p.Amount.String()
			if p.DetectedBy != invoice.ByBalance && p.TxHash != "later" {
				t.Errorf("%s: %+v", name, p)
			}
		}

		for hash, amount := range row.want {
			if got[hash] != amount {
				t.Errorf("%s: payments %v, want %v", name, got, row.want)
			}
		}

		var published []string
		for _, s := range strings.Fields(w.published(inv.ID)) {
			if s != "invoice.pending" {
				published = append(published, s)
			}
		}

		if len(got) != len(row.want) || strings.Join(published, " ") != row.published {
			t.Errorf("%s: payments %v, published %v", name, got, published)
		}
	}
}

// A price that turns out to be needed inside the transaction is asked for the next time.
func TestUnpreparedPriceIsRemembered(t *testing.T) {
	w := newHarness(t, account.Settings{})
	inv := w.sell()
	ctx := context.Background()
	b := follow.Batch{
		Network: w.chains[0].Network(),
		Blocks:  []chain.Block{block(1, "b1", w.transfer(inv, "x", 0, due))},
	}
	b.Blocks[0].Time = start.Add(21 * time.Minute)
	p, err := w.ingester.PrepareBatch(ctx, b) // the quote still holds
	w.must(err)
	w.pass(21 * time.Minute)

	apply := func(p ingest.PreparedBatch) error {
		return w.update(ctx, func(ctx context.Context, tx *tx) error {
			return w.ingester.ApplyTx(ctx, tx, p, scan.Cursor{Network: "simnet", At: b.Blocks[0].Ref})
		})
	}

	w.pass(time.Second)

	if err := apply(p); !errors.Is(err, invoice.ErrUnprepared) || errors.Is(err, fault.Conflict) {
		t.Fatalf("without the fresh rate: %v", err)
	}

	if len(w.paymentsOf(inv.ID)) != 0 {
		t.Error("something of it was stored")
	}

	p, err = w.ingester.PrepareBatch(ctx, b)
	w.must(err)
	w.must(apply(p))
	w.onlyPayment(inv.ID)
}

// A payment whose block is known not to be in the chain never confirms, whatever made the fork pass it by.
func TestForeignBlockNeverConfirms(t *testing.T) {
	w := newHarness(t, account.Settings{})
	inv := w.sell()
	w.apply(
		follow.Batch{Blocks: []chain.Block{block(1, "b1", w.transfer(inv, "x", 0, due))}},
		chain.Ref{Height: 1, Hash: "b1"},
	)
	w.want(w.get(inv.ID), invoice.Pending)

	ctx := context.Background()
	p, err := w.ingester.PrepareBatch(
		ctx,
		follow.Batch{Network: w.chains[0].Network(), Head: chain.Head{Tip: chain.Ref{Height: 9, Hash: "b9"}}},
	)
	w.must(err)
	w.must(w.update(ctx, func(ctx context.Context, tx *tx) error {
		return w.ingester.ApplyTx(
			ctx,
			tx,
			p,
			scan.Cursor{
				Network: "simnet",
				At:      chain.Ref{Height: 9, Hash: "b9"},
				Recent:  []chain.Ref{{Height: 1, Hash: "another"}},
			},
		)
	}))

	if got := w.onlyPayment(inv.ID); got.Status != invoice.Orphaned {
		t.Errorf("the payment is %s", got.Status)
	}
}

// A hinted transaction is looked for every so often, and dropped only after a day missing.
func TestLostHintIsNotDroppedEarly(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.follow()
	inv := w.sell()

	hash := w.chains[0].PayInternal(inv.Options[0].Address, chain.MustAmount(due))
	if _, err := w.svc.Hint(context.Background(), inv.ID, hash); err != nil {
		t.Fatal(err)
	}

	w.chains[0].Drop(hash)

	for range 3 {
		w.pass(time.Minute)
		w.doDueWork()
	}

	p := w.onlyPayment(inv.ID)
	if p.Status != invoice.Detected || p.LostAt.IsZero() || !p.DueAt.Equal(p.LostAt.Add(24*time.Hour)) {
		t.Errorf("missing: %+v", p)
	}

	w.pass(24 * time.Hour)
	w.doDueWork()

	if p := w.onlyPayment(inv.ID); p.Status != invoice.Dropped {
		t.Errorf("after a day: %+v", p)
	}
}

// Row 4 of the pitfalls: coin that a contract sent shows in no scan. The balance shows it before
// the invoice expires, once, and a hint names its transaction later.
func TestHiddenCoinIsFoundByBalance(t *testing.T) {
	w := newHarness(t, account.Settings{}, sim.Config{NoFinality: true})
	w.follow()

	ctx := context.Background()
	inv := w.sell()
	w.pay(inv, "10000000000000000")
	hidden := w.chains[0].PayInternal(inv.Options[0].Address, chain.MustAmount("40000000000000000"))
	w.pass(25 * time.Hour)
	w.chains[0].Mine(1)
	w.follow()
	w.chains[0].FailNext(sim.MethodBalances, fault.New(fault.Unavailable, "node_down", "down"), 1)

	if _, err := w.ingester.CheckBalances(ctx, "simnet"); !errors.Is(err, fault.Unavailable) {
		t.Errorf("the balance could not be read: %v", err)
	}

	if _, err := w.ingester.Step(ctx); err != nil {
		t.Error(err)
	}

	w.want(w.get(inv.ID), invoice.Open) // it does not expire before its addresses were compared
	w.pass(time.Minute)
	w.doDueWork()
	w.want(w.get(inv.ID), invoice.Pending)

	list := w.paymentsOf(inv.ID)
	if len(list) != 2 || list[1].TxHash != "" || list[1].DetectedBy != invoice.ByBalance ||
		list[1].Amount.String() != "40000000000000000" {
		t.Fatalf("payments %+v", list)
	}

	w.pass(time.Minute)
	w.compareBalances()

	if again := w.paymentsOf(inv.ID); len(again) != 2 || again[1].Status != invoice.Detected {
		t.Errorf("compared again: %+v", again)
	}

	if _, err := w.svc.Hint(ctx, inv.ID, hidden); err != nil {
		t.Fatal(err)
	}

	if got := w.paymentsOf(inv.ID)[1]; got.TxHash != hidden || got.ID != list[1].ID ||
		got.DetectedBy != invoice.ByBalance {
		t.Errorf("named %+v", got)
	}

	w.confirm()

	if n := len(w.paymentsOf(inv.ID)); n != 2 {
		t.Errorf("%d payments", n)
	}

	for _, p := range w.paymentsOf(inv.ID) {
		if p.Status != invoice.Confirmed {
			t.Errorf("payment %+v", p)
		}
	}
}

func TestBalanceThatAForkTookBack(t *testing.T) {
	w := newHarness(t, account.Settings{}, sim.Config{NoFinality: true})
	w.follow()

	inv := w.sell()
	w.chains[0].PayInternal(inv.Options[0].Address, chain.MustAmount(due))
	w.mine(2)
	w.follow()

	w.pass(time.Minute)
	w.compareBalances()

	id := w.onlyPayment(inv.ID).ID
	w.chains[0].Fork(sim.Fork{Depth: 2, Fate: sim.ReturnToPool})
	w.follow()

	if p := w.onlyPayment(inv.ID); p.Status != invoice.Orphaned {
		t.Fatalf("after the fork: %+v", p)
	}

	w.mine(1)
	w.follow()

	w.pass(time.Minute)
	w.compareBalances()
	w.confirm()

	if p := w.onlyPayment(inv.ID); p.Status != invoice.Detected {
		t.Errorf("confirmed before its balance was read again: %+v", p)
	}

	w.pass(time.Minute)
	w.compareBalances()
	w.want(w.get(inv.ID), invoice.Paid)

	if p := w.onlyPayment(inv.ID); p.ID != id || p.Status != invoice.Confirmed {
		t.Errorf("payment %+v", p)
	}
}

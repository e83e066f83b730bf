package invoice_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
)

const due = "50000000000000000" // 0.05 SIM: 90 EUR at 1,800

func TestMoneyIn(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.follow()

	inv := w.create(
		invoice.CreateParams{Price: &invoice.Price{Currency: "EUR", Amount: "90"}, OrderID: "A-1"},
	)
	if inv.Number != 1 || inv.Status != invoice.Open || inv.Kind != invoice.Fiat || len(inv.Options) != 2 ||
		inv.SelectedOptionID != "" {
		t.Fatalf("created %+v", inv)
	}

	if !inv.ExpiresAt.Equal(start.Add(24*time.Hour)) ||
		!inv.PreSelectionExpiresAt.Equal(start.Add(2*time.Hour)) ||
		!inv.DueAt.Equal(inv.PreSelectionExpiresAt) {
		t.Errorf(
			"expires %s, before a selection %s, due %s",
			inv.ExpiresAt, inv.PreSelectionExpiresAt, inv.DueAt,
		)
	}

	inv, err := w.svc.Select(context.Background(), nil, inv.ID, inv.Options[0].ID)
	w.must(err)

	o := inv.Options[0]
	if o.AmountDue.String() != due || o.DisplayDecimals != 7 || o.Rate.String() != "1800" ||
		!o.QuoteExpiresAt.Equal(start.Add(20*time.Minute)) ||
		o.Address == "" {
		t.Fatalf("selected %+v", o)
	}

	hash := w.pay(inv, due)
	w.follow()
	w.want(w.get(inv.ID), invoice.Pending)

	if p := w.onlyPayment(
		inv.ID,
	); p.Status != invoice.Detected || p.TxHash != hash || !p.Block.IsZero() ||
		p.DetectedBy != invoice.ByPoll {
		t.Errorf("in the pool: %+v", p)
	}

	w.mine(2)
	w.follow()
	w.want(w.get(inv.ID), invoice.Pending)
	w.mine(1)
	w.follow()
	w.want(w.get(inv.ID), invoice.Paid)

	inv, p := w.get(inv.ID), w.onlyPayment(inv.ID)
	if inv.PaidOptionID != o.ID || !inv.PaidAt.Equal(w.clock()) ||
		inv.Options[0].AmountPaid.String() != due ||
		!inv.Options[0].AmountDetected.IsZero() ||
		!inv.DueAt.IsZero() {
		t.Errorf("paid: %+v", inv)
	}

	if p.Status != invoice.Confirmed || !p.Credit.Equal(inv.Price) || p.USDValue.Decimal.String() != "100" ||
		p.NativeUSD.Decimal.String() != "2000" ||
		p.Late ||
		p.Required != 3 {
		t.Errorf("confirmed: %+v", p)
	}

	const events = "invoice.created invoice.payment_detected invoice.pending invoice.payment_confirmed invoice.paid"
	if got := w.published(inv.ID); got != events {
		t.Errorf("published %q, want %q", got, events)
	}

	if n := w.countEvents(event.PaymentValued); n != 1 {
		t.Errorf("%d facts that the payment is priced, want 1", n)
	}

	sequences := map[string]int64{}

	for _, e := range w.events {
		if !e.Type.Internal() {
			sequences[e.ObjectID]++
		}

		if e.Sequence != sequences[e.ObjectID] {
			t.Errorf(
				"event %s of %s has sequence %d, want %d",
				e.Type, e.ObjectID, e.Sequence, sequences[e.ObjectID],
			)
		}
	}
}

func TestTooLittleThenTheRest(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.follow()
	inv := w.sell()
	w.pay(inv, "20000000000000000")
	w.follow()
	w.want(w.get(inv.ID), invoice.Open)
	w.confirm()
	w.want(w.get(inv.ID), invoice.Underpaid)

	// A quote that has run out is made anew for what is missing.
	w.pass(21 * time.Minute)
	w.must(w.rates.Set("ETH/EUR", "2700"))
	inv, err := w.svc.Select(context.Background(), nil, inv.ID, inv.SelectedOptionID)
	w.must(err)
	// 0.02 received + 54 EUR at 2,700
	if got := inv.Options[0].AmountDue.String(); got != "40000000000000000" {
		t.Errorf("the option's total is %s", got)
	}

	w.pay(inv, "20000000000000000")
	w.follow()
	w.want(w.get(inv.ID), invoice.Pending)
	w.confirm()
	w.want(w.get(inv.ID), invoice.Paid)

	const events = "invoice.created invoice.payment_detected invoice.payment_confirmed invoice.underpaid " +
		"invoice.payment_detected invoice.pending invoice.payment_confirmed invoice.paid"
	if got := w.published(inv.ID); got != events {
		t.Errorf("published %q, want %q", got, events)
	}
}

// Row 22 of the pitfalls: partial, then late, must not be flagged overpaid.
func TestPartialThenLateIsNotOverpaid(t *testing.T) {
	w := newHarness(t, account.Settings{AcceptLatePayments: true})
	w.follow()
	inv := w.sell()
	w.pay(inv, "30000000000000000")
	w.confirm()
	w.pass(25 * time.Hour)
	w.mine(1)
	w.follow()
	w.doDueWork()
	w.want(w.get(inv.ID), invoice.Expired)
	w.pay(inv, "20000000000000000")
	w.confirm()
	w.want(w.get(inv.ID), invoice.Paid, invoice.Late)
}

func TestTooMuch(t *testing.T) {
	for amount, flags := range map[string][]invoice.Flag{
		due:                 nil,
		"50000100000000000": nil, // one display step more
		"50000200000000000": {invoice.Overpaid},
	} {
		w := newHarness(t, account.Settings{})
		w.follow()
		inv := w.sell()
		w.pay(inv, amount)
		w.confirm()
		w.want(w.get(inv.ID), invoice.Paid, flags...)
	}
}

func TestMoreMoneyOnAPaidInvoiceIsOverpaidNotLate(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.follow()
	inv := w.sell()
	w.pay(inv, due)
	w.confirm()
	w.pass(48 * time.Hour)
	w.pay(inv, due)
	w.confirm()
	w.want(w.get(inv.ID), invoice.Paid, invoice.Overpaid)

	if p := w.paymentsOf(inv.ID)[1]; p.Late {
		t.Error("the second payment is late")
	}
}

func TestToleranceCountsBothWays(t *testing.T) {
	w := newHarness(t, account.Settings{ToleranceBPS: 100})
	w.follow()

	for amount, want := range map[string]invoice.Status{
		"49500000000000000": invoice.Paid,
		"49499999999999999": invoice.Underpaid,
	} {
		inv := w.sell()
		w.pay(inv, amount)
		w.confirm()
		w.want(w.get(inv.ID), want)
	}

	inv := w.sell()
	w.pay(inv, "50500000000000000")
	w.confirm()
	w.want(w.get(inv.ID), invoice.Paid)
}

func TestExpiry(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.follow()
	open := w.create(invoice.CreateParams{Price: &invoice.Price{Currency: "EUR", Amount: "90"}})
	chosen := w.sell()

	w.pass(2 * time.Hour)
	w.doDueWork()
	w.want(w.get(open.ID), invoice.Expired)
	w.want(w.get(chosen.ID), invoice.Open)

	// The time is over, but the network was not read that far: our lag never punishes the payer.
	w.pass(22 * time.Hour)
	w.doDueWork()
	w.want(w.get(chosen.ID), invoice.Open)
	w.mine(1)
	w.follow()
	w.pass(time.Minute)
	w.doDueWork()
	w.want(w.get(chosen.ID), invoice.Expired)

	if got := w.published(chosen.ID); got != "invoice.created invoice.expired" {
		t.Errorf("published %q", got)
	}

	_, err := w.svc.Select(context.Background(), nil, chosen.ID, chosen.SelectedOptionID)
	wantCode(t, err, fault.State, "invoice_not_open")
}

func TestPendingDoesNotExpire(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.follow()
	inv := w.sell()
	hash := w.pay(inv, due)
	w.follow()
	w.chains[0].Drop(hash)
	w.pass(23 * time.Hour)
	w.chains[0].MineEmpty(1)
	w.follow()
	w.pass(2 * time.Hour)
	w.chains[0].MineEmpty(1)
	w.follow()
	w.doDueWork()
	w.want(w.get(inv.ID), invoice.Pending)

	// Out of pool and chain for a day: dropped. Now it expires.
	w.pass(23 * time.Hour)
	w.doDueWork()
	w.want(w.get(inv.ID), invoice.Expired)

	const events = "invoice.created invoice.payment_detected invoice.pending payment.dropped " +
		"invoice.reopened invoice.expired"
	if got := w.published(inv.ID); got != events {
		t.Errorf("published %q, want %q", got, events)
	}

	if n := w.countEvents(event.PaymentLost); n != 1 {
		t.Errorf("%d facts that the payment is lost, want 1", n)
	}

	_, err := w.svc.Cancel(context.Background(), w.owner, inv.ID)
	wantCode(t, err, fault.State, "invoice_not_open")
}

func TestReorganisation(t *testing.T) {
	w := newHarness(t, account.Settings{}, sim.Config{NoFinality: true})
	w.follow()
	inv := w.sell()
	w.pay(inv, due)
	w.mine(1)
	w.follow()
	first := w.onlyPayment(inv.ID)

	// Into another block: the same payment, and no event.
	w.pass(time.Second)
	w.chains[0].Fork(sim.Fork{Depth: 1, Fate: sim.Reinclude})
	w.follow()

	moved := w.onlyPayment(inv.ID)
	if moved.ID != first.ID || moved.Block.Hash == first.Block.Hash || moved.Status != invoice.Detected {
		t.Errorf("moved to %+v", moved)
	}

	if got := w.published(inv.ID); got != "invoice.created invoice.payment_detected invoice.pending" {
		t.Errorf("published %q", got)
	}

	w.confirm()
	w.want(w.get(inv.ID), invoice.Paid)
	w.events = nil
	w.chains[0].Fork(sim.Fork{Depth: 5, Fate: sim.DropOrphan})
	w.follow()
	w.want(w.get(inv.ID), invoice.Open)

	gone := w.onlyPayment(inv.ID)
	if gone.Status != invoice.Orphaned || gone.USDValue.Valid || !gone.ConfirmedAt.IsZero() ||
		!gone.Block.IsZero() ||
		!w.get(inv.ID).PaidAt.IsZero() {
		t.Errorf("orphaned: %+v", gone)
	}

	if got := w.published(inv.ID); got != "payment.orphaned invoice.payment_reversed" {
		t.Errorf("published %q", got)
	}
	// It may come back: neither an end nor a cancellation.
	_, err := w.svc.Cancel(context.Background(), w.owner, inv.ID)
	wantCode(t, err, fault.State, "invoice_payment_pending")
}

func TestPaidAgainAfterAReorganisation(t *testing.T) {
	w := newHarness(t, account.Settings{}, sim.Config{NoFinality: true})
	w.follow()
	inv := w.sell()
	w.pay(inv, due)
	w.confirm()
	id := w.onlyPayment(inv.ID).ID
	w.chains[0].Fork(sim.Fork{Depth: 3, Fate: sim.ReturnToPool})
	w.follow()
	w.want(w.get(inv.ID), invoice.Pending)
	w.confirm()
	w.want(w.get(inv.ID), invoice.Paid)

	p := w.onlyPayment(inv.ID)
	if p.ID != id || p.Status != invoice.Confirmed {
		t.Errorf("payment %+v, want %s again", p, id)
	}

	if w.countEvents(event.PaymentValued) != 2 || w.countEvents(event.PaymentLost) != 1 {
		t.Errorf(
			"priced %d times and lost %d times",
			w.countEvents(event.PaymentValued), w.countEvents(event.PaymentLost),
		)
	}

	if !w.get(inv.ID).PaidAt.Equal(p.ConfirmedAt) {
		t.Error("paid_at is not that of the second confirmation")
	}
}

// A confirmed payment that is deep enough in its new block stays confirmed without a word.
func TestConfirmedMovesSilently(t *testing.T) {
	w := newHarness(t, account.Settings{}, sim.Config{NoFinality: true})
	w.follow()
	inv := w.sell()
	w.pay(inv, due)
	w.confirm()
	before := w.published(inv.ID)
	w.chains[0].Fork(sim.Fork{Depth: 3, Length: 4, Fate: sim.Reinclude})
	w.follow()
	w.want(w.get(inv.ID), invoice.Paid)

	if got := w.published(inv.ID); got != before {
		t.Errorf("published %q", got)
	}

	if p := w.onlyPayment(inv.ID); p.Block.Hash == "" || p.Status != invoice.Confirmed {
		t.Errorf("payment %+v", p)
	}
}

func TestReversedFallsBackToWhatItWasClosedAs(t *testing.T) {
	w := newHarness(t, account.Settings{}, sim.Config{NoFinality: true})
	w.follow()
	inv := w.sell()
	_, err := w.svc.Cancel(context.Background(), w.owner, inv.ID)
	w.must(err)
	_, err = w.svc.Accept(context.Background(), w.owner, inv.ID, false)
	wantCode(t, err, fault.State, "invoice_has_no_payment")
	w.pay(inv, "40000000000000000")
	w.confirm()
	w.want(w.get(inv.ID), invoice.Canceled)

	if p := w.onlyPayment(inv.ID); !p.Late || !p.USDValue.Valid {
		t.Errorf("a payment to a canceled invoice: %+v", p)
	}

	_, err = w.svc.Accept(context.Background(), w.owner, inv.ID, false)
	w.must(err)
	w.want(w.get(inv.ID), invoice.Paid, invoice.Late, invoice.UnderpaidAccepted)

	version := w.get(inv.ID).Sequence
	if _, err = w.svc.Accept(
		context.Background(), w.owner, inv.ID, true,
	); err != nil ||
		w.get(inv.ID).Sequence != version {
		t.Errorf("accepting again: %v, sequence %d after %d", err, w.get(inv.ID).Sequence, version)
	}

	w.chains[0].Fork(sim.Fork{Depth: 3, Fate: sim.DropOrphan})
	w.follow()
	w.want(w.get(inv.ID), invoice.Canceled)
}

func TestLatePaymentIsAcceptedByTheAccountsSetting(t *testing.T) {
	w := newHarness(t, account.Settings{AcceptLatePayments: true})
	w.follow()
	inv := w.sell()
	_, err := w.svc.Cancel(context.Background(), w.owner, inv.ID)
	w.must(err)
	w.pay(inv, "40000000000000000")
	w.confirm()
	w.want(w.get(inv.ID), invoice.Canceled)
	w.pay(inv, "10000000000000000")
	w.confirm()
	w.want(w.get(inv.ID), invoice.Paid, invoice.Late)
}

// A late payment of all that was asked for is credited at a fresh rate, and is short where that is lower.
func TestLatePaymentAtALowerRateIsShort(t *testing.T) {
	w := newHarness(t, account.Settings{ToleranceBPS: 500})
	w.follow()
	inv := w.sell()
	_, err := w.svc.Cancel(context.Background(), w.owner, inv.ID)
	w.must(err)
	w.pass(21 * time.Minute)
	w.must(w.rates.Set("ETH/EUR", "1790"))
	w.pay(inv, due)
	w.confirm()
	inv, err = w.svc.Accept(context.Background(), w.owner, inv.ID, false)
	w.must(err)
	w.want(inv, invoice.Paid, invoice.Late, invoice.UnderpaidAccepted)
}

func TestUnderpaidIsAcceptedOnlyByAccept(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.follow()
	inv := w.sell()
	w.pay(inv, "40000000000000000")
	w.confirm()
	_, err := w.svc.Accept(context.Background(), w.owner, inv.ID, false)
	wantCode(t, err, fault.State, "invoice_not_late")
	inv, err = w.svc.Accept(context.Background(), w.owner, inv.ID, true)
	w.must(err)
	w.want(inv, invoice.Paid, invoice.UnderpaidAccepted)

	if inv.PaidOptionID != inv.SelectedOptionID {
		t.Errorf("paid option %q", inv.PaidOptionID)
	}

	_, err = w.svc.Accept(context.Background(), event.Owner{AccountID: "somebody else"}, inv.ID, true)
	wantCode(t, err, fault.NotFound, "resource_missing")
}

func TestQuoteRunsOut(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.follow()
	first, second, third := w.sell(), w.sell(), w.sell()
	// Made before its quote ran out: our seeing it late costs the payer nothing.
	w.pay(first, due)
	w.mine(1)
	w.pass(21 * time.Minute)
	w.must(w.rates.Set("ETH/EUR", "900"))
	w.confirm()
	w.want(w.get(first.ID), invoice.Paid)
	// Made after it: credited at a fresh rate, which never changes again.
	w.pay(second, due)
	w.follow()
	w.must(w.rates.Set("ETH/EUR", "1800"))
	w.confirm()
	w.want(w.get(second.ID), invoice.Underpaid)

	if p := w.onlyPayment(second.ID); p.Rate.String() != "900" || p.Credit.String() != "45" {
		t.Errorf("credited %s at %s", p.Credit, p.Rate)
	}
	// No fresh price: the quote's.
	w.must(w.rates.Set("ETH/EUR", ""))
	w.pay(third, due)
	w.confirm()
	w.want(w.get(third.ID), invoice.Paid)
	_, err := w.svc.Select(context.Background(), nil, second.ID, second.SelectedOptionID)
	wantCode(t, err, fault.Unavailable, "price_unavailable")
}

func TestSelectingAgain(t *testing.T) {
	w := newHarness(t, account.Settings{})
	ctx := context.Background()
	inv := w.sell()
	w.must(w.rates.Set("ETH/EUR", "900"))
	w.pass(19 * time.Minute)
	same, err := w.svc.Select(ctx, nil, inv.ID, inv.SelectedOptionID)
	w.must(err)

	if same.Options[0].AmountDue != inv.Options[0].AmountDue || same.Version != inv.Version {
		t.Error("selecting before the quote ran out changed it")
	}

	w.pass(2 * time.Minute)
	again, err := w.svc.Select(ctx, &w.owner, inv.ID, inv.SelectedOptionID)
	w.must(err)

	if o := again.Options[0]; o.Address != inv.Options[0].Address ||
		o.AmountDue.String() != "100000000000000000" {
		t.Errorf("after the quote ran out: %+v", o)
	}

	_, err = w.svc.Select(
		ctx, &event.Owner{AccountID: w.owner.AccountID, Livemode: true}, inv.ID,
		inv.SelectedOptionID,
	)
	wantCode(t, err, fault.NotFound, "resource_missing")
	_, err = w.svc.Select(ctx, nil, inv.ID, "ffffffffffffffffffffffff")
	wantCode(t, err, fault.NotFound, "resource_missing")
}

// Row 3 of the pitfalls: one address per option, distinguished by nothing else.
func TestSameAmountsTwoInvoices(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.follow()

	a, b := w.sell(), w.sell()
	if a.Options[0].Address == b.Options[0].Address {
		t.Fatal("two options share an address")
	}

	w.pay(b, due)
	w.confirm()
	w.want(w.get(a.ID), invoice.Open)
	w.want(w.get(b.ID), invoice.Paid)
}

func TestAnotherAssetPaysNothingButIsKept(t *testing.T) {
	other := sim.DefaultNetwork()
	other.Slug, other.CAIP2 = "othernet", "sim:2"
	w := newHarness(t, account.Settings{}, sim.Config{}, sim.Config{Network: other, Seed: 2})
	w.follow()
	inv := w.sell()
	to := inv.Options[0].Address
	w.chains[0].Pay(to, "USDX", chain.Units(100_000_000))
	w.chains[1].Pay(to, "SIM", chain.MustAmount(due)) // the address is ours on all networks of its space
	w.mine(3)
	w.chains[1].Mine(3)
	w.follow()
	w.want(w.get(inv.ID), invoice.Open)

	list := w.paymentsOf(inv.ID)
	if len(list) != 2 {
		t.Fatalf("%d payments, want 2", len(list))
	}

	for _, p := range list {
		if p.Status != invoice.Confirmed || p.OptionID != "" || !p.Credit.IsZero() || !p.USDValue.Valid {
			t.Errorf("%s on %s: %+v", p.Asset, p.Network, p)
		}
	}

	if n := w.countEvents(event.PaymentValued); n != 2 {
		t.Errorf("%d payments can settle, want 2", n)
	}
}

func TestConfirmedWithoutAPrice(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.follow()
	inv := w.sell()
	w.must(w.rates.Set("ETH/USD", ""))
	w.pay(inv, due)
	w.confirm()
	w.want(w.get(inv.ID), invoice.Paid)

	if p := w.onlyPayment(
		inv.ID,
	); p.USDValue.Valid || p.DueAt.IsZero() ||
		w.countEvents(event.PaymentValued) != 0 {
		t.Fatalf("without a price: %+v", p)
	}

	w.pass(time.Minute)
	w.doDueWork()
	w.must(w.rates.Set("ETH/USD", "3000"))
	w.pass(time.Minute)
	w.doDueWork()

	if p := w.onlyPayment(
		inv.ID,
	); p.USDValue.Decimal.String() != "150" || !p.DueAt.IsZero() ||
		w.countEvents(event.PaymentValued) != 1 {
		t.Errorf("with the first price: %+v", p)
	}
}

func TestValueTiers(t *testing.T) {
	n := sim.DefaultNetwork()
	n.Confirmations = 1
	n.Tiers = []chain.Tier{
		{FromUSD: decimal.NewFromInt(150), Confirmations: 4},
		{FromUSD: decimal.NewFromInt(100_000), Confirmations: 6},
	}
	w := newHarness(t, account.Settings{}, sim.Config{Network: n, NoFinality: true})
	w.follow()
	inv := w.sell()
	w.pay(inv, due) // 100 USD: one confirmation
	w.pay(inv, due) // both: 200 USD, four
	w.mine(3)
	w.follow()
	w.want(w.get(inv.ID), invoice.Pending)

	for _, p := range w.paymentsOf(inv.ID) {
		if p.Required != 4 {
			t.Errorf("payment %s requires %d confirmations, want 4", p.ID, p.Required)
		}
	}

	w.mine(1)
	w.follow()
	w.want(w.get(inv.ID), invoice.Paid, invoice.Overpaid)

	w.must(w.rates.Set("ETH/USD", ""))
	unpriced := w.sell()
	w.pay(unpriced, due)
	w.mine(5)
	w.follow()
	w.want(w.get(unpriced.ID), invoice.Pending)
	w.mine(1)
	w.follow()
	w.want(w.get(unpriced.ID), invoice.Paid)
}

func TestFinalityRule(t *testing.T) {
	n := sim.DefaultNetwork()
	n.Rule, n.Confirmations = chain.RuleFinalized, 2
	w := newHarness(t, account.Settings{}, sim.Config{Network: n, FinalDepth: 5})
	w.follow()
	inv := w.sell()
	w.pay(inv, due)
	w.mine(5)
	w.follow()
	w.want(w.get(inv.ID), invoice.Pending)
	w.mine(1)
	w.follow()
	w.want(w.get(inv.ID), invoice.Paid)
}

func TestCryptoOptionsStandAlone(t *testing.T) {
	w := newHarness(t, account.Settings{ToleranceBPS: 100})
	w.follow()

	inv := w.create(invoice.CreateParams{
		Options: []invoice.OptionParams{
			{Asset: "SIM", Network: "simnet", Amount: chain.MustAmount(due)},
			{Asset: "USDX", Network: "simnet", Amount: chain.Units(100_000_099)},
		},
	})
	if inv.Kind != invoice.Crypto || inv.Options[1].DisplayDecimals != 6 {
		t.Fatalf("created %+v", inv)
	}

	inv, err := w.svc.Select(context.Background(), nil, inv.ID, inv.Options[0].ID)
	w.must(err)
	w.pay(inv, "40000000000000000")
	inv, err = w.svc.Select(context.Background(), nil, inv.ID, inv.Options[1].ID)
	w.must(err)

	if o := inv.Options[1]; !o.QuoteExpiresAt.IsZero() || !o.Rate.IsZero() {
		t.Errorf("a fixed amount has a quote: %+v", o)
	}

	w.pay(inv, "98999999") // the allowed shortfall is rounded down: 1000000, so 99000099 is enough
	w.confirm()
	w.want(w.get(inv.ID), invoice.Underpaid)
	w.pay(inv, "100")
	w.confirm()
	// The money on the other option is more than what was due.
	w.want(w.get(inv.ID), invoice.Paid, invoice.Overpaid)

	if got := w.get(inv.ID).PaidOptionID; got != inv.Options[1].ID {
		t.Errorf("paid option %s", got)
	}
}

func TestRefundsOfAnInvoice(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.follow()
	inv := w.sell()
	w.pay(inv, due)
	w.confirm()

	asset := inv.Options[0].AssetID
	move := func(amount string, m invoicestate.RefundTransition) error {
		return w.update(context.Background(), func(ctx context.Context, tx *tx) error {
			return w.ingester.RefundedTx(
				ctx,
				tx,
				invoicestate.RefundChange{
					InvoiceID: inv.ID,
					AssetID:   asset,
					Amount:    chain.MustAmount(amount),
					Move:      m,
				},
			)
		})
	}
	wantCode(t, move("1", invoicestate.RefundSucceeded), fault.State, "refund_unknown")
	w.must(move("20000000000000000", invoicestate.RefundPending))
	w.want(w.get(inv.ID), invoice.Paid)
	w.must(move("20000000000000000", invoicestate.RefundSucceeded))
	w.want(w.get(inv.ID), invoice.Paid, invoice.PartiallyRefunded)
	_, err := w.svc.Accept(context.Background(), w.owner, inv.ID, true)
	wantCode(t, err, fault.State, "invoice_refunded")
	w.must(move("30000000000000000", invoicestate.RefundPending))
	w.must(move("30000000000000000", invoicestate.RefundFailed))
	w.must(move("30000000000000000", invoicestate.RefundPending))
	w.must(move("30000000000000000", invoicestate.RefundSucceeded))
	w.want(w.get(inv.ID), invoice.Refunded)

	if got := w.get(inv.ID); got.RefundedAt.IsZero() || !got.DueAt.IsZero() {
		t.Errorf("refunded: %+v", got)
	}

	if !slices.ContainsFunc(w.events, func(e event.Event) bool { return e.Type == event.InvoiceRefunded }) {
		t.Error("invoice.refunded was not published")
	}
}

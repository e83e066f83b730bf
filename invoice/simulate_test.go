package invoice_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
)

func TestSimulate(t *testing.T) {
	for outcome, want := range map[invoice.Outcome]struct {
		status    invoice.Status
		flags     []invoice.Flag
		payment   invoice.PaymentStatus
		published string
	}{
		invoice.SimulateDetected: {invoice.Pending, nil, invoice.Detected, "invoice.payment_detected invoice.pending"},
		invoice.SimulatePaid:     {invoice.Paid, nil, invoice.Confirmed, "invoice.payment_confirmed invoice.paid"},
		invoice.SimulateUnderpaid: {
			invoice.Underpaid,
			nil,
			invoice.Confirmed,
			"invoice.payment_confirmed invoice.underpaid",
		},
		invoice.SimulateOverpaid: {
			invoice.Paid,
			[]invoice.Flag{invoice.Overpaid},
			invoice.Confirmed,
			"invoice.payment_confirmed invoice.paid",
		},
		invoice.SimulateLate: {
			invoice.Expired,
			nil,
			invoice.Confirmed,
			"invoice.expired invoice.payment_confirmed",
		},
		invoice.SimulateOrphaned: {invoice.Open, nil, invoice.Orphaned, "payment.orphaned"},
		invoice.SimulateDropped:  {invoice.Open, nil, invoice.Dropped, "payment.dropped"},
	} {
		for _, fiat := range []bool{true, false} {
			w := newHarness(t, account.Settings{ToleranceBPS: 500})
			w.follow()

			p := invoice.CreateParams{Price: &invoice.Price{Currency: "EUR", Amount: "90"}}
			if !fiat {
				p = invoice.CreateParams{
					Options: []invoice.OptionParams{
						{Asset: "SIM", Network: "simnet", Amount: chain.MustAmount(due)},
						{Asset: "USDX", Network: "simnet", Amount: chain.Units(1_000_000)},
					},
				}
			}

			inv := w.create(p)
			w.events = nil
			inv, pay, err := w.svc.Simulate(
				context.Background(),
				invoice.SimulateParams{Owner: w.owner, InvoiceID: inv.ID, Outcome: outcome},
			)
			w.must(err)
			w.want(inv, want.status, want.flags...)

			if pay.Status != want.payment || pay.TxHash != "sim_"+pay.ID || !pay.Simulated ||
				pay.DetectedBy != invoice.BySimulated ||
				pay.OptionID != inv.SelectedOptionID ||
				!inv.Simulated {
				t.Errorf("%s: payment %+v", outcome, pay)
			}

			if pay.Late != (outcome == invoice.SimulateLate) ||
				(pay.Status == invoice.Confirmed) != (w.countEvents(event.PaymentValued) == 1) {
				t.Errorf(
					"%s: late %t, priced %d times", outcome, pay.Late, w.countEvents(event.PaymentValued),
				)
			}

			if got := w.published(inv.ID); got != want.published {
				t.Errorf("%s: published %q, want %q", outcome, got, want.published)
			}
			// The follower and a reorganisation leave it alone.
			w.mine(3)
			w.follow()
			w.chains[0].Fork(sim.Fork{Depth: 1})
			w.follow()

			if got := w.onlyPayment(inv.ID); got.Status != pay.Status {
				t.Errorf("%s: the network made it %s", outcome, got.Status)
			}
		}
	}
}

func TestSimulateFollowsUp(t *testing.T) {
	w := newHarness(t, account.Settings{})
	inv := w.sell()
	ctx := context.Background()
	do := func(outcome invoice.Outcome, amount string, status invoice.Status, payments int) invoice.Payment {
		t.Helper()

		inv, pay, err := w.svc.Simulate(
			ctx,
			invoice.SimulateParams{
				Owner:     w.owner,
				InvoiceID: inv.ID,
				Outcome:   outcome,
				Amount:    chain.MustAmount(amount),
			},
		)
		w.must(err)

		if inv.Status != status || len(w.paymentsOf(inv.ID)) != payments {
			t.Errorf(
				"%s: %s with %d payments, want %s with %d",
				outcome, inv.Status, len(w.paymentsOf(inv.ID)), status, payments,
			)
		}

		return pay
	}

	first := do(invoice.SimulateUnderpaid, "0", invoice.Underpaid, 1)
	if first.Amount.String() != "25000000000000000" {
		t.Errorf("too little is %s", first.Amount)
	}

	do(invoice.SimulatePaid, "0", invoice.Paid, 2)
	do(invoice.SimulateOrphaned, "0", invoice.Underpaid, 2)
	do(invoice.SimulateDropped, "0", invoice.Underpaid, 2)
	// The other one is dropped by way of orphaned.
	do(invoice.SimulateDropped, "0", invoice.Open, 2)
	do(invoice.SimulatePaid, "1", invoice.Underpaid, 3) // a given amount is what is paid
}

func TestSimulateRefuses(t *testing.T) {
	w := newHarness(t, account.Settings{})
	ctx := context.Background()
	inv := w.sell()
	d, err := w.svc.CreateDeposit(ctx, invoice.DepositParams{Owner: w.owner, Network: "simnet"})
	w.must(err)

	live := event.Owner{AccountID: w.owner.AccountID, Livemode: true}
	for name, row := range map[string]struct {
		p    invoice.SimulateParams
		word error
		code string
	}{
		"live key": {
			invoice.SimulateParams{Owner: live, InvoiceID: inv.ID, Outcome: invoice.SimulatePaid},
			fault.Forbidden,
			"test_mode_only",
		},
		"unknown": {
			invoice.SimulateParams{Owner: w.owner, InvoiceID: inv.ID, Outcome: "rich"},
			fault.Invalid,
			"parameter_invalid",
		},
		"deposit outcome": {
			invoice.SimulateParams{Owner: w.owner, InvoiceID: inv.ID, Outcome: invoice.SimulateConfirmed},
			fault.Invalid,
			"parameter_invalid",
		},
		"invoice outcome": {
			invoice.SimulateParams{
				Owner:            w.owner,
				DepositAddressID: d.ID,
				Asset:            "SIM",
				Amount:           chain.Units(1),
				Outcome:          invoice.SimulatePaid,
			},
			fault.Invalid,
			"parameter_invalid",
		},
		"no amount": {
			invoice.SimulateParams{
				Owner:            w.owner,
				DepositAddressID: d.ID,
				Asset:            "SIM",
				Outcome:          invoice.SimulateDetected,
			},
			fault.Invalid,
			"parameter_missing",
		},
		"no asset": {
			invoice.SimulateParams{
				Owner:            w.owner,
				DepositAddressID: d.ID,
				Amount:           chain.Units(1),
				Outcome:          invoice.SimulateDetected,
			},
			fault.Invalid,
			"asset_not_enabled",
		},
		"somebody else's": {
			invoice.SimulateParams{
				Owner:     event.Owner{AccountID: "x"},
				InvoiceID: inv.ID,
				Outcome:   invoice.SimulatePaid,
			},
			fault.NotFound,
			"resource_missing",
		},
	} {
		_, _, err := w.svc.Simulate(ctx, row.p)
		if wantCode(t, err, row.word, row.code); t.Failed() {
			t.Fatalf("%s", name)
		}
	}

	if len(w.paymentsOf(inv.ID)) != 0 {
		t.Error("a refused simulation left a payment")
	}
}

func TestSimulateDeposit(t *testing.T) {
	w := newHarness(t, account.Settings{})
	ctx := context.Background()
	d, err := w.svc.CreateDeposit(
		ctx, invoice.DepositParams{Owner: w.owner, Network: "simnet", Name: "seven"},
	)
	w.must(err)

	var first string

	for _, row := range []struct {
		outcome invoice.Outcome
		status  invoice.PaymentStatus
		fresh   bool
	}{
		{invoice.SimulateConfirmed, invoice.Confirmed, true},
		{invoice.SimulateOrphaned, invoice.Orphaned, false},
		{invoice.SimulateDropped, invoice.Dropped, false},
		{invoice.SimulateDetected, invoice.Detected, true},
		{invoice.SimulateDropped, invoice.Dropped, false},
	} {
		_, pay, err := w.svc.Simulate(ctx, invoice.SimulateParams{
			Owner:            w.owner,
			DepositAddressID: d.ID,
			Asset:            "USDX",
			Amount:           chain.Units(3_000_000),
			Outcome:          row.outcome,
		})
		w.must(err)

		if pay.Status != row.status || (pay.ID != first) != row.fresh || pay.DepositAddressName != "seven" {
			t.Errorf("%s: %+v", row.outcome, pay)
		}

		first = pay.ID
	}

	var published []string
	for _, e := range w.events {
		published = append(published, string(e.Type))
	}

	const want = "deposit.payment_confirmed payment_valued payment.orphaned payment_lost payment.dropped " +
		"deposit.payment_detected payment.dropped payment_lost"
	if got := strings.Join(published, " "); got != want {
		t.Errorf("published %q, want %q", got, want)
	}
}

// What leaves the chain is a payment to the option or of the asset that was named; without one, a new payment.
func TestSimulatedPaymentThatLeavesIsTheNamedOne(t *testing.T) {
	w := newHarness(t, account.Settings{})
	inv := w.create(invoice.CreateParams{
		Options: []invoice.OptionParams{
			{Asset: "SIM", Network: "simnet", Amount: chain.MustAmount(due)},
			{Asset: "USDX", Network: "simnet", Amount: chain.Units(1_000_000)},
		},
	})
	d, err := w.svc.CreateDeposit(t.Context(), invoice.DepositParams{Owner: w.owner, Network: "simnet"})
	w.must(err)

	simulate := func(p invoice.SimulateParams) invoice.Payment {
		p.Owner, p.Amount = w.owner, chain.Units(1_000)
		_, pay, err := w.svc.Simulate(t.Context(), p)
		w.must(err)

		return pay
	}

	for _, row := range []struct {
		name          string
		first, second invoice.SimulateParams
		made          invoice.Outcome
	}{
		{
			"option",
			invoice.SimulateParams{InvoiceID: inv.ID, OptionID: inv.Options[0].ID},
			invoice.SimulateParams{InvoiceID: inv.ID, OptionID: inv.Options[1].ID},
			invoice.SimulateUnderpaid,
		},
		{
			"asset",
			invoice.SimulateParams{DepositAddressID: d.ID, Asset: "SIM"},
			invoice.SimulateParams{DepositAddressID: d.ID, Asset: "USDX"},
			invoice.SimulateConfirmed,
		},
	} {
		with := func(p invoice.SimulateParams, o invoice.Outcome) invoice.SimulateParams {
			p.Outcome = o
			return p
		}

		first := simulate(with(row.first, row.made))

		if fresh := simulate(with(row.second, invoice.SimulateOrphaned)); fresh.ID == first.ID ||
			fresh.OptionID != row.second.OptionID || fresh.Status != invoice.Orphaned {
			t.Errorf("%s: the second has no payment yet: orphaned %+v", row.name, fresh)
		}

		second := simulate(with(row.second, row.made))

		for _, outcome := range []invoice.Outcome{invoice.SimulateOrphaned, invoice.SimulateDropped} {
			if moved := simulate(with(row.first, outcome)); moved.ID != first.ID {
				t.Errorf("%s: %s took %s, want %s", row.name, outcome, moved.ID, first.ID)
			}
		}

		if moved := simulate(with(row.second, invoice.SimulateOrphaned)); moved.ID != second.ID {
			t.Errorf("%s: orphaned took %s, want %s", row.name, moved.ID, second.ID)
		}
	}
}

// What is only detected pays nothing.
func TestSimulatedPaymentBesideADetectedOne(t *testing.T) {
	for outcome, want := range map[invoice.Outcome]struct {
		status invoice.Status
		flags  []invoice.Flag
		paid   string
	}{
		invoice.SimulatePaid:      {invoice.Paid, nil, due},
		invoice.SimulateOverpaid:  {invoice.Paid, []invoice.Flag{invoice.Overpaid}, ""},
		invoice.SimulateLate:      {invoice.Expired, nil, due},
		invoice.SimulateUnderpaid: {invoice.Underpaid, nil, "15000000000000000"},
		invoice.SimulateDetected:  {invoice.Pending, nil, "0"},
	} {
		for _, fiat := range []bool{true, false} {
			w := newHarness(t, account.Settings{})

			p := invoice.CreateParams{Price: &invoice.Price{Currency: "EUR", Amount: "90"}}
			if !fiat {
				p.Price = nil
				p.Options = []invoice.OptionParams{
					{Asset: "SIM", Network: "simnet", Amount: chain.MustAmount(due)},
				}
			}

			id := w.create(p).ID
			simulate := func(outcome invoice.Outcome, amount string) invoice.Invoice {
				inv, _, err := w.svc.Simulate(t.Context(), invoice.SimulateParams{
					Owner:     w.owner,
					InvoiceID: id,
					Outcome:   outcome,
					Amount:    chain.MustAmount(amount),
				})
				w.must(err)

				return inv
			}

			w.want(simulate(invoice.SimulateDetected, "20000000000000000"), invoice.Open)

			inv := simulate(outcome, "0")
			w.want(inv, want.status, want.flags...)

			if got := inv.Options[0].AmountPaid.String(); want.paid != "" && got != want.paid {
				t.Errorf("%s: %s is paid, want %s", outcome, got, want.paid)
			}
		}
	}
}

// A simulated payment of a fiat invoice is worth what its outcome needs, whatever the quote asked for and holds.
func TestSimulatedPaymentIsWorthWhatItsOutcomeNeeds(t *testing.T) {
	for _, price := range []string{"900", "1700", "1800", "2600", ""} {
		for outcome, want := range map[invoice.Outcome]struct {
			status invoice.Status
			flags  []invoice.Flag
		}{
			invoice.SimulateDetected:  {invoice.Pending, nil},
			invoice.SimulatePaid:      {invoice.Paid, nil},
			invoice.SimulateUnderpaid: {invoice.Underpaid, nil},
			invoice.SimulateOverpaid:  {invoice.Paid, []invoice.Flag{invoice.Overpaid}},
		} {
			for _, before := range []string{"0", "10000000000000000"} {
				w := newHarness(t, account.Settings{ToleranceBPS: 500})
				inv := w.sell()
				simulate := func(outcome invoice.Outcome, amount string) {
					var err error

					inv, _, err = w.svc.Simulate(t.Context(), invoice.SimulateParams{
						Owner:     w.owner,
						InvoiceID: inv.ID,
						Outcome:   outcome,
						Amount:    chain.MustAmount(amount),
					})
					w.must(err)
				}

				if before != "0" {
					simulate(invoice.SimulateUnderpaid, before)
				}

				w.pass(21 * time.Minute)
				w.must(w.rates.Set("ETH/EUR", price))
				simulate(outcome, "0")

				if w.want(inv, want.status, want.flags...); t.Failed() {
					t.Fatalf("%s at %q after %s", outcome, price, before)
				}
			}
		}
	}
}

// What another option received counts, and what is only detected there does not pay.
func TestSimulatedPaymentBesideAnotherOption(t *testing.T) {
	for _, first := range []invoice.Outcome{invoice.SimulateDetected, invoice.SimulateUnderpaid} {
		w := newHarness(t, account.Settings{})
		inv := w.create(invoice.CreateParams{Price: &invoice.Price{Currency: "EUR", Amount: "90"}})

		for i, p := range []invoice.SimulateParams{
			{Outcome: first, Amount: chain.MustAmount("20000000000000000")},
			{Outcome: invoice.SimulatePaid},
		} {
			p.Owner, p.InvoiceID, p.OptionID = w.owner, inv.ID, inv.Options[i].ID

			_, _, err := w.svc.Simulate(t.Context(), p)
			w.must(err)
		}

		w.want(w.get(inv.ID), invoice.Paid)
	}
}

package invoice

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/shopspring/decimal"
	"pgregory.net/rapid"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// owed is a fiat invoice of 100 with one option of 2 decimals at a rate of 1, so that 1 base unit is 0.01.
func owed() Invoice {
	return Invoice{
		ID:       "i",
		Kind:     Fiat,
		Status:   Open,
		Currency: "EUR",
		Price:    decimal.NewFromInt(100),
		Options: []Option{
			{
				ID:              "o",
				Network:         "n",
				AssetID:         "x",
				Decimals:        2,
				DisplayDecimals: 2,
				Rate:            decimal.NewFromInt(1),
				AmountDue:       chain.Units(10_000),
				Address:         "addr",
				QuoteExpiresAt:  now.Add(time.Hour),
			},
		},
		SelectedOptionID:      "o",
		ExpiresAt:             now.Add(24 * time.Hour),
		PreSelectionExpiresAt: now.Add(2 * time.Hour),
		CreatedAt:             now,
	}
}

func paying(id string, s PaymentStatus, cents uint64) Payment {
	p := Payment{
		ID:          id,
		InvoiceID:   "i",
		OptionID:    "o",
		AssetID:     "x",
		Status:      s,
		Amount:      chain.Units(cents),
		Decimals:    2,
		Rate:        decimal.NewFromInt(1),
		Credit:      decimal.New(int64(cents), -2),
		ConfirmedAt: now,
	}
	if s == Detected || s == Confirmed {
		p.Block = blockA
	}

	return p
}

var (
	now    = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	blockA = chain.Ref{
		Height: 7,
		Hash:   "a",
		Time:   now,
	}
)

var over = map[string]time.Time{"n": now.Add(48 * time.Hour)} // every network was read to the end

// settle puts an invoice into a status with the payments that lead there.
func settle(t *testing.T, s Status) (Invoice, []Payment) {
	t.Helper()

	inv := owed()

	var (
		payments []Payment
		err      error
	)

	switch s {
	case Open:
	case Pending:
		payments = []Payment{paying("1", Detected, 10_000)}
	case Underpaid:
		payments = []Payment{paying("1", Confirmed, 4_000)}
	case Paid:
		payments = []Payment{paying("1", Confirmed, 10_000)}
	case Expired:
		_, err = inv.Expire(nil, over, now.Add(25*time.Hour))
	case Canceled:
		_, err = inv.Cancel(nil, now)
	case Refunded:
		payments = []Payment{paying("1", Confirmed, 10_000)}
		inv.Recompute(payments, now)
		inv.Refunds.Succeeded = map[string]chain.Amount{"x": chain.Units(10_000)}
	}

	if err != nil {
		t.Fatal(err)
	}

	inv.Recompute(payments, now)

	if inv.Status != s {
		t.Fatalf("the invoice is %s, want %s", inv.Status, s)
	}

	return inv, payments
}

// Every request to an invoice in every status.
func TestInvoiceRequests(t *testing.T) {
	later := now.Add(25 * time.Hour)
	requests := map[string]func(inv *Invoice, p []Payment) ([]event.Type, error){
		"cancel": func(inv *Invoice, p []Payment) ([]event.Type, error) { return inv.Cancel(p, later) },
		"expire": func(inv *Invoice, p []Payment) ([]event.Type, error) { return inv.Expire(p, over, later) },
		"accept late": func(inv *Invoice, p []Payment) ([]event.Type, error) {
			return inv.Accept(p, false, later)
		},
		"accept": func(inv *Invoice, p []Payment) ([]event.Type, error) { return inv.Accept(p, true, later) },
		"select": func(inv *Invoice, _ []Payment) ([]event.Type, error) { return nil, inv.selectOption("o", now) },
	}
	want := map[string]map[Status]string{ // the status after it, or the code
		"cancel": {
			Open:      "canceled",
			Pending:   "invoice_payment_pending",
			Underpaid: "canceled",
			Paid:      "invoice_not_open",
			Expired:   "invoice_not_open",
			Canceled:  "canceled",
			Refunded:  "invoice_not_open",
		},
		"expire": {
			Open:      "expired",
			Pending:   "invoice_payment_pending",
			Underpaid: "expired",
			Paid:      "invoice_not_open",
			Expired:   "expired",
			Canceled:  "invoice_not_open",
			Refunded:  "invoice_not_open",
		},
		"accept late": {
			Open:      "invoice_not_late",
			Pending:   "invoice_not_late",
			Underpaid: "invoice_not_late",
			Paid:      "invoice_not_late",
			Expired:   "invoice_has_no_payment",
			Canceled:  "invoice_has_no_payment",
			Refunded:  "invoice_refunded",
		},
		"accept": {
			Open:      "invoice_has_no_payment",
			Pending:   "invoice_payment_pending",
			Underpaid: "paid",
			Paid:      "paid",
			Expired:   "invoice_has_no_payment",
			Canceled:  "invoice_has_no_payment",
			Refunded:  "invoice_refunded",
		},
		"select": {
			Open:      "open",
			Pending:   "invoice_payment_pending",
			Underpaid: "underpaid",
			Paid:      "invoice_not_open",
			Expired:   "invoice_not_open",
			Canceled:  "invoice_not_open",
			Refunded:  "invoice_not_open",
		},
	}

	for name, request := range requests {
		for _, s := range Statuses() {
			inv, payments := settle(t, s)
			_, err := request(&inv, payments)

			got := string(inv.Status)
			if err != nil {
				got = fault.Code(err)

				if inv.Status != s {
					t.Errorf("%s of a %s invoice was refused and left it %s", name, s, inv.Status)
				}
			}

			if got != want[name][s] {
				t.Errorf("%s of a %s invoice: %s (%v), want %s", name, s, got, err, want[name][s])
			}
			// Idempotent: again, it returns the same and no events.
			after := inv

			types, again := request(&inv, payments)
			if (again == nil) != (err == nil) || err == nil && (inv.Status != after.Status || types != nil) {
				t.Errorf("%s of a %s invoice, twice: %v, published %v", name, s, again, types)
			}
		}
	}
}

// Every status with every combination of what arrived: the table of decisions 2.3.
func TestStanding(t *testing.T) {
	rows := []struct {
		name      string
		payments  []Payment
		want      Status
		published event.Type
	}{
		{"nothing", nil, Open, ""},
		{"too little seen", []Payment{paying("1", Detected, 9_999)}, Open, ""},
		{"enough seen", []Payment{paying("1", Detected, 10_000)}, Pending, event.InvoicePending},
		{
			"some sure, enough with what was seen",
			[]Payment{paying("1", Confirmed, 1), paying("2", Detected, 9_999)},
			Pending,
			event.InvoicePending,
		},
		{
			"some sure, too little with what was seen",
			[]Payment{paying("1", Confirmed, 1), paying("2", Detected, 9_998)},
			Underpaid,
			event.InvoiceUnderpaid,
		},
		{
			"enough sure",
			[]Payment{paying("1", Confirmed, 9_999), paying("2", Confirmed, 1)},
			Paid,
			event.InvoicePaid,
		},
		{"orphaned", []Payment{paying("1", Orphaned, 10_000)}, Open, ""},
		{"dropped", []Payment{paying("1", Dropped, 10_000)}, Open, ""},
	}
	for _, row := range rows {
		inv := owed()

		types := inv.Recompute(row.payments, now)
		if inv.Status != row.want || (row.published == "") != (len(types) == 0) ||
			row.published != "" && types[0] != row.published {
			t.Errorf(
				"%s: %s, events %v; want %s, events %q", row.name, inv.Status, types, row.want, row.published,
			)
		}

		before := inv
		if types := inv.Recompute(
			row.payments, now.Add(time.Hour),
		); types != nil ||
			!cmp.Equal(before, inv, same) {
			t.Errorf(
				"%s: a second look published %v and changed %s",
				row.name, types, cmp.Diff(before, inv, same),
			)
		}

		stray := paying("9", Confirmed, 10_000)

		stray.OptionID, stray.AssetID, stray.Credit = "", "y", decimal.Decimal{}
		if inv.Recompute(append(slices.Clone(row.payments), stray), now); inv.Status != row.want {
			t.Errorf("%s: money in another asset made it %s", row.name, inv.Status)
		}
	}
}

// same compares invoices by value: decimals as numbers, no flags like an empty list of them.
var same = cmp.Options{
	cmp.Comparer(func(a, b decimal.Decimal) bool { return a.Equal(b) }),
	cmp.Comparer(func(a, b chain.Amount) bool { return a == b }),
	cmp.Comparer(func(a, b []Flag) bool { return slices.Equal(a, b) }),
}

// Every fall from paid and pending when a payment leaves.
func TestReversal(t *testing.T) {
	gone := []Payment{paying("1", Orphaned, 10_000)}
	for _, row := range []struct {
		name      string
		make      func() Invoice
		left      []Payment
		status    Status
		published []event.Type
	}{
		{
			"pending, nothing left",
			func() Invoice { inv, _ := settle(t, Pending); return inv },
			gone,
			Open,
			[]event.Type{event.InvoiceReopened},
		},
		{
			"pending, some left",
			func() Invoice { inv, _ := settle(t, Pending); return inv },
			[]Payment{paying("1", Confirmed, 1)},
			Underpaid,
			[]event.Type{event.InvoiceReopened, event.InvoiceUnderpaid},
		},
		{
			"paid, nothing left",
			func() Invoice { inv, _ := settle(t, Paid); return inv },
			gone,
			Open,
			[]event.Type{event.InvoicePaymentReversed},
		},
		{
			"paid, some left",
			func() Invoice { inv, _ := settle(t, Paid); return inv },
			[]Payment{paying("1", Confirmed, 1)},
			Underpaid,
			[]event.Type{event.InvoicePaymentReversed},
		},
		{
			"paid, seen again",
			func() Invoice { inv, _ := settle(t, Paid); return inv },
			[]Payment{paying("1", Detected, 10_000)},
			Pending,
			[]event.Type{event.InvoicePaymentReversed},
		},
		{"refunded", func() Invoice { inv, _ := settle(t, Refunded); return inv }, gone, Refunded, nil},
		{
			"accepted late",
			func() Invoice { return accepted(t, Expired) },
			gone,
			Expired,
			[]event.Type{event.InvoicePaymentReversed},
		},
		{
			"accepted after cancellation",
			func() Invoice { return accepted(t, Canceled) },
			gone,
			Canceled,
			[]event.Type{event.InvoicePaymentReversed},
		},
		{
			"accepted too little",
			func() Invoice { return accepted(t, Underpaid) },
			[]Payment{paying("1", Confirmed, 4_000), paying("2", Orphaned, 1_000)},
			Underpaid,
			[]event.Type{event.InvoicePaymentReversed},
		},
	} {
		inv := row.make()

		published := inv.Recompute(row.left, now)
		if inv.Status != row.status || !slices.Equal(published, row.published) ||
			(inv.Status != Refunded && (!inv.PaidAt.IsZero() || inv.PaidOptionID != "")) {
			t.Errorf(
				"%s: %s, published %v, paid at %s by %q; want %s, published %v",
				row.name, inv.Status, published, inv.PaidAt, inv.PaidOptionID, row.status, row.published,
			)
		}

		if inv.Status != Refunded && len(inv.Flags) != 0 {
			t.Errorf("%s: flags %v are left", row.name, inv.Flags)
		}
	}
}

func accepted(t *testing.T, from Status) Invoice {
	t.Helper()
	inv, _ := settle(t, from)
	payments := []Payment{paying("1", Confirmed, 4_000), paying("2", Confirmed, 1_000)}
	inv.Recompute(payments, now)

	if _, err := inv.Accept(payments, true, now); err != nil || inv.Status != Paid {
		t.Fatalf("accepting from %s: %s, %v", from, inv.Status, err)
	}

	return inv
}

func TestExpiryWaits(t *testing.T) {
	later := now.Add(25 * time.Hour)
	for name, row := range map[string]struct {
		payments []Payment
		scanned  map[string]time.Time
		at       time.Time
		code     string
	}{
		"too early":            {nil, over, now.Add(23 * time.Hour), "invoice_not_due"},
		"never read":           {nil, nil, later, "invoice_not_due"},
		"not read far enough":  {nil, map[string]time.Time{"n": now.Add(24*time.Hour - 1)}, later, "invoice_not_due"},
		"read to the very end": {nil, map[string]time.Time{"n": now.Add(24 * time.Hour)}, later, ""},
		"orphaned":             {[]Payment{paying("1", Orphaned, 1)}, over, later, "invoice_payment_pending"},
		"dropped":              {[]Payment{paying("1", Dropped, 1)}, over, later, ""},
	} {
		inv := owed()
		inv.Recompute(row.payments, now)

		if _, err := inv.Expire(row.payments, row.scanned, row.at); fault.Code(err) != row.code {
			t.Errorf("%s: %v, want code %q", name, err, row.code)
		}
	}

	unselected := owed()

	unselected.SelectedOptionID, unselected.Options[0].Address = "", ""
	if _, err := unselected.Expire(
		nil, nil, now.Add(2*time.Hour),
	); err != nil || unselected.Status != Expired ||
		unselected.ClosedAs != Expired {
		t.Errorf("without a selection: %s, %v", unselected.Status, err)
	}
}

// The flags, and with row 22 of the pitfalls that they never depend on the way there.
func TestInvoiceDependsOnPaymentsAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := owed()

		base.ToleranceBPS = rapid.IntRange(0, 500).Draw(t, "tolerance")
		if rapid.Bool().Draw(t, "crypto") {
			base.Kind, base.Price = Crypto, decimal.Decimal{}
		}

		n := rapid.IntRange(1, 5).Draw(t, "payments")
		payments := make([]Payment, n)
		final := make([]Payment, n)

		statuses := rapid.SampledFrom(PaymentStatuses())
		for i := range final {
			final[i] = paying(
				fmt.Sprint(i), statuses.Draw(t, "status"),
				rapid.Uint64Range(1, 12_000).Draw(t, "cents"),
			)
			payments[i] = final[i]
		}

		travelled := base
		travelled.Options = slices.Clone(base.Options)

		for range rapid.IntRange(0, 10).Draw(t, "steps") {
			i := rapid.IntRange(0, n-1).Draw(t, "which")
			payments[i].Status = statuses.Draw(t, "on the way")
			travelled.Recompute(payments, now)
		}

		direct := base
		direct.Options = slices.Clone(base.Options)

		travelled.Recompute(final, now)
		direct.Recompute(final, now)

		if diff := cmp.Diff(direct, travelled, same); diff != "" {
			t.Fatalf("the way there matters:\n%s", diff)
		}

		sum := decimal.Decimal{}

		for _, p := range final {
			if p.Status == Confirmed {
				sum = sum.Add(p.Credit)
			}
		}

		if base.Kind == Fiat {
			share := decimal.NewFromInt(100).Mul(decimal.New(int64(base.ToleranceBPS), -4))
			if paid := sum.Cmp(decimal.NewFromInt(100).Sub(share)) >= 0; paid != (direct.Status == Paid) {
				t.Fatalf("%s arrived and the invoice is %s", sum, direct.Status)
			}

			if much := sum.Cmp(
				decimal.NewFromInt(100).Add(share).Add(decimal.New(1, -2)),
			) > 0; much != direct.Has(
				Overpaid,
			) {
				t.Fatalf("%s arrived and the flags are %v", sum, direct.Flags)
			}
		}
	})
}

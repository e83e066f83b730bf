package invoice

import (
	"slices"
	"testing"

	"github.com/shopspring/decimal"
)

// An acceptance covers what was confirmed when it was made, and what comes and goes later does not end it.
func TestAcceptanceCoversWhatWasConfirmed(t *testing.T) {
	type step struct {
		payments []Payment
		accept   bool
		status   Status
		flags    []Flag
	}

	short, late := []Flag{UnderpaidAccepted}, []Flag{Late}
	lateAndShort, lateAndMuch := []Flag{Late, UnderpaidAccepted}, []Flag{Overpaid, Late}

	foreign := func(id string, s PaymentStatus) Payment {
		p := paying(id, s, 4_000)
		p.OptionID, p.AssetID, p.Credit = "", "y", decimal.Decimal{}

		return p
	}

	for _, row := range []struct {
		name  string
		open  Invoice
		steps []step
	}{
		{"a later payment leaves", owed(), []step{
			{[]Payment{paying("1", Confirmed, 4_000)}, true, Paid, short},
			{[]Payment{paying("1", Confirmed, 4_000), paying("2", Confirmed, 3_000)}, false, Paid, short},
			{[]Payment{paying("1", Confirmed, 4_000), paying("2", Orphaned, 3_000)}, false, Paid, short},
			{[]Payment{paying("1", Confirmed, 4_000), paying("2", Dropped, 3_000)}, false, Paid, short},
		}},
		{"the accepted payment leaves, and less is left", owed(), []step{
			{[]Payment{paying("1", Confirmed, 4_000)}, true, Paid, short},
			{[]Payment{paying("1", Confirmed, 4_000), paying("2", Confirmed, 3_000)}, false, Paid, short},
			{[]Payment{paying("1", Orphaned, 4_000), paying("2", Confirmed, 3_000)}, false, Underpaid, nil},
		}},
		{"the accepted payment leaves, and as much is left", owed(), []step{
			{[]Payment{paying("1", Confirmed, 4_000)}, true, Paid, short},
			{[]Payment{paying("1", Orphaned, 4_000), paying("2", Confirmed, 4_000)}, false, Paid, short},
		}},
		{"the accepted payment leaves, and enough is left", owed(), []step{
			{[]Payment{paying("1", Confirmed, 4_000), foreign("2", Confirmed)}, true, Paid, short},
			{[]Payment{paying("1", Confirmed, 10_000), foreign("2", Orphaned)}, false, Paid, short},
		}},
		{"the accepted payment returns", owed(), []step{
			{[]Payment{paying("1", Confirmed, 4_000)}, true, Paid, short},
			{[]Payment{paying("1", Orphaned, 4_000)}, false, Open, nil},
			{[]Payment{paying("1", Confirmed, 4_000)}, false, Underpaid, nil},
			{[]Payment{paying("1", Confirmed, 4_000)}, true, Paid, short},
			{[]Payment{paying("1", Orphaned, 4_000)}, false, Open, nil},
		}},
		{"a part of what pays no option leaves", closed(false), []step{
			{[]Payment{foreign("1", Confirmed), foreign("2", Confirmed)}, true, Paid, lateAndShort},
			{[]Payment{foreign("1", Confirmed), foreign("2", Orphaned)}, false, Expired, nil},
		}},
		{"what pays no option leaves, and is not accepted", closed(false), []step{
			{[]Payment{paying("1", Confirmed, 4_000)}, true, Paid, lateAndShort},
			{[]Payment{paying("1", Confirmed, 4_000), foreign("2", Confirmed)}, false, Paid, lateAndShort},
			{[]Payment{paying("1", Confirmed, 4_000), foreign("2", Orphaned)}, false, Paid, lateAndShort},
		}},
		{"what is accepted by itself leaves and returns", closed(true), []step{
			{[]Payment{paying("1", Confirmed, 10_000)}, false, Paid, late},
			{[]Payment{paying("1", Orphaned, 10_000)}, false, Expired, nil},
			{[]Payment{paying("1", Confirmed, 10_000)}, false, Paid, late},
		}},
		{"a part of what is accepted by itself leaves", closed(true), []step{
			{[]Payment{paying("1", Confirmed, 6_000)}, false, Expired, nil},
			{[]Payment{paying("1", Confirmed, 6_000), paying("2", Confirmed, 5_000)}, false, Paid, lateAndMuch},
			{[]Payment{paying("1", Confirmed, 6_000), paying("2", Orphaned, 5_000)}, false, Expired, nil},
		}},
	} {
		t.Run(row.name, func(t *testing.T) {
			inv := row.open
			for i, step := range row.steps {
				inv.Recompute(step.payments, now)

				if step.accept {
					if _, err := inv.Accept(step.payments, true, now); err != nil {
						t.Fatal(err)
					}
				}

				if inv.Status != step.status || !slices.Equal(inv.Flags, step.flags) {
					t.Errorf("step %d: %s %v, want %s %v", i, inv.Status, inv.Flags, step.status, step.flags)
				}

				if accepted := len(inv.Accepted) > 0; accepted != inv.accepted() {
					t.Errorf("step %d: %v is kept as accepted, with flags %v", i, inv.Accepted, inv.Flags)
				}
			}
		})
	}
}

// The tolerance decides whether an invoice is paid, not whether less than the amount due was accepted.
func TestAcceptingLessThanTheAmountDue(t *testing.T) {
	for _, row := range []struct {
		name  string
		kind  Kind
		cents uint64
		auto  bool
		want  []Flag
	}{
		{"fiat, within the tolerance", Fiat, 9_600, false, []Flag{Late, UnderpaidAccepted}},
		{"fiat, one cent less", Fiat, 9_999, false, []Flag{Late, UnderpaidAccepted}},
		{"fiat, all", Fiat, 10_000, false, []Flag{Late}},
		{"crypto, within the tolerance", Crypto, 9_600, false, []Flag{Late, UnderpaidAccepted}},
		{"crypto, one base unit less", Crypto, 9_999, false, []Flag{Late, UnderpaidAccepted}},
		{"crypto, all", Crypto, 10_000, false, []Flag{Late}},
		{"accepted by the account's setting", Crypto, 9_600, true, []Flag{Late, UnderpaidAccepted}},
		{"all, accepted by the account's setting", Crypto, 10_000, true, []Flag{Late}},
	} {
		inv := closed(row.auto)
		inv.Kind, inv.ToleranceBPS = row.kind, 500
		payments := []Payment{paying("1", Confirmed, row.cents)}
		inv.Recompute(payments, now)

		if _, err := inv.Accept(payments, false, now); err != nil {
			t.Fatal(err)
		}

		if inv.Status != Paid || !slices.Equal(inv.Flags, row.want) {
			t.Errorf("%s: %s %v, want paid %v", row.name, inv.Status, inv.Flags, row.want)
		}
	}
}

// Of an invoice with crypto amounts nothing is too much where no option got enough.
func TestAcceptingPartsOfTwoOptions(t *testing.T) {
	for _, row := range []struct {
		name          string
		first, second uint64
		want          []Flag
	}{
		{"too little on both", 3_000, 3_000, []Flag{Late, UnderpaidAccepted}},
		{"all on one", 10_000, 3_000, []Flag{Overpaid, Late}},
		{"all but the tolerance on one", 9_600, 3_000, []Flag{Overpaid, Late, UnderpaidAccepted}},
	} {
		inv := closed(false)
		inv.Kind, inv.ToleranceBPS = Crypto, 500

		other := inv.Options[0]
		other.ID, other.AssetID = "p", "y"
		inv.Options = append(inv.Options, other)

		payments := []Payment{paying("1", Confirmed, row.first), paying("2", Confirmed, row.second)}
		payments[1].OptionID, payments[1].AssetID = "p", "y"
		inv.Recompute(payments, now)

		if _, err := inv.Accept(payments, false, now); err != nil {
			t.Fatal(err)
		}

		if inv.Status != Paid || !slices.Equal(inv.Flags, row.want) {
			t.Errorf("%s: %s %v, want paid %v", row.name, inv.Status, inv.Flags, row.want)
		}
	}
}

// closed returns an expired invoice; with auto its account accepts late payments.
func closed(auto bool) Invoice {
	inv := owed()
	inv.AcceptLate = auto
	inv.close(Expired, nil, now)

	return inv
}

package engine

import (
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// A process that was not given the new epoch numbers events by the stored one: at once where it starts later, and
// where it ran meanwhile, from the next look at the store on. Otherwise what it publishes of an object would seem
// older than what the others did.
func TestEventsAreNumberedByTheStoredEpoch(t *testing.T) {
	shared := memory.New()
	old, raised := newClinic(t, shared), newClinic(t, shared)
	raised.config.Epoch = 2

	old.passes(time.Minute)

	made, err := old.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	owner := event.Owner{AccountID: made.ID}
	open := func(c *clinic) string {
		inv, err := c.Invoices.Create(t.Context(), invoice.CreateParams{
			Owner:   owner,
			Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet", Amount: chain.Pow10(18)}},
		})
		if err != nil {
			t.Fatal(err)
		}

		return inv.ID
	}

	published := func(id string) (sequences []int64) {
		all, err := shared.Events(t.Context(), event.Filter{Owner: owner, ObjectID: id, Limit: 10})
		if err != nil {
			t.Fatal(err)
		}

		for _, ev := range all {
			sequences = append(sequences, ev.Sequence)
		}

		return sequences
	}

	if before := published(open(old)); len(before) != 1 || before[0] != 1 {
		t.Fatalf("before the new epoch it is %v", before)
	}

	raised.passes(time.Minute)

	id := open(raised)

	old.passes(paceStore)

	if _, err := old.Invoices.Cancel(t.Context(), owner, id); err != nil {
		t.Fatal(err)
	}

	for name, got := range map[string][]int64{
		"by both":              published(id),
		"by the old process":   published(open(old)),
		"by one that is new":   published(open(newClinic(t, shared))),
		"by the one that knew": published(open(raised)),
	} {
		for _, sequence := range got {
			if sequence <= 2*epochSkip {
				t.Errorf("%s: %v", name, got)
			}
		}
	}
}

// Records that are restored twice from the same backup give out no number that they gave out in between: not of
// addresses, nor of accounts or invoices.
func TestBackupRestoredTwiceGivesNoNumberAgain(t *testing.T) {
	type given struct {
		address chain.Address
		number  int64
		index   uint32
	}

	// What an epoch gives out first over a backup that has an account.
	epoch := func(number uint64) given {
		records := memory.New()

		merchant, err := newClinic(t, records).Accounts.CreateAccount(
			t.Context(),
			account.Settings{Name: "Corner Shop"},
		)
		if err != nil {
			t.Fatal(err)
		}

		c := newClinic(t, records)
		c.config.Epoch = number

		c.passes(time.Minute)

		inv, err := c.Invoices.Create(t.Context(), invoice.CreateParams{
			Owner:   event.Owner{AccountID: merchant.ID},
			Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet", Amount: chain.Pow10(18)}},
		})
		if err != nil {
			t.Fatal(err)
		}

		other, err := c.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Other Shop"})
		if err != nil {
			t.Fatal(err)
		}

		return given{inv.Options[0].Address, inv.Number, other.Index}
	}

	once, twice := epoch(1), epoch(2)
	if once.address == twice.address || once.number == twice.number || once.index == twice.index {
		t.Errorf("epoch 1 gave out %+v, and epoch 2 %+v", once, twice)
	}
}

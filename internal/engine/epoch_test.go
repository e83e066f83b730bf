package engine

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
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

const (
	early = "simnet"
	twin  = "twinnet"  // of the same key space
	late  = "othernet" // of another
)

// working returns a process of an epoch over records that serves networks and has begun to work.
func working(t *testing.T, records store.Store, epoch uint64, networks ...string) *Engine {
	t.Helper()

	clock := func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }
	c := Config{Store: records, Epoch: epoch, Now: clock}

	for _, slug := range networks {
		n := sim.DefaultNetwork()
		n.Slug, n.CAIP2, n.Livemode = slug, "sim:"+slug, slug == late
		c.Drivers = append(c.Drivers, sim.New(sim.Config{Network: n, Clock: clock}))
	}

	e := newEngine(t, map[string]string{"ETH/USD": "1"}, c)
	if _, err := e.Step(t.Context()); err != nil {
		t.Fatal(err)
	}

	for _, d := range e.Networks.Drivers() {
		if err := e.watchWallets(t.Context(), d.Network()); err != nil {
			t.Fatal(err)
		}
	}

	return e
}

// shopOf returns a new account.
func shopOf(t *testing.T, e *Engine) account.Account {
	t.Helper()

	a, err := e.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	return a
}

// depositOf returns the next deposit address of the network that is served later.
func depositOf(t *testing.T, e *Engine, a account.Account) chain.Address {
	t.Helper()

	d, err := e.Invoices.CreateDeposit(t.Context(), invoice.DepositParams{
		Owner:   event.Owner{AccountID: a.ID, Livemode: true},
		Network: late,
	})
	if err != nil {
		t.Fatal(err)
	}

	return d.Address
}

// wantFrozen fails the test unless so many wallets of a network are frozen.
func wantFrozen(t *testing.T, records store.Store, network string, want int) {
	t.Helper()

	frozen, err := records.FrozenWallets(t.Context(), network, 10)
	if err != nil || len(frozen) != want {
		t.Errorf("%d wallets of %s are frozen, want %d: %v", len(frozen), network, want, err)
	}
}

// A key space that no process had when an epoch began skips the numbers that were given out since the backup as soon as
// a process has it, be it new or one that ran before the epoch and sees it in the store.
func TestKeySpaceOfLaterSkipsNumbers(t *testing.T) {
	for name, later := range map[string]func(records store.Store, begin func()) *Engine{
		"a process that starts": func(records store.Store, begin func()) *Engine {
			begin()
			return working(t, records, 1, early, twin, late)
		},
		"one that was not given the epoch": func(records store.Store, begin func()) *Engine {
			begin()
			return working(t, records, 0, early, twin, late)
		},
		"one that ran before": func(records store.Store, begin func()) *Engine {
			e := working(t, records, 0, early, twin, late)

			begin()

			if err := e.readEpoch(t.Context()); err != nil {
				t.Fatal(err)
			}

			return e
		},
	} {
		lost := memory.New()
		before := working(t, lost, 0, early, twin, late)
		shop := shopOf(t, before)
		records := lost.(interface{ Clone() store.Store }).Clone()
		shown := depositOf(t, before, shop)

		e := later(records, func() { working(t, records, 1, early, twin) })
		if next := depositOf(t, e, shop); next == shown {
			t.Errorf("%s: %s was shown to somebody else", name, next)
		}
	}
}

// A network that is served for the first time when an epoch has begun may have been served between the backup and the
// restore: the wallets of accounts of before are frozen, and those of later ones are not.
func TestWalletsOfANetworkOfLaterAreFrozen(t *testing.T) {
	records := memory.New()
	shopOf(t, working(t, records, 0, early))

	first := working(t, records, 1, early)
	wantFrozen(t, records, early, 1)
	shopOf(t, first)

	second := working(t, records, 1, early, twin, late)
	wantFrozen(t, records, late, 1)
	wantFrozen(t, records, twin, 1)
	wantFrozen(t, records, early, 1)

	for _, network := range []string{early, twin, late} {
		if err := second.Unfreeze(t.Context(), network, ""); err != nil {
			t.Fatal(err)
		}
	}

	shopOf(t, second)
	working(t, records, 1, early, twin, late)

	for _, network := range []string{early, twin, late} {
		wantFrozen(t, records, network, 0)
	}
}

// interrupted is a store in which something happens before accounts are read.
type interrupted struct {
	store.Store
	before func()
}

func (s interrupted) Accounts(ctx context.Context, after string, limit int) ([]account.Account, error) {
	s.before()
	return s.Store.Accounts(ctx, after, limit)
}

// Processes that begin an epoch at the same time skip its numbers once, and each of them those of its own key spaces.
func TestEpochBeginsOnceForAll(t *testing.T) {
	records := memory.New()
	before := working(t, records, 0, early, late)
	shop := shopOf(t, before)
	shown := depositOf(t, before, shop)

	var once sync.Once

	slow := interrupted{records, func() {
		once.Do(func() { working(t, records, 1, early) })
	}}

	e := working(t, slow, 1, early, late)
	if next := shopOf(t, e); next.Index != shop.Index+1+epochSkip {
		t.Errorf("the accounts have indexes %d and %d", shop.Index, next.Index)
	}

	skipped, err := e.nextNumbers(t.Context(), partOf(e.Networks.Drivers()[1].Network()).skips)
	if err != nil || skipped[0] < epochSkip || skipped[0] > epochSkip+1000 {
		t.Errorf("the next index of the other key space is %v (%v)", skipped, err)
	}

	if next := depositOf(t, e, shop); next == shown {
		t.Errorf("%s was shown to somebody else", next)
	}
}

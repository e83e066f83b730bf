package engine

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// A panic of Config.OnEvent is an error of one invoice: what others are paid in the same block is confirmed, and its
// own payment is tried again.
func TestPanicOfTheHookConcernsOneInvoice(t *testing.T) {
	node, bad := sim.New(sim.Config{}), ""

	e := newEngine(t, nil, Config{
		Store:   memory.New(),
		Drivers: []chain.Driver{node},
		OnEvent: func(_ context.Context, _ Tx, ev event.Event) error {
			if bad != "" && strings.Contains(string(ev.Envelope), bad) {
				panic("the host's bug")
			}

			return nil
		},
	})

	made, err := e.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	var all []invoice.Invoice

	for range 2 {
		inv, err := e.Invoices.Create(t.Context(), invoice.CreateParams{
			Owner:   event.Owner{AccountID: made.ID},
			Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet", Amount: chain.Pow10(18)}},
		})
		if err != nil {
			t.Fatal(err)
		}

		all = append(all, inv)

		node.Pay(inv.Options[0].Address, "SIM", inv.Options[0].AmountDue)
	}

	bad = all[0].ID

	node.Mine(10)
	followAll(t, e)

	for i, want := range []invoice.Status{invoice.Open, invoice.Paid} {
		inv, err := e.Invoices.Get(t.Context(), all[i].Owner, all[i].ID)
		if err != nil || inv.Status != want {
			t.Errorf("invoice %d is %s, not %s: %v", i, inv.Status, want, err)
		}
	}

	report, err := e.Health(t.Context())
	if err != nil {
		t.Fatal(err)
	}

	if n := report.Networks[0]; n.Stopped != "" || n.Behind > 0 || len(n.Follower.Unread) == 0 {
		t.Errorf("the network is %+v", n)
	}
}

// The error of a panic names the event, the object and what was panicked with.
func TestPanicOfTheHookIsAnError(t *testing.T) {
	var object string

	e := newEngine(t, nil, Config{
		Store:   memory.New(),
		Drivers: []chain.Driver{sim.New(sim.Config{})},
		OnEvent: func(_ context.Context, _ Tx, ev event.Event) error {
			object = ev.ObjectID

			panic("the host's bug")
		},
	})

	made, err := e.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	_, err = e.Invoices.Create(t.Context(), invoice.CreateParams{
		Owner:   event.Owner{AccountID: made.ID},
		Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet", Amount: chain.Pow10(18)}},
	})
	if err == nil || !strings.Contains(err.Error(), "OnEvent for invoice.created of "+object) ||
		!strings.Contains(err.Error(), "the host's bug") {
		t.Errorf("Create = %v", err)
	}
}

// dropping panics the first time that each of its methods is called.
type dropping struct {
	chain.Signer
	published, listened, asked atomic.Int64
}

func (d *dropping) Wake(context.Context, string) error {
	if d.published.Add(1) == 1 {
		panic("the host's bug")
	}

	return nil
}

func (d *dropping) Wakes(ctx context.Context, _ func(string)) error {
	if d.listened.Add(1) == 1 {
		panic("the host's bug")
	}

	<-ctx.Done()

	return ctx.Err()
}

func (d *dropping) PublicKey(ctx context.Context, key chain.KeyRef) (chain.PublicKey, error) {
	if d.asked.Add(1) == 1 {
		panic("the host's bug")
	}

	return d.Signer.PublicKey(ctx, key)
}

// A panic of the host's Waker or Signer ends neither the process nor Run.
func TestPanicOfTheHostEndsNoRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &dropping{Signer: sim.NewSigner(1, nil)}

		e := newEngine(t, nil, Config{
			Store:   memory.New(),
			Drivers: []chain.Driver{sim.New(sim.Config{})},
			Signer:  d,
			Waker:   d,
		})

		if _, err := e.Accounts.CreateAccount(
			t.Context(),
			account.Settings{Name: "Corner Shop"},
		); err != nil {
			t.Fatal(err)
		}

		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)

		go func() { ended <- e.Run(ctx) }()

		for range 10 {
			e.Wake()
			time.Sleep(10 * time.Second)
		}

		cancel()

		if err := <-ended; err != nil {
			t.Error(err)
		}

		if d.published.Load() < 2 || d.listened.Load() < 2 || d.asked.Load() < 2 {
			t.Errorf("%d wake-ups were published, and %d times listened for; %d keys were asked for",
				d.published.Load(), d.listened.Load(), d.asked.Load())
		}
	})
}

// followAll reads the first network to its tip.
func followAll(t *testing.T, e *Engine) {
	t.Helper()

	for did := true; did; {
		var err error
		if did, err = e.Follow(t.Context(), e.followers[0].Driver.Network().Slug); err != nil {
			t.Fatal(err)
		}
	}
}

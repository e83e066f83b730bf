package engine

import (
	"context"
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

// announcing is the simulated network with a node that announces blocks when a test has it.
type announcing struct {
	*sim.Chain
	notify *atomic.Pointer[func()]
}

func (a announcing) NotifyHeads(ctx context.Context, notify func()) error {
	a.notify.Store(&notify)
	<-ctx.Done()

	return ctx.Err()
}

// Blocks come every 12 s, and are polled for every 3 s. One that is announced is read at once; one that is not,
// because the subscription is silent, within the 3 s.
func TestAnnouncedBlockIsReadAtOnce(t *testing.T) {
	for name, announced := range map[string]bool{"announced": true, "silent": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				took := timeToDetect(t, announced)
				if announced && took > 0 || !announced && (took == 0 || took > 3*time.Second) {
					t.Errorf("the payment was seen %s after its block", took)
				}
			})
		})
	}
}

// timeToDetect pays an invoice while the engine runs, and returns how long after its block the payment was seen.
func timeToDetect(t *testing.T, announced bool) time.Duration {
	t.Helper()

	network := sim.DefaultNetwork()
	network.BlockTime = 12 * time.Second

	node := announcing{sim.New(sim.Config{Network: network}), &atomic.Pointer[func()]{}}

	e := newEngine(t, map[string]string{"ETH/USD": "2500"}, Config{
		Store:   memory.New(),
		Drivers: []chain.Driver{node},
	})

	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)

	go func() { ended <- e.Run(ctx) }()

	made, err := e.Accounts.CreateAccount(ctx, account.Settings{Name: "Corner Shop"})
	if err != nil {
		t.Fatal(err)
	}

	owner := event.Owner{AccountID: made.ID}

	inv, err := e.Invoices.Create(ctx, invoice.CreateParams{
		Owner:   owner,
		Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet", Amount: chain.Pow10(18)}},
	})
	if err != nil {
		t.Fatal(err)
	}

	time.Sleep(10*time.Second + 100*time.Millisecond)
	node.Pay(inv.Options[0].Address, "SIM", inv.Options[0].AmountDue)
	node.Mine(1)

	mined := time.Now()

	if announced {
		(*node.notify.Load())()
	}

	synctest.Wait()

	for seen := false; !seen; {
		payments, _, err := e.Invoices.ListPayments(ctx, invoice.PaymentFilter{Owner: owner})
		if err != nil {
			t.Fatal(err)
		}

		if seen = len(payments) > 0; !seen {
			time.Sleep(10 * time.Millisecond)
		}
	}

	took := time.Since(mined)

	cancel()

	if err := <-ended; err != nil {
		t.Error(err)
	}

	return took
}

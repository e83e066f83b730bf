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
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// hanging is a source of prices that answers nobody, also when the context of a call ends, until it is released.
type hanging struct {
	asked   atomic.Int64
	release chan struct{}
}

func (h *hanging) Quote(_ context.Context, base, currency string) (rate.Quote, error) {
	h.asked.Add(1)
	<-h.release

	return rate.Quote{}, rate.Unavailable(base, currency, nil)
}

// Payments confirm without a price: a source that hangs delays a batch of blocks once, and is not asked again while
// it does.
func TestPaymentsConfirmWhileTheSourceOfPricesHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		prices := &hanging{release: make(chan struct{})}
		node := sim.New(sim.Config{})
		e := newEngine(t, nil, Config{Store: memory.New(), Drivers: []chain.Driver{node}, Rates: prices})

		made, err := e.Accounts.CreateAccount(t.Context(), account.Settings{Name: "Corner Shop"})
		if err != nil {
			t.Fatal(err)
		}

		for _, most := range []time.Duration{15 * time.Second, 0, 0} {
			inv, err := e.Invoices.Create(t.Context(), invoice.CreateParams{
				Owner:   event.Owner{AccountID: made.ID},
				Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet", Amount: chain.Pow10(18)}},
			})
			if err != nil {
				t.Fatal(err)
			}

			node.Pay(inv.Options[0].Address, "SIM", inv.Options[0].AmountDue)
			node.Mine(10)

			began := time.Now()

			followAll(t, e)

			if took := time.Since(began); took > most {
				t.Errorf("the blocks were read within %s, not %s", took, most)
			}

			if inv, err = e.Invoices.Get(
				t.Context(),
				inv.Owner,
				inv.ID,
			); err != nil ||
				inv.Status != invoice.Paid {
				t.Errorf("the invoice is %s: %v", inv.Status, err)
			}
		}

		if n := prices.asked.Load(); n != 1 {
			t.Errorf("%d calls hang", n)
		}

		for range 3 {
			if err := e.checkRates(t.Context()); err == nil {
				t.Error("the check of prices does not fail")
			}
		}

		if n := prices.asked.Load(); n != 2 { // the other asset of the network
			t.Errorf("%d calls hang", n)
		}

		close(prices.release)
	})
}

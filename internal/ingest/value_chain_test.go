package ingest_test

import (
	"context"
	"testing"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
)

// tiered is the test network with the tiers of a public chain: 3 confirmations, 60 from a million USD.
func tiered() chain.Network {
	n := twoTokens()
	n.Tiers = []chain.Tier{
		{FromUSD: decimal.NewFromInt(10_000), Confirmations: 10},
		{FromUSD: decimal.NewFromInt(1_000_000), Confirmations: 60},
	}

	return n
}

// Row 44 of the pitfalls: money that is in no block, or failed in one, raises nothing.
func TestMoneyThatIsNotThereRaisesNoTier(t *testing.T) {
	const fortune = 2_500_000

	for name, threaten := range map[string]func(w *harness, to chain.Address){
		"in the pool": func(w *harness, to chain.Address) { w.chain.Pay(to, "USDX", dollars(fortune)) },
		"replaced": func(w *harness, to chain.Address) {
			w.chain.Replace(w.chain.Pay(to, "USDX", dollars(fortune)))
		},
		"failing": func(w *harness, to chain.Address) {
			w.chain.PayFailing(to, "USDX", dollars(fortune))
		},
		"of another amount in its block": func(w *harness, to chain.Address) {
			w.chain.PayVariable(
				w.output(to, "USDX", dollars(fortune)),
				func(uint64, uint64) sim.Result { return sim.Result{} },
			)
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newHarness(t, sim.Config{Network: tiered()})
			d := w.deposit()
			w.chain.Pay(d.Address, "USDX", dollars(5))
			w.mine(1)
			threaten(w, d.Address)
			w.work()

			if name == "in the pool" {
				w.chain.MineEmpty(1)
			} else {
				w.chain.Mine(1)
			}

			w.work()

			for _, p := range w.payments(d.ID) {
				if p.Amount == dollars(5) && p.Required != 3 {
					t.Errorf("the honest payment needs %d confirmations, want 3", p.Required)
				}
			}

			w.chain.MineEmpty(1)
			w.work()

			honest := w.payments(d.ID)[0]
			if honest.Amount != dollars(5) || honest.Status != invoice.Confirmed {
				t.Errorf("three blocks deep the honest payment of %s is %s", honest.Amount, honest.Status)
			}
		})
	}
}

// Money in blocks does raise the tier: the test above must not pass because nothing ever does.
func TestMinedFortuneRaisesTheTier(t *testing.T) {
	w := newHarness(t, sim.Config{Network: tiered()})
	d := w.deposit()
	w.chain.Pay(d.Address, "USDX", dollars(2_500_000))
	w.mine(59)

	if p := w.only(d.ID); p.Status != invoice.Detected || p.Required != 60 {
		t.Fatalf("at 59 blocks the payment is %s and needs %d", p.Status, p.Required)
	}

	w.mine(1)

	if p := w.only(d.ID); p.Status != invoice.Confirmed {
		t.Errorf("at 60 blocks the payment is %s", p.Status)
	}
}

// Row 63 of the pitfalls: payment_confirmed shows usd_value, as whoever credits by it needs.
func TestConfirmationShowsItsValue(t *testing.T) {
	w := newHarness(t, sim.Config{})
	inv, d := w.sell("USDX", dollars(100)), w.deposit()
	w.chain.Pay(addressOf(inv), "USDX", dollars(100))
	w.chain.Pay(d.Address, "SIM", coin(2))
	w.mine(3)

	for _, paid := range []struct {
		of        string
		confirmed event.Type
		value     string
	}{
		{inv.ID, event.InvoicePaymentConfirmed, "100"},
		{d.ID, event.DepositPaymentConfirmed, "4000"},
	} {
		p := w.only(paid.of)
		if got := w.lastEvent(paid.confirmed, p.ID).payment()["usd_value"]; got != paid.value {
			t.Errorf("%s shows usd_value %v, want %s", paid.confirmed, got, paid.value)
		}

		for _, e := range w.events(p.ID) {
			if e.Type == event.PaymentPriced {
				t.Errorf("%s follows a confirmation that has its value", e.Type)
			}
		}
	}
}

// Decisions 11: without a fresh price the payment confirms all the same, and payment.priced follows.
func TestValueThatComesLaterIsPublished(t *testing.T) {
	w := newHarness(t, sim.Config{})
	inv, d := w.sell("USDX", dollars(100)), w.deposit()
	w.set(&w.noPrices, true)
	w.pass(time.Minute) // prices read before are not fresh any more
	w.chain.Pay(addressOf(inv), "USDX", dollars(100))
	w.chain.Pay(d.Address, "SIM", coin(2))
	w.mine(3)
	w.want(inv, invoice.Paid, dollars(100), chain.Amount{})

	for of, confirmed := range map[string]event.Type{
		inv.ID: event.InvoicePaymentConfirmed,
		d.ID:   event.DepositPaymentConfirmed,
	} {
		if value, has := w.lastEvent(confirmed, w.only(of).ID).payment()["usd_value"]; has {
			t.Errorf("%s shows usd_value %v without a price", confirmed, value)
		}
	}

	w.set(&w.noPrices, false)
	w.pass(time.Minute)
	w.work()

	for of, value := range map[string]string{inv.ID: "100", d.ID: "4000"} {
		if got := w.lastEvent(event.PaymentPriced, w.only(of).ID).payment()["usd_value"]; got != value {
			t.Errorf("payment.priced shows usd_value %v, want %s", got, value)
		}
	}
}

// A token has its value with its confirmation also while the native coin, which its settlement needs, has no price.
func TestAConfirmationShowsItsValueWithoutANativePrice(t *testing.T) {
	w := newHarness(t, sim.Config{})
	inv := w.sell("USDX", dollars(100))
	w.set(&w.noNative, true)
	w.pass(time.Minute)
	w.chain.Pay(addressOf(inv), "USDX", dollars(100))
	w.mine(3)

	p := w.only(inv.ID)
	if got := w.lastEvent(event.InvoicePaymentConfirmed, p.ID).payment()["usd_value"]; got != "100" {
		t.Errorf("the confirmation shows usd_value %v, want 100", got)
	}

	if p.NativeUSD.Valid || p.DueAt.IsZero() {
		t.Errorf("the native price is %v, and the payment is due at %v", p.NativeUSD, p.DueAt)
	}

	w.set(&w.noNative, false)
	w.pass(time.Minute)
	w.work()

	if p = w.only(inv.ID); !p.NativeUSD.Valid || !p.DueAt.IsZero() {
		t.Errorf("the native price is %v, and the payment is due at %v", p.NativeUSD, p.DueAt)
	}

	for _, e := range w.events(p.ID) {
		if e.Type == event.PaymentPriced {
			t.Errorf("%s follows a confirmation that has its value", e.Type)
		}
	}
}

// prices are fixed, and may be missing for a while.
type prices struct{ w *harness }

func (p prices) Quote(ctx context.Context, base, currency string) (rate.Quote, error) {
	p.w.mu.Lock()
	missing := p.w.noPrices || p.w.noNative && base == "ETH"
	p.w.mu.Unlock()

	if missing {
		return rate.Quote{}, fault.New(fault.Unavailable, "price_unavailable", "no price now")
	}

	fixed, err := rate.NewFixed(
		map[string]string{"ETH/USD": "2000", "ETH/EUR": "1800", "USDC/USD": "1", "USDC/EUR": "0.9"},
		time.Second, p.w.clock,
	)
	if err != nil {
		return rate.Quote{}, err
	}

	return fixed.Quote(ctx, base, currency)
}

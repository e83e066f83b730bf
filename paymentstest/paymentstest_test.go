package paymentstest_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/sim"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/httpapi"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/paymentstest"
	"github.com/seed-8ee7f392/payments/payout"
)

// A shop ships when its invoice is paid, in the transaction that made it so.
func TestShipsWhenPaid(t *testing.T) {
	var shipped []string

	service := paymentstest.New(t, func(c *payments.Config) {
		c.OnEvent = func(_ context.Context, _ payments.Tx, ev event.Event) error {
			if ev.Type == event.InvoicePaid {
				shipped = append(shipped, ev.InvoiceID)
			}

			return nil
		}
	})

	inv := service.Invoice("25.00", "USD")

	if len(shipped) != 0 {
		t.Fatal("shipped before it was paid")
	}

	service.Pay(inv)

	if !slices.Equal(shipped, []string{inv.ID}) {
		t.Errorf("shipped %q, want %s", shipped, inv.ID)
	}
}

// Time passes when the test says so: an invoice that nobody pays expires.
func TestAdvanceExpires(t *testing.T) {
	service := paymentstest.New(t)
	inv := service.Invoice("25.00", "USD")

	service.Advance(3 * time.Hour)

	now, err := service.Engine.Invoices.Get(t.Context(), service.Owner, inv.ID)
	if err != nil {
		t.Fatal(err)
	}

	if now.Status != invoice.Expired {
		t.Errorf("the invoice is %s after 3 hours, want expired", now.Status)
	}

	events := service.Events()
	if last := events[len(events)-1]; events[0].Type != event.InvoiceCreated ||
		last.Type != event.InvoiceExpired {
		t.Errorf("the events begin with %s and end with %s", events[0].Type, last.Type)
	}
}

// One whose option is selected expires once a block after its end was read.
func TestMineAndAdvanceExpireWhatIsSelected(t *testing.T) {
	service := paymentstest.New(t)
	inv := service.Invoice("25.00", "USD")

	if _, err := service.Engine.Invoices.Select(
		t.Context(),
		&service.Owner,
		inv.ID,
		inv.Options[0].ID,
	); err != nil {
		t.Fatal(err)
	}

	expect := func(when string, want invoice.Status) {
		t.Helper()

		now, err := service.Engine.Invoices.Get(t.Context(), service.Owner, inv.ID)
		if err != nil {
			t.Fatal(err)
		}

		if now.Status != want {
			t.Errorf("%s the invoice is %s, want %s", when, now.Status, want)
		}
	}

	service.Advance(25 * time.Hour)
	expect("before a block", invoice.Open)

	service.Mine(1)
	service.Advance(time.Minute)
	expect("after a block", invoice.Expired)
}

// A funded wallet pays out.
func TestFundPaysOut(t *testing.T) {
	service := paymentstest.New(t)
	service.Fund("SIM", chain.MustAmount("2000000000000000000"))

	made, err := service.Engine.Payouts.Create(t.Context(), payout.Params{
		Owner:       service.Owner,
		Network:     service.Network.Network().Slug,
		Asset:       "SIM",
		Amount:      chain.MustAmount("1000000000000000000"),
		Destination: string(service.Network.NewAddress()),
	})
	if err != nil {
		t.Fatal(err)
	}

	service.Work()
	service.Mine(5)

	got, err := service.Engine.Payouts.Get(t.Context(), service.Owner, made.ID)
	if err != nil {
		t.Fatal(err)
	}

	if got.Status != payout.Confirmed {
		t.Errorf("the payout is %s, want confirmed", got.Status)
	}
}

// The key works over HTTP.
func TestKeyOverHTTP(t *testing.T) {
	service := paymentstest.New(t)
	inv := service.Invoice("25.00", "USD")

	request := httptest.NewRequest(http.MethodGet, "/v1/invoices/"+inv.ID, nil)
	request.Header.Set("Authorization", "Bearer "+service.Key)

	answer := httptest.NewRecorder()
	httpapi.Handler(service.Engine, nil).ServeHTTP(answer, request)

	if answer.Code != http.StatusOK {
		t.Errorf("GET of the invoice: %d %s", answer.Code, answer.Body)
	}
}

// A fork takes the payment of a paid invoice away: what was shipped is missing its money, and the shop is told.
func TestForkUnderAPaidInvoice(t *testing.T) {
	service := paymentstest.NewOn(t, sim.Config{FinalDepth: 20})
	service.Mine(1)
	inv := service.Pay(service.Invoice("25.00", "USD"))

	service.Network.Fork(service.Network.Network().Confirmations+1, sim.DropOrphans)
	service.Mine(1)

	told := func(want event.Type) bool {
		return slices.ContainsFunc(service.Events(), func(ev event.Event) bool {
			return ev.Type == want && ev.InvoiceID == inv.ID
		})
	}
	if !told(event.InvoicePaymentReversed) {
		t.Error("the shop was not told that the payment was reversed")
	}
}

package httpapi_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/account"
)

// refundAll refunds all that an invoice received, by a key that may pay.
func (s *shop) refundAll(t testing.TB, invoiceID, more string) {
	t.Helper()

	there := string(s.network.NewAddress())
	key := s.newKey(t, account.KeyParams{Scopes: account.AllScopes(), Destinations: destinations(there)})

	s.ok(t, s.do(t, request{
		method: "POST",
		path:   "/v1/refunds",
		key:    key,
		body:   `{"invoice_id":"` + invoiceID + `","destination":"` + there + `"` + more + `}`,
		header: header("Idempotency-Key", "refund-"+there),
	}))
}

// A simulated refund has no payout that could be canceled when its payment leaves.
func TestASimulatedPaymentLeavesAfterItsRefund(t *testing.T) {
	s := open(t, nil)
	id := s.post(t, "/v1/invoices", cryptoBody)["id"].(string)

	s.simulate(t, id, "paid", "")
	s.refundAll(t, id, `,"amount":"1"`)
	wantInvoice(t, s.simulate(t, id, "orphaned", ""), "open [partially_refunded]")
}

// A payment that was waiting as the others were refunded leaves: then all that arrived is refunded.
func TestAnInvoiceIsRefundedAsTheLastPaymentThatWaitsIsDropped(t *testing.T) {
	s := open(t, nil)
	id := s.post(t, "/v1/invoices", cryptoBody)["id"].(string)

	s.simulate(t, id, "underpaid", `,"amount":"400000000000000000"`)
	s.simulate(t, id, "detected", `,"amount":"700000000000000000"`)
	s.refundAll(t, id, `,"amount":"400000000000000000"`)
	wantInvoice(t, s.get(t, "/v1/invoices/"+id), "pending [partially_refunded]")
	wantInvoice(t, s.simulate(t, id, "dropped", ""), "refunded []")
}

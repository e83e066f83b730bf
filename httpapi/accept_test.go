package httpapi_test

import (
	"fmt"
	"testing"
)

// cryptoBody is an invoice over 1 SIM.
const cryptoBody = `{"options":[{"asset":"SIM","network":"simnet","amount":"1000000000000000000"}]}`

// simulate simulates a payment to an invoice; more are further fields of the body.
func (s *shop) simulate(t testing.TB, id, outcome, more string) map[string]any {
	t.Helper()

	return s.post(t, "/v1/test/invoices/"+id+"/simulate_payment", `{"outcome":"`+outcome+`"`+more+`}`)
}

// wantInvoice compares an invoice's status and flags: "paid [late underpaid_accepted]".
func wantInvoice(t testing.TB, inv map[string]any, want string) {
	t.Helper()

	if got := fmt.Sprint(inv["status"], " ", inv["outcome_flags"]); got != want {
		t.Errorf("the invoice is %s, want %s", got, want)
	}
}

func TestAnAcceptedInvoiceStaysPaidAsALaterPaymentLeaves(t *testing.T) {
	s := open(t, nil)
	id := s.post(t, "/v1/invoices", cryptoBody)["id"].(string)

	s.simulate(t, id, "underpaid", `,"amount":"400000000000000000"`)
	wantInvoice(t, s.post(t, "/v1/invoices/"+id+"/accept", ""), "paid [underpaid_accepted]")
	s.simulate(t, id, "underpaid", `,"amount":"300000000000000000"`)
	wantInvoice(t, s.simulate(t, id, "orphaned", ""), "paid [underpaid_accepted]")
	s.simulate(t, id, "dropped", "")
	wantInvoice(t, s.simulate(t, id, "dropped", ""), "open []")
}

func TestALateShortfallWithinTheToleranceIsFlagged(t *testing.T) {
	s := open(t, nil)
	id := s.post(t, "/v1/invoices", `{"tolerance_bps":500,`+cryptoBody[1:])["id"].(string)

	s.post(t, "/v1/invoices/"+id+"/cancel", "")
	s.simulate(t, id, "late", `,"amount":"960000000000000000"`)
	wantInvoice(t, s.post(t, "/v1/invoices/"+id+"/accept_late_payment", ""), "paid [late underpaid_accepted]")
}

func TestAcceptedPartsOfTwoOptionsAreNotTooMuch(t *testing.T) {
	s := open(t, nil)
	inv := s.post(
		t,
		"/v1/invoices",
		`{"options":[{"asset":"SIM","network":"simnet","amount":"1000000000000000000"},`+
			`{"asset":"USDX","network":"simnet","amount":"100000000"}]}`,
	)
	id := inv["id"].(string)

	for i, amount := range []string{"300000000000000000", "30000000"} {
		option := inv["options"].([]any)[i].(map[string]any)["id"].(string)
		s.simulate(t, id, "underpaid", `,"option_id":"`+option+`","amount":"`+amount+`"`)
	}

	wantInvoice(t, s.post(t, "/v1/invoices/"+id+"/accept", ""), "paid [underpaid_accepted]")
}

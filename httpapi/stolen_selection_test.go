//go:build unix

package httpapi_test

import (
	"testing"

	faults "github.com/seed-8ee7f392/payments/fault"
)

// TestSQLGivesNoUnselectedInvoiceToAnother: an invoice whose payer has no address yet is not given to the rival, as
// whose the payer would pay the address that selecting derives; nor has it options that it was not made with.
func TestSQLGivesNoUnselectedInvoiceToAnother(t *testing.T) {
	const body = `{"options":[{"asset":"SIM","network":"simnet","amount":"1000000000000000000"},` +
		`{"asset":"USDX","network":"simnet","amount":"1000000"}]}`

	give := func(t *testing.T, s *stolenShop, rival string) {
		t.Helper()
		s.exec(t, "UPDATE payments_invoice_networks SET account_id = $1", rival)
		s.exec(t, "UPDATE payments_invoices SET account_id = $1", rival)
	}

	for name, change := range map[string]func(t *testing.T, s *stolenShop, id, option, rival string){
		"the account": func(t *testing.T, s *stolenShop, _, _, rival string) { give(t, s, rival) },
		"the account, once an address was shown": func(t *testing.T, s *stolenShop, id, option, rival string) {
			inv, err := s.engine.Invoices.Select(t.Context(), nil, id, option)
			if err != nil {
				t.Fatal(err)
			}

			s.replaceInOptions(t, `"address":"`+string(inv.Option(option).Address)+`"`, `"address":""`)
			s.exec(t, "UPDATE payments_invoices SET selected_option_id = ''")
			give(t, s, rival)
		},
		"the account, without the tag": func(t *testing.T, s *stolenShop, _, _, rival string) {
			s.replaceInOptions(t, `"mac":`, `"was":`)
			give(t, s, rival)
		},
		"the mode": func(t *testing.T, s *stolenShop, _, _, _ string) {
			s.exec(t, "UPDATE payments_invoices SET livemode = NOT livemode")
		},
		"a contract": func(t *testing.T, s *stolenShop, _, _, _ string) {
			s.replaceInOptions(t, `"decimals":`, `"contract":"`+string(s.network.NewAddress())+`","decimals":`)
		},
		"a token account": func(t *testing.T, s *stolenShop, _, _, _ string) {
			s.replaceInOptions(t, `"decimals":`, `"token_account":"`+string(s.network.NewAddress())+`","decimals":`)
		},
		"the asset": func(t *testing.T, s *stolenShop, _, _, _ string) {
			s.replaceInOptions(t, `"asset":"SIM"`, `"asset":"USDX"`)
		},
		"the network": func(t *testing.T, s *stolenShop, _, _, _ string) {
			s.replaceInOptions(t, `"network":"simnet"`, `"network":"othernet"`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			stolenShops(t, func(t *testing.T, s *stolenShop) {
				inv := s.post(t, "/v1/invoices", body)
				id, r := inv["id"].(string), s.rival(t)
				option := inv["options"].([]any)[0].(map[string]any)["id"].(string)

				change(t, s, id, option, r.owner.AccountID)

				got, err := s.engine.Invoices.Select(t.Context(), nil, id, option)
				if faults.Code(err) != "invoice_damaged" {
					t.Errorf("the payer is given %q: %v", got.Options, err)
				}
			})
		})
	}
}

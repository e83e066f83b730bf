//go:build unix

package httpapi_test

import (
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
)

// TestSQLShowsNoOtherWallet: who writes the database has no merchant fill or name a wallet of the thief as his own. The
// balances and the settlements show the wallet of the account's number, and a payment to another address is not shown.
func TestSQLShowsNoOtherWallet(t *testing.T) {
	const (
		shown   = "the account's wallet"
		leftOut = "no wallet"
		refused = "nothing"
	)

	for name, c := range map[string]struct {
		change func(t *testing.T, s *stolenShop, thief string, r rival)
		paths  []string
		want   string
	}{
		"untouched": {
			func(*testing.T, *stolenShop, string, rival) {},
			[]string{"/v1/balances", "/v1/settlements", "/v1/settlements/{}", "/v1/payments", "/v1/payments/{}"},
			shown,
		},
		"a balance of the thief": {
			func(t *testing.T, s *stolenShop, thief string, r rival) {
				s.exec(
					t, "UPDATE payments_balances SET address = $1 WHERE address <> $2",
					thief, string(r.master.Address),
				)
			},
			[]string{"/v1/balances"},
			shown,
		},
		"a balance of the rival": {
			func(t *testing.T, s *stolenShop, _ string, r rival) {
				s.exec(
					t, "UPDATE payments_balances SET account_id = $1 WHERE address = $2",
					s.account.ID, string(r.master.Address),
				)
			},
			[]string{"/v1/balances"},
			shown,
		},
		"a settlement that waits for the thief's wallet": {
			func(t *testing.T, s *stolenShop, thief string, _ rival) {
				s.exec(
					t, "UPDATE payments_settlements SET master_wallet_address = $1, status = 'held', "+
						"required_native = '1', reason = 'insufficient_master_balance'", thief,
				)
			},
			[]string{"/v1/settlements", "/v1/settlements/{}", "/v1/payments", "/v1/payments/{}"},
			shown,
		},
		"a settlement that was released to the thief": {
			func(t *testing.T, s *stolenShop, thief string, _ rival) {
				s.exec(t, "UPDATE payments_settlements SET master_wallet_address = $1", thief)
			},
			[]string{"/v1/settlements", "/v1/settlements/{}", "/v1/payments", "/v1/payments/{}"},
			leftOut,
		},
		"a payment to the thief": {
			func(t *testing.T, s *stolenShop, thief string, _ rival) {
				s.exec(t, "UPDATE payments_payments SET address = $1", thief)
			},
			[]string{"/v1/payments", "/v1/payments/{}"},
			refused,
		},
		"a payment to the rival": {
			func(t *testing.T, s *stolenShop, _ string, r rival) {
				s.exec(t, "UPDATE payments_payments SET address = $1", string(r.deposit.Address))
			},
			[]string{"/v1/payments", "/v1/payments/{}"},
			refused,
		},
		"a payment to the rival, by its key": {
			func(t *testing.T, s *stolenShop, _ string, r rival) {
				s.exec(
					t, "UPDATE payments_payments SET address = $1, address_key = "+
						"(SELECT address_key FROM payments_deposit_addresses WHERE address = $1)",
					string(r.deposit.Address),
				)
			},
			[]string{"/v1/payments", "/v1/payments/{}"},
			refused,
		},
	} {
		t.Run(name, func(t *testing.T) {
			stolenShops(t, func(t *testing.T, s *stolenShop) {
				r, thief := s.rival(t), string(s.network.NewAddress())
				if _, err := s.engine.Payouts.Balances(t.Context(), r.owner); err != nil {
					t.Fatal(err)
				}

				option := s.post(t, "/v1/invoices", invoiceBody)["options"].([]any)[0].(map[string]any)
				s.network.Pay(chain.Address(option["address"].(string)), "SIM", chain.Pow10(19))
				s.work(t)
				s.work(t)

				master := s.get(t, "/v1/balances")["data"].([]any)[0].(map[string]any)["address"].(string)
				first := func(list string) string {
					return s.get(t, list)["data"].([]any)[0].(map[string]any)["id"].(string)
				}
				ids := map[string]string{
					"/v1/settlements/{}": first("/v1/settlements"),
					"/v1/payments/{}":    first("/v1/payments"),
				}

				c.change(t, s, thief, r)

				for _, path := range c.paths {
					got := s.do(t, request{method: "GET", path: strings.Replace(path, "{}", ids[path], 1)})
					body := string(got.body)

					if c.want == refused {
						got.refused(t, 503)
					} else if got.status != 200 {
						t.Errorf("%s: status %d", path, got.status)
					}

					for _, foreign := range []string{thief, string(r.master.Address), string(r.deposit.Address)} {
						if strings.Contains(body, foreign) {
							t.Errorf("%s shows %s: %s", path, foreign, body)
						}
					}

					if strings.Contains(body, master) != (c.want == shown) {
						t.Errorf("%s: want %s in %s", path, c.want, body)
					}

					if path == "/v1/balances" && strings.Count(body, `"asset":"SIM"`) != 1 {
						t.Errorf("it shows other wallets too: %s", body)
					}
				}
			})
		})
	}
}

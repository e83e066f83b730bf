package httpapi_test

import (
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
)

// set replaces the settings of the shop's account.
func (s *shop) set(t testing.TB, settings account.Settings) {
	t.Helper()

	if _, err := s.engine.Accounts.UpdateSettings(t.Context(), s.account.ID, settings); err != nil {
		t.Fatal(err)
	}
}

// The lists of an account hold for payouts and refunds of each of its keys, together with the key's own.
func TestAllowlistsOfTheAccount(t *testing.T) {
	s := open(t, nil)
	s.fund(t, "SIM", chain.Pow10(20))

	there, elsewhere := string(s.network.NewAddress()), string(s.network.NewAddress())
	free := s.newKey(t, account.KeyParams{Scopes: account.AllScopes()})
	bound := s.newKey(t, account.KeyParams{
		Scopes:       account.AllScopes(),
		Destinations: destinations(there, elsewhere),
	})
	invoice := s.post(t, "/v1/invoices", invoiceBody)["id"].(string)
	s.post(t, "/v1/test/invoices/"+invoice+"/simulate_payment", `{"outcome":"paid"}`)

	type attempt struct {
		name, key, to string
		code          string // "": it is paid
	}

	for _, test := range []struct {
		name     string
		settings account.Settings
		attempts []attempt
	}{
		{
			"no list",
			account.Settings{},
			[]attempt{{"free", free, there, "payout_allowlist_required"}, {"bound", bound, there, ""}},
		},
		{
			"destinations",
			account.Settings{Destinations: destinations(there)},
			[]attempt{
				{"free", free, there, ""},
				{"free, elsewhere", free, elsewhere, "destination_not_allowed"},
				{"bound", bound, there, ""},
				{"bound, elsewhere", bound, elsewhere, "destination_not_allowed"},
			},
		},
		{
			"no destination of the key",
			account.Settings{Destinations: destinations(string(s.network.NewAddress()))},
			[]attempt{
				{"free", free, there, "destination_not_allowed"},
				{"bound", bound, there, "destination_not_allowed"},
			},
		},
		{
			"IP addresses", // httptest's peer is 192.0.2.1
			account.Settings{AllowedIPs: []string{"192.0.2.0/24"}},
			[]attempt{{"free", free, elsewhere, ""}, {"bound", bound, elsewhere, ""}},
		},
		{
			"too many IP addresses",
			account.Settings{AllowedIPs: []string{"192.0.0.0/8"}},
			[]attempt{{"free", free, there, "payout_allowlist_required"}, {"bound", bound, there, ""}},
		},
		{
			"other IP addresses",
			account.Settings{AllowedIPs: []string{"198.51.100.0/24"}, Destinations: destinations(there)},
			[]attempt{{"free", free, there, "ip_not_allowed"}, {"bound", bound, there, "ip_not_allowed"}},
		},
	} {
		s.set(t, test.settings)

		for _, a := range test.attempts {
			for path, body := range map[string]string{
				"/v1/payouts": payoutBody("SIM", "1000000", a.to),
				"/v1/refunds": `{"invoice_id":"` + invoice + `","amount":"1","destination":"` + a.to + `"}`,
			} {
				answer := s.do(t, request{
					method: "POST",
					path:   path,
					key:    a.key,
					body:   body,
					header: header("Idempotency-Key", strings.ReplaceAll(path+test.name+a.name, " ", "-")),
				})

				if a.code == "" {
					s.ok(t, answer)
				} else if f := answer.refused(t, 403); f.Code != a.code {
					t.Errorf("%s, %s: %s is answered %+v, want %s", test.name, a.name, path, f, a.code)
				}
			}
		}
	}
}

// A payout that was requested before the account's list was narrowed is not approved after it.
func TestAnApprovalLooksAtTheDestinationsOfTheAccount(t *testing.T) {
	s := newApprovingShop(t)
	waits := s.pay(t, chain.Pow10(18))["id"].(string)

	s.set(t, account.Settings{Destinations: destinations(string(s.network.NewAddress()))})

	if f := s.approve(t, waits, s.approves).refused(t, 403); f.Code != "destination_not_allowed" {
		t.Errorf("%+v", f)
	}

	s.set(t, account.Settings{Destinations: destinations(s.there)})
	s.ok(t, s.approve(t, waits, s.approves))

	// The answer to an approval that was given stays.
	s.set(t, account.Settings{Destinations: destinations(string(s.network.NewAddress()))})
	s.ok(t, s.approve(t, waits, s.approves))
}

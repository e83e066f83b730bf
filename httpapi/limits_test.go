package httpapi_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/httpapi/checkout"
	"github.com/seed-8ee7f392/payments/limits"
	"github.com/seed-8ee7f392/payments/store/memory"
)

// openLimited is open with budgets of one's own.
func openLimited(t testing.TB, table limits.Table) *shop {
	t.Helper()

	s := bootWith(t, memory.New(), nil, time.Now, func(c *payments.Config) { c.Limits = table })
	s.enter(t)

	return s
}

// A body that does not come is given up, whoever asks and whatever the answer is without it.
func TestASlowBodyIsGivenUp(t *testing.T) {
	s := openLimited(t, limits.Table{BodyTimeout: 100 * time.Millisecond})

	inv := s.post(t, "/v1/invoices", invoiceBody)["id"].(string)

	mux := http.NewServeMux()
	mux.Handle("/v1/", s.handler)
	mux.Handle("/checkout/", checkout.Handler(s.engine, nil))

	server := httptest.NewServer(mux)
	defer server.Close()

	for name, c := range map[string]struct{ head, status string }{
		"with a key":    {"POST /v1/invoices HTTP/1.1\r\nAuthorization: Bearer " + s.key, "400"},
		"without a key": {"POST /v1/invoices HTTP/1.1", "401"},
		"to nothing":    {"POST /v1/nothing HTTP/1.1", "404"},
		"checkout":      {"POST /checkout/" + inv + "/select HTTP/1.1", "422"},
		"checkout page": {"GET /checkout/" + inv + " HTTP/1.1", "200"},
	} {
		conn, err := net.Dial("tcp", server.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()

		contentType := "application/json"
		if strings.HasPrefix(name, "checkout") {
			contentType = "application/x-www-form-urlencoded"
		}

		if _, err := fmt.Fprintf(
			conn, "%s\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: 1000\r\n\r\n{", c.head, contentType,
		); err != nil {
			t.Fatal(err)
		}

		// The connection ends with the answer, long before the deadline of this side.
		if err := conn.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			t.Fatal(err)
		}

		in := bufio.NewReader(conn)

		line, err := in.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, "HTTP/1.1 "+c.status) {
			t.Errorf("%s: %q, %v; want %s", name, line, err, c.status)
		}

		if _, err := in.WriteTo(discard{}); err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("%s: the connection is still held: %v", name, err)
		}
	}
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

// The client is watched after the body as before: a request outlives the body's time.
func TestARequestMayTakeLongerThanItsBody(t *testing.T) {
	s := openLimited(t, limits.Table{BodyTimeout: time.Millisecond})

	server := httptest.NewServer(s.handler)
	defer server.Close()

	for range 20 {
		r, err := http.NewRequest(http.MethodPost, server.URL+"/v1/invoices", strings.NewReader(invoiceBody))
		if err != nil {
			t.Fatal(err)
		}

		r.Header.Set("Authorization", "Bearer "+s.key)
		r.Header.Set("Content-Type", "application/json")

		answer, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}

		_ = answer.Body.Close()

		// A body that came too late is refused by name; one that came in time is served to its end.
		if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusBadRequest {
			t.Errorf("status %d", answer.StatusCode)
		}
	}
}

func TestABodyHasALimit(t *testing.T) {
	s := openLimited(t, limits.Table{Body: 100})

	long := request{
		method: "POST",
		path:   "/v1/invoices",
		body:   `{"description":"` + strings.Repeat("x", 100) + `"}`,
	}
	if f := s.do(t, long).refused(t, 413); f.Code != "body_too_large" {
		t.Errorf("%+v", f)
	}
}

// Guessing keys costs the store a bounded number of look-ups, and nobody else his access.
func TestUnknownKeysAreLimited(t *testing.T) {
	s := openLimited(t, limits.Table{UnknownKeys: 4, UnknownKeysPerClient: 2})
	s.get(t, "/v1/invoices") // the shop's key is known from now on

	guess := func(remote string) int {
		stranger, _, err := account.GenerateKey("pay", false, false, nil)
		if err != nil {
			t.Fatal(err)
		}

		return s.do(t, request{method: "GET", path: "/v1/invoices", key: stranger, remote: remote}).status
	}

	answered := func(remote string, tries int) (unauthorized int) {
		for range tries {
			switch status := guess(remote); status {
			case http.StatusUnauthorized:
				unauthorized++
			case http.StatusTooManyRequests:
			default:
				t.Fatalf("status %d", status)
			}
		}

		return unauthorized
	}

	// The clock runs, so a token or two may come back meanwhile.
	if n := answered("192.0.2.1:1", 50); n < 10 || n > 14 {
		t.Errorf("one client had %d keys looked up", n)
	}

	all := 0
	for i := range 50 {
		all += answered(fmt.Sprintf("198.51.100.%d:1", i), 2)
	}

	if all > 20 {
		t.Errorf("many clients had %d more keys looked up", all)
	}

	s.get(t, "/v1/invoices")
}

func TestDepositAddressesAreLimited(t *testing.T) {
	s := openLimited(t, limits.Table{DepositAddresses: 3})

	create := request{method: "POST", path: "/v1/deposit_addresses", body: `{"network":"simnet"}`}
	for range 3 {
		s.ok(t, s.do(t, create))
	}

	if f := s.do(t, create).refused(t, 409); f.Code != "deposit_address_limit_exceeded" {
		t.Errorf("%+v", f)
	}

	// Another account has its own.
	other, err := s.engine.Accounts.CreateAccount(t.Context(), account.Settings{})
	if err != nil {
		t.Fatal(err)
	}

	_, key, err := s.engine.Accounts.CreateKey(t.Context(), account.KeyParams{AccountID: other.ID})
	if err != nil {
		t.Fatal(err)
	}

	create.key = key
	s.ok(t, s.do(t, create))
}

// Both forms in which clients write lists are one list, also for the cursor.
func TestListsOfAQueryAreTakenInBothForms(t *testing.T) {
	s := open(t, nil)
	for range 3 {
		s.post(t, "/v1/invoices", invoiceBody)
	}

	page := s.get(t, "/v1/invoices?status=open&status=paid&limit=2")
	if len(page["data"].([]any)) != 2 {
		t.Fatalf("%v", page)
	}

	next := s.get(t, "/v1/invoices?status=open,paid&limit=2&starting_after="+page["next_cursor"].(string))
	if len(next["data"].([]any)) != 1 {
		t.Errorf("%v", next)
	}
}

func TestASimulatedPaymentOfNothingIsRefused(t *testing.T) {
	s := open(t, nil)
	inv := s.post(t, "/v1/invoices", invoiceBody)["id"].(string)
	deposit := s.post(t, "/v1/deposit_addresses", `{"network":"simnet"}`)["id"].(string)

	for path, body := range map[string]string{
		"/v1/test/invoices/" + inv + "/simulate_payment": `{"outcome":"paid","amount":"0"}`,
		"/v1/test/deposit_addresses/" + deposit + "/simulate_payment": `{"asset":"SIM","amount":"0",` +
			`"outcome":"confirmed"}`,
	} {
		if f := s.do(t, request{method: "POST", path: path, body: body}).
			refused(t, 422); f.Code != "amount_too_small" {
			t.Errorf("%s: %+v", path, f)
		}
	}
}

func TestTextsThatTurnOthersAreRefused(t *testing.T) {
	s := open(t, nil)

	for _, turn := range strings.Split("\u202a \u202b \u202c \u202d \u202e \u2066 \u2067 \u2068 \u2069", " ") {
		body := strings.Replace(invoiceBody, "{", `{"description":"pay `+turn+` me",`, 1)
		if f := s.do(t, request{method: "POST", path: "/v1/invoices", body: body}).
			refused(t, 400); f.Param != "description" {
			t.Errorf("%q: %+v", turn, f)
		}
	}

	s.post(t, "/v1/invoices", strings.Replace(invoiceBody, "{", `{"description":"שלום مرحبا 中文",`, 1))
}

// The stored answer to a payout shows what was paid to whom: it goes to keys that may pay the same.
func TestAStoredPayoutAnswerFollowsTheDestinations(t *testing.T) {
	s := open(t, nil)
	s.fund(t, "SIM", chain.Pow10(20))

	there := string(s.network.NewAddress())
	elsewhere := string(s.network.NewAddress())

	key := func(p account.KeyParams) string {
		p.Scopes = account.AllScopes()
		return s.newKey(t, p)
	}

	q := request{
		method: "POST",
		path:   "/v1/payouts",
		body:   `{"asset":"SIM","network":"simnet","amount":"1000000","destination":"` + there + `"}`,
		header: header("Idempotency-Key", "once"),
		key:    key(account.KeyParams{Destinations: destinations(there)}),
	}
	s.ok(t, s.do(t, q))

	for name, c := range map[string]struct {
		key    account.KeyParams
		status int
	}{
		"the same destination":      {account.KeyParams{Destinations: destinations(there)}, 200},
		"more destinations":         {account.KeyParams{Destinations: destinations(elsewhere, there)}, 200},
		"any destination from here": {account.KeyParams{AllowedIPs: []string{"192.0.2.1"}}, 200},
		"another destination":       {account.KeyParams{Destinations: destinations(elsewhere)}, 403},
		"none":                      {account.KeyParams{}, 403},
	} {
		q.key = key(c.key)

		answer := s.do(t, q)
		if answer.status != c.status {
			t.Errorf("%s: %d %s", name, answer.status, answer.body)
		}

		if c.status != 200 && answer.refused(t, 403).Code != "idempotency_key_not_yours" {
			t.Errorf("%s: %s", name, answer.body)
		}
	}
}

// A key that pays any destination is bound to few addresses.
func TestAWideAllowlistIsNone(t *testing.T) {
	s := open(t, nil)

	for ips, fine := range map[string]bool{
		"0.0.0.0/0":                 false,
		"::/0":                      false,
		"10.0.0.0/15":               false,
		"10.0.0.0/16":               true,
		"10.0.0.0/17,10.0.128.0/17": true,
		"10.0.0.0/16,192.0.2.1":     false,
		"2001:db8::/48":             true,
		"2001:db8::/47":             false,
		"10.0.0.0/16,2001:db8::/48": true,

		"10.0.0.0/16,10.0.7.0/24,10.0.0.0/16":     true,
		"10.0.7.0/24,10.0.0.0/16":                 true,
		"10.0.7.0/24,10.0.0.0/15":                 false,
		"2001:db8::/48,2001:db8::/49,2001:db8::1": true,
		"2001:db8::/49,2001:db8:0:8000::/49":      true,
		"2001:db8::/49,2001:db8:1::/49":           false,
		"2001:db8::1,2001:db8:1::1":               false,
		"::/48,0:0:1::/48":                        false,
	} {
		p := account.KeyParams{
			AccountID:  s.account.ID,
			Scopes:     []account.Scope{account.PayoutsWrite},
			AllowedIPs: strings.Split(ips, ","),
		}

		_, _, err := s.engine.Accounts.CreateKey(t.Context(), p)
		if (err == nil) != fine {
			t.Errorf("%s: %v", ips, err)
		}

		// A row that was written before the rule does not pay either.
		if _, err := (account.Key{AllowedIPs: p.AllowedIPs}).PayoutDestinations(
			account.Settings{},
		); (err == nil) != fine {
			t.Errorf("%s, stored: %v", ips, err)
		}

		p.Scopes = []account.Scope{account.PayoutsRead}
		if _, _, err := s.engine.Accounts.CreateKey(t.Context(), p); err != nil {
			t.Errorf("%s, of a key that does not pay: %v", ips, err)
		}
	}
}

// destinations returns addresses as destinations on every network.
func destinations(addresses ...string) (all []chain.Destination) {
	for _, address := range addresses {
		all = append(all, chain.Destination{Address: chain.Address(address)})
	}

	return all
}

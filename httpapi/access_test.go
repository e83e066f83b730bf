package httpapi_test

import (
	"context"
	"errors"
	"net/http"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/httpapi"
)

func TestWhoMayAsk(t *testing.T) {
	s := open(t, nil)
	live := s.newKey(t, account.KeyParams{Livemode: true, Scopes: account.AllScopes()})
	public := s.newKey(t, account.KeyParams{Publishable: true})
	reader := s.newKey(t, account.KeyParams{Scopes: []account.Scope{account.InvoicesRead}})

	stranger, _, err := account.GenerateKey("pay", false, false, nil)
	if err != nil {
		t.Fatal(err)
	}

	inv := s.post(t, "/v1/invoices", invoiceBody)["id"].(string)
	for _, test := range []struct {
		name   string
		q      request
		status int
		kind   string
		code   string
	}{
		{"no key", request{method: "GET", path: "/v1/invoices", key: "-"}, 401, "authentication", "api_key_required"},
		{
			"another scheme",
			request{method: "GET", path: "/v1/invoices", key: "-", header: header("Authorization", "Basic "+s.key)},
			401,
			"authentication",
			"api_key_required",
		},
		{
			"no secret",
			request{method: "GET", path: "/v1/invoices", key: "-", header: header("Authorization", "Bearer")},
			401,
			"authentication",
			"api_key_required",
		},
		{
			"two keys",
			request{
				method: "GET",
				path:   "/v1/invoices",
				key:    "-",
				header: header("Authorization", "Bearer "+s.key, "Bearer "+s.key),
			},
			401,
			"authentication",
			"api_key_required",
		},
		{
			"no key at all",
			request{method: "GET", path: "/v1/invoices", key: "hello"},
			401,
			"authentication",
			"api_key_invalid",
		},
		{
			"unknown key",
			request{method: "GET", path: "/v1/invoices", key: stranger},
			401,
			"authentication",
			"api_key_invalid",
		},
		{
			"publishable key",
			request{method: "GET", path: "/v1/invoices", key: public},
			403,
			"permission",
			"publishable_key_not_allowed",
		},
		{
			"publishable key with an Origin",
			request{method: "GET", path: "/v1/invoices", key: public, header: header("Origin", "https://shop.example")},
			403,
			"permission",
			"publishable_key_not_allowed",
		},
		{
			"without the scope",
			request{method: "POST", path: "/v1/invoices", key: reader, body: invoiceBody},
			403,
			"permission",
			"scope_missing",
		},
		{
			"the other mode",
			request{method: "GET", path: "/v1/invoices/" + inv, key: live},
			404,
			"not_found",
			"resource_missing",
		},
	} {
		r := s.do(t, test.q)
		if f := r.refused(t, test.status); f.Type != test.kind || f.Code != test.code {
			t.Errorf("%s: %+v", test.name, f)
		}

		if got := r.header.Get("WWW-Authenticate"); (got != "") != (test.status == 401) {
			t.Errorf("%s: WWW-Authenticate %q", test.name, got)
		}
	}

	s.ok(t, s.do(t, request{method: "GET", path: "/v1/invoices/" + inv, key: reader}))
	s.ok(
		t,
		s.do(
			t,
			request{
				method: "GET",
				path:   "/v1/invoices",
				key:    "-",
				header: header("Authorization", "bearer "+s.key),
			},
		),
	)

	for _, path := range []string{"/v1/networks", "/v1/assets", "/v1/rates?base=SIM"} {
		s.ok(t, s.do(t, request{method: "GET", path: path, key: public}))
	}

	if got := s.ok(t, s.do(t, request{
		method: "GET",
		path:   "/v1/networks",
		key:    live,
	}))["data"].([]any); got[0].(map[string]any)["slug"] != "livenet" {
		t.Errorf("a live key sees %v", got)
	}

	s.ok(t, s.do(t, request{method: "GET", path: "/v1/openapi.json", key: "-"}))
}

func TestAnotherAccountSeesNothing(t *testing.T) {
	s := open(t, nil)
	inv := s.post(t, "/v1/invoices", invoiceBody)["id"].(string)
	deposit := s.post(t, "/v1/deposit_addresses", `{"network":"simnet"}`)["id"].(string)
	endpoint := s.post(t, "/v1/webhook_endpoints", `{"url":"http://127.0.0.1:1/","events":["*"]}`)["id"].(string)
	event := s.get(t, "/v1/events")["data"].([]any)[0].(map[string]any)["id"].(string)

	other, err := s.engine.Accounts.CreateAccount(t.Context(), account.Settings{})
	if err != nil {
		t.Fatal(err)
	}

	_, key, err := s.engine.Accounts.CreateKey(
		t.Context(), account.KeyParams{AccountID: other.ID, Scopes: account.AllScopes()},
	)
	if err != nil {
		t.Fatal(err)
	}

	for _, path := range []string{
		"/v1/invoices/" + inv,
		"/v1/invoices/" + inv + "/payments",
		"/v1/deposit_addresses/" + deposit,
		"/v1/deposit_addresses/" + deposit + "/payments",
		"/v1/webhook_endpoints/" + endpoint,
		"/v1/webhook_endpoints/" + endpoint + "/deliveries",
		"/v1/events/" + event,
		"/v1/events/" + event + "/deliveries",
	} {
		if f := s.do(t, request{method: "GET", path: path, key: key}).
			refused(t, 404); f.Code != "resource_missing" {
			t.Errorf("%s: %+v", path, f)
		}
	}

	for _, path := range []string{
		"/v1/invoices/" + inv + "/cancel",
		"/v1/invoices/" + inv + "/accept",
		"/v1/webhook_endpoints/" + endpoint + "/rotate_secret",
		"/v1/events/" + event + "/resend",
	} {
		s.do(t, request{method: "POST", path: path, key: key}).refused(t, 404)
	}

	s.do(t, request{method: "PATCH", path: "/v1/deposit_addresses/" + deposit, key: key, body: `{"name":"mine"}`}).
		refused(t, 404)
	s.do(t, request{method: "DELETE", path: "/v1/webhook_endpoints/" + endpoint, key: key}).refused(t, 404)

	for _, path := range []string{
		"/v1/invoices",
		"/v1/deposit_addresses",
		"/v1/webhook_endpoints",
		"/v1/events",
		"/v1/payments",
		"/v1/settlements",
	} {
		if got := s.ok(t, s.do(t, request{method: "GET", path: path, key: key}))["data"].([]any); len(
			got,
		) != 0 {
			t.Errorf("%s shows %v to another account", path, got)
		}
	}
}

func TestClientAddress(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	s := open(t, &httpapi.Options{TrustedProxies: proxies})

	key := s.newKey(
		t,
		account.KeyParams{Scopes: account.AllScopes(), AllowedIPs: []string{"192.0.2.7", "2001:db8::7"}},
	)
	for _, test := range []struct {
		name, remote string
		forwarded    []string
		ok           bool
	}{
		{"itself", "192.0.2.7:1234", nil, true},
		{"itself, mapped", "[::ffff:192.0.2.7]:1234", nil, true},
		{"itself, with a zone", "[2001:db8::7%eth0]:1", nil, true},
		{"somebody else", "192.0.2.8:1234", nil, false},
		{"claims to be forwarded", "192.0.2.8:1234", []string{"192.0.2.7"}, false},
		{"behind a proxy", "10.1.1.1:1", []string{"192.0.2.7"}, true},
		{"behind an IPv6 proxy", "[fd00::1]:1", []string{"2001:db8::7"}, true},
		{"behind two proxies", "10.1.1.1:1", []string{"192.0.2.7, 10.2.2.2"}, true},
		{"behind two proxies, two headers", "10.1.1.1:1", []string{"192.0.2.7", "10.2.2.2"}, true},
		{"claims an address in front of its own", "10.1.1.1:1", []string{"192.0.2.7, 198.51.100.1"}, false},
		{"claims rubbish in front of its own", "10.1.1.1:1", []string{"rubbish, 192.0.2.7"}, true},
		{"rubbish from the proxy", "10.1.1.1:1", []string{"192.0.2.7, rubbish"}, false},
		{"with a port", "10.1.1.1:1", []string{"192.0.2.7:5000"}, true},
		{"with brackets", "10.1.1.1:1", []string{"[2001:db8::7]:5000"}, true},
		{"the proxy itself", "10.1.1.1:1", nil, false},
		{"no address", "@", []string{"192.0.2.7"}, false},
	} {
		q := request{method: "GET", path: "/v1/invoices", key: key, remote: test.remote}
		if test.forwarded != nil {
			q.header = header("X-Forwarded-For", test.forwarded...)
		}

		r := s.do(t, q)
		if test.ok {
			s.ok(t, r)
		} else if f := r.refused(t, 403); f.Code != "ip_not_allowed" || f.Type != "permission" {
			t.Errorf("%s: %+v", test.name, f)
		}
	}
}

func TestRateLimitIsPerKey(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := openAt(t, nil, func() time.Time { return now })
	other := s.newKey(t, account.KeyParams{})
	take := func(n int) (taken int, last reply) {
		for range n {
			if last = s.do(t, request{method: "GET", path: "/v1/networks"}); last.status == 200 {
				taken++
			}
		}

		return taken, last
	}

	taken, last := take(301)
	if taken != 300 {
		t.Fatalf("a burst of %d, want 300", taken)
	}

	if f := last.refused(t, 429); f.Type != "rate_limited" || last.header.Get("Retry-After") != "1" {
		t.Errorf("%+v, Retry-After %s", f, last.header.Get("Retry-After"))
	}

	s.ok(t, s.do(t, request{method: "GET", path: "/v1/networks", key: other}))

	now = now.Add(time.Second)

	if taken, _ = take(150); taken != 100 {
		t.Errorf("%d after a second, want 100", taken)
	}

	if _, err := s.engine.Accounts.UpdateSettings(
		t.Context(), s.account.ID, account.Settings{RequestsPerSecond: 2, RequestBurst: 5},
	); err != nil {
		t.Fatal(err)
	}

	now = now.Add(time.Hour)

	if taken, _ = take(10); taken != 5 {
		t.Errorf("a burst of %d after the account's settings changed, want 5", taken)
	}
}

// brokenLimiter is a shared limiter whose server is down.
type brokenLimiter struct{ calls int }

func (l *brokenLimiter) Allow(context.Context, string, int, int) (bool, int, error) {
	l.calls++
	return false, 0, errors.New("down")
}

func TestABrokenSharedLimiterDoesNotStopPayments(t *testing.T) {
	limiter := &brokenLimiter{}

	s := open(t, &httpapi.Options{Limiter: limiter})
	if _, err := s.engine.Accounts.UpdateSettings(
		t.Context(), s.account.ID, account.Settings{RequestsPerSecond: 1, RequestBurst: 2},
	); err != nil {
		t.Fatal(err)
	}

	s.get(t, "/v1/networks")
	s.get(t, "/v1/networks")
	s.do(t, request{method: "GET", path: "/v1/networks"}).refused(t, 429) // this process limits alone

	if limiter.calls != 3 || !strings.Contains(s.logs.String(), "limiter") {
		t.Errorf("%d calls; log: %s", limiter.calls, s.logs)
	}
}

func TestEveryAnswerIsOurs(t *testing.T) {
	s := open(t, &httpapi.Options{DocsURL: "https://docs.example/errors"})
	seen := map[string]bool{}

	for range 100 {
		r := s.do(t, request{method: "GET", path: "/v1/networks"})

		id := r.header.Get("Request-Id")
		if !strings.HasPrefix(id, "req_") || seen[id] {
			t.Fatalf("Request-Id %q", id)
		}

		seen[id] = true

		if r.header.Get("Content-Type") != "application/json" ||
			r.header.Get("Cache-Control") != "no-store" ||
			r.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Fatalf("%v", r.header)
		}
	}

	if f := s.do(t, request{method: "GET", path: "/v1/x"}).
		refused(t, 404); f.DocURL != "https://docs.example/errors#path_unknown" {
		t.Errorf("%+v", f)
	}
}

func TestTimeoutIs503(t *testing.T) {
	s := open(t, &httpapi.Options{Timeout: time.Nanosecond})

	q := request{method: "POST", path: "/v1/invoices", body: invoiceBody}
	if f := s.do(t, q).
		refused(t, http.StatusServiceUnavailable); f.Type != "unavailable" ||
		f.Code != "service_unavailable" {
		t.Errorf("%+v", f)
	}
}

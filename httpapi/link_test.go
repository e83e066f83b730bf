package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/httpapi/checkout"
)

// unlimited lets every request through.
type unlimited struct{}

func (unlimited) Allow(context.Context, string, int, int) (bool, int, error) { return true, 0, nil }

// serveCheckout serves the shop's checkout pages, until the test ends.
func serveCheckout(t *testing.T, s *shop) *httptest.Server {
	t.Helper()

	mux := http.NewServeMux()
	mux.Handle("/checkout/", checkout.Handler(s.engine, &checkout.Options{Limiter: unlimited{}}))

	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)

	return server
}

// checkoutPath returns the path of an invoice's checkout_url.
func checkoutPath(t *testing.T, inv map[string]any) string {
	t.Helper()

	u, err := url.Parse(inv["checkout_url"].(string))
	if err != nil {
		t.Fatal(err)
	}

	return u.Path
}

// browser gives up: an event stream that should have been refused does not end by itself.
var browser = http.Client{Timeout: 10 * time.Second}

// answer returns status and body of a request with a form, or of a GET without one.
func answer(t *testing.T, address string, form url.Values) (int, string) {
	t.Helper()

	var (
		resp *http.Response
		err  error
	)

	if form == nil {
		resp, err = browser.Get(address)
	} else {
		resp, err = browser.PostForm(address, form)
	}

	if err != nil {
		t.Fatal(err)
	}

	defer resp.Body.Close()

	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}

	return resp.StatusCode, string(body)
}

// A renewed link opens the page and all that belongs to it; every link before opens nothing, whatever is asked.
func TestARenewedCheckoutLinkRevokesTheOld(t *testing.T) {
	stores(t, func(t *testing.T, db payments.Store) {
		s := openOn(t, db, nil, time.Now)
		server := serveCheckout(t, s)

		inv := s.post(t, "/v1/invoices", strings.Replace(
			invoiceBody, `"options":[`, `"options":[{"asset":"USDX","network":"simnet"},`, 1,
		))
		id := inv["id"].(string)
		option := inv["options"].([]any)[0].(map[string]any)["id"].(string)

		var revoked []string
		for range 3 {
			revoked = append(revoked, checkoutPath(t, inv))
			inv = s.post(t, "/v1/invoices/"+id+"/renew_checkout_url", "")
		}

		link := checkoutPath(t, inv)
		if !regexp.MustCompile(`^/checkout/` + id + `-[0-9a-f]{32}$`).MatchString(link) {
			t.Errorf("the new link is %s", link)
		}

		if again := s.get(t, "/v1/invoices/"+id); again["checkout_url"] != inv["checkout_url"] {
			t.Errorf("%s is stored as %s", inv["checkout_url"], again["checkout_url"])
		}

		revoked = append(revoked, link+"0", link[:len(link)-1], link+"-", "/checkout/"+id+"-")
		for _, old := range revoked {
			for _, action := range []string{"", "/state.json", "/events", "/logo"} {
				if status, body := answer(t, server.URL+old+action, nil); status != http.StatusNotFound {
					t.Errorf("%s%s: %d %s", old, action, status, body)
				}
			}

			for action, form := range map[string]url.Values{
				"/select":   {"option": {option}},
				"/hint":     {"tx_hash": {strings.Repeat("ab", 32)}},
				"/simulate": {"outcome": {"paid"}},
			} {
				if status, body := answer(t, server.URL+old+action, form); status != http.StatusNotFound {
					t.Errorf("%s%s: %d %s", old, action, status, body)
				}
			}
		}

		if now := s.get(t, "/v1/invoices/"+id); now["selected_option_id"] != nil || now["status"] != "open" {
			t.Errorf("a revoked link moved the invoice: %v", now)
		}

		// Each link and form of the new page leads to the new page.
		status, page := answer(t, server.URL+link, nil)
		if status != http.StatusOK || strings.Contains(page, `"`+id+`/`) {
			t.Errorf("%d %s", status, page)
		}

		status, page = answer(t, server.URL+link+"/select", url.Values{"option": {option}})
		if status != http.StatusOK ||
			!strings.Contains(page, strings.TrimPrefix(link, "/checkout/")+"/events") {
			t.Errorf("select leads to %d %s", status, page)
		}
	})
}

// What was opened on a revoked link is no longer updated.
func TestAStreamEndsWhenItsLinkIsRevoked(t *testing.T) {
	s := open(t, nil)
	server := serveCheckout(t, s)
	inv := s.post(t, "/v1/invoices", invoiceBody)

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()

	r, err := http.NewRequestWithContext(
		ctx, http.MethodGet, server.URL+checkoutPath(t, inv)+"/events", http.NoBody,
	)
	if err != nil {
		t.Fatal(err)
	}

	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()

	stream := bufio.NewReader(resp.Body)
	if _, err := stream.ReadString('\n'); err != nil {
		t.Fatal(err)
	}

	s.post(t, "/v1/invoices/"+inv["id"].(string)+"/renew_checkout_url", "")
	s.post(t, "/v1/test/invoices/"+inv["id"].(string)+"/simulate_payment", `{"outcome":"paid"}`)

	rest, err := io.ReadAll(stream)
	if err != nil || strings.Contains(string(rest), `"status":"paid"`) {
		t.Errorf("%v: the stream goes on with %s", errors.Join(err, ctx.Err()), rest)
	}
}

// Only who may write the invoice renews its link.
func TestWhoMayRenewACheckoutLink(t *testing.T) {
	s := open(t, nil)
	path := "/v1/invoices/" + s.post(t, "/v1/invoices", invoiceBody)["id"].(string) + "/renew_checkout_url"

	reader := s.newKey(t, account.KeyParams{Scopes: []account.Scope{account.InvoicesRead}})
	if f := s.do(t, request{method: "POST", path: path, key: reader}).
		refused(t, 403); f.Code != "scope_missing" {
		t.Errorf("%+v", f)
	}

	live := s.newKey(t, account.KeyParams{Livemode: true, Scopes: account.AllScopes()})
	s.do(t, request{method: "POST", path: path, key: live}).refused(t, 404)
}

package httpapi_test

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
)

func TestIdempotencyKeyReplays(t *testing.T) { stores(t, testReplay) }

func testReplay(t *testing.T, db payments.Store) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	s := openOn(t, db, nil, func() time.Time { return now })
	q := request{
		method: "POST",
		path:   "/v1/invoices",
		body:   invoiceBody,
		header: header("Idempotency-Key", "order-A1"),
	}
	first := s.do(t, q)
	s.ok(t, first)

	if first.header.Get("Idempotent-Replayed") != "" {
		t.Error("the first answer says that it is replayed")
	}

	second := s.do(t, q)
	if !bytes.Equal(first.body, second.body) || second.header.Get("Idempotent-Replayed") != "true" ||
		first.header.Get("Request-Id") == second.header.Get("Request-Id") {
		t.Errorf("the second answer is %s with %v", second.body, second.header)
	}

	changed := q

	changed.body = strings.Replace(invoiceBody, "49.90", "49.91", 1)
	if f := s.do(t, changed).refused(t, 422); f.Type != "idempotency" || f.Code != "idempotency_key_reused" {
		t.Errorf("%+v", f)
	}

	changed = q
	changed.path = "/v1/deposit_addresses"
	changed.body = `{"network":"simnet"}`
	s.do(t, changed).refused(t, 422)

	weaker := q

	weaker.key = s.newKey(t, account.KeyParams{Scopes: []account.Scope{account.InvoicesWrite}})
	if f := s.do(t, weaker).
		refused(t, 403); f.Type != "idempotency" ||
		f.Code != "idempotency_key_not_yours" {
		t.Errorf("%+v", f)
	}

	now = now.Add(24 * time.Hour)

	if third := s.do(t, q); third.status != 200 || bytes.Equal(first.body, third.body) {
		t.Errorf("after a day: %s", third.body)
	}
}

func TestARefusalIsReplayedWithTheRequestIDOfNow(t *testing.T) {
	s := open(t, nil)
	q := request{
		method: "POST",
		path:   "/v1/invoices",
		header: header("Idempotency-Key", "k"),
		body:   `{"options":[{"asset":"SIM","network":"simnet","amount":"1"}]}`,
	}
	first := s.do(t, q)
	a := first.refused(t, 422)
	second := s.do(t, q)

	b := second.refused(t, 422) // checks that request_id is that of the header
	if second.header.Get("Idempotent-Replayed") != "true" || first.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("headers %v and %v", first.header, second.header)
	}

	if a.RequestID == b.RequestID {
		t.Error("two requests have one id")
	}

	a.RequestID, b.RequestID = "", ""
	if a != b {
		t.Errorf("refused with %+v, then with %+v", a, b)
	}
}

func TestIdempotencyKeyHasAForm(t *testing.T) {
	s := open(t, nil)

	for _, values := range [][]string{{""}, {"a b"}, {"ü"}, {"a\tb"}, {strings.Repeat("k", 256)}, {"a", "b"}} {
		q := request{
			method: "POST",
			path:   "/v1/invoices",
			body:   invoiceBody,
			header: header("Idempotency-Key", values...),
		}
		if f := s.do(t, q).refused(t, 400); f.Type != "idempotency" || f.Code != "idempotency_key_invalid" {
			t.Errorf("%q: %+v", values, f)
		}
	}

	s.ok(
		t,
		s.do(
			t,
			request{
				method: "POST",
				path:   "/v1/invoices",
				body:   invoiceBody,
				header: header("Idempotency-Key", strings.Repeat("~", 255)),
			},
		),
	)
	// only POST honours it
	s.ok(t, s.do(t, request{method: "GET", path: "/v1/invoices", header: header("Idempotency-Key", "a b")}))
}

func TestManyRequestsWithOneKeyMakeOneObject(t *testing.T) { stores(t, testRivals) }

func testRivals(t *testing.T, db payments.Store) {
	s := openOn(t, db, nil, time.Now)
	q := request{
		method: "POST",
		path:   "/v1/invoices",
		body:   invoiceBody,
		header: header("Idempotency-Key", "one"),
	}
	replies := make([]reply, 64)

	var wg sync.WaitGroup
	for i := range replies {
		wg.Go(func() {
			// A request that waited for two seconds gets 409, and is sent again.
			for replies[i] = s.do(t, q); replies[i].status == http.StatusConflict; {
				replies[i] = s.do(t, q)
			}
		})
	}

	wg.Wait()

	fresh := 0

	for _, r := range replies {
		if r.status != 200 || !bytes.Equal(r.body, replies[0].body) {
			t.Fatalf("status %d: %s", r.status, r.body)
		}

		if r.header.Get("Idempotent-Replayed") == "" {
			fresh++
		}
	}

	if list := s.get(t, "/v1/invoices")["data"].([]any); fresh != 1 || len(list) != 1 {
		t.Fatalf("%d fresh answers, %d invoices", fresh, len(list))
	}
}

func TestTheSigningSecretIsReplayedToo(t *testing.T) {
	s := open(t, nil)
	q := request{
		method: "POST",
		path:   "/v1/webhook_endpoints",
		header: header("Idempotency-Key", "endpoint"),
		body:   `{"url":"http://127.0.0.1:1/","events":["*"]}`,
	}

	first, second := s.ok(t, s.do(t, q)), s.ok(t, s.do(t, q))
	if first["secret"] == nil || first["secret"] != second["secret"] {
		t.Errorf("secrets %v and %v", first["secret"], second["secret"])
	}
}

// TestIdempotencyComparesCanonicalBodies sends one request in several spellings of its JSON, and others.
func TestIdempotencyComparesCanonicalBodies(t *testing.T) {
	s := open(t, nil)
	send := func(body string) reply {
		return s.do(t, request{
			method: "POST",
			path:   "/v1/invoices",
			body:   body,
			header: header("Idempotency-Key", "unordered"),
		})
	}

	first := send(`{"price":{"currency":"EUR","amount":"5"},"expires_in":600,"metadata":{"a":"1","b":"ü"}}`)
	s.ok(t, first)

	for _, same := range []string{
		`{"metadata":{"b":"ü","a":"1"},"expires_in":600,"price":{"amount":"5","currency":"EUR"}}`,
		"{ \"price\": {\n\"currency\":\"EUR\",\t\"amount\":\"5\"}, \"expires_in\":600," +
			" \"metadata\":{\"a\":\"1\",\"b\":\"ü\"} }",
		`{"price":{"currency":"EUR","amount":"\u0035"},"expires_in":600,"metadata":{"a":"1","b":"\u00fc"}}`,
	} {
		again := send(same)
		if s.ok(
			t,
			again,
		); again.header.Get("Idempotent-Replayed") != "true" ||
			!bytes.Equal(first.body, again.body) {
			t.Errorf("%s is answered %s", same, again.body)
		}
	}

	for _, other := range []string{
		`{"price":{"currency":"EUR","amount":"5"},"expires_in":601,"metadata":{"a":"1","b":"ü"}}`,
		`{"price":{"currency":"EUR","amount":"5.0"},"expires_in":600,"metadata":{"a":"1","b":"ü"}}`,
		`{"price":{"currency":"EUR","amount":"5"},"expires_in":600,"metadata":{"a":"ü","b":"1"}}`,
		`{"price":{"currency":"EUR","amount":"5"},"expires_in":600,"metadata":{"a":"1","b":"ü"},"order_id":null}`,
	} {
		if f := send(other).refused(t, 422); f.Code != "idempotency_key_reused" {
			t.Errorf("%s: %+v", other, f)
		}
	}
}

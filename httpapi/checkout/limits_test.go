package checkout

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/limit"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/limits"
)

// limitedPages returns pages with budgets of one's own.
func limitedPages(t *testing.T, b backend, o *Options, table limits.Table) *pages {
	t.Helper()

	p, err := newPages(b, o, limit.Complete(table), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}

	return p
}

func TestStreamsHaveALimitForAllClients(t *testing.T) {
	e := named(t, "pay")
	p := limitedPages(t, newFake(e), nil, limits.Table{Streams: 3})

	for i := range 3 {
		if !p.streams.acquire(fmt.Sprint(i)) {
			t.Fatal("a stream is refused too early")
		}
	}

	if w := get(p, "/checkout/"+e.invoice.ID+"/events"); w.Code != http.StatusTooManyRequests {
		t.Errorf("one stream too many: %d", w.Code)
	}

	p.streams.release("1")

	if !p.streams.acquire("4") || p.streams.acquire("5") {
		t.Error("one place was free")
	}
}

// Hints cost a node a call each: many addresses have no more of them than one.
func TestHintsHaveALimitForAllClients(t *testing.T) {
	first, second := named(t, "pay"), named(t, "quote-expired")
	b := newFake(first, second)
	p := limitedPages(t, b, nil, limits.Table{Hints: 2, HintsPerInvoice: 1})

	hint := func(e exhibit, client int) int {
		r := httptest.NewRequest(
			http.MethodPost, pageOf(e)+"/hint", strings.NewReader("tx_hash=0x"+strings.Repeat("ab", 32)),
		)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.RemoteAddr = fmt.Sprintf("192.0.2.%d:1", client)

		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)

		return w.Code
	}

	answered := func(e exhibit) (n int) {
		for client := range 20 {
			switch code := hint(e, client); code {
			case http.StatusSeeOther:
				n++
			case http.StatusTooManyRequests:
			default:
				t.Fatalf("status %d", code)
			}
		}

		return n
	}

	if n := answered(first); n != 5 {
		t.Errorf("one invoice had %d hints looked up, want 5", n)
	}

	if n := answered(second); n != 5 {
		t.Errorf("another invoice had %d hints looked up, want 5", n)
	}

	p = limitedPages(t, b, nil, limits.Table{Hints: 1, HintsPerInvoice: 4})
	if n := answered(first) + answered(second); n != 5 {
		t.Errorf("the process had %d hints looked up, want 5", n)
	}
}

// One payer's address has a part of the look-ups of all: others have theirs while he sends as much as he can.
func TestOnePayerLeavesHintsToOthers(t *testing.T) {
	mine, others := named(t, "pay"), named(t, "quote-expired")
	p := limitedPages(
		t,
		newFake(mine, others),
		nil,
		limits.Table{Hints: 20, HintsPerInvoice: 100, HintsPerClient: 1},
	)

	hint := func(e exhibit, client string) bool {
		r := httptest.NewRequest(
			http.MethodPost, pageOf(e)+"/hint", strings.NewReader("tx_hash=0x"+strings.Repeat("ab", 32)),
		)
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.RemoteAddr = client + ":1"

		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)

		return w.Code == http.StatusSeeOther
	}

	taken := 0

	for i := range 100 { // the form's own limit is one per invoice: links of several are what he needs
		if hint([]exhibit{mine, others}[i%2], "192.0.2.1") {
			taken++
		}
	}

	if taken != 5 {
		t.Errorf("one address had %d hints looked up, want 5", taken)
	}

	for client := range 40 {
		if !hint(others, fmt.Sprintf("198.51.100.%d", client)) {
			t.Errorf("payer %d is refused", client)
		}
	}
}

// What cannot be a hash costs nobody a look-up.
func TestNoHashTakesNoHint(t *testing.T) {
	e := named(t, "pay")
	b := newFake(e)
	p := limitedPages(t, b, nil, limits.Table{Hints: 1, HintsPerInvoice: 1, HintsPerClient: 1})

	for client := range 50 {
		r := httptest.NewRequest(http.MethodPost, pageOf(e)+"/hint", strings.NewReader("tx_hash=nonsense"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.RemoteAddr = fmt.Sprintf("198.51.100.%d:1", client)

		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)

		if w.Code != http.StatusSeeOther {
			t.Fatalf("nonsense number %d: status %d", client, w.Code)
		}
	}
}

// A flood of payments makes neither the page nor its JSON large, and the sum stays right.
func TestAPageShowsTheNewestPayments(t *testing.T) {
	e := named(t, "underpaid")
	one := e.payments[0]
	e.payments = nil

	for i := range 300 {
		p := one
		p.ID, p.TxHash, p.Amount = fmt.Sprint(i), fmt.Sprintf("0x%064x", i), chain.Units(1)
		e.payments = append(e.payments, p)
	}

	h := limitedPages(t, newFake(e), nil, limits.Table{CheckoutPayments: 20})

	page := get(h, pageOf(e)).Body.String()
	if len(page) > 40<<10 || !strings.Contains(page, "280 earlier payments") {
		t.Errorf("%d bytes: %s", len(page), page)
	}

	sum := formatUnits(chain.Units(300), one.Decimals) + " " + one.Asset
	if !strings.Contains(page, "received "+sum) || strings.Contains(page, " + ") {
		t.Errorf("the page does not say that %s were received", sum)
	}

	if state := get(h, pageOf(e)+"/state.json").Body.Len(); state > 20<<10 {
		t.Errorf("the state has %d bytes", state)
	}
}

// A link cannot make the page confirm what is not on record.
func TestAHintIsFoundOnlyWhenItIsOnRecord(t *testing.T) {
	words := allLanguages(t)[0].text["hint.found"]
	hash := "0x" + strings.Repeat("ab", 32)

	for name, c := range map[string]struct {
		query string
		paid  bool
		shown bool
	}{
		"made up":                {"?hint=found", false, false},
		"made up with a hash":    {"?hint=found&tx=" + hash, false, false},
		"of another transaction": {"?hint=found&tx=0x" + strings.Repeat("cd", 32), true, false},
		"on record":              {"?hint=found&tx=" + hash, true, true},
		"in another notation":    {"?hint=found&tx=" + strings.ToUpper(hash[2:]), true, true},
	} {
		e := named(t, "pay")
		if c.paid {
			e.payments = append(
				e.payments,
				invoice.Payment{TxHash: hash, Network: "ethereum", Status: invoice.Dropped},
			)
		}

		page := get(newTestPages(t, newFake(e), nil), pageOf(e)+c.query).Body.String()
		if strings.Contains(page, words) != c.shown {
			t.Errorf("%s: the page says that the payment was found: %t", name, !c.shown)
		}
	}
}

func TestAnotherForwardingHeader(t *testing.T) {
	e := named(t, "pay")
	o := &Options{
		TrustedProxies:  []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")},
		ForwardedHeader: "X-Real-Ip",
	}
	p := limitedPages(t, newFake(e), o, limits.Table{StreamsPerClient: 1})

	if !p.streams.acquire("198.51.100.7") {
		t.Fatal("no place for the first stream")
	}

	// httptest's peer is 192.0.2.1.
	path := "/checkout/" + e.invoice.ID + "/events"
	if w := get(p, path, "X-Real-Ip", "198.51.100.7"); w.Code != http.StatusTooManyRequests {
		t.Errorf("the header is not read: %d", w.Code)
	}
}

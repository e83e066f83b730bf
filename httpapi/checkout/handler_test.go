package checkout

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/limit"
	"github.com/seed-8ee7f392/payments/invoice"
)

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
	"connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors "

// Every answer, whatever was asked, carries the policy, and no cookie and no secret.
func TestEveryAnswer(t *testing.T) {
	h := galleryServer(t, nil)
	pay := named(t, "pay")
	id := pay.invoice.ID

	type ask struct{ method, path, form string }

	asks := []ask{
		{"GET", "/checkout/" + id + "/state.json", ""},
		{"GET", "/checkout/" + id + "/logo", ""},
		{"HEAD", "/checkout/" + id, ""},
		{"POST", "/checkout/" + id + "/select", "option=" + pay.invoice.Options[0].ID},
		{"POST", "/checkout/" + id + "/select", "option=x"},
		{"POST", "/checkout/" + id + "/hint", "tx_hash=x"},
		{"POST", "/checkout/" + id + "/simulate", "outcome=paid"},
		{"POST", "/checkout/" + id, ""},
		{"GET", "/checkout/" + id + "/nothing", ""},
		{"GET", "/checkout/" + strings.Repeat("0", 24), ""},
		{"GET", "/checkout/", ""},
		{"GET", "/checkout/assets/x.js", ""},
		{"GET", "/checkout/" + id + "/", ""},
		{"DELETE", "/checkout/" + id, ""},
	}
	for _, e := range gallery() {
		asks = append(
			asks, ask{"GET", pageOf(e), ""},
			ask{"GET", "/checkout/" + e.invoice.ID + "/state.json", ""},
		)
	}

	for _, a := range asks {
		w := send(h, a.method, a.path, a.form, "Content-Type", "application/x-www-form-urlencoded")

		got := w.Header()
		for name, want := range map[string]string{
			"Content-Security-Policy":      policy + "'none'",
			"X-Content-Type-Options":       "nosniff",
			"Referrer-Policy":              "no-referrer",
			"X-Frame-Options":              "DENY",
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Set-Cookie":                   "",
		} {
			if got.Get(name) != want {
				t.Errorf("%s %s: %s is %q", a.method, a.path, name, got.Get(name))
			}
		}

		if cache := got.Get("Cache-Control"); cache != "no-store" && !strings.HasSuffix(a.path, "/logo") {
			t.Errorf("%s %s: Cache-Control %q", a.method, a.path, cache)
		}

		if !strings.HasPrefix(got.Get("X-Robots-Tag"), "noindex") {
			t.Errorf("%s %s may be indexed", a.method, a.path)
		}

		for _, secret := range []string{secretEmail, secretOrder, secretMeta} {
			if strings.Contains(w.Body.String(), secret) {
				t.Errorf("%s %s shows %s", a.method, a.path, secret)
			}
		}
	}
}

// Nothing in the page needs a policy laxer than the one it has, and nothing comes from elsewhere.
func TestNothingInlineAndNothingFromElsewhere(t *testing.T) {
	h := galleryServer(t, nil)
	inline := regexp.MustCompile(`(?i)<style|\sstyle=|\son[a-z]+=|<script(?:[^>]*[^r])?>[^<]|javascript:`)
	source := regexp.MustCompile(`(?:src|action|data-events)="([^"]*)"`)

	for _, e := range gallery() {
		body := get(h, pageOf(e)).Body.String()
		if found := inline.FindString(body); found != "" {
			t.Errorf("%s: %q", e.name, found)
		}

		for _, m := range source.FindAllStringSubmatch(body, -1) {
			if strings.Contains(m[1], "//") || strings.HasPrefix(m[1], "/") {
				t.Errorf("%s: %q is not relative", e.name, m[1])
			}
		}
	}
}

// What merchants and payers write is text, wherever it appears.
func TestInputIsNeverExecuted(t *testing.T) {
	for _, evil := range []string{
		`<script>alert(1)</script>`,
		`"><img src=x onerror=alert(1)>`,
		`' onmouseover='alert(1)`,
		`</title><script>alert(1)</script>`,
		"javascript:alert(1)", `{{.T}}`, "`${alert(1)}`", "\u2028</script>", `&lt;script&gt;`,
	} {
		e := named(t, "pay")
		e.invoice.Description, e.invoice.CancelURL, e.invoice.SuccessURL = evil, evil, evil
		b := newFake(e)
		b.account.Settings.Name, b.account.Settings.WebsiteURL = evil, evil

		h := newTestPages(t, b, nil)
		for _, path := range []string{
			"",
			"?hint=unknown&tx=" + urlEscape(evil),
			"?lang=" + urlEscape(evil),
			"?notice=" + urlEscape(evil),
			"?hint=" + urlEscape(evil),
		} {
			w := get(h, "/checkout/"+e.invoice.ID+path)

			body := w.Body.String()
			if w.Code != http.StatusOK {
				t.Fatalf("%q: %d", evil, w.Code)
			}

			if n := strings.Count(body, "<script"); n != 1 {
				t.Errorf("%q at %q: %d scripts", evil, path, n)
			}

			for _, bad := range []string{"<img src=x", `href="javascript:`, "onmouseover='", "' onmouse"} {
				if strings.Contains(body, bad) {
					t.Errorf("%q at %q: the page holds %s", evil, path, bad)
				}
			}
		}

		var s pageState
		if err := json.Unmarshal(
			get(h, "/checkout/"+e.invoice.ID+"/state.json").Body.Bytes(), &s,
		); err != nil {
			t.Fatal(err)
		}

		if s.Merchant.Name != evil || s.Merchant.WebsiteURL != "" || s.ReturnURL != "" {
			t.Errorf("%q: %+v, returns to %q", evil, s.Merchant, s.ReturnURL)
		}
	}
}

func urlEscape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		b.WriteString("%" + strconv.FormatUint(uint64(s[i])>>4, 16) + strconv.FormatUint(uint64(s[i])&15, 16))
	}

	return b.String()
}

// Mounted under any prefix, stripped or not, every link of the page leads somewhere.
func TestAnyPrefix(t *testing.T) {
	e := named(t, "pay")
	for prefix, h := range map[string]http.Handler{
		"":           newTestPages(t, newFake(e), nil),
		"/shop":      newTestPages(t, newFake(e), nil),
		"/stripped":  http.StripPrefix("/stripped", newTestPages(t, newFake(e), nil)),
		"/all/of/it": http.StripPrefix("/all/of/it/checkout", newTestPages(t, newFake(e), nil)),
	} {
		dir := prefix + "/checkout/"

		w := get(h, dir+e.invoice.ID)
		if w.Code != http.StatusOK {
			t.Errorf("%q: %d", prefix, w.Code)
			continue
		}

		for _, m := range regexp.MustCompile(
			`(?:src|href|data-events)="((?:assets|[0-9a-f]{24})[^"]*)"`,
		).FindAllStringSubmatch(w.Body.String(), -1) {
			if strings.HasSuffix(m[1], "/events") {
				continue
			}

			if got := get(h, dir+m[1]); got.Code != http.StatusOK {
				t.Errorf("%s%s: %d", dir, m[1], got.Code)
			}
		}

		w = post(h, dir+e.invoice.ID+"/select", "option="+e.invoice.Options[0].ID)
		if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "../"+e.invoice.ID {
			t.Errorf("%q: after a selection %d to %q", prefix, w.Code, w.Header().Get("Location"))
		}

		w = get(h, dir+e.invoice.ID+"/?lang=es")
		if w.Code != http.StatusPermanentRedirect ||
			w.Header().Get("Location") != "../"+e.invoice.ID+"?lang=es" {
			t.Errorf("%q: with a slash at the end %d to %q", prefix, w.Code, w.Header().Get("Location"))
		}
	}
}

func TestSelect(t *testing.T) {
	for name, c := range map[string]struct {
		err    error
		option string
		want   string // the redirect, or the status
	}{
		"selected":       {nil, "65c9a1f0b2d34e5f6071a001", "?lang=es"},
		"unknown option": {nil, "x", "?lang=es&notice=changed"},
		"no price": {
			fault.New(fault.Unavailable, "price_unavailable", "no price"),
			"65c9a1f0b2d34e5f6071a001",
			"?lang=es&notice=price_unavailable",
		},
		"too small": {
			fault.New(fault.Invalid, "amount_too_small", "too small"),
			"65c9a1f0b2d34e5f6071a001",
			"?lang=es&notice=amount_too_small",
		},
		"paid meanwhile": {
			fault.New(fault.State, "invoice_paid", "paid"),
			"65c9a1f0b2d34e5f6071a001",
			"?lang=es&notice=changed",
		},
		"node unavailable": {
			fault.New(fault.Unavailable, "node_unavailable", "down"),
			"65c9a1f0b2d34e5f6071a001",
			"?lang=es&notice=unavailable",
		},
		"a defect": {errors.New("secret detail"), "65c9a1f0b2d34e5f6071a001", "500"},
	} {
		e := named(t, "choose")
		b := newFake(e)
		b.selectErr = c.err
		h := newTestPages(t, b, nil)
		w := post(h, "/checkout/"+e.invoice.ID+"/select?lang=es", "option="+c.option)

		got := strconv.Itoa(w.Code)
		if w.Code == http.StatusSeeOther {
			got = strings.TrimPrefix(w.Header().Get("Location"), "../"+e.invoice.ID)
		}

		if got != c.want || strings.Contains(w.Body.String(), "secret detail") {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}

		if strings.HasPrefix(c.want, "?") {
			page := get(h, "/checkout/"+e.invoice.ID+c.want)
			if page.Code != http.StatusOK ||
				strings.Contains(
					c.want, "notice",
				) != strings.Contains(
					page.Body.String(), `class="notice tone-warning" role="note"`,
				) {
				t.Errorf("%s: the page after it does not say what happened", name)
			}
		}
	}

	w := post(newTestPages(t, newFake(), nil), "/checkout/"+strings.Repeat("a", 24)+"/select", "option=x")
	if w.Code != http.StatusNotFound {
		t.Errorf("an option of no invoice: %d", w.Code)
	}
}

func TestHint(t *testing.T) {
	hash := "0x" + strings.Repeat("ab", 32)
	for name, c := range map[string]struct {
		hash   string
		result invoice.HintResult
		err    error
		want   string
		asked  bool
	}{
		"found":           {hash, invoice.HintFound, nil, "found", true},
		"foreign":         {hash, invoice.HintForeign, nil, "foreign", true},
		"failed":          {hash, invoice.HintFailed, nil, "failed", true},
		"unknown":         {hash, invoice.HintNotFound, nil, "unknown", true},
		"unusable":        {hash, invoice.HintUnusable, nil, "unusable", true},
		"not found":       {hash, "", fault.New(fault.NotFound, "x", "x"), "unknown", true},
		"refused":         {hash, "", fault.New(fault.Invalid, "x", "x"), "invalid", true},
		"node down":       {hash, "", fault.New(fault.Unavailable, "x", "x"), "unavailable", true},
		"with spaces":     {"  " + hash + "\n", invoice.HintFound, nil, "found", true},
		"solana":          {strings.Repeat("5VERv8NM", 11), invoice.HintFound, nil, "found", true},
		"an address":      {"0xabc", "", nil, "invalid", false},
		"empty":           {"", "", nil, "invalid", false},
		"a lot":           {strings.Repeat("a", 200), "", nil, "invalid", false},
		"not even a hash": {"<script>alert(1)</script>aaaaaaaaaaaaaaaaaaaaa", "", nil, "invalid", false},
	} {
		e := named(t, "pay")
		b := newFake(e)
		b.hintResult, b.hintErr = c.result, c.err
		h := newTestPages(t, b, nil)
		w := post(h, "/checkout/"+e.invoice.ID+"/hint", "tx_hash="+urlEscape(c.hash))

		location := w.Header().Get("Location")
		if w.Code != http.StatusSeeOther || !strings.Contains(location, "hint="+c.want) {
			t.Errorf("%s: %d to %q", name, w.Code, location)
		}

		if asked := len(b.hints) == 1; asked != c.asked {
			t.Errorf("%s: asked the network: %v", name, asked)
		}

		if len(b.hints) == 1 && b.hints[0] != strings.TrimSpace(c.hash) {
			t.Errorf("%s: asked for %q", name, b.hints[0])
		}

		if c.result == invoice.HintFound { // what the page calls found is on record
			e.payments = append(e.payments, invoice.Payment{
				TxHash:  strings.TrimSpace(c.hash),
				Network: e.invoice.Options[0].Network,
				Status:  invoice.Dropped,
			})
			b.set(e)
		}

		page := get(h, strings.Replace(location, "..", "/checkout", 1))

		words := allLanguages(t)[0].text["hint."+c.want]
		if !strings.Contains(page.Body.String(), words) {
			t.Errorf("%s: the page does not say %q", name, words)
		}

		w = post(
			h, "/checkout/"+e.invoice.ID+"/hint", "tx_hash="+urlEscape(c.hash), "Accept",
			"application/json",
		)
		if got := strings.TrimSpace(
			w.Body.String(),
		); w.Code != http.StatusOK ||
			got != `{"hint":"`+c.want+`"}` {
			t.Errorf("%s: a program is told %d %s", name, w.Code, got)
		}
	}
}

func TestSimulateInTestModeOnly(t *testing.T) {
	live, test := named(t, "pay"), named(t, "test-mode")
	b := newFake(live, test)

	h := newTestPages(t, b, nil)
	if w := post(
		h, "/checkout/"+live.invoice.ID+"/simulate", "outcome=paid",
	); w.Code != http.StatusNotFound ||
		len(b.simulated) != 0 {
		t.Errorf("a live invoice: %d, simulated %v", w.Code, b.simulated)
	}

	if w := post(
		h, "/checkout/"+test.invoice.ID+"/simulate", "outcome=paid",
	); w.Code != http.StatusSeeOther || len(b.simulated) != 1 ||
		b.simulated[0] != invoice.SimulatePaid {
		t.Errorf("a test invoice: %d, simulated %v", w.Code, b.simulated)
	}

	if body := get(
		h, pageOf(live),
	).Body.String(); strings.Contains(body, "simulate") ||
		strings.Contains(body, "data-test") {
		t.Error("a live page has buttons to simulate")
	}

	if body := get(
		h, pageOf(test),
	).Body.String(); !strings.Contains(body, `value="overpaid"`) ||
		!strings.Contains(body, "Test mode") {
		t.Error("a test page has no buttons to simulate")
	}
}

func TestStateForPrograms(t *testing.T) {
	e := named(t, "pay")
	h := newTestPages(t, newFake(e), nil)
	w := get(h, "/checkout/"+e.invoice.ID+"/state.json")

	var s pageState
	if err := json.Unmarshal(
		w.Body.Bytes(), &s,
	); err != nil || w.Code != http.StatusOK ||
		w.Header().Get("Content-Type") != "application/json" {
		t.Fatalf("%d %s: %v", w.Code, w.Header().Get("Content-Type"), err)
	}

	if s.Phase != phasePay || s.Payment.MissingText != "0.021321" ||
		s.Payment.AmountDue != "21321000000000000" ||
		s.Payment.URI != "ethereum:"+ethAddress+"?amount=0.021321" {
		t.Errorf("%+v %+v", s, s.Payment)
	}

	w = post(
		h, "/checkout/"+e.invoice.ID+"/select", "option="+e.invoice.Options[0].ID, "Accept",
		"application/json",
	)
	if err := json.Unmarshal(
		w.Body.Bytes(), &s,
	); err != nil || w.Code != http.StatusOK ||
		s.Payment.OptionID != e.invoice.Options[0].ID {
		t.Errorf("select answers a program %d: %v", w.Code, err)
	}

	w = get(h, "/checkout/"+strings.Repeat("a", 24)+"/state.json")

	var failure struct {
		Error struct{ Code, Message string }
	}
	if err := json.Unmarshal(
		w.Body.Bytes(), &failure,
	); err != nil || w.Code != http.StatusNotFound || failure.Error.Code != "resource_missing" ||
		failure.Error.Message == "" {
		t.Errorf("an unknown invoice: %d %s: %v", w.Code, w.Body, err)
	}
}

func TestErrorsAsPages(t *testing.T) {
	e := named(t, "pay")
	for name, c := range map[string]struct {
		method, path string
		err          error
		status       int
		words        string
	}{
		"unknown":      {"GET", "/checkout/" + strings.Repeat("a", 24), nil, 404, "No such invoice"},
		"no id":        {"GET", "/checkout/favicon.ico", nil, 404, "No such invoice"},
		"no action":    {"GET", "/checkout/" + e.invoice.ID + "/x", nil, 404, "No such invoice"},
		"wrong method": {"POST", "/checkout/" + e.invoice.ID, nil, 405, "Not possible"},
		"get a form":   {"GET", "/checkout/" + e.invoice.ID + "/select", nil, 405, "Not possible"},
		"store down": {
			"GET",
			"/checkout/" + e.invoice.ID,
			fault.New(fault.Unavailable, "store_unavailable", "secret host"),
			503,
			"Briefly out of reach",
		},
		"a defect": {"GET", "/checkout/" + e.invoice.ID, errors.New("secret host"), 500, "Briefly out of reach"},
	} {
		b := newFake(e)
		b.unavailable = c.err

		w := send(newTestPages(t, b, nil), c.method, c.path, "")
		if w.Code != c.status || !strings.Contains(w.Body.String(), "<h1>"+c.words) ||
			strings.Contains(w.Body.String(), "secret host") {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}

		if root := strings.Count(
			strings.TrimPrefix(c.path, "/checkout/"), "/",
		); !strings.Contains(
			w.Body.String(), `href="`+strings.Repeat("../", root)+`assets/checkout.`,
		) {
			t.Errorf("%s: the error page does not find its stylesheet", name)
		}
	}

	if w := post(
		newTestPages(t, newFake(e), nil), "/checkout/"+e.invoice.ID+"/hint",
		"tx_hash="+strings.Repeat("a", 5000),
	); w.Code != http.StatusUnprocessableEntity {
		t.Errorf("a body that is too long: %d", w.Code)
	}
}

func TestRateLimits(t *testing.T) {
	e, other := named(t, "pay"), named(t, "choose")
	b := newFake(e, other)
	h := newTestPages(t, b, nil)
	hint := func(path, client string) int {
		r := "tx_hash=0x" + strings.Repeat("ab", 32)
		return post(h, path, r, "X-Forwarded-For", client).Code
	}

	path := "/checkout/" + e.invoice.ID + "/hint"
	for i := range formRate.Burst {
		if code := hint(path, ""); code != http.StatusSeeOther {
			t.Fatalf("hint %d: %d", i, code)
		}
	}

	w := post(h, path, "tx_hash=x")
	if w.Code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "1" ||
		!strings.Contains(w.Body.String(), "One moment") {
		t.Errorf("one hint too many: %d, Retry-After %q", w.Code, w.Header().Get("Retry-After"))
	}

	if code := hint(path, "198.51.100.7"); code != http.StatusTooManyRequests {
		t.Errorf("a made-up forwarding header helps: %d", code)
	}

	if code := hint("/checkout/"+other.invoice.ID+"/hint", ""); code != http.StatusSeeOther {
		t.Errorf("a hint to another invoice: %d", code)
	}

	neighbour := httptest.NewRequest(
		http.MethodPost, path, strings.NewReader("tx_hash=0x"+strings.Repeat("ab", 32)),
	)
	neighbour.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	neighbour.RemoteAddr = "203.0.113.9:1234"

	answer := httptest.NewRecorder()
	if h.ServeHTTP(answer, neighbour); answer.Code != http.StatusSeeOther {
		t.Errorf("a hint from another address: %d", answer.Code)
	}

	if len(b.hints) != formRate.Burst+2 {
		t.Errorf("the network was asked %d times", len(b.hints))
	}

	b.advance(time.Second)

	if code := hint(path, ""); code != http.StatusSeeOther {
		t.Errorf("a second later: %d", code)
	}

	b.advance(time.Minute)

	for range readRate.Burst {
		if w := get(h, pageOf(e)); w.Code != http.StatusOK {
			t.Fatal(w.Code)
		}
	}

	if w := get(h, pageOf(other)); w.Code != http.StatusTooManyRequests {
		t.Errorf("one page too many: %d", w.Code)
	}

	if w := get(h, "/checkout/assets/"+h.site.hashed["checkout.css"]); w.Code != http.StatusOK {
		t.Errorf("assets are limited: %d", w.Code)
	}
}

func TestClientAddress(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("::1/128")}

	for _, c := range []struct{ peer, forwarded, want string }{
		{"192.0.2.1:1234", "", "192.0.2.1"},
		{"192.0.2.1:1234", "203.0.113.9", "192.0.2.1"}, // not a proxy of ours
		{"10.1.1.1:1234", "203.0.113.9", "203.0.113.9"},
		{"10.1.1.1:1234", "203.0.113.9, 198.51.100.1", "198.51.100.1"}, // the left one is anybody's word
		{"10.1.1.1:1234", "203.0.113.9, 10.2.2.2", "203.0.113.9"},
		{"10.1.1.1:1234", "nonsense", "unknown"},
		{"10.1.1.1:1234", "", "10.1.1.1"},
		{"[::1]:1234", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
		{"[2001:db8:1:2::9%eth0]:1234", "", "2001:db8:1:2::/64"},
		{"[::ffff:192.0.2.1]:1", "", "192.0.2.1"},
		{"@", "", "unknown"}, // a Unix socket
	} {
		r, err := http.NewRequest(http.MethodGet, "/", nil)
		if err != nil {
			t.Fatal(err)
		}

		r.RemoteAddr = c.peer
		if c.forwarded != "" {
			r.Header.Set("X-Forwarded-For", c.forwarded)
		}

		if got := limit.ClientKey(limit.ClientAddr(r, limit.ForwardedFor, proxies)); got != c.want {
			t.Errorf("%s forwarding %q is %s, want %s", c.peer, c.forwarded, got, c.want)
		}
	}
}

func TestLogo(t *testing.T) {
	e := named(t, "pay")
	b := newFake(e)
	h := newTestPages(t, b, nil)
	path := "/checkout/" + e.invoice.ID + "/logo"

	w := get(h, path)
	if w.Code != http.StatusOK || w.Header().Get("Content-Type") != "image/png" ||
		!bytes.Equal(w.Body.Bytes(), logoPNG) ||
		!strings.Contains(w.Header().Get("Cache-Control"), "max-age") {
		t.Errorf("%d %v", w.Code, w.Header())
	}

	if again := get(h, path, "If-None-Match", w.Header().Get("ETag")); again.Code != http.StatusNotModified {
		t.Errorf("the same logo again: %d", again.Code)
	}

	for _, typ := range []string{"", "text/html", "image/svg+xml"} {
		b.account.LogoType = typ

		h := newTestPages(t, b, nil)
		if w := get(h, path); w.Code != http.StatusNotFound {
			t.Errorf("a logo of type %q: %d", typ, w.Code)
		}

		if body := get(
			h, pageOf(e),
		).Body.String(); strings.Contains(body, "<img") ||
			!strings.Contains(body, `<span class="logo initial" aria-hidden="true">M</span>`) {
			t.Errorf("without a logo of a type that can be shown, the page has an image")
		}
	}
}

func TestAssets(t *testing.T) {
	p := newTestPages(t, newFake(), nil)
	for name, hashed := range p.site.hashed {
		plain, zipped := get(
			p, "/checkout/assets/"+hashed,
		), get(
			p, "/checkout/assets/"+hashed, "Accept-Encoding", "br, gzip",
		)
		if plain.Code != http.StatusOK ||
			plain.Header().Get("Cache-Control") != "public, max-age=31536000, immutable" ||
			plain.Header().Get("Content-Encoding") != "" {
			t.Errorf("%s: %d %v", name, plain.Code, plain.Header())
		}

		want := map[string]string{
			".css": "text/css; charset=utf-8",
			".js":  "text/javascript; charset=utf-8",
			".svg": "image/svg+xml",
		}[name[strings.LastIndex(name, "."):]]
		if plain.Header().Get("Content-Type") != want {
			t.Errorf("%s is a %s", name, plain.Header().Get("Content-Type"))
		}

		body := io.Reader(zipped.Body)
		if zipped.Header().Get("Content-Encoding") == "gzip" {
			r, err := gzip.NewReader(zipped.Body)
			if err != nil {
				t.Fatal(err)
			}

			body = r
		}

		same, err := io.ReadAll(body)
		if err != nil || !bytes.Equal(same, plain.Body.Bytes()) {
			t.Errorf("%s is not the same compressed: %v", name, err)
		}

		if w := get(
			p, "/checkout/assets/"+hashed, "Accept-Encoding", "gzip;q=0",
		); w.Header().
			Get("Content-Encoding") !=
			"" {
			t.Errorf("%s is compressed for who refuses it", name)
		}
	}

	if w := get(p, "/checkout/assets/checkout.css"); w.Code != http.StatusNotFound {
		t.Errorf("an asset without its hash: %d", w.Code)
	}
}

// The page with all it loads stays below 60 kB over the wire, in every state, though nothing but
// assets is compressed.
func TestWeight(t *testing.T) {
	const limit = 60_000

	h := galleryServer(t, nil)
	p := newTestPages(t, newFake(), nil)

	assets := 0
	for _, hashed := range p.site.hashed {
		assets += get(p, "/checkout/assets/"+hashed, "Accept-Encoding", "gzip").Body.Len()
	}

	heaviest, which := 0, ""

	for _, e := range gallery() {
		n := get(h, pageOf(e)).Body.Len() + get(h, "/checkout/"+e.invoice.ID+"/state.json").Body.Len()
		if n > heaviest {
			heaviest, which = n, e.name
		}
	}

	t.Logf("assets %d bytes, heaviest page %d bytes (%s)", assets, heaviest, which)

	if assets+heaviest > limit {
		t.Errorf("%s weighs %d bytes with its assets of %d, more than %d", which, heaviest, assets, limit)
	}
}

func TestFilesOfTheHost(t *testing.T) {
	e := named(t, "pay")
	h := newTestPages(t, newFake(e), &Options{
		Files: fstest.MapFS{
			"assets/checkout.css": {Data: []byte("body{color:red}")},
			"assets/banner.svg":   {Data: []byte("<svg/>")},
			"lang/pt.json": {
				Data: []byte(`{"language": "Português", "pay.headline": "Pague com {asset}"}`),
			},
			"lang/es.json": {Data: []byte(`{"pay.headline": "Con {asset}"}`)},
			"error.html": {
				Data: []byte(`{{define "error.html"}}oh no: {{.Headline}} {{asset "banner.svg"}}{{end}}`),
			},
		},
	})

	body := get(h, pageOf(e), "Accept-Language", "pt-BR").Body.String()
	if !strings.Contains(body, "<h1>Pague com ETH</h1>") || !strings.Contains(body, "Copy the amount") ||
		!strings.Contains(body, `<html lang="pt">`) ||
		!strings.Contains(body, "Português") {
		t.Errorf("an added language is not spoken: %s", body)
	}

	if body := get(
		h, pageOf(e), "Accept-Language", "es",
	).Body.String(); !strings.Contains(body, "<h1>Con ETH</h1>") || !strings.Contains(body, "Copiar el importe") ||
		strings.Contains(body, "brand.") {
		t.Errorf("one other message of a language changes more than that one: %s", body)
	}

	css := regexp.MustCompile(`assets/checkout\.[0-9a-f]+\.css`).FindString(body)
	if got := get(h, "/checkout/"+css).Body.String(); got != "body{color:red}" {
		t.Errorf("%s is %q", css, got)
	}

	if got := get(
		h, "/checkout/nothing",
	).Body.String(); !strings.HasPrefix(
		got, "oh no: No such invoice assets/banner.",
	) {
		t.Errorf("the error page is %q", got)
	}

	for name, files := range map[string]fstest.MapFS{
		"a template that does not parse": {"page.html": {Data: []byte("{{")}},
		"a language that is none":        {"lang/pt.json": {Data: []byte("{")}},
	} {
		if _, err := newPages(newFake(), &Options{Files: files}, limit.Defaults(), h.log); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func TestFrames(t *testing.T) {
	e := named(t, "pay")

	w := get(
		newTestPages(t, newFake(e), &Options{FrameAncestors: []string{"https://shop.example.com", "'self'"}}),
		pageOf(e),
	)
	if got := w.Header().
		Get("Content-Security-Policy"); got != policy+"https://shop.example.com 'self'" ||
		w.Header().Get("X-Frame-Options") != "" {
		t.Errorf("%q, X-Frame-Options %q", got, w.Header().Get("X-Frame-Options"))
	}

	for _, bad := range []string{
		"",
		"https://a.example; script-src *",
		"https://a.example https://b.example",
		"a,b",
		"a\nb",
	} {
		if _, err := newPages(
			newFake(), &Options{FrameAncestors: []string{bad}}, limit.Defaults(),
			slog.New(slog.DiscardHandler),
		); err == nil {
			t.Errorf("%q is taken for a frame ancestor", bad)
		}
	}
}

// What many pages share is not read for each of them.
func TestReadsPerPage(t *testing.T) {
	for name, want := range map[string]int{"choose": 1, "pay": 3, "confirming": 3, "paid": 2} {
		e := named(t, name)
		b := newFake(e)
		h := newTestPages(t, b, nil)
		get(h, pageOf(e))

		b.reads = 0

		get(h, pageOf(e))

		if b.reads != want {
			t.Errorf("%s: %d reads, want %d", name, b.reads, want)
		}
	}
}

// BenchmarkPage compares a page over the handler with the bare rendering of its template from a
// view that is there.
func BenchmarkPage(b *testing.B) {
	e := named(b, "pay")
	fake := newFake(e)
	p := newTestPages(b, fake, &Options{Limiter: openLimiter{}})
	all := p.site.languages
	view := newView(stateOf(snapshotOf(e)), all[0], all, pageQuery{})

	b.Run("template alone", func(b *testing.B) {
		b.ReportAllocs()

		for b.Loop() {
			if err := p.site.templates.ExecuteTemplate(io.Discard, "page.html", view); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read, state, view, template", func(b *testing.B) {
		b.ReportAllocs()

		for b.Loop() {
			inv, _ := fake.Invoice(b.Context(), e.invoice.ID)

			f, err := p.loadSnapshot(b.Context(), inv)
			if err != nil {
				b.Fatal(err)
			}

			if err := p.site.templates.ExecuteTemplate(
				io.Discard, "page.html", newView(stateOf(f), all[0], all, pageQuery{}),
			); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("handler", func(b *testing.B) {
		b.ReportAllocs()

		for b.Loop() {
			if w := get(p, pageOf(e)); w.Code != http.StatusOK {
				b.Fatal(w.Code)
			}
		}
	})
}

// Package checkout serves the hosted page on which a payer pays an invoice: choose a coin and a network, send
// the amount to the address, watch it confirm.
//
//	GET  /checkout/{id}              the page
//	GET  /checkout/{id}/state.json   the state that the page is made from
//	GET  /checkout/{id}/events       server-sent events named "state": the state, now and whenever it changes
//	POST /checkout/{id}/select       option=<id>: select an option, or renew its quote
//	POST /checkout/{id}/hint         tx_hash=<hash>: "I have paid"; looked up on the network
//	POST /checkout/{id}/simulate     outcome=<outcome>: test mode only
//	GET  /checkout/{id}/logo         the merchant's logo
//	GET  /checkout/assets/…          stylesheet, script and icon, named by a hash of their bytes
//
// The page is rendered on the server and works without scripts; one small script updates it. It is made in
// three steps: snapshot.go reads a snapshot, state.go computes the state from it, view.go the view in one
// language, which fills the templates in web/. The last two are pure. To change the look, replace files
// (Options.Files). To build another page, use state.json and the forms, which answer JSON on request
// (docs/checkout.md).
//
// The link is the only credential: {id} is the invoice's id. Once the merchant renewed the link, a token
// follows, and the previous link is void. So the state must not hold data that only merchant and payer should
// know: no e-mail address, no order id, no metadata.
//
// The package sits beside httpapi, on top of package payments; only the host imports it.
package checkout

import (
	"crypto/subtle"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/limit"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/limits"
	"github.com/seed-8ee7f392/payments/store"
)

// Handler returns the checkout pages of an engine; o may be nil. Mount it at "/checkout/" under any prefix,
// stripped or not. It panics on options that cannot work, as template.Must does: a template that does not
// parse, a malformed frame ancestor.
//
// Event streams stay open as long as a page does. limits.Server returns an http.Server whose Shutdown does
// not wait for them.
func Handler(e *payments.Engine, o *Options) http.Handler {
	engine := engine.Of(e)

	p, err := newPages(adapter{engine}, o, engine.Limits(), engine.Log())
	if err != nil {
		panic("checkout.Handler: " + err.Error())
	}

	return p
}

// pages answers every address under the prefix. It starts no goroutine.
type pages struct {
	backend backend
	site    *site
	options Options
	policy  string
	limits  limits.Table
	own     *limit.Buckets // of this process
	log     *slog.Logger

	merchants cache[merchantProfile]
	streams   streamCount
}

// newPages loads the site's files and checks the options.
func newPages(b backend, o *Options, t limits.Table, log *slog.Logger) (*pages, error) {
	p := &pages{
		backend: b,
		log:     log,
		limits:  t,
		own:     limit.NewBuckets(b.Now),
		streams: streamCount{most: t.Streams, ofClient: t.StreamsPerClient},
	}
	if o != nil {
		p.options = *o
	}

	if p.options.ForwardedHeader == "" {
		p.options.ForwardedHeader = limit.ForwardedFor
	}

	if p.options.Limiter == nil {
		p.options.Limiter = p.own
	}

	var err error
	if p.policy, err = p.options.policy(); err != nil {
		return nil, err
	}

	if p.site, err = newSite(p.options.Files); err != nil {
		return nil, err
	}

	p.merchants = cache[merchantProfile]{now: b.Now, ttl: merchantTTL}

	return p, nil
}

// request is one request with its parsed address.
type request struct {
	*http.Request
	p      *pages
	w      http.ResponseWriter
	link   string // the last part of the page's address: the invoice's id and, once renewed, a token
	id     string // of the invoice
	action string // "", "select", "state.json" …
	client string
	lang   *language
}

// root returns the relative address of the directory of the pages: "" or "../".
func (r *request) root() string {
	if r.action == "" {
		return ""
	}

	return "../"
}

// maxForm is the largest form in bytes.
const maxForm = 4 << 10

// routes are the actions on an invoice; post is whether the method is POST, else GET and HEAD.
var routes = map[string]struct {
	post bool
	do   func(*request) error
}{
	"":           {false, (*request).page},
	"state.json": {false, (*request).state},
	"events":     {false, (*request).events},
	"logo":       {false, (*request).logo},
	"select":     {true, (*request).selectOption},
	"hint":       {true, (*request).hint},
	"simulate":   {true, (*request).simulate},
}

// ServeHTTP implements http.Handler.
func (p *pages) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	p.setHeaders(w.Header())
	limit.SetBodyDeadline(w, hr, p.limits.BodyTimeout)

	query := hr.URL.Query()
	r := &request{
		Request: hr,
		p:       p,
		w:       w,
		client: limit.ClientKey(
			limit.ClientAddr(hr, p.options.ForwardedHeader, p.options.TrustedProxies),
		),
		lang: p.site.languages.match(query.Get("lang"), hr.Header.Get("Accept-Language")),
	}

	first, action, deeper := strings.Cut(subpath(hr.URL.Path), "/")
	if deeper && first == "assets" {
		r.action = "asset"
		r.asset(action)

		return
	}

	r.link, r.action = first, action
	r.id, _, _ = strings.Cut(first, "-")

	if deeper && action == "" { // ".../<id>/": relative links need the address without the slash
		r.action = "/"
		r.redirect("../"+first, query, http.StatusPermanentRedirect)

		return
	}

	if err := r.serve(); err != nil {
		r.writeError(err)
	}
}

// setHeaders sets the headers of every answer.
func (p *pages) setHeaders(h http.Header) {
	h.Set("Content-Security-Policy", p.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer") // the address is a secret: it gives access to the invoice
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set("X-Robots-Tag", "noindex, nofollow")
	h.Set("Cache-Control", "no-store")

	if len(p.options.FrameAncestors) == 0 {
		h.Set("X-Frame-Options", "DENY")
	}
}

// subpath returns the path after the last "/checkout/", or the whole path if the host stripped the prefix.
func subpath(path string) string {
	if i := strings.LastIndex(path, "/checkout/"); i >= 0 {
		path = path[i+len("/checkout/"):]
	}

	return strings.TrimPrefix(path, "/")
}

// serve checks the address, the method and the rate, and runs the route.
func (r *request) serve() error {
	route, ok := routes[r.action]
	if !ok || !isID(r.id) {
		return fault.Missing("invoice", "at this address")
	}

	post := r.Method == http.MethodPost
	if post != route.post || !post && r.Method != http.MethodGet && r.Method != http.MethodHead {
		r.w.Header().Set("Allow", map[bool]string{true: "POST", false: "GET, HEAD"}[route.post])
		return errMethod
	}

	if err := r.allow("checkout/read/"+r.client, readRate); err != nil {
		return err
	}

	if post {
		key := "checkout/" + r.action + "/" + r.id + "/" + r.client
		if err := r.allow(key, formRate); err != nil {
			return err
		}

		r.Body = http.MaxBytesReader(r.w, r.Body, maxForm)
		if err := r.ParseForm(); err != nil {
			return fault.Wrap(err, fault.Invalid, "body_invalid", "the form cannot be read")
		}

		limit.EndBodyDeadline(r.w)
	}

	return route.do(r)
}

// invoice returns the invoice of the link. A revoked link is fault.NotFound, like an unknown one.
func (r *request) invoice() (invoice.Invoice, error) {
	inv, err := r.p.backend.Invoice(r.Context(), r.id)
	if err == nil {
		err = r.checkLink(inv)
	}

	return inv, err
}

// checkLink returns fault.NotFound unless the link is the invoice's latest.
func (r *request) checkLink(inv invoice.Invoice) error {
	if subtle.ConstantTimeCompare([]byte(r.link), []byte(inv.CheckoutID())) != 1 {
		return fault.Missing("invoice", "at this address")
	}

	return nil
}

// allow takes a token of the bucket, or returns fault.Limited. When the limiter fails, the request
// is allowed.
func (r *request) allow(key string, a allowance) error {
	return r.take(r.p.options.Limiter, key, a)
}

// take is allow with a given limiter.
func (r *request) take(from store.Limiter, key string, a allowance) error {
	ok, waitSeconds, err := from.Allow(r.Context(), key, a.PerSecond, a.Burst)
	if err != nil {
		r.p.log.WarnContext(
			r.Context(), "rate limiter failed, request allowed",
			"invoice", r.id, "error", err,
		)

		return nil
	}

	if !ok {
		limited := fault.New(fault.Limited, "rate_limited", "too many requests from this address")
		limited.RetryAfter = time.Duration(max(waitSeconds, 1)) * time.Second

		return limited
	}

	return nil
}

// isID reports whether s has the form of an invoice's id: 24 hex digits.
func isID(s string) bool {
	if len(s) != 24 {
		return false
	}

	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}

	return true
}

// wantsJSON reports whether the client accepts JSON and no HTML, or asked for an address that serves
// programs.
func (r *request) wantsJSON() bool {
	accept := r.Header.Get("Accept")

	return r.action == "state.json" || r.action == "events" ||
		strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

package checkout

// The handler: which address answers what.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/limit"
	"github.com/seed-8ee7f392/payments/invoice"
)

// pages answers everything under the prefix. It starts no goroutine.
type pages struct {
	backend backend
	site    *site
	options Options
	policy  string
	log     *slog.Logger

	merchants cache[merchantCard]
	streams   streamCount
}

// newPages reads the files and checks the options.
func newPages(b backend, o *Options, log *slog.Logger) (*pages, error) {
	p := &pages{backend: b, log: log}
	if o != nil {
		p.options = *o
	}

	if p.options.Limiter == nil {
		p.options.Limiter = limit.NewBuckets(b.Now)
	}

	var err error
	if p.policy, err = p.options.policy(); err != nil {
		return nil, err
	}

	if p.site, err = newSite(p.options.Files); err != nil {
		return nil, err
	}

	p.merchants = cache[merchantCard]{now: b.Now, keep: merchantFor}

	return p, nil
}

// request is one request on its way.
type request struct {
	*http.Request
	p      *pages
	w      http.ResponseWriter
	id     string // of the invoice
	action string // "", "select", "state.json" …
	client string
	lang   *language
}

// root leads from the request's address to where the pages lie.
func (r *request) root() string {
	if r.action == "" {
		return ""
	}

	return "../"
}

// routes are the actions on an invoice, and by what methods.
var routes = map[string]struct {
	post bool
	do   func(*request) error
}{
	"":           {false, (*request).page},
	"state.json": {false, (*request).state},
	"events":     {false, (*request).events},
	"logo":       {false, (*request).logo},
	"select":     {true, (*request).choose},
	"hint":       {true, (*request).hint},
	"simulate":   {true, (*request).simulate},
}

// ServeHTTP implements http.Handler.
func (p *pages) ServeHTTP(w http.ResponseWriter, hr *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", p.policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer") // the address is all it takes to see the invoice
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set("X-Robots-Tag", "noindex, nofollow")
	h.Set("Cache-Control", "no-store")

	if len(p.options.FrameAncestors) == 0 {
		h.Set("X-Frame-Options", "DENY")
	}

	r := &request{Request: hr, p: p, w: w, client: clientOf(hr, p.options.TrustedProxies)}
	// Any prefix: what counts is what follows the last "/checkout/", or all of it where the host
	// has stripped that.
	rest := hr.URL.Path
	if i := strings.LastIndex(rest, "/checkout/"); i >= 0 {
		rest = rest[i+len("/checkout/"):]
	}

	first, action, deeper := strings.Cut(strings.TrimPrefix(rest, "/"), "/")

	r.lang = p.site.languages.choose(hr.URL.Query().Get("lang"), hr.Header.Get("Accept-Language"))
	if deeper && first == "assets" {
		r.action = "asset"
		r.asset(action)

		return
	}

	r.id, r.action = first, action
	if deeper && action == "" { // "…/<id>/": relative links need the address without the slash
		r.action = "/"
		r.see("../"+first, hr.URL.Query(), http.StatusPermanentRedirect)

		return
	}

	if err := r.serve(); err != nil {
		r.fail(err)
	}
}

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
		if err := r.allow("checkout/"+r.action+"/"+r.id+"/"+r.client, actRate); err != nil {
			return err
		}

		r.Body = http.MaxBytesReader(r.w, r.Body, 4<<10)
		if err := r.ParseForm(); err != nil {
			return fault.Wrap(err, fault.Invalid, "body_invalid", "the form cannot be read")
		}
	}

	return route.do(r)
}

// allow takes a token; a limiter that cannot be reached allows, because paying matters more than counting.
func (r *request) allow(key string, a allowance) error {
	ok, after, err := r.p.options.Limiter.Allow(r.Context(), key, a.PerSecond, a.Burst)
	if err != nil {
		r.p.log.WarnContext(
			r.Context(), "the rate limiter did not answer; the request is let through",
			"error", err,
		)

		return nil
	}

	if !ok {
		e := fault.New(fault.Limited, "rate_limited", "too many requests from this address")
		e.RetryAfter = time.Duration(max(after, 1)) * time.Second

		return e
	}

	return nil
}

// isID reports whether s looks like an invoice's id, before a store is asked.
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

// page shows the invoice.
func (r *request) page() error {
	inv, err := r.p.backend.Invoice(r.Context(), r.id)
	if err != nil {
		return err
	}

	q := r.URL.Query()

	v := visit{Choosing: q.Get("choose") != "", Lang: r.asked()}
	if key := q.Get("notice"); knownNotices[key] {
		v.Notice = key
	}

	if key := q.Get("hint"); knownHints[key] {
		v.HintAnswer = key
	}

	if hash := q.Get("tx"); len(hash) <= maxHash {
		v.HintHash = hash
	}

	f, err := r.p.facts(r.Context(), inv)
	if err != nil {
		return err
	}

	state := stateOf(f)
	if state.CanSelect && (v.Choosing || state.Phase == Choose) && inv.Kind == invoice.Fiat {
		f.Prices = r.p.prices(r.Context(), inv)
		state = stateOf(f)
	}

	w := newView(state, r.lang, r.p.site.languages, v)

	return r.write(http.StatusOK, "page.html", w)
}

// asked is the language that was asked for by name, or "".
func (r *request) asked() string {
	if l := r.p.site.languages.tagged(r.URL.Query().Get("lang")); l != nil {
		return l.Tag
	}

	return ""
}

func (r *request) write(status int, name string, data any) error {
	var b bytes.Buffer
	if err := r.p.site.templates.ExecuteTemplate(&b, name, data); err != nil {
		return err
	}

	h := r.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", r.lang.Tag)
	h.Set("Vary", "Accept-Language")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	r.w.WriteHeader(status)
	_, err := r.w.Write(b.Bytes())
	r.gone(err)

	return nil
}

// gone notes that an answer could not be written: the client left.
func (r *request) gone(err error) {
	if err != nil {
		r.p.log.DebugContext(r.Context(), "a checkout answer was not taken", "error", err)
	}
}

// state answers the JSON that the page is made from.
func (r *request) state() error {
	s, err := r.p.read(r.Context(), r.id)
	if err != nil {
		return err
	}

	return r.json(http.StatusOK, s)
}

func (r *request) json(status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}

	r.w.Header().Set("Content-Type", "application/json")
	r.w.WriteHeader(status)
	_, err = r.w.Write(append(b, '\n'))
	r.gone(err)

	return nil
}

// read returns the state of an invoice, with estimates while there is something to choose.
func (p *pages) read(ctx context.Context, id string) (State, error) {
	inv, err := p.backend.Invoice(ctx, id)
	if err != nil {
		return State{}, err
	}

	f, err := p.facts(ctx, inv)
	if err != nil {
		return State{}, err
	}

	s := stateOf(f)
	if s.Phase == Choose && inv.Kind == invoice.Fiat {
		f.Prices = p.prices(ctx, inv)
		s = stateOf(f)
	}

	return s, nil
}

// choose selects an option, or takes a new quote for it.
func (r *request) choose() error {
	err := r.p.backend.Select(r.Context(), r.id, r.PostForm.Get("option"))
	switch {
	case err == nil:
		return r.done(nil, nil)
	case errors.Is(err, fault.NotFound):
		// Told apart from an unknown option: without the invoice there is no page to go back to.
		if _, readErr := r.p.backend.Invoice(r.Context(), r.id); readErr != nil {
			return readErr
		}
	case !expected(err):
		return err
	}

	return r.done(url.Values{"notice": {noticeOf(err)}}, err)
}

// knownNotices and knownHints are what the page's address may make it say.
var (
	knownNotices = map[string]bool{
		"price_unavailable": true,
		"amount_too_small":  true,
		"changed":           true,
		"unavailable":       true,
	}
	knownHints = map[string]bool{
		string(invoice.HintFound):    true,
		string(invoice.HintForeign):  true,
		string(invoice.HintFailed):   true,
		string(invoice.HintNotFound): true,
		string(invoice.HintUnusable): true,
		"invalid":                    true,
		"unavailable":                true,
	}
)

// expected reports whether an error is one that a payer can meet.
func expected(err error) bool {
	for _, word := range []error{
		fault.Invalid, fault.State, fault.Conflict, fault.NotFound, fault.Unavailable,
		fault.Unsupported, fault.Stopped,
	} {
		if errors.Is(err, word) {
			return true
		}
	}

	return false
}

func noticeOf(err error) string {
	switch code := fault.Code(err); {
	case code == "price_unavailable" || code == "amount_too_small":
		return code
	case errors.Is(err, fault.State), errors.Is(err, fault.Conflict), errors.Is(err, fault.NotFound):
		return "changed"
	}

	return "unavailable"
}

// maxHash bounds a transaction hash: Solana's, the longest, have 88 characters.
const maxHash = 128

// hint looks up the transaction that a payer names.
func (r *request) hint() error {
	hash := strings.TrimSpace(r.PostForm.Get("tx_hash"))

	inv, err := r.p.backend.Invoice(r.Context(), r.id)
	if err != nil {
		return err
	}

	answer := "invalid"

	if isHash(hash) {
		var found invoice.HintResult

		found, err = r.p.backend.Hint(r.Context(), inv.ID, hash)
		switch {
		case err == nil:
			answer = string(found)
		case errors.Is(err, fault.NotFound):
			answer = string(invoice.HintNotFound)
		case errors.Is(err, fault.Invalid):
			answer = "invalid"
		case !expected(err):
			return err
		default:
			answer = "unavailable"

			r.p.log.WarnContext(
				r.Context(), "a payer's transaction could not be looked up",
				"invoice", inv.ID, "error", err,
			)
		}
	}

	if r.wantsJSON() {
		return r.json(http.StatusOK, map[string]string{"hint": answer})
	}

	q := url.Values{"hint": {answer}}
	if answer != string(invoice.HintFound) && len(hash) <= maxHash {
		q.Set("tx", hash)
	}

	return r.done(q, nil)
}

// isHash takes what any network's hash could be, so that a typing error costs no look-up.
func isHash(s string) bool {
	if len(s) < 32 || len(s) > maxHash {
		return false
	}

	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}

	return true
}

// simulate makes a payment in test mode; a live invoice has no such address.
func (r *request) simulate() error {
	inv, err := r.p.backend.Invoice(r.Context(), r.id)
	if err != nil {
		return err
	}

	if inv.Owner.Livemode {
		return fault.Missing("invoice in test mode", inv.ID)
	}

	if err := r.p.backend.Simulate(r.Context(), inv, invoice.Outcome(r.PostForm.Get("outcome"))); err != nil {
		if !expected(err) {
			return err
		}

		return r.done(url.Values{"notice": {noticeOf(err)}}, err)
	}

	return r.done(nil, nil)
}

// done answers a form: back to the page, or for a program the state, or why not.
func (r *request) done(q url.Values, failure error) error {
	if r.wantsJSON() {
		if failure != nil {
			return failure
		}

		s, err := r.p.read(r.Context(), r.id)
		if err != nil {
			return err
		}

		return r.json(http.StatusOK, s)
	}

	if q == nil {
		q = url.Values{}
	}

	if lang := r.asked(); lang != "" {
		q.Set("lang", lang)
	}

	r.see("../"+r.id, q, http.StatusSeeOther)

	return nil
}

// see redirects to a relative address. http.Redirect would make it absolute, and wrong under a
// stripped prefix.
func (r *request) see(to string, q url.Values, status int) {
	if len(q) > 0 {
		to += "?" + q.Encode()
	}

	r.w.Header().Set("Location", to)
	r.w.WriteHeader(status)
}

// logo serves the merchant's picture, from account settings.
func (r *request) logo() error {
	inv, err := r.p.backend.Invoice(r.Context(), r.id)
	if err != nil {
		return err
	}

	card, err := r.p.merchant(r.Context(), inv.Owner.AccountID)
	if err != nil {
		return err
	}

	if card.LogoVersion == "" {
		return fault.Missing("logo of invoice", inv.ID)
	}

	h := r.w.Header()
	h.Set("Content-Type", card.logoType)
	h.Set("Cache-Control", "private, max-age=86400")
	h.Set("ETag", `"`+card.LogoVersion+`"`)
	http.ServeContent(r.w, r.Request, "", time.Time{}, bytes.NewReader(card.logo))

	return nil
}

// asset serves a file of assets/ by its hashed name.
func (r *request) asset(name string) {
	a, ok := r.p.site.assets[name]
	if !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
		r.w.WriteHeader(http.StatusNotFound)
		return
	}

	h := r.w.Header()
	h.Set("Content-Type", a.contentType)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	h.Set("X-Robots-Tag", "noindex")

	body := a.plain
	if a.small != nil && acceptsGzip(r.Header.Get("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")

		body = a.small
	}

	h.Set("Content-Length", strconv.Itoa(len(body)))

	if r.Method == http.MethodHead {
		return
	}

	_, err := r.w.Write(body)
	r.gone(err)
}

func acceptsGzip(header string) bool {
	for item := range strings.SplitSeq(header, ",") {
		name, params, _ := strings.Cut(strings.TrimSpace(item), ";")
		if strings.TrimSpace(name) == "gzip" && weight(params) > 0 {
			return true
		}
	}

	return false
}

var errMethod = errors.New("method not allowed")

// wantsJSON reports whether the client is a program: it asks for JSON, and not for a page.
func (r *request) wantsJSON() bool {
	accept := r.Header.Get("Accept")

	return r.action == "state.json" || r.action == "events" ||
		strings.Contains(accept, "application/json") && !strings.Contains(accept, "text/html")
}

// failure is an answer that is no invoice.
type failure struct {
	View
	// Back leads to the invoice, where there is one.
	Back string
}

// fail answers an error as a page or as JSON. An unexpected one is logged and told to nobody.
func (r *request) fail(err error) {
	if r.Context().Err() != nil {
		return // nobody is there any more
	}

	status, key := http.StatusInternalServerError, "unavailable"

	switch {
	case errors.Is(err, errMethod):
		status, key = http.StatusMethodNotAllowed, "method"
	case errors.Is(err, fault.NotFound):
		status, key = http.StatusNotFound, "not_found"
	case errors.Is(err, fault.Limited):
		status, key = http.StatusTooManyRequests, "limited"

		r.w.Header().Set("Retry-After", strconv.Itoa(max(int(fault.RetryAfter(err)/time.Second), 1)))
	case errors.Is(err, fault.Invalid):
		status, key = http.StatusUnprocessableEntity, "request"
	case errors.Is(err, fault.State), errors.Is(err, fault.Conflict):
		status, key = http.StatusConflict, "request"
	case errors.Is(err, fault.Unavailable), errors.Is(err, fault.Stopped), errors.Is(err, fault.Unsupported):
		status, key = http.StatusServiceUnavailable, "unavailable"

		r.w.Header().Set("Retry-After", "10")
	}

	if status >= 500 {
		r.p.log.ErrorContext(
			r.Context(), "a checkout request failed", "invoice", r.id, "action", r.action,
			"error", err,
		)
	}

	message := r.lang.say("error." + key + ".message")
	if r.wantsJSON() {
		code := cmp.Or(fault.Code(err), key)
		if status == http.StatusInternalServerError {
			code = "internal"
		}

		if err := r.json(
			status, map[string]any{"error": map[string]string{"code": code, "message": message}},
		); err != nil {
			r.gone(err)
		}

		return
	}

	f := failure{
		View: View{
			Lang:     r.lang.Tag,
			T:        r.lang.text,
			Root:     r.root(),
			Headline: r.lang.say("error." + key + ".headline"),
			Message:  message,
			Tone:     Off,
		},
	}

	f.Title = f.Headline
	if isID(r.id) && status != http.StatusNotFound {
		f.Back = f.Root + r.id + langQuery(r.asked())
	}

	if err := r.write(status, "error.html", f); err != nil {
		r.p.log.ErrorContext(r.Context(), "the checkout's error page cannot be written", "error", err)
		http.Error(r.w, f.Headline, status)
	}
}

// cache keeps what is the same for many pages for a short time.
type cache[T any] struct {
	now  func() time.Time
	keep time.Duration

	mu   sync.Mutex
	kept map[string]cached[T]
}

type cached[T any] struct {
	value T
	until time.Time
}

// maxCached bounds a cache; when it is full it begins anew.
const maxCached = 1000

// get returns the value of a key, read by fetch when there is none or it is too old. Errors are not kept.
func (c *cache[T]) get(key string, fetch func() (T, error)) (T, error) {
	now := c.now()
	c.mu.Lock()
	hit, ok := c.kept[key]
	c.mu.Unlock()

	if ok && now.Before(hit.until) {
		return hit.value, nil
	}

	v, err := fetch()
	if err != nil {
		return v, err
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	if c.kept == nil || len(c.kept) >= maxCached {
		c.kept = map[string]cached[T]{}
	}

	c.kept[key] = cached[T]{v, now.Add(c.keep)}

	return v, nil
}

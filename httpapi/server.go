package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"reflect"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/internal/limit"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
)

const (
	requestsPerSecond = 100 // of one key, by default
	requestBurst      = 300
	maxIdempotencyKey = 255 // bytes
	changeTries       = 4
	bufferKept        = 64 << 10 // bytes; a buffer that grew beyond is not used again
)

// server turns requests into calls of operations.
type server struct {
	options      Options
	authenticate func(ctx context.Context, secret string, client netip.Addr) (account.Key, account.Account, error)
	answers      idempotency.Config[store.Tx]
	log          *slog.Logger
	ids          *id.Source
	local        *limit.Buckets
	mux          *http.ServeMux
	buffers      sync.Pool // of *bytes.Buffer
}

// call is one request on its way through an operation.
type call struct {
	op        *operation
	requestID string
	// path is where it went, without the prefix; raw is its body.
	path string
	raw  []byte
	// key and owner say who asks, settings what that account chose, and client from where; empty
	// for operations without a key.
	key      account.Key
	owner    event.Owner
	settings account.Settings
	client   netip.Addr
	// id and optionID are the path's wildcards.
	id, optionID string
	query, body  reflect.Value
	limit        int
	after        string
	filters      [hashSize]byte
	// idempotencyKey is "" when the request has none.
	idempotencyKey string
}

// route registers the operations: one pattern of the mux for each path, so that a wrong method is
// ours to answer.
func (s *server) route(operations []operation) {
	s.mux = http.NewServeMux()
	byPath := map[string]map[string]*operation{}

	for i := range operations {
		op := &operations[i]
		if byPath[op.path] == nil {
			byPath[op.path] = map[string]*operation{}
		}

		byPath[op.path][op.method] = op
	}

	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.fail(w, r, requestIDOf(w), noSuchPath())
	})

	for pattern, methods := range byPath {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.dispatch(w, r, methods) })
	}
}

// ServeHTTP answers one request. Whatever happens, the answer has a Request-Id and, if it is an
// error, our error body.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	requestID := "req_" + s.ids.Next()
	setHeader(
		w.Header(), "Request-Id", requestID, "X-Content-Type-Options", "nosniff", "Cache-Control",
		"no-store",
	)

	defer func() {
		if p := recover(); p != nil {
			if p == http.ErrAbortHandler { //nolint:errorlint // net/http's own sentinel for panics
				panic(p)
			}

			s.log.ErrorContext(
				r.Context(), "a request panicked", "request_id", requestID, "method", r.Method,
				"pattern", r.Pattern, "panic", p, "stack", string(debug.Stack()),
			)
			s.fail(w, r, requestID, errors.New("panic"))
		}
	}()

	rest, ok := strings.CutPrefix(r.URL.Path, s.options.Prefix)
	// The mux would redirect a path that is not clean, with a page of its own.
	if !ok || rest != path.Clean(rest) {
		s.fail(w, r, requestID, noSuchPath())
		return
	}

	if s.options.Prefix != "" {
		u, whole := *r.URL, r
		u.Path, u.RawPath = rest, ""
		r = whole.WithContext(whole.Context()) // a copy: the request is the host's
		r.URL = &u
	}

	s.mux.ServeHTTP(w, r)
}

// setHeader sets headers that have one value, in pairs of canonical name and value. The values
// share one allocation, each with room for no more, so that to add to one later leaves the others
// alone.
func setHeader(h http.Header, pairs ...string) {
	values := make([]string, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		values = append(values, pairs[i+1])
		h[pairs[i]] = values[i/2 : i/2+1 : i/2+1]
	}
}

// requestIDOf returns the id that ServeHTTP gave to the request of this answer.
func requestIDOf(w http.ResponseWriter) string { return w.Header().Get("Request-Id") }

func noSuchPath() error {
	return fault.New(
		fault.NotFound, "path_unknown",
		"there is nothing at this path: see the API's document at /v1/openapi.json",
	)
}

// dispatch finds the operation of a path by its method and answers.
func (s *server) dispatch(w http.ResponseWriter, r *http.Request, methods map[string]*operation) {
	requestID := requestIDOf(w)

	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}

	op := methods[method]
	if op == nil {
		allowed := make([]string, 0, len(methods))
		for m := range methods {
			allowed = append(allowed, m)
		}

		slices.Sort(allowed)
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		s.fail(
			w,
			r,
			requestID,
			fault.New(
				fault.Invalid, "method_not_allowed", "this path does not know the method %s",
				clip(r.Method),
			),
		)

		return
	}

	c := &call{
		op:        op,
		requestID: requestID,
		path:      r.URL.Path,
		client:    limit.ClientAddr(r, s.options.ForwardedHeader, s.options.TrustedProxies),
	}

	ctx, cancel := context.WithTimeout(r.Context(), s.options.Timeout)
	defer cancel()

	if err := s.serve(ctx, w, r, c); err != nil {
		s.fail(w, r, requestID, err)
	}
}

// serve checks the request, in the order in which it may be refused, and carries it out and answers
// it. After an error nothing is written yet.
func (s *server) serve(ctx context.Context, w http.ResponseWriter, r *http.Request, c *call) error {
	if err := s.admit(ctx, w, r, c); err != nil {
		return err
	}

	if err := c.readPath(r); err != nil {
		return err
	}

	if err := c.readQuery(r); err != nil {
		return err
	}

	if c.op.read != nil {
		v, err := c.op.read(ctx, c)
		if err != nil {
			return err
		}

		return s.show(w, r, v)
	}

	if err := c.readIdempotencyKey(r); err != nil {
		return err
	}

	if err := c.readBody(w, r, s.options.MaxBody); err != nil {
		return err
	}

	answer, err := s.change(
		event.WithRequest(ctx, event.Request{ID: c.requestID, IdempotencyKey: c.idempotencyKey}), c,
	)
	if answer.Replayed {
		setHeader(w.Header(), "Idempotent-Replayed", "true")
	}

	if err != nil {
		return err
	}

	s.write(w, r, answer.Status, answer.Body)

	return nil
}

// admit finds out who asks and whether that key may do this now.
func (s *server) admit(ctx context.Context, w http.ResponseWriter, r *http.Request, c *call) error {
	if c.op.access == noKey {
		return nil
	}

	secret, err := bearer(r.Header)
	if err != nil {
		w.Header().Set("WWW-Authenticate", "Bearer")
		return err
	}

	key, holder, err := s.authenticate(ctx, secret, c.client)
	if err != nil {
		if errors.Is(err, fault.Unauthenticated) {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}

		return err
	}

	c.key, c.owner, c.settings = key, key.Owner, holder.Settings
	if err := s.limit(ctx, c); err != nil {
		return err
	}

	switch {
	case c.key.Publishable && c.op.access != anyKey:
		return fault.New(
			fault.Forbidden,
			"publishable_key_not_allowed",
			"a publishable key only reads networks, assets and rates: use a secret key, and only on your server",
		)
	case c.op.scope != "" && !c.key.Publishable && !c.key.Allows(c.op.scope):
		return fault.New(
			fault.Forbidden, "scope_missing",
			"the API key %s does not have the scope %s: create one that has it",
			c.key.ID, c.op.scope,
		)
	case c.op.testOnly && c.owner.Livemode:
		return fault.New(fault.Forbidden, "test_mode_only", "this works on test data only: use a test key")
	}

	return nil
}

// bearer returns the API key of the Authorization header.
func bearer(h http.Header) (string, error) {
	values := h.Values("Authorization")
	if len(values) != 1 {
		return "", fault.New(
			fault.Unauthenticated, "api_key_required",
			"send your API key once, as Authorization: Bearer <key>",
		)
	}

	scheme, secret, _ := strings.Cut(values[0], " ")
	if !strings.EqualFold(scheme, "Bearer") || secret == "" {
		return "", fault.New(
			fault.Unauthenticated, "api_key_required",
			"send your API key as Authorization: Bearer <key>",
		)
	}

	return secret, nil
}

// limit takes one token of the key's bucket. A shared limiter that fails does not stop payments:
// this process limits alone then.
func (s *server) limit(ctx context.Context, c *call) error {
	perSecond, burst := c.settings.RequestsPerSecond, c.settings.RequestBurst
	if perSecond == 0 {
		perSecond = requestsPerSecond
	}

	if burst == 0 {
		burst = max(requestBurst, perSecond)
	}

	limiter := store.Limiter(s.local)
	if s.options.Limiter != nil {
		limiter = s.options.Limiter
	}

	ok, retryAfter, err := limiter.Allow(ctx, "key/"+c.key.ID, perSecond, burst)
	if err != nil {
		s.log.WarnContext(
			ctx, "the shared rate limiter gives no answer",
			"request_id", c.requestID, "error", err,
		)
		ok, retryAfter, err = s.local.Allow(ctx, "key/"+c.key.ID, perSecond, burst)
	}

	if err != nil || ok {
		return err
	}

	f := fault.New(
		fault.Limited, "rate_limited",
		"the API key %s made more than %d requests per second: wait, longer after each refusal",
		c.key.ID, perSecond,
	)
	f.RetryAfter = time.Duration(max(retryAfter, 1)) * time.Second

	return f
}

// readPath takes the path's wildcards. What cannot be an id is the id of nothing.
func (c *call) readPath(r *http.Request) error {
	c.id, c.optionID = r.PathValue("id"), r.PathValue("option_id")
	for _, v := range []struct{ name, value string }{{"id", c.id}, {"option_id", c.optionID}} {
		if !strings.Contains(c.op.path, "{"+v.name+"}") {
			continue
		}

		if len(v.value) > maxParam {
			return invalid(v.name, "%s has more than %d characters", v.name, maxParam)
		}

		if !id.Valid(strings.TrimPrefix(v.value, "evt_")) {
			return fault.Missing("object", strconv.Quote(v.value))
		}
	}

	return nil
}

// readIdempotencyKey takes the header of a POST; on other methods it means nothing.
func (c *call) readIdempotencyKey(r *http.Request) error {
	if c.op.method != http.MethodPost {
		return nil
	}

	values := r.Header.Values("Idempotency-Key")
	if len(values) == 0 {
		if c.op.idempotency == keyRequired {
			return fault.New(
				fault.Invalid, "idempotency_key_required",
				"this request needs an Idempotency-Key header, so that sending it twice pays once",
			)
		}

		return nil
	}

	key := values[0]
	if len(values) != 1 || key == "" || len(key) > maxIdempotencyKey ||
		strings.ContainsFunc(key, func(r rune) bool { return r < '!' || r > '~' }) {
		return fault.New(
			fault.Invalid, "idempotency_key_invalid",
			"send one Idempotency-Key of 1 to %d printable ASCII characters without spaces",
			maxIdempotencyKey,
		)
	}

	c.idempotencyKey = key

	return nil
}

// change prepares and commits. What was prepared may not hold any more when it is committed, such
// as a quote that just ran out or an address that another process gave away: then all of it is done
// again, a few times.
func (s *server) change(ctx context.Context, c *call) (idempotency.Answer, error) {
	for try := 1; ; try++ {
		answer, err := s.changeOnce(ctx, c)

		stale := errors.Is(err, fault.Conflict) || errors.Is(err, fault.Duplicate) ||
			errors.Is(err, invoice.ErrUnprepared)
		if !stale || try == changeTries || ctx.Err() != nil ||
			strings.HasPrefix(fault.Code(err), "idempotency_") {
			return answer, err
		}
	}
}

// changeOnce prepares and commits, once per Idempotency-Key.
func (s *server) changeOnce(ctx context.Context, c *call) (idempotency.Answer, error) {
	prepare := func(ctx context.Context) (idempotency.Commit[store.Tx], error) {
		inside, err := c.op.prepare(ctx, c)
		if err != nil {
			return nil, err
		}

		return func(ctx context.Context, tx store.Tx) (int, []byte, error) {
			v, err := inside(ctx, tx)
			if err != nil {
				return 0, nil, err
			}

			body, err := render(v)

			return http.StatusOK, body, err
		}, nil
	}
	if c.idempotencyKey != "" {
		return idempotency.Run(ctx, s.answers, c.idempotencyRequest(), prepare)
	}

	inside, err := prepare(ctx)
	if err != nil {
		return idempotency.Answer{}, err
	}

	var answer idempotency.Answer

	err = s.answers.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		status, body, err := inside(ctx, tx)
		answer = idempotency.Answer{Status: status, Body: body}

		return err
	})

	return answer, err
}

func (c *call) idempotencyRequest() idempotency.Request {
	h := sha256.New()
	for _, part := range []string{c.op.method, c.path} {
		_, _ = io.WriteString(h, part+"\n")
	}

	_, _ = h.Write(c.raw)

	scopes := make([]string, len(c.key.Scopes))
	for i, scope := range c.key.Scopes {
		scopes[i] = string(scope)
	}

	return idempotency.Request{
		Key:         idempotency.Key{Owner: c.owner, Key: c.idempotencyKey},
		KeyID:       c.key.ID,
		Scopes:      scopes,
		Fingerprint: [32]byte(h.Sum(nil)),
	}
}

// render writes an answer's JSON. Raw JSON is written as it is.
func render(v any) ([]byte, error) {
	if raw, ok := v.(json.RawMessage); ok {
		return raw, nil
	}

	var b bytes.Buffer

	err := encode(&b, v)

	return b.Bytes(), err
}

func encode(b *bytes.Buffer, v any) error {
	e := json.NewEncoder(b)
	e.SetEscapeHTML(false)

	return e.Encode(v)
}

// show answers with what was read. Unlike the answer of a change nobody keeps it, so that it is
// rendered where others were.
func (s *server) show(w http.ResponseWriter, r *http.Request, v any) error {
	if raw, ok := v.(json.RawMessage); ok {
		s.write(w, r, http.StatusOK, raw)
		return nil
	}

	b, ok := s.buffers.Get().(*bytes.Buffer)
	if !ok {
		b = &bytes.Buffer{}
	}

	b.Reset()

	if err := encode(b, v); err != nil {
		return err
	}

	s.write(w, r, http.StatusOK, b.Bytes())

	if b.Cap() <= bufferKept {
		s.buffers.Put(b)
	}

	return nil
}

// fail answers with an error, and logs those that are ours.
func (s *server) fail(w http.ResponseWriter, r *http.Request, requestID string, err error) {
	p := problemOf(err)
	if p.status >= http.StatusInternalServerError &&
		!errors.Is(r.Context().Err(), context.Canceled) {
		level := slog.LevelError
		if p.status == http.StatusServiceUnavailable {
			level = slog.LevelWarn
		}

		s.log.Log(
			r.Context(), level, "a request failed", "request_id", requestID, "method", r.Method,
			"pattern", r.Pattern, "status", p.status, "error", err,
		)
	}

	if wait := fault.RetryAfter(err); wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((wait+time.Second-1)/time.Second)))
	}

	detail := errorDetail{
		Type:      p.kind,
		Code:      p.code,
		Message:   p.message,
		Param:     p.param,
		RequestID: requestID,
	}
	if s.options.DocsURL != "" {
		detail.DocURL = s.options.DocsURL + "#" + p.code
	}

	body, err := render(errorBody{detail})
	if err != nil {
		s.log.ErrorContext(
			r.Context(), "an error could not be written",
			"request_id", requestID, "error", err,
		)
	}

	s.write(w, r, p.status, body)
}

func (s *server) write(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	setHeader(w.Header(), "Content-Type", "application/json", "Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)

	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // a client that went away is its own affair
	}
}

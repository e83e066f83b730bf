package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
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

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/eventctx"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/internal/limit"
	"github.com/seed-8ee7f392/payments/internal/requestkey"
	"github.com/seed-8ee7f392/payments/internal/seal"
	"github.com/seed-8ee7f392/payments/limits"
)

// maxPooledBuffer is the capacity in bytes up to which a buffer returns to the pool.
const maxPooledBuffer = 64 << 10

// server routes requests to operations and writes their answers.
type server struct {
	options      Options
	limits       limits.Table
	authenticate func(ctx context.Context, secret string, client netip.Addr) (account.Key, account.Account, error)
	answers      requestkey.Config[payments.Tx]
	seal         *seal.Sealer
	log          *slog.Logger
	ids          *id.Source
	local        *limit.Buckets
	mux          *http.ServeMux
	buffers      sync.Pool // of *bytes.Buffer
}

// call is one request to an operation. Its fields are set in the order of serve's checks.
type call struct {
	op        *operation
	requestID string

	// path is the URL's path without Options.Prefix; client is the caller's address.
	path   string
	client netip.Addr

	// key, owner and settings belong to the API key; zero for operations without a key.
	key      account.Key
	owner    event.Owner
	settings account.Settings

	// id and optionID are the path's wildcards.
	id, optionID string

	// query has the operation's query type. limit and after are those of a page; list identifies the list,
	// and seal makes the tags of its cursors.
	query reflect.Value
	limit int
	after string
	list  []byte
	seal  *seal.Sealer

	// idempotencyKey is "" when the request has none.
	idempotencyKey string

	// raw is the request's body in bytes; body has the operation's body type.
	raw  []byte
	body reflect.Value
}

// route registers the operations with one mux pattern per path, so that dispatch answers a wrong method.
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
		s.writeError(w, r, requestIDOf(w), errPathUnknown())
	})

	for pattern, methods := range byPath {
		s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.dispatch(w, r, methods) })
	}
}

// ServeHTTP answers one request. Every answer has a Request-Id, and every error an errorBody.
func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) { // spec 4.1.7
	requestID := "req_" + s.ids.Next()
	setHeader(
		w.Header(),
		"Request-Id", requestID,
		"X-Content-Type-Options", "nosniff",
		"Cache-Control", "no-store",
	)

	defer func() {
		if p := recover(); p != nil {
			s.answerPanic(w, r, requestID, p)
		}
	}()

	limit.SetBodyDeadline(w, r, s.limits.BodyTimeout)

	rest, ok := strings.CutPrefix(r.URL.Path, s.options.Prefix)
	// The mux would redirect an unclean path with an HTML page, and answer the target * without a body.
	if !ok || !strings.HasPrefix(rest, "/") || rest != path.Clean(rest) {
		s.writeError(w, r, requestID, errPathUnknown())
		return
	}

	if s.options.Prefix != "" {
		stripped := *r.URL
		stripped.Path, stripped.RawPath = rest, ""
		r = r.WithContext(r.Context()) // a copy: handlers must not change the host's request
		r.URL = &stripped
	}

	s.mux.ServeHTTP(w, r)
}

// answerPanic logs a panic and answers with internal_error.
func (s *server) answerPanic(w http.ResponseWriter, r *http.Request, requestID string, p any) {
	if p == http.ErrAbortHandler { //nolint:errorlint // net/http's own sentinel for panics
		panic(p)
	}

	s.log.ErrorContext(
		r.Context(), "request panicked",
		"request_id", requestID, "method", r.Method, "pattern", r.Pattern,
		"panic", p, "stack", string(debug.Stack()),
	)
	s.writeError(w, r, requestID, errors.New("panic"))
}

// setHeader sets headers of one value each, from pairs of canonical name and value. The values share one
// allocation. Each slice is full, so that appending to one copies it.
func setHeader(h http.Header, pairs ...string) {
	values := make([]string, 0, len(pairs)/2)
	for i := 0; i < len(pairs); i += 2 {
		values = append(values, pairs[i+1])
		h[pairs[i]] = values[i/2 : i/2+1 : i/2+1]
	}
}

// requestIDOf returns the request id that ServeHTTP set on the answer.
func requestIDOf(w http.ResponseWriter) string { return w.Header().Get("Request-Id") }

// errPathUnknown returns the error of a path without an operation.
func errPathUnknown() error {
	return fault.New(
		fault.NotFound, "path_unknown",
		"there is nothing at this path: see the API's document at /v1/openapi.json",
	)
}

// dispatch runs the operation of a path and method. HEAD is answered as GET without a body.
func (s *server) dispatch(w http.ResponseWriter, r *http.Request, methods map[string]*operation) {
	requestID := requestIDOf(w)

	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}

	op := methods[method]
	if op == nil {
		w.Header().Set("Allow", strings.Join(slices.Sorted(maps.Keys(methods)), ", "))
		s.writeError(w, r, requestID, errMethodNotAllowed(r.Method))

		return
	}

	c := &call{
		op:        op,
		requestID: requestID,
		path:      r.URL.Path,
		seal:      s.seal,
		client:    limit.ClientAddr(r, s.options.ForwardedHeader, s.options.TrustedProxies),
	}

	ctx, cancel := context.WithTimeout(r.Context(), s.options.Timeout)
	defer cancel()

	if err := s.serve(ctx, w, r, c); err != nil {
		s.writeError(w, r, requestID, err)
	}
}

// errMethodNotAllowed returns the error of a path without an operation for the method.
func errMethodNotAllowed(method string) error {
	return fault.New(
		fault.Invalid, "method_not_allowed", "this path does not know the method %s",
		truncate(method),
	)
}

// serve checks the request, runs the operation and writes the answer. It writes nothing if it returns an
// error.
func (s *server) serve(ctx context.Context, w http.ResponseWriter, r *http.Request, c *call) error {
	if err := s.authorize(ctx, w, r, c); err != nil {
		return err
	}

	if err := c.readPath(r); err != nil {
		return err
	}

	if err := c.readQuery(r); err != nil {
		return err
	}

	if c.op.read != nil {
		answer, err := c.op.read(ctx, c)
		if err != nil {
			return err
		}

		return s.writeJSON(w, r, answer)
	}

	if err := c.readIdempotencyKey(r); err != nil {
		return err
	}

	if err := c.readBody(w, r, s.limits); err != nil {
		return err
	}

	ctx = eventctx.WithRequest(ctx, event.Request{ID: c.requestID, IdempotencyKey: c.idempotencyKey})

	answer, err := s.change(ctx, c)
	if answer.Replayed {
		setHeader(w.Header(), "Idempotent-Replayed", "true") // spec 8.4
	}

	if err != nil {
		return err
	}

	s.write(w, r, answer.Status, answer.Body)

	return nil
}

// readPath sets the path's wildcards. Text that cannot be an id is fault.NotFound.
func (c *call) readPath(r *http.Request) error {
	c.id, c.optionID = r.PathValue("id"), r.PathValue("option_id")

	for _, wildcard := range []struct{ name, value string }{{"id", c.id}, {"option_id", c.optionID}} {
		if !strings.Contains(c.op.path, "{"+wildcard.name+"}") {
			continue
		}

		if len(wildcard.value) > maxParam {
			return invalid(wildcard.name, "%s has more than %d characters", wildcard.name, maxParam)
		}

		if !id.Valid(strings.TrimPrefix(wildcard.value, "evt_")) {
			return fault.Missing("object", strconv.Quote(wildcard.value))
		}
	}

	return nil
}

// render returns the JSON of an answer. Raw JSON is returned unchanged.
func render(v any) ([]byte, error) {
	if raw, ok := v.(json.RawMessage); ok {
		return raw, nil
	}

	var b bytes.Buffer

	err := encode(&b, v)

	return b.Bytes(), err
}

// encode appends the JSON of a value, without escaping HTML.
func encode(b *bytes.Buffer, v any) error {
	encoder := json.NewEncoder(b)
	encoder.SetEscapeHTML(false)

	return encoder.Encode(v)
}

// writeJSON writes the result of a read with status 200. It renders into a pooled buffer: unlike the answer
// to a change, the JSON is not stored.
func (s *server) writeJSON(w http.ResponseWriter, r *http.Request, v any) error {
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

	if b.Cap() <= maxPooledBuffer {
		s.buffers.Put(b)
	}

	return nil
}

// writeError writes the error body of err. Statuses from 500 are logged, unless the client is gone.
func (s *server) writeError(w http.ResponseWriter, r *http.Request, requestID string, err error) {
	p := problemOf(err)
	s.logFailure(r, requestID, p.status, err)

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
		s.log.ErrorContext(r.Context(), "error body not rendered", "request_id", requestID, "error", err)
	}

	s.write(w, r, p.status, body)
}

// logFailure logs an error of status 500 or above.
func (s *server) logFailure(r *http.Request, requestID string, status int, err error) {
	if status < http.StatusInternalServerError || errors.Is(r.Context().Err(), context.Canceled) {
		return
	}

	level := slog.LevelError
	if status == http.StatusServiceUnavailable {
		level = slog.LevelWarn
	}

	s.log.Log(
		r.Context(), level, "request failed",
		"request_id", requestID, "method", r.Method, "pattern", r.Pattern, "status", status, "error", err,
	)
}

// write writes a JSON body with its headers; HEAD gets the headers only.
func (s *server) write(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	setHeader(w.Header(), "Content-Type", "application/json", "Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)

	if r.Method != http.MethodHead {
		_, _ = w.Write(body) // fails only when the client is gone
	}
}

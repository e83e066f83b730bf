package evm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/ethereum/go-ethereum/rpc"
	"golang.org/x/sync/errgroup"
)

// endpoint is one node behind one URL.
type endpoint struct {
	host    string   // all of the URL that may be shown
	secrets []string // the parts of it that may not
	client  *rpc.Client
	timeout time.Duration
	slots   chan struct{} // requests in flight

	mu              sync.Mutex
	verified        bool
	tip             uint64 // newest height it has shown; 0 before the first
	batch, maxBatch int    // calls per request now, and at most
	streak          int    // full requests answered since the batch size changed
	noBlockReceipts bool   // it does not know eth_getBlockReceipts
	rest            *backoff.ExponentialBackOff
	restUntil       time.Time // after a failure: others are preferred until then
	barredUntil     time.Time // it asked (Retry-After) to be left alone until then
}

func newEndpoint(raw string, c Config) (*endpoint, error) {
	u, err := checkURL(raw)
	if err != nil {
		return nil, err
	}
	e := &endpoint{
		host:     u.Host,
		secrets:  secretsOf(u),
		timeout:  c.Timeout,
		slots:    make(chan struct{}, c.Concurrency),
		batch:    c.MaxBatch,
		maxBatch: c.MaxBatch,
		rest:     backoff.NewExponentialBackOff(),
	}
	client := *c.HTTPClient
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client.Transport = &transport{base: client.Transport, limit: c.MaxResponse, endpoint: e}
	e.client, err = rpc.DialOptions(context.Background(), raw, rpc.WithHTTPClient(&client)) // no I/O for http URLs
	if err != nil {
		return nil, invalidConfig("the RPC client refuses the URL of %s", e.host)
	}
	return e, nil
}

// secretsOf lists what of a URL must never appear in a message: providers put keys into user info, path
// and query.
func secretsOf(u *url.URL) []string {
	parts := strings.Split(u.Path, "/")
	if u.User != nil {
		password, _ := u.User.Password()
		parts = append(parts, u.User.Username(), password)
	}
	for _, values := range u.Query() {
		parts = append(parts, values...)
	}
	var out []string
	for _, p := range parts {
		if len(p) >= 8 { // shorter words are names such as "v3" or "rpc"
			out = append(out, p, url.PathEscape(p), url.QueryEscape(p))
		}
	}
	return out
}

// clean makes a node's words fit for an error: short, on one line, without this endpoint's secrets.
func (e *endpoint) clean(s string) string {
	for _, secret := range e.secrets {
		s = strings.ReplaceAll(s, secret, "…")
	}
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > 200 {
		s = s[:200] + "…"
	}
	return s
}

var errBodyTooLarge = errors.New("the response is larger than allowed")

// transport bounds response bodies and hears Retry-After.
type transport struct {
	base     http.RoundTripper
	limit    int64
	endpoint *endpoint
}

func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.base
	if base == nil {
		base = http.DefaultTransport
	}
	resp, err := base.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode == http.StatusTooManyRequests || resp.StatusCode == http.StatusServiceUnavailable {
		if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
			t.endpoint.bar(time.Duration(min(s, 3600)) * time.Second)
		}
	}
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: t.limit}
	return resp, nil
}

type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errBodyTooLarge
	}
	n, err := b.ReadCloser.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

// call is one JSON-RPC call and its outcome.
type call struct {
	method string
	args   []any
	result json.RawMessage
	// err is the node's refusal of this call alone, a *refusal.
	err error
}

func newCall(method string, args ...any) *call { return &call{method: method, args: args} }

// do makes the calls, in as few requests as the endpoint takes. An error means that the endpoint gave no
// usable answer as a whole; a refusal of a single call is in the call.
func (e *endpoint) do(ctx context.Context, calls ...*call) error {
	size := e.batchSize()
	if len(calls) <= size {
		return e.split(ctx, calls)
	}
	g, ctx := errgroup.WithContext(ctx)
	for start := 0; start < len(calls); start += size {
		part := calls[start:min(start+size, len(calls))]
		g.Go(func() error { return e.split(ctx, part) })
	}
	return g.Wait()
}

// split sends the calls as one request and, when that is too much for the node, in halves.
func (e *endpoint) split(ctx context.Context, calls []*call) error {
	if len(calls) == 0 {
		return nil
	}
	err := e.send(ctx, calls)
	if f, ok := errors.AsType[*failure](err); ok && len(calls) > 1 {
		if f.kind == tooMuch || f.kind == throttled {
			e.shrink(len(calls))
		}
		if f.kind == tooMuch {
			half := len(calls) / 2
			if err := e.split(ctx, calls[:half]); err != nil {
				return err
			}
			return e.split(ctx, calls[half:])
		}
	}
	if err == nil {
		e.grow(len(calls))
	}
	return err
}

// send makes one HTTP request.
func (e *endpoint) send(ctx context.Context, calls []*call) error {
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}
	limited, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	if len(calls) == 1 {
		c := calls[0]
		c.result, c.err = nil, nil
		err := e.client.CallContext(limited, &c.result, c.method, c.args...)
		if refused := refusalInBody(err); refused != nil {
			err = refused
		}
		return e.settle(ctx, calls, c.outcome(e, err))
	}
	batch := make([]rpc.BatchElem, len(calls))
	for i, c := range calls {
		c.result, c.err = nil, nil
		batch[i] = rpc.BatchElem{Method: c.method, Args: c.args, Result: &c.result}
	}
	if err := e.client.BatchCallContext(limited, batch); err != nil {
		return e.settle(ctx, calls, err)
	}
	for i, c := range calls {
		if err := c.outcome(e, batch[i].Error); err != nil {
			return e.settle(ctx, calls, err)
		}
	}
	return e.settle(ctx, calls, nil)
}

// bodyError is a JSON-RPC error that came with HTTP status 400 or 500 instead of 200, as some nodes send it.
type bodyError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (b *bodyError) Error() string  { return b.Message }
func (b *bodyError) ErrorCode() int { return b.Code }

func refusalInBody(err error) error {
	answered, ok := errors.AsType[rpc.HTTPError](err)
	if !ok || (answered.StatusCode != http.StatusBadRequest && answered.StatusCode != http.StatusInternalServerError) {
		return nil
	}
	var body struct {
		Error *bodyError `json:"error"`
	}
	if json.Unmarshal(answered.Body, &body) != nil || body.Error == nil || body.Error.Code == 0 {
		return nil
	}
	return body.Error
}

// outcome keeps a node's refusal in the call and passes every other error on.
func (c *call) outcome(e *endpoint, err error) error {
	if refused, ok := errors.AsType[rpc.Error](err); ok {
		r := &refusal{host: e.host, method: c.method, code: refused.ErrorCode(), message: e.clean(refused.Error())}
		if r.throttles() {
			return &failure{host: e.host, kind: throttled, what: r.message}
		}
		c.err = r
		return nil
	}
	return err
}

// settle turns a client error into a failure, or into the context's error when it was the caller who gave up.
func (e *endpoint) settle(ctx context.Context, calls []*call, err error) error {
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if f, ok := errors.AsType[*failure](err); ok {
		return f
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err // its text holds the whole URL
	}
	f := &failure{host: e.host, kind: unreachable, what: e.clean(err.Error())}
	if answered, ok := errors.AsType[rpc.HTTPError](err); ok {
		f.what = fmt.Sprintf("HTTP status %d", answered.StatusCode)
		switch {
		case answered.StatusCode == http.StatusTooManyRequests:
			f.kind = throttled
		case answered.StatusCode == http.StatusRequestEntityTooLarge, answered.StatusCode == http.StatusBadRequest:
			f.kind = tooMuch // of several calls; of one it is a plain failure
		}
		return f
	}
	_, notAList := errors.AsType[*json.UnmarshalTypeError](err) // one error object in answer to a batch
	_, notJSON := errors.AsType[*json.SyntaxError](err)
	switch {
	case errors.Is(err, errBodyTooLarge), notAList && len(calls) > 1:
		f.kind = tooMuch
	case errors.Is(err, context.DeadlineExceeded):
		f.kind, f.what = tooMuch, fmt.Sprintf("no answer within %s", e.timeout)
	case notAList, notJSON, errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF),
		errors.Is(err, rpc.ErrNoResult), errors.Is(err, rpc.ErrMissingBatchResponse):
		f.kind, f.what = garbled, "the answer is not a complete JSON-RPC response"
	}
	return f
}

func (e *endpoint) batchSize() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.batch
}

// shrink halves the batch size after a request of n calls was refused.
func (e *endpoint) shrink(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.batch, e.streak = max(1, min(e.batch, n/2)), 0
}

// growAfter is how many full requests in a row must be answered before one call more is tried.
const growAfter = 8

func (e *endpoint) grow(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if n < e.batch || e.batch >= e.maxBatch {
		return
	}
	if e.streak++; e.streak >= growAfter {
		e.batch, e.streak = e.batch+1, 0
	}
}

func (e *endpoint) sawTip(height uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.tip = height
}

func (e *endpoint) knownTip() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.tip
}

func (e *endpoint) bar(d time.Duration) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.barredUntil = time.Now().Add(d)
}

// barred returns how long the endpoint still wants to be left alone.
func (e *endpoint) barred() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	return max(0, time.Until(e.barredUntil))
}

// failed prefers other endpoints for a while that grows with every failure in a row.
func (e *endpoint) failed() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.restUntil = time.Now().Add(e.rest.NextBackOff())
}

func (e *endpoint) worked() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.restUntil = time.Time{}
	e.rest.Reset()
}

func (e *endpoint) resting() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return time.Now().Before(e.restUntil)
}

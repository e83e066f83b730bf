package evm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
	"golang.org/x/sync/errgroup"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// endpoint is one node behind one URL.
type endpoint struct {
	failover.Node
	client  *rpc.Client
	timeout time.Duration
	slots   chan struct{} // requests in flight

	mu              sync.Mutex
	batch, maxBatch int  // calls per request now, and at most
	streak          int  // full requests answered since the batch size changed
	noBlockReceipts bool // it does not know eth_getBlockReceipts
}

func newEndpoint(raw string, c Config) (*endpoint, error) {
	u, err := checkURL(raw)
	if err != nil {
		return nil, err
	}

	e := &endpoint{
		Node:     failover.Node{Host: u.Host, Secrets: failover.SecretsOf(u)},
		timeout:  c.Timeout,
		slots:    make(chan struct{}, c.Concurrency),
		batch:    c.MaxBatch,
		maxBatch: c.MaxBatch,
	}
	client := *c.HTTPClient
	client.Transport = &transport{base: client.Transport, limit: c.MaxResponse, endpoint: e}
	// no I/O for http URLs
	e.client, err = rpc.DialOptions(context.Background(), raw, rpc.WithHTTPClient(&client))
	if err != nil {
		return nil, invalidConfig("the RPC client refuses the URL of %s", e.Host)
	}

	return e, nil
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
		t.endpoint.HearRetryAfter(resp)
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
	// err is the node's refusal of this call alone, a *failover.Refusal.
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
	if f, ok := errors.AsType[*failover.Failure](err); ok && len(calls) > 1 {
		if f.Kind == tooMuch || f.Kind == failover.Throttled {
			e.shrink(len(calls))
		}

		if f.Kind == tooMuch {
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
	if !ok ||
		(answered.StatusCode != http.StatusBadRequest && answered.StatusCode != http.StatusInternalServerError) {
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
		r := &failover.Refusal{
			Host:    e.Host,
			Method:  c.method,
			Code:    refused.ErrorCode(),
			Message: e.Clean(refused.Error()),
		}
		if throttles(r) {
			return e.Fail(failover.Throttled, "%s", r.Message)
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

	if f, ok := errors.AsType[*failover.Failure](err); ok {
		return f
	}

	f := e.Fail(failover.Unreachable, "%s", e.Why(err, e.timeout))
	if answered, ok := errors.AsType[rpc.HTTPError](err); ok {
		f.What = fmt.Sprintf("HTTP status %d", answered.StatusCode)
		switch {
		case answered.StatusCode == http.StatusTooManyRequests:
			f.Kind = failover.Throttled
		case answered.StatusCode == http.StatusRequestEntityTooLarge,
			answered.StatusCode == http.StatusBadRequest:
			f.Kind = tooMuch // of several calls; of one it is a plain failure
		}

		return f
	}

	_, notAList := errors.AsType[*json.UnmarshalTypeError](err) // one error object in answer to a batch

	_, notJSON := errors.AsType[*json.SyntaxError](err)
	switch {
	case errors.Is(err, errBodyTooLarge),
		errors.Is(err, context.DeadlineExceeded),
		notAList && len(calls) > 1:
		f.Kind = tooMuch
	case notAList, notJSON, errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF),
		errors.Is(err, rpc.ErrNoResult), errors.Is(err, rpc.ErrMissingBatchResponse):
		f.Kind, f.What = failover.Garbled, "the answer is not a complete JSON-RPC response"
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

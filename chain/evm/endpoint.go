package evm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ethereum/go-ethereum/rpc"
	"golang.org/x/sync/errgroup"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// endpoint is the JSON-RPC client of one node.
type endpoint struct {
	failover.Node
	client   *rpc.Client
	timeout  time.Duration
	inFlight chan struct{} // requests in flight
	// nullErrors is set once the node wrote `"error": null` beside a result. Its answers are then read
	// without that field.
	nullErrors atomic.Bool
	// beside is set if the last block from the node has receipts and the node gave them for the whole block.
	beside atomic.Bool

	mu                  sync.Mutex
	batchSize, maxBatch int // calls per request now, and at most
	fullBatches         int // full requests answered since the batch size changed
	// refused holds the time until which a shortcut is not tried again; the zero time means never. See
	// refuses.
	refused map[shortcut]time.Time

	safe, final tagState
}

// newEndpoint returns the client of a URL without connecting.
func newEndpoint(raw string, config Config) (*endpoint, error) {
	parsed, err := parseURL(raw)
	if err != nil {
		return nil, err
	}

	node := &endpoint{
		Node:      failover.Node{Host: parsed.Host, Secrets: failover.SecretsOf(parsed)},
		timeout:   config.Timeout,
		inFlight:  make(chan struct{}, config.Concurrency),
		batchSize: config.MaxBatch,
		maxBatch:  config.MaxBatch,
	}

	client := *config.HTTPClient
	client.Transport = &transport{base: client.Transport, limit: config.MaxResponse, endpoint: node}

	// DialOptions does no I/O for http URLs.
	node.client, err = rpc.DialOptions(context.Background(), raw, rpc.WithHTTPClient(&client))
	if err != nil {
		return nil, invalidConfig("the RPC client refuses the URL of %s", node.Host)
	}

	return node, nil
}

// errBodyTooLarge ends the read of a response body at Config.MaxResponse.
var errBodyTooLarge = errors.New("the response is larger than allowed")

// transport bounds response bodies and records how long the node asks for a pause. It does not retry: a node
// may refuse a range of blocks in the same way, and that range is then halved.
type transport struct {
	base     http.RoundTripper
	limit    int64
	endpoint *endpoint
}

// RoundTrip sends a request and bounds the body of its response.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	base := t.base
	if base == nil {
		base = http.DefaultTransport
	}

	resp, err := base.RoundTrip(request)
	if err != nil {
		return nil, err
	}

	t.endpoint.NoteLater(resp)
	failover.AcceptRefusal(resp, t.limit)

	resp.Body = &boundedBody{ReadCloser: resp.Body, remaining: t.limit}

	if t.endpoint.nullErrors.Load() {
		if err := failover.DropNullErrors(resp); err != nil {
			return nil, err
		}
	}

	return resp, nil
}

// errNullError is the outcome of a call whose answer has a null error beside its result.
var errNullError = errors.New("an error that is null")

// boundedBody is a response body of limited length.
type boundedBody struct {
	io.ReadCloser
	remaining int64
}

// Read returns errBodyTooLarge if there is a byte beyond the limit.
func (b *boundedBody) Read(buffer []byte) (int, error) {
	if b.remaining <= 0 {
		return b.readBeyond()
	}

	n, err := b.ReadCloser.Read(buffer[:min(int64(len(buffer)), b.remaining)])
	b.remaining -= int64(n)

	return n, err
}

// readBeyond returns the error that ends the body after the limit's last byte.
func (b *boundedBody) readBeyond() (int, error) {
	for {
		n, err := b.ReadCloser.Read(make([]byte, 1))
		if n > 0 {
			return 0, errBodyTooLarge
		}

		if err != nil {
			return 0, err
		}
	}
}

// call is one JSON-RPC call and its result.
type call struct {
	method string
	args   []any
	result json.RawMessage
	// err is the node's refusal of this call, a *failover.Refusal.
	err error
}

// newCall returns a call that was not sent yet.
func newCall(method string, args ...any) *call { return &call{method: method, args: args} }

// do sends the calls in as few requests as the node accepts. It returns an error if the node gave
// no usable answer as a whole; the refusal of one call is in the call.
func (e *endpoint) do(ctx context.Context, calls ...*call) error {
	size := e.currentBatchSize()
	if len(calls) <= size {
		return e.sendSplit(ctx, calls)
	}

	group, ctx := errgroup.WithContext(ctx)

	for start := 0; start < len(calls); start += size {
		part := calls[start:min(start+size, len(calls))]

		group.Go(func() error { return e.sendSplit(ctx, part) })
	}

	return group.Wait()
}

// sendSplit sends the calls as one request. If the node finds that too much, it sends them in halves.
func (e *endpoint) sendSplit(ctx context.Context, calls []*call) error {
	if len(calls) == 0 {
		return nil
	}

	err := e.send(ctx, calls)
	if failure, ok := errors.AsType[*failover.Failure](err); ok && len(calls) > 1 {
		if failure.Kind == tooMuch || failure.Kind == failover.Throttled {
			e.shrink(len(calls))
		}

		if failure.Kind == tooMuch {
			half := len(calls) / 2
			if err := e.sendSplit(ctx, calls[:half]); err != nil {
				return err
			}

			return e.sendSplit(ctx, calls[half:])
		}
	}

	if err == nil {
		e.grow(len(calls))
	}

	return err
}

// send makes one HTTP request, and a second one if the first shows that the node writes null errors.
func (e *endpoint) send(ctx context.Context, calls []*call) error {
	dropped := e.nullErrors.Load()

	err := e.request(ctx, calls)
	if errors.Is(err, errNullError) && !dropped {
		e.nullErrors.Store(true)

		err = e.request(ctx, calls)
	}

	return e.transportError(ctx, calls, err)
}

// request makes one HTTP request.
func (e *endpoint) request(ctx context.Context, calls []*call) error {
	select {
	case e.inFlight <- struct{}{}:
		defer func() { <-e.inFlight }()
	case <-ctx.Done():
		return ctx.Err()
	}

	limited, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()

	if len(calls) == 1 {
		rpcCall := calls[0]
		rpcCall.result, rpcCall.err = nil, nil

		err := e.client.CallContext(limited, &rpcCall.result, rpcCall.method, rpcCall.args...)

		return rpcCall.setOutcome(e, err)
	}

	batch := make([]rpc.BatchElem, len(calls))
	for i, rpcCall := range calls {
		rpcCall.result, rpcCall.err = nil, nil
		batch[i] = rpc.BatchElem{Method: rpcCall.method, Args: rpcCall.args, Result: &rpcCall.result}
	}

	if err := e.client.BatchCallContext(limited, batch); err != nil {
		return err
	}

	for i, rpcCall := range calls {
		if err := rpcCall.setOutcome(e, batch[i].Error); err != nil {
			return err
		}
	}

	return nil
}

// setOutcome stores a node's refusal in the call and returns any other error.
func (c *call) setOutcome(node *endpoint, err error) error {
	if rpcError, ok := errors.AsType[rpc.Error](err); ok {
		if rpcError.ErrorCode() == 0 &&
			rpcError.Error() == "json-rpc error 0" { // neither a code nor a message
			return errNullError
		}

		refusal := &failover.Refusal{
			Host:    node.Host,
			Method:  c.method,
			Code:    rpcError.ErrorCode(),
			Message: node.Clean(rpcError.Error()),
		}
		if refusal.IsThrottle() {
			return node.Fail(failover.Throttled, "%s", refusal.Message)
		}

		c.err = refusal

		return nil
	}

	return err
}

// transportError returns a client error as a failure, or the context's error if that is done.
func (e *endpoint) transportError(ctx context.Context, calls []*call, err error) error {
	if err == nil {
		return nil
	}

	if ctx.Err() != nil {
		return ctx.Err()
	}

	if failure, ok := errors.AsType[*failover.Failure](err); ok {
		return failure
	}

	failure := e.Fail(failover.Unreachable, "%s", e.Describe(err, e.timeout))
	if httpError, ok := errors.AsType[rpc.HTTPError](err); ok {
		failure.What = fmt.Sprintf("HTTP status %d", httpError.StatusCode)
		switch {
		case httpError.StatusCode == http.StatusTooManyRequests:
			failure.Kind = failover.Throttled
		case httpError.StatusCode == http.StatusRequestEntityTooLarge,
			httpError.StatusCode == http.StatusBadRequest:
			failure.Kind = tooMuch // of several calls; a single call has a plain failure
		}

		return failure
	}

	_, unmarshalError := errors.AsType[*json.UnmarshalTypeError](err) // one error object in answer to a batch

	_, syntaxError := errors.AsType[*json.SyntaxError](err)
	switch {
	case errors.Is(err, errBodyTooLarge),
		errors.Is(err, context.DeadlineExceeded),
		unmarshalError && len(calls) > 1:
		failure.Kind = tooMuch
	case unmarshalError, syntaxError, errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF),
		errors.Is(err, rpc.ErrNoResult), errors.Is(err, rpc.ErrMissingBatchResponse):
		failure.Kind, failure.What = failover.Garbled, "the answer is not a complete JSON-RPC response"
	}

	return failure
}

// currentBatchSize returns the number of calls that one request may hold now.
func (e *endpoint) currentBatchSize() int {
	e.mu.Lock()
	defer e.mu.Unlock()

	return e.batchSize
}

// shrink halves the batch size after a request of n calls was refused.
func (e *endpoint) shrink(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()

	e.batchSize, e.fullBatches = max(1, min(e.batchSize, n/2)), 0
}

// growAfter is the number of full requests in a row after which the batch size grows by one.
const growAfter = 8

// grow counts a successful request of n calls.
func (e *endpoint) grow(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()

	if n < e.batchSize || e.batchSize >= e.maxBatch {
		return
	}

	if e.fullBatches++; e.fullBatches >= growAfter {
		e.batchSize, e.fullBatches = e.batchSize+1, 0
	}
}

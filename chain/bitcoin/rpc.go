package bitcoin

// JSON-RPC 1.0 over HTTP, as served by Bitcoin Core. btcd's client is not used: its calls accept no context,
// and it retries without end.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// The JSON-RPC codes that this package distinguishes. Source: Bitcoin Core, src/rpc/protocol.h.
const (
	codeMisc          = -1  // such as: the block is pruned
	codeNotFound      = -5  // no such transaction or block
	codeOutOfRange    = -8  // no such height
	codeUndecodable   = -22 // bytes that are no transaction
	codeRefused       = -25 // such as: inputs are missing or spent
	codeRejected      = -26 // by the rules of the network or of the mempool
	codeAlreadyInUTXO = -27
	codeWarmup        = -28
	codeNoMethod      = -32601
	codeInternal      = -32603
)

// maxBatch is the number of calls in one HTTP request.
const maxBatch = 100

// The kinds of failures that a smaller request may avoid.
const (
	// tooLarge is an answer above Config.MaxResponse.
	tooLarge failover.Kind = "too large"
	// tooSlow is an answer that did not come within Config.Timeout.
	tooSlow failover.Kind = "too slow"
)

// isTooMuch reports whether a node's answer was too large, or took too long.
func isTooMuch(err error) bool {
	failure, ok := errors.AsType[*failover.Failure](err)
	return ok && (failure.Kind == tooLarge || failure.Kind == tooSlow)
}

// endpoint is one node behind one URL.
type endpoint struct {
	failover.Node
	url            string // without user and password
	user, password string
	cookieFile     string
	client         *http.Client
	timeout        time.Duration
	limit          int64         // bytes of a response body
	slots          chan struct{} // requests in flight

	pruned atomic.Bool
	// suspect is set once the node gives no answer or is syncing: it may have been restored, or replaced by
	// another one.
	suspect atomic.Bool
	// skipUntil is the time until which the node is not compared with the others, in Unix nanoseconds; see
	// checkChain.
	skipUntil atomic.Int64
	// fork is set while another node's chain outweighs the node's.
	fork atomic.Pointer[lostFork]
}

// newEndpoint returns the endpoint of a URL. A URL of another form is fault.Invalid (config_invalid).
func newEndpoint(raw string, c Config) (*endpoint, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, invalidConfig("an RPC URL is not of the form http(s)://user:password@host:port")
	}

	node := &endpoint{
		Node:    failover.Node{Host: u.Host, Secrets: failover.SecretsOf(u)},
		timeout: c.Timeout,
		limit:   c.MaxResponse,
		slots:   make(chan struct{}, c.Concurrency),
	}
	node.client = node.Throttled(c.HTTPClient, c.Timeout, nil)

	if u.User != nil {
		node.user = u.User.Username()
		node.password, _ = u.User.Password()
		u.User = nil
	} else {
		node.cookieFile = c.CookieFile
	}

	node.url = u.String()

	return node, nil
}

// rpcCall is one JSON-RPC call and its outcome.
type rpcCall struct {
	method string
	args   []any
	result json.RawMessage
	// err is the node's refusal of this call alone, a *failover.Refusal.
	err error
}

func newCall(method string, args ...any) *rpcCall { return &rpcCall{method: method, args: args} }

// decode decodes the result. It returns a refusal unchanged, and a *failover.Failure for a result of another
// form.
func (c *rpcCall) decode(node *endpoint, into any) error {
	if c.err != nil {
		return c.err
	}

	if err := json.Unmarshal(c.result, into); err != nil {
		return node.Garbled("its answer to %s has another form", c.method)
	}

	return nil
}

// isNull reports whether the node answered null: it has no such object.
func (c *rpcCall) isNull() bool {
	return c.err == nil && (len(c.result) == 0 || string(c.result) == "null")
}

// call makes one call and decodes its result.
func (e *endpoint) call(ctx context.Context, into any, method string, args ...any) error {
	call := newCall(method, args...)
	if err := e.batchCall(ctx, call); err != nil {
		return err
	}

	return call.decode(e, into)
}

// batchCall makes the calls, maxBatch per request. An error means that the node gave no usable answer;
// rpcCall.err has the refusal of a single call.
func (e *endpoint) batchCall(ctx context.Context, calls ...*rpcCall) error {
	for len(calls) > 0 {
		n := min(len(calls), maxBatch)
		if err := e.sendSplit(ctx, calls[:n]); err != nil {
			if ctx.Err() != nil {
				return ctx.Err() // the caller gave up, not the node
			}

			return err
		}

		calls = calls[n:]
	}

	return nil
}

// sendSplit makes the calls in one HTTP request. If the answer is too large, it makes them in halves.
func (e *endpoint) sendSplit(ctx context.Context, calls []*rpcCall) error {
	err := e.sendBatch(ctx, calls)

	failure, ok := errors.AsType[*failover.Failure](err)
	if !ok || failure.Kind != tooLarge || len(calls) == 1 {
		return err
	}

	half := len(calls) / 2
	if err := e.sendSplit(ctx, calls[:half]); err != nil {
		return err
	}

	return e.sendSplit(ctx, calls[half:])
}

// rpcRequest is the wire form of a call.
type rpcRequest struct {
	Version string `json:"jsonrpc"`
	ID      int    `json:"id"`
	Method  string `json:"method"`
	Params  []any  `json:"params"`
}

// rpcResponse is the answer to a call.
type rpcResponse struct {
	ID     *int            `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// sendBatch makes one HTTP request. It is always a batch, because the node answers a batch with status 200
// even if it refuses single calls.
func (e *endpoint) sendBatch(ctx context.Context, calls []*rpcCall) error {
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}

	batch := make([]rpcRequest, len(calls))
	for i, call := range calls {
		call.result, call.err = nil, nil
		batch[i] = rpcRequest{
			Version: "1.0",
			ID:      i,
			Method:  call.method,
			Params:  append([]any{}, call.args...),
		}
	}

	body, err := json.Marshal(batch)
	if err != nil {
		return fmt.Errorf("encode %s: %w", calls[0].method, err)
	}

	answer, err := e.post(ctx, body)
	if err != nil {
		return err
	}

	return e.readBatch(answer, calls)
}

// readBatch stores the responses of an answer in their calls. The answer must have one response for each
// call, or be one error for all of them, as some providers send it. Such an error may concern a single call;
// smaller batches then find it.
func (e *endpoint) readBatch(answer []byte, calls []*rpcCall) error {
	var whole rpcResponse

	if json.Unmarshal(answer, &whole) == nil && whole.Error != nil {
		if err := e.store(whole, calls[0]); err != nil || len(calls) == 1 {
			return err
		}

		return e.Fail(tooLarge, "it refused several calls at once: %s", e.Clean(whole.Error.Message))
	}

	var responses []rpcResponse
	if err := json.Unmarshal(answer, &responses); err != nil || len(responses) != len(calls) {
		return e.Garbled("the answer is not a complete JSON-RPC response")
	}

	seen := make([]bool, len(calls))

	for _, response := range responses {
		id := response.ID
		if id == nil || *id < 0 || *id >= len(calls) || seen[*id] {
			return e.Garbled("the answer is not a complete JSON-RPC response")
		}

		seen[*id] = true
		if err := e.store(response, calls[*id]); err != nil {
			return err
		}
	}

	return nil
}

// store stores a response in its call.
func (e *endpoint) store(response rpcResponse, call *rpcCall) error {
	if response.Error == nil {
		call.result = response.Result
		return nil
	}

	refusal := &failover.Refusal{
		Host:    e.Host,
		Method:  call.method,
		Code:    response.Error.Code,
		Message: e.Clean(response.Error.Message),
	}

	switch {
	case refusal.Code == codeWarmup:
		return e.syncing("it is still starting")
	case refusal.IsThrottle():
		return e.Fail(failover.Throttled, "%s", refusal.Message)
	}

	call.err = refusal

	return nil
}

// post sends a request body and returns the body of the response.
func (e *endpoint) post(ctx context.Context, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return nil, e.unreachable(err)
	}

	req.Header.Set("Content-Type", "application/json")

	user, password := e.user, e.password
	if e.cookieFile != "" {
		cookie, err := os.ReadFile(e.cookieFile)
		if err != nil {
			return nil, &failover.Failure{
				Host:  e.Host,
				Code:  "node_unauthorized",
				What:  "its cookie file cannot be read",
				Cause: err,
			}
		}

		user, password, _ = strings.Cut(strings.TrimSpace(string(cookie)), ":")
	}

	if user != "" {
		req.SetBasicAuth(user, password)
	}

	resp, err := e.client.Do(req)
	if err != nil {
		return nil, e.unreachable(err)
	}
	defer resp.Body.Close()

	failover.AcceptRefusal(resp, e.limit)

	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusUnauthorized, http.StatusForbidden:
		return nil, &failover.Failure{
			Host: e.Host,
			Code: "node_unauthorized",
			What: "it does not take the user and password: correct the RPC URL or the cookie file",
		}
	default:
		return nil, e.Fail(failover.Unreachable, "HTTP status %d", resp.StatusCode)
	}

	answer, err := io.ReadAll(io.LimitReader(resp.Body, e.limit+1))
	if err != nil {
		return nil, e.unreachable(err)
	}

	if int64(len(answer)) > e.limit {
		return nil, e.Fail(tooLarge, "the response is larger than %d bytes", e.limit)
	}

	return answer, nil
}

func (e *endpoint) unreachable(err error) error {
	e.suspect.Store(true)

	kind := failover.Unreachable
	if errors.Is(err, context.DeadlineExceeded) {
		kind = tooSlow
	}

	return e.Fail(kind, "%s", e.Describe(err, e.timeout))
}

func (e *endpoint) syncing(what string) error {
	e.suspect.Store(true)

	return &failover.Failure{Host: e.Host, Code: "node_syncing", What: what}
}

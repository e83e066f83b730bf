package solana

// JSON-RPC 2.0 over HTTP. One call is one request, since providers count, limit and forbid batches
// differently. The client of solana-go is not used: it reads amounts as float64 and retries on its own.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// endpoint is one node behind one URL.
type endpoint struct {
	failover.Node
	url         string
	client      *http.Client
	timeout     time.Duration // of one request
	maxResponse int64         // bytes
	inFlight    chan struct{} // holds one element per request in flight
	oldest      atomic.Uint64 // slot; see oldestSlot
	lastHead    atomic.Pointer[nodeHead]
	finalOnly   atomic.Bool   // it offers no earlier commitment; see newest
	version     atomic.Uint32 // highest transaction version asked for; see callVersioned
}

func newEndpoint(raw string, c Config) (*endpoint, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, invalidConfig("an RPC URL is not of the form http(s)://host/path")
	}

	e := &endpoint{
		Node:        failover.Node{Host: u.Host, Secrets: failover.SecretsOf(u)},
		url:         raw,
		timeout:     c.Timeout,
		maxResponse: c.MaxResponse,
		inFlight:    make(chan struct{}, c.Concurrency),
	}
	e.client = e.Throttled(c.HTTPClient, c.Timeout, isLimited)

	return e, nil
}

// ask calls failover.Set.Ask with the configured number of attempts.
func (d *driver) ask(ctx context.Context, f func(context.Context, *endpoint) error) error {
	return d.nodes.Ask(ctx, d.config.Attempts, 0, f)
}

// verify returns a *failover.Mismatch when the node's genesis hash is not the network's, and learns its commitments.
func (d *driver) verify(ctx context.Context, e *endpoint) error {
	var genesis string
	if err := e.call(ctx, &genesis, "getGenesisHash"); err != nil {
		return err
	}

	if want := strings.TrimPrefix(d.network.CAIP2, "solana:"); chainReference(genesis) != want {
		return &failover.Mismatch{Host: e.Host, Shows: "has genesis hash " + e.Clean(genesis), Want: want}
	}

	_, err := e.findCommitment(ctx)

	return err
}

// triesOfBackends is how often a call is made that a node refuses because it is not far enough. One URL may
// lead to several backends of different heights.
const triesOfBackends = 5

// call makes one call and decodes its result. Errors:
//   - *failover.Refusal: the node answered with a JSON-RPC error;
//   - *failover.Failure: there is no usable answer;
//   - the context's error.
func (e *endpoint) call(ctx context.Context, result any, method string, params ...any) error {
	if result == nil {
		result = new(json.RawMessage)
	}

	for try := 1; ; try++ {
		raw, err := e.callOnce(ctx, method, params)
		if failover.RefusedWith(err, codeMinContextSlot, codeBlockNotYet, codeBlockStatusNotYet) &&
			try < triesOfBackends {
			continue
		}

		if failover.RefusedWith(err, codeInvalidParams) {
			if lost, probed := e.findCommitment(ctx); lost {
				continue
			} else if probed != nil {
				return probed
			}
		}

		if failover.RefusedWith(err, codeMinContextSlot) {
			return fmt.Errorf("%w: %w", failover.ErrLagging, err)
		}

		if err != nil {
			return err
		}

		if err := json.Unmarshal(raw, result); err != nil {
			return e.Garbled("its answer to %s has another form", method)
		}

		return nil
	}
}

// callOnce makes one call and returns its result; see call.
func (e *endpoint) callOnce(ctx context.Context, method string, params []any) (json.RawMessage, error) {
	select {
	case e.inFlight <- struct{}{}:
		defer func() { <-e.inFlight }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}

	if barred := e.BackingOff(); barred != nil {
		return nil, barred
	}

	body, err := json.Marshal(rpcRequest{"2.0", 1, method, append([]any{}, params...)})
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", method, err)
	}

	answer, err := e.post(ctx, body)
	if ctx.Err() != nil {
		return nil, ctx.Err() // the caller's, not a failure of the node
	}

	if err != nil {
		return nil, err
	}

	return e.resultOf(method, answer)
}

// rpcRequest is a JSON-RPC 2.0 request.
type rpcRequest struct {
	Version string `json:"jsonrpc"`
	ID      int    `json:"id"`
	Method  string `json:"method"`
	Params  []any  `json:"params"`
}

// rpcResponse is a JSON-RPC 2.0 response.
type rpcResponse struct {
	ID     *int            `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// post sends a request body and returns the response body.
func (e *endpoint) post(ctx context.Context, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, e.url, bytes.NewReader(body))
	if err != nil {
		return nil, e.unreachable(err)
	}

	req.Header.Set("Content-Type", "application/json")

	resp, err := e.client.Do(req)
	if err != nil {
		return nil, e.unreachable(err)
	}
	defer resp.Body.Close()

	failover.AcceptRefusal(resp, e.maxResponse)

	if resp.StatusCode != http.StatusOK {
		kind := failover.Unreachable
		if resp.StatusCode == http.StatusTooManyRequests {
			kind = failover.Throttled
		}

		return nil, e.Fail(kind, "HTTP status %d", resp.StatusCode)
	}

	answer, err := io.ReadAll(io.LimitReader(resp.Body, e.maxResponse+1))
	if err != nil {
		return nil, e.unreachable(err)
	}

	if int64(len(answer)) > e.maxResponse {
		return nil, e.Garbled("the response is larger than %d bytes", e.maxResponse)
	}

	return answer, nil
}

// isLimited reports whether an answer is the refusal of a call beyond a provider's limit, with status 200.
func isLimited(body []byte) bool {
	if !bytes.Contains(body, []byte(`"error"`)) {
		return false
	}

	var answer struct {
		Error *struct {
			Code int `json:"code"`
		} `json:"error"`
	}

	return json.Unmarshal(body, &answer) == nil && answer.Error != nil &&
		answer.Error.Code == codeTooManyRequests
}

func (e *endpoint) unreachable(err error) error {
	return e.Fail(failover.Unreachable, "%s", e.Describe(err, e.timeout))
}

// resultOf returns the result in a response body.
func (e *endpoint) resultOf(method string, answer []byte) (json.RawMessage, error) {
	var response rpcResponse

	err := json.Unmarshal(answer, &response)
	complete := response.Error != nil ||
		(response.ID != nil && *response.ID == 1 && response.Result != nil)

	if err != nil || !complete {
		return nil, e.Garbled("the answer to %s is not a complete JSON-RPC response", method)
	}

	if response.Error == nil {
		return response.Result, nil
	}

	refusal := &failover.Refusal{
		Host:    e.Host,
		Method:  method,
		Code:    response.Error.Code,
		Message: e.Clean(response.Error.Message),
		Data:    response.Error.Data,
	}
	if isNodeFailure(refusal) {
		return nil, e.Fail("", "%s", refusal)
	}

	return nil, refusal
}

// The JSON-RPC error codes that are handled. Sources: JSON-RPC 2.0, section 5.1; Agave,
// rpc-client-api/src/custom_error.rs.
const (
	codeBlockCleanedUp    = -32001 // the block is older than the node's ledger
	codePreflightFailed   = -32002
	codeBadSignature      = -32003
	codeBlockNotYet       = -32004 // the block is not available yet
	codeNodeUnhealthy     = -32005
	codeSlotSkipped       = -32007
	codeLongTermSkipped   = -32009 // skipped, or missing in long-term storage
	codeNotIndexed        = -32010 // the node's index of token accounts leaves the key out
	codeNoHistory         = -32011
	codeBlockStatusNotYet = -32014
	// codeUnsupportedVersion is a transaction of a higher version than was asked for.
	codeUnsupportedVersion = -32015
	codeMinContextSlot     = -32016 // the node is behind minContextSlot
	codeLongTermDown       = -32019 // long-term storage does not answer
	codeUnknownBound       = -32020 // the node does not have the transaction that bounds a history
	codeMethodUnknown      = -32601
	codeInvalidParams      = -32602
	codeTooManyRequests    = 429
)

// isNodeFailure reports whether a refusal is a failure of the node rather than of the request.
func isNodeFailure(r *failover.Refusal) bool {
	switch r.Code {
	case codeNodeUnhealthy, codeNoHistory, codeLongTermDown, codeTooManyRequests:
		return true
	}

	return false
}

// forEach calls f for 0 to n−1, at most Config.Concurrency calls at a time, and returns the first error.
func (e *endpoint) forEach(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(cap(e.inFlight))

	for i := range n {
		g.Go(func() error { return f(ctx, i) })
	}

	return g.Wait()
}

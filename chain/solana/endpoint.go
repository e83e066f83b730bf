package solana

// JSON-RPC 2.0 over HTTP as Solana nodes speak it. One call is one request: providers count, limit
// and forbid batches each in their own way. The client of solana-go is not used: it reads amounts
// into float64 beside the integers, and retries on its own.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// endpoint is one node behind one URL.
type endpoint struct {
	failover.Node
	url     string
	client  *http.Client
	timeout time.Duration
	limit   int64
	slots   chan struct{} // requests in flight
}

func newEndpoint(raw string, c Config) (*endpoint, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, invalidConfig("an RPC URL is not of the form http(s)://host/path")
	}

	return &endpoint{
		Node:    failover.Node{Host: u.Host, Secrets: failover.SecretsOf(u)},
		url:     raw,
		client:  c.HTTPClient,
		timeout: c.Timeout,
		limit:   c.MaxResponse,
		slots:   make(chan struct{}, c.Concurrency),
	}, nil
}

// call makes one call and decodes its result. A node's refusal is a *failover.Refusal, the lack of
// a usable answer a *failover.Failure.
func (e *endpoint) call(ctx context.Context, into any, method string, params ...any) error {
	if into == nil {
		into = new(json.RawMessage)
	}

	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return ctx.Err()
	}

	if barred := e.Barred(); barred != nil {
		return barred
	}

	body, err := json.Marshal(struct {
		Version string `json:"jsonrpc"`
		ID      int    `json:"id"`
		Method  string `json:"method"`
		Params  []any  `json:"params"`
	}{"2.0", 1, method, append([]any{}, params...)})
	if err != nil {
		return fmt.Errorf("encode %s: %w", method, err)
	}

	answer, err := e.post(ctx, body)
	if ctx.Err() != nil {
		return ctx.Err() // it was the caller who gave up
	}

	if err != nil {
		return err
	}

	var response struct {
		ID     *int            `json:"id"`
		Result json.RawMessage `json:"result"`
		Error  *struct {
			Code    int             `json:"code"`
			Message string          `json:"message"`
			Data    json.RawMessage `json:"data"`
		} `json:"error"`
	}
	if err := json.Unmarshal(
		answer, &response,
	); err != nil ||
		(response.Error == nil && (response.ID == nil || *response.ID != 1 || response.Result == nil)) {
		return e.Garbled("the answer to %s is not a complete JSON-RPC response", method)
	}

	if refused := response.Error; refused != nil {
		r := &failover.Refusal{
			Host:    e.Host,
			Method:  method,
			Code:    refused.Code,
			Message: e.Clean(refused.Message),
			Data:    refused.Data,
		}
		if unfit(r) {
			return e.Fail("", "%s", r)
		}

		return r
	}

	if err := json.Unmarshal(response.Result, into); err != nil {
		return e.Garbled("its answer to %s has another form", method)
	}

	return nil
}

// post sends a body and returns the answer's.
func (e *endpoint) post(ctx context.Context, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()

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

	if resp.StatusCode != http.StatusOK {
		e.HearRetryAfter(resp)
		return nil, e.Fail(failover.Unreachable, "HTTP status %d", resp.StatusCode)
	}

	answer, err := io.ReadAll(io.LimitReader(resp.Body, e.limit+1))
	if err != nil {
		return nil, e.unreachable(err)
	}

	if int64(len(answer)) > e.limit {
		return nil, e.Garbled("the response is larger than %d bytes", e.limit)
	}

	return answer, nil
}

func (e *endpoint) unreachable(err error) error {
	return e.Fail(failover.Unreachable, "%s", e.Why(err, e.timeout))
}

// each runs f for 0 to n−1, as many at a time as the endpoint serves, and returns the first error.
func (e *endpoint) each(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(cap(e.slots))

	for i := range n {
		g.Go(func() error { return f(ctx, i) })
	}

	return g.Wait()
}

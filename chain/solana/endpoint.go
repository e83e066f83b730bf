package solana

// JSON-RPC 2.0 over HTTP as Solana nodes speak it. One call is one request: providers count, limit and forbid batches each in
// their own way. The client of solana-go is not used: it reads amounts into float64 beside the integers, and retries on its own.

import (
	"bytes"
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
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

// endpoint is one node behind one URL.
type endpoint struct {
	host    string // all of the URL that may be shown
	url     string
	secrets []string // the parts of it that may not
	client  *http.Client
	timeout time.Duration
	limit   int64
	slots   chan struct{} // requests in flight

	verified atomic.Bool   // it serves our network
	tip      atomic.Uint64 // newest height it has shown; 0 before the first

	mu          sync.Mutex
	barredUntil time.Time // it asked (Retry-After) to be left alone until then
}

func newEndpoint(raw string, c Config) (*endpoint, error) {
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, invalidConfig("an RPC URL is not of the form http(s)://host/path")
	}
	client := *c.HTTPClient
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &endpoint{
		host: u.Host, url: raw, secrets: secretsOf(u), client: &client, timeout: c.Timeout, limit: c.MaxResponse,
		slots: make(chan struct{}, c.Concurrency),
	}, nil
}

// secretsOf lists what of a URL must never appear in a message: providers put keys into user info, path and query.
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
		if len(p) >= 8 { // shorter words are names such as "v2"
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
	s = strings.ToValidUTF8(strings.Join(strings.Fields(s), " "), "")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}

// call makes one call and decodes its result. A node's refusal is a *refusal, the lack of a usable answer a *failure.
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
	if wait := e.barred(); wait > 0 {
		return &failure{host: e.host, what: "it asked to be left alone for a while", retryAfter: wait}
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
	if err := json.Unmarshal(answer, &response); err != nil || (response.Error == nil && (response.ID == nil || *response.ID != 1 || response.Result == nil)) {
		return e.garbled("the answer to %s is not a complete JSON-RPC response", method)
	}
	if refused := response.Error; refused != nil {
		r := &refusal{host: e.host, method: method, code: refused.Code, message: e.clean(refused.Message), data: refused.Data}
		if r.unfit() {
			return &failure{host: e.host, what: r.Error()}
		}
		return r
	}
	if err := json.Unmarshal(response.Result, into); err != nil {
		return e.garbled("its answer to %s has another form", method)
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
		f := &failure{host: e.host, what: fmt.Sprintf("HTTP status %d", resp.StatusCode)}
		if s, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && s > 0 {
			f.retryAfter = time.Duration(min(s, 3600)) * time.Second
			e.bar(f.retryAfter)
		}
		return nil, f
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, e.limit+1))
	if err != nil {
		return nil, e.unreachable(err)
	}
	if int64(len(answer)) > e.limit {
		return nil, e.garbled("the response is larger than %d bytes", e.limit)
	}
	return answer, nil
}

// unreachable wraps an error of the transport, which may hold the URL.
func (e *endpoint) unreachable(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	what := e.clean(err.Error())
	if errors.Is(err, context.DeadlineExceeded) {
		what = fmt.Sprintf("no answer within %s", e.timeout)
	}
	return &failure{host: e.host, what: what}
}

// garbled is an answer that cannot be right.
func (e *endpoint) garbled(format string, args ...any) error {
	return &failure{host: e.host, what: fmt.Sprintf(format, args...)}
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

// sawTip keeps the newest height that the endpoint showed.
func (e *endpoint) sawTip(height uint64) { e.tip.Store(height) }

// each runs f for 0 to n−1, as many at a time as the endpoint serves, and returns the first error.
func (e *endpoint) each(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(cap(e.slots))
	for i := range n {
		g.Go(func() error { return f(ctx, i) })
	}
	return g.Wait()
}

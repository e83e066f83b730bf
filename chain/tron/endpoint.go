package tron

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
	"time"

	"github.com/cenkalti/backoff/v5"
)

// side is one of a node's two interfaces.
type side string

// The sides: everything the node has taken in, its pool's effects included; and the state at its newest solidified block.
const (
	full       side = "/wallet/"
	solidified side = "/walletsolidity/"
)

// endpoint is one node.
type endpoint struct {
	host    string   // all of the URL that may be shown
	secrets []string // the parts of it that may not
	urls    map[side]string
	apiKey  string
	client  *http.Client
	timeout time.Duration
	limit   int64
	slots   chan struct{} // requests in flight

	mu          sync.Mutex
	verified    bool
	tip         uint64 // newest height it has shown; 0 before the first
	rest        *backoff.ExponentialBackOff
	restUntil   time.Time // after a failure: others are preferred until then
	barredUntil time.Time // it asked (Retry-After) to be left alone until then
}

func newEndpoint(n Node, c Config) (*endpoint, error) {
	u, err := checkURL(n.URL)
	if err != nil {
		return nil, err
	}
	s := u
	if n.SolidityURL != "" {
		if s, err = checkURL(n.SolidityURL); err != nil {
			return nil, err
		}
	}
	client := *c.HTTPClient
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &endpoint{
		host:    u.Host,
		secrets: append(append(secretsOf(u), secretsOf(s)...), secret(n.APIKey)...),
		urls:    map[side]string{full: strings.TrimRight(u.String(), "/") + string(full), solidified: strings.TrimRight(s.String(), "/") + string(solidified)},
		apiKey:  n.APIKey,
		client:  &client,
		timeout: c.Timeout,
		limit:   c.MaxResponse,
		slots:   make(chan struct{}, c.Concurrency),
		rest:    backoff.NewExponentialBackOff(),
	}, nil
}

// secretsOf lists what of a URL must never appear in a message: providers put keys into user info and path.
func secretsOf(u *url.URL) []string {
	parts := strings.Split(u.Path, "/")
	if u.User != nil {
		password, _ := u.User.Password()
		parts = append(parts, u.User.Username(), password)
	}
	var out []string
	for _, p := range parts {
		out = append(out, secret(p)...)
	}
	return out
}

func secret(s string) []string {
	if len(s) < 8 { // shorter words are names such as "v1" or "tron"
		return nil
	}
	return []string{s, url.PathEscape(s), url.QueryEscape(s)}
}

// clean makes a node's words fit for an error: short, on one line, without this endpoint's secrets.
func (e *endpoint) clean(s string) string {
	for _, secret := range e.secrets {
		s = strings.ReplaceAll(s, secret, "…")
	}
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "?")), " ")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}

// post makes one request and decodes the answer into v. It reports whether there was anything in it: a node answers {}
// for what it does not have. An error is a *failure or that of the context.
func (e *endpoint) post(ctx context.Context, s side, method string, request, v any) (found bool, err error) {
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return false, ctx.Err()
	}
	body, err := e.exchange(ctx, s, method, request)
	if err != nil {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}
		return false, err
	}
	if bytes.Equal(body, []byte("{}")) {
		return false, nil
	}
	if err := e.refused(method, body); err != nil {
		return false, err
	}
	if err := json.Unmarshal(body, v); err != nil {
		return false, e.garbled("%s answered something that does not fit: %s", method, e.clean(err.Error()))
	}
	return true, nil
}

// exchange sends a request and returns the body of a good answer.
func (e *endpoint) exchange(ctx context.Context, s side, method string, request any) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, e.timeout)
	defer cancel()
	content, err := json.Marshal(request)
	if err != nil {
		return nil, e.garbled("%s: the request does not encode: %v", method, err)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.urls[s]+method, bytes.NewReader(content))
	if err != nil {
		return nil, e.failure(unreachable, "%s: the request cannot be made", method)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")
	if e.apiKey != "" {
		r.Header.Set("TRON-PRO-API-KEY", e.apiKey)
	}
	answer, err := e.client.Do(r)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err // its text holds the whole URL
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return nil, e.failure(unreachable, "%s: no answer within %s", method, e.timeout)
		}
		return nil, e.failure(unreachable, "%s: %s", method, e.clean(err.Error()))
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, e.limit+1))
	switch {
	case answer.StatusCode != http.StatusOK:
		return nil, e.status(method, answer, body)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, e.failure(unreachable, "%s: no whole answer within %s", method, e.timeout)
	case err != nil:
		return nil, e.garbled("%s: the answer broke off: %s", method, e.clean(err.Error()))
	case int64(len(body)) > e.limit:
		return nil, e.garbled("%s answered more than %d bytes", method, e.limit)
	}
	return bytes.TrimSpace(body), nil
}

// status turns an HTTP status into a failure, and hears Retry-After. TronGrid answers 429, and 403 while it holds a key
// back for asking too often.
func (e *endpoint) status(method string, answer *http.Response, body []byte) error {
	kind := unreachable
	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusForbidden, http.StatusServiceUnavailable:
		kind = throttled
		if s, err := strconv.Atoi(answer.Header.Get("Retry-After")); err == nil && s > 0 {
			e.bar(time.Duration(min(s, 3600)) * time.Second)
		}
	}
	return e.failure(kind, "%s: HTTP status %d %s", method, answer.StatusCode, e.clean(string(body)))
}

// overloaded is what java-tron's own rate limiter says; it has no code for it. Source: RateLimiterServlet, as the TRON
// documentation catalogues it (HTTP_RATE_LIMITED).
const overloaded = "lack of computing resources"

// refused reads an error that came with status 200: {"Error": "<class> : <message>"}.
func (e *endpoint) refused(method string, body []byte) error {
	if len(body) == 0 || body[0] != '{' {
		return nil
	}
	var answer struct {
		Error *string `json:"Error"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Error == nil {
		return nil // what does not fit is found where the answer is decoded
	}
	if strings.Contains(*answer.Error, overloaded) {
		return e.failure(throttled, "%s: %s", method, e.clean(*answer.Error))
	}
	return e.failure(refused, "%s: %s", method, e.clean(*answer.Error))
}

func (e *endpoint) failure(kind failureKind, format string, args ...any) *failure {
	return &failure{host: e.host, kind: kind, what: fmt.Sprintf(format, args...)}
}

func (e *endpoint) garbled(format string, args ...any) error {
	return e.failure(garbled, format, args...)
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

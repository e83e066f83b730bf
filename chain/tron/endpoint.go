package tron

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// service is one of a node's two HTTP services.
type service string

// The services: full serves the newest block, with the effects of the node's pool; solidified serves the
// newest solidified block.
const (
	full       service = "/wallet/"
	solidified service = "/walletsolidity/"
)

// refused is the failure kind of a node that answers with an error.
const refused failover.Kind = "refused"

// endpoint is one node.
type endpoint struct {
	failover.Node
	urls    map[service]string
	apiKey  string
	client  *http.Client
	timeout time.Duration
	limit   int64         // bytes of a response body
	slots   chan struct{} // requests in flight
	blocks  *blockCache   // that it showed
}

// newEndpoint returns the endpoint of a node. A URL of another form is fault.Invalid (config_invalid).
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

	e := &endpoint{
		Node: failover.Node{
			Host:    u.Host,
			Secrets: append(failover.SecretsOf(u, n.APIKey), failover.SecretsOf(s)...),
		},
		urls: map[service]string{
			full:       strings.TrimRight(u.String(), "/") + string(full),
			solidified: strings.TrimRight(s.String(), "/") + string(solidified),
		},
		apiKey:  n.APIKey,
		timeout: c.Timeout,
		limit:   c.MaxResponse,
		slots:   make(chan struct{}, c.Concurrency),
		blocks:  newBlockCache(blockCacheSize),
	}
	e.client = e.Throttled(c.HTTPClient, c.Timeout, isOverloaded)

	return e, nil
}

// post makes one request and decodes the answer into v. found is false for the answer {}, which nodes give
// for what they do not have. An error is a *failover.Failure or that of the context.
func (e *endpoint) post(
	ctx context.Context,
	s service,
	method string,
	request, v any,
) (found bool, err error) {
	select {
	case e.slots <- struct{}{}:
		defer func() { <-e.slots }()
	case <-ctx.Done():
		return false, ctx.Err()
	}

	body, err := e.do(ctx, s, method, request)
	if err != nil {
		if ctx.Err() != nil {
			return false, ctx.Err()
		}

		return false, err
	}

	if bytes.Equal(body, []byte("{}")) {
		return false, nil
	}

	if err := e.nodeError(method, body); err != nil {
		return false, err
	}

	if err := json.Unmarshal(body, v); err != nil {
		return false, e.Garbled("%s answered something that does not fit: %s", method, e.Clean(err.Error()))
	}

	return true, nil
}

// do sends a request and returns the body of an answer with status 200.
func (e *endpoint) do(ctx context.Context, s service, method string, request any) ([]byte, error) {
	content, err := json.Marshal(request)
	if err != nil {
		return nil, e.Garbled("%s: the request does not encode: %v", method, err)
	}

	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.urls[s]+method, bytes.NewReader(content))
	if err != nil {
		return nil, e.Fail(failover.Unreachable, "%s: the request cannot be made", method)
	}

	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json")

	if e.apiKey != "" {
		r.Header.Set("TRON-PRO-API-KEY", e.apiKey)
	}

	answer, err := e.client.Do(r)
	if err != nil {
		return nil, e.Fail(failover.Unreachable, "%s: %s", method, e.Describe(err, e.timeout))
	}
	defer answer.Body.Close()

	body, err := io.ReadAll(io.LimitReader(answer.Body, e.limit+1))
	switch {
	case answer.StatusCode != http.StatusOK:
		return nil, e.httpError(method, answer, body)
	case errors.Is(err, context.DeadlineExceeded):
		return nil, e.Fail(failover.Unreachable, "%s: no whole answer within %s", method, e.timeout)
	case err != nil:
		return nil, e.Garbled("%s: the answer broke off: %s", method, e.Clean(err.Error()))
	case int64(len(body)) > e.limit:
		return nil, e.Fail(tooLarge, "%s answered more than %d bytes", method, e.limit)
	}

	return bytes.TrimSpace(body), nil
}

// tooLarge is the kind of an answer above Config.MaxResponse: a smaller question may do.
const tooLarge failover.Kind = "too large"

// httpError returns the failure for an HTTP status. TronGrid answers 429, and 403 while it blocks a key for too many
// requests.
func (e *endpoint) httpError(method string, answer *http.Response, body []byte) error {
	kind := failover.Unreachable

	switch answer.StatusCode {
	case http.StatusTooManyRequests, http.StatusForbidden, http.StatusServiceUnavailable:
		kind = failover.Throttled
	}

	return e.Fail(kind, "%s: HTTP status %d %s", method, answer.StatusCode, e.Clean(string(body)))
}

// overloadedMessage is the message of java-tron's rate limiter, which has no code. Source: java-tron,
// RateLimiterServlet; TRON documentation, HTTP_RATE_LIMITED.
const overloadedMessage = "lack of computing resources"

// isOverloaded reports whether an answer is that of java-tron's rate limiter.
func isOverloaded(body []byte) bool {
	return bytes.HasPrefix(body, []byte(`{"Error"`)) && bytes.Contains(body, []byte(overloadedMessage))
}

// nodeError returns the error in an answer with status 200: {"Error": "<class> : <message>"}.
func (e *endpoint) nodeError(method string, body []byte) error {
	if len(body) == 0 || body[0] != '{' {
		return nil
	}

	var answer struct {
		Error *string `json:"Error"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || answer.Error == nil {
		return nil // other forms fail where the answer is decoded
	}

	if strings.Contains(*answer.Error, overloadedMessage) {
		return e.Fail(failover.Throttled, "%s: %s", method, e.Clean(*answer.Error))
	}

	return e.Fail(refused, "%s: %s", method, e.Clean(*answer.Error))
}

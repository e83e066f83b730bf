package failover_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// A JSON-RPC error in a body is the node's answer with the statuses that are of a call, and with no others.
func TestRefusalIsAnAnswer(t *testing.T) {
	const refusal = `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"not available on your plan"}}`

	for _, c := range []struct {
		name     string
		statuses []int
		body     string
		header   http.Header
		answer   bool
	}{
		{name: "one call's", statuses: []int{400, 403, 404, 405, 500, 501}, body: refusal, answer: true},
		{
			name:     "of a batch",
			statuses: []int{400, 403, 404, 405, 500, 501},
			body:     `[{"id":1,"result":"0x1"},` + refusal + `]`,
			answer:   true,
		},
		{name: "another status", statuses: []int{301, 401, 402, 410, 429, 502, 503, 504}, body: refusal},
		{name: "a page", statuses: []int{403, 404, 500}, body: "<html>Forbidden</html>"},
		{name: "nothing", statuses: []int{403, 404, 500}},
		{name: "results alone", statuses: []int{403}, body: `[{"id":1,"result":"0x1"}]`},
		{name: "a word", statuses: []int{403, 500}, body: `{"error":"forbidden"}`},
		{name: "without a code", statuses: []int{403, 500}, body: `{"error":{"message":"forbidden"}}`},
		{name: "too long", statuses: []int{403}, body: strings.Repeat(" ", 1000) + refusal},
		{
			name:     "later",
			statuses: []int{403},
			body:     `{"error":{"code":-32600,"message":"too many requests, try again in 5s"}}`,
		},
		{name: "later, in a header", statuses: []int{403}, body: refusal, header: http.Header{"Retry-After": {"5"}}},
	} {
		for _, status := range c.statuses {
			answer := &http.Response{
				StatusCode: status,
				Header:     c.header,
				Body:       io.NopCloser(strings.NewReader(c.body)),
			}
			failover.AcceptRefusal(answer, 500)

			if got := answer.StatusCode == http.StatusOK; got != c.answer {
				t.Errorf("%s, status %d: an answer %t", c.name, status, got)
			}

			if body, err := io.ReadAll(answer.Body); err != nil || string(body) != c.body {
				t.Errorf("%s, status %d: the body is %q, %v", c.name, status, body, err)
			}
		}
	}
}

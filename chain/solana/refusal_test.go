package solana

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// A refusal counts with whatever HTTP status a provider sends it; a status without one is of the node.
func TestRefusalsCountWithTheirHTTPStatus(t *testing.T) {
	const refusal = `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"not on your plan"}}`

	for _, c := range []struct {
		status  int
		body    string
		refused bool
	}{
		{200, refusal, true},
		{403, refusal, true},
		{404, refusal, true},
		{500, refusal, true},
		{403, "forbidden", false},
		{401, refusal, false},
		{502, refusal, false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
		}))

		node, err := newEndpoint(server.URL, Config{
			HTTPClient:  server.Client(),
			Timeout:     10 * time.Second,
			MaxResponse: 1 << 20,
			Concurrency: 1,
		})
		if err != nil {
			t.Fatal(err)
		}

		_, err = node.callOnce(t.Context(), "getTokenAccountsByOwner", nil)
		if got := failover.RefusedWith(err, codeMethodUnknown); got != c.refused {
			t.Errorf("status %d, %s: %v", c.status, c.body, err)
		}

		server.Close()
	}
}

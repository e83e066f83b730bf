package evm_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/fault"
)

// announcingNode plays a node over a WebSocket: it answers each request with a line.
func announcingNode(t *testing.T, answers ...string) string {
	t.Helper()

	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := (&websocket.Upgrader{}).Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()

		if _, _, err := conn.ReadMessage(); err != nil {
			return
		}

		for _, answer := range answers {
			if err := conn.WriteMessage(websocket.TextMessage, []byte(answer)); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)

	return "ws" + strings.TrimPrefix(server.URL, "http") + "/v3/topsecretkey"
}

// What a node says in an announcement is not believed: any notification is one. A subscription that ends or is
// refused has another error, and none shows the key of the URL.
func TestSubscriptionEnds(t *testing.T) {
	const (
		accepted = `{"jsonrpc":"2.0","id":1,"result":"0x1"}`
		garbled  = `{"jsonrpc":"2.0","method":"eth_subscription","params":{"subscription":"0x1","result":[7]}}`
		refused  = `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no topsecretkey"}}`
	)

	for name, c := range map[string]struct {
		answers []string
		heads   int
		kind    error
	}{
		"ended at once":  {nil, 0, fault.Unavailable},
		"ended later":    {[]string{accepted, garbled, garbled}, 2, fault.Unavailable},
		"not known":      {[]string{refused}, 0, fault.Unsupported},
		"no JSON at all": {[]string{"topsecretkey"}, 0, fault.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			driver, err := evm.New(evm.Config{
				Network:   evm.Local(1),
				RPC:       "http://127.0.0.1:1",
				WebSocket: announcingNode(t, c.answers...),
				Timeout:   time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}

			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()

			heads := 0

			err = driver.(chain.HeadNotifier).NotifyHeads(ctx, func() { heads++ })
			if !errors.Is(err, c.kind) || strings.Contains(err.Error(), "topsecretkey") {
				t.Errorf("the subscription ended with %v", err)
			}

			if heads > c.heads {
				t.Errorf("%d blocks were announced, not %d", heads, c.heads)
			}
		})
	}
}

func TestWebSocketURLIsChecked(t *testing.T) {
	for _, url := range []string{"http://127.0.0.1:1/topsecretkey", "ws://", "topsecretkey", "ws://%zz/topsecretkey"} {
		_, err := evm.New(evm.Config{Network: evm.Local(1), RPC: "http://127.0.0.1:1", WebSocket: url})
		if !errors.Is(err, fault.Invalid) || strings.Contains(err.Error(), "topsecretkey") {
			t.Errorf("%q was answered %v", url, err)
		}
	}

	driver, err := evm.New(evm.Config{Network: evm.Local(1), RPC: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}

	if _, ok := driver.(chain.HeadNotifier); ok {
		t.Error("a driver without a WebSocket URL says that blocks are announced")
	}
}

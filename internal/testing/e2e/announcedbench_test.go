package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/store/sqlite"
	"github.com/seed-8ee7f392/payments/webhook"
)

// BenchmarkMinedToWebhook is the time from a block of anvil to invoice.paid at the receiver, on a network with 12 s
// between blocks and one confirmation, over SQLite: with a node that announces its blocks, and without.
func BenchmarkMinedToWebhook(b *testing.B) {
	node := testenv.Anvil(b, testenv.AnvilOptions{Args: []string{"--no-mining"}})

	for _, c := range []struct{ name, webSocket string }{{"polled", ""}, {"announced", node.WebSocketURL}} {
		b.Run(c.name, func(b *testing.B) {
			shop := newTimedShop(b, node, c.webSocket)

			var took []time.Duration

			for b.Loop() {
				took = append(took, shop.sell())
			}

			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Milliseconds()), "p50-ms")
			b.ReportMetric(float64(took[len(took)*99/100].Milliseconds()), "p99-ms")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// timedShop is a service with one merchant, whose receiver notes which invoices are paid.
type timedShop struct {
	b      *testing.B
	engine *payments.Engine
	node   *rpc.Client
	owner  event.Owner
	paid   chan string
}

func newTimedShop(b *testing.B, node *testenv.AnvilNode, webSocket string) *timedShop {
	b.Helper()

	s := &timedShop{b: b, paid: make(chan string, 16)}

	network := evm.Local(node.ChainID)
	network.BlockTime, network.Confirmations = 12*time.Second, 1

	driver, err := evm.New(evm.Config{Network: network, RPC: node.URL, WebSocket: webSocket})
	s.must(err)

	s.node, err = rpc.DialContext(b.Context(), node.URL)
	s.must(err)
	b.Cleanup(s.node.Close)

	s.open(driver)

	made, err := s.engine.Accounts.CreateAccount(b.Context(), account.Settings{Name: "Corner Shop"})
	s.must(err)

	s.owner.AccountID = made.ID

	receiver := httptest.NewServer(http.HandlerFunc(s.receive))
	b.Cleanup(receiver.Close)

	_, _, err = s.engine.Webhooks.CreateEndpoint(b.Context(), webhook.EndpointParams{
		Owner:  s.owner,
		URL:    receiver.URL,
		Events: []event.Type{event.InvoicePaid},
	})
	s.must(err)

	return s
}

// open runs the service until the benchmark ends.
func (s *timedShop) open(driver chain.Driver) {
	s.b.Helper()

	st, err := sqlite.Open(filepath.Join(s.b.TempDir(), "payments.db"))
	s.must(err)

	keys, err := hdkey.New(mnemonic, "")
	s.must(err)

	prices, err := rate.NewFixed(map[string]string{"ETH/USD": "2500"}, time.Hour, nil)
	s.must(err)

	s.engine, err = payments.New(payments.Config{
		Store:        st,
		Drivers:      []payments.ChainDriver{driver},
		Signer:       keys,
		Rates:        prices,
		BaseURL:      "http://127.0.0.1",
		SecretKey:    bytes.Repeat([]byte{7}, 32),
		WebhookAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Log:          slog.New(slog.DiscardHandler),
	})
	s.must(err)

	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)

	go func() { done <- s.engine.Run(ctx) }()

	s.b.Cleanup(func() {
		cancel()
		s.must(<-done)
		s.must(st.Close())
	})
}

func (s *timedShop) receive(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}

	var n struct {
		Data struct{ Object struct{ ID string } }
	}
	if json.Unmarshal(body, &n) == nil {
		s.paid <- n.Data.Object.ID
	}
}

// sell has an invoice paid in a block, and returns how long after it the receiver knows.
func (s *timedShop) sell() time.Duration {
	s.b.Helper()

	inv, err := s.engine.Invoices.Create(s.b.Context(), invoice.CreateParams{
		Owner:   s.owner,
		Options: []invoice.OptionParams{{Asset: "ETH", Network: "local", Amount: chain.Pow10(15)}},
	})
	s.must(err)

	s.must(s.node.CallContext(s.b.Context(), nil, "eth_sendTransaction", map[string]any{
		"from":  testenv.WellKnownDevAccounts[1].Address,
		"to":    inv.Options[0].Address,
		"value": (*hexutil.Big)(inv.Options[0].AmountDue.Big()),
		"gas":   hexutil.Uint64(21000),
	}))
	s.must(s.node.CallContext(s.b.Context(), nil, "evm_mine"))

	mined := time.Now()
	limit := time.After(patience)

	for {
		select {
		case id := <-s.paid:
			if id == inv.ID {
				return time.Since(mined)
			}
		case <-limit:
			s.b.Fatalf("invoice %s was not paid", inv.ID)
		}
	}
}

func (s *timedShop) must(err error) {
	s.b.Helper()

	if err != nil {
		s.b.Fatal(err)
	}
}

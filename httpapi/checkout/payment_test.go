//go:build unix

package checkout_test

// A payer in a real browser, over the real engine: what the page shows is what is sent, and the
// page becomes paid while it is looked at.

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/evm"
	"github.com/seed-8ee7f392/payments/httpapi/checkout"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/internal/testing/testenv"
	"github.com/seed-8ee7f392/payments/invoice"
)

// wallet is the payer's: it sends from outside, and lets the network go on by a block.
type wallet interface {
	// send transfers an amount and returns the transaction's hash; one that fails moves nothing and
	// is in a block.
	send(ctx context.Context, to chain.Address, amount chain.Amount) (string, error)
	sendFailing(ctx context.Context, to chain.Address, amount chain.Amount) (string, error)
	mine(ctx context.Context) error
	balance(ctx context.Context, of chain.Address) (chain.Amount, error)
}

// payInABrowser chooses an asset on the page, sends by a wallet what the page asks for, and sees
// the page through.
func payInABrowser(t *testing.T, s *shop, w wallet, asset chain.Asset) {
	t.Helper()

	id := s.order("49.90")
	s.mux.HandleFunc("POST /control/{what}", func(rw http.ResponseWriter, r *http.Request) {
		var shown struct{ Address, Amount string } // as they are on the page
		if err := json.NewDecoder(r.Body).Decode(&shown); err != nil && err != io.EOF {
			http.Error(rw, err.Error(), http.StatusBadRequest)
			return
		}

		answer, err := control(
			r.Context(), w, r.PathValue("what"), chain.Address(shown.Address), shown.Amount,
			asset.Decimals,
		)
		if err != nil {
			t.Errorf("%s: %v", r.PathValue("what"), err)
			http.Error(rw, err.Error(), http.StatusInternalServerError)

			return
		}

		s.engine.Wake()

		_, _ = io.WriteString(rw, answer)
	})
	checkout.Browse(
		t, s.server, "pay",
		map[string]any{"path": s.path(id), "asset": asset.Symbol, "name": asset.Name},
	)

	inv, err := s.engine.Invoices.GetByID(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}

	if inv.Status != invoice.Paid || len(inv.Flags) > 0 {
		t.Fatalf("the invoice is %s %v", inv.Status, inv.Flags)
	}

	o := inv.Option(inv.PaidOptionID)
	if got, err := w.balance(
		t.Context(), o.Address,
	); err != nil || got != o.AmountDue ||
		o.Asset != asset.Symbol {
		t.Errorf("%s of %s were due, the network says that %s arrived (%v)", o.AmountDue, o.Asset, got, err)
	}
}

func control(
	ctx context.Context,
	w wallet,
	what string,
	to chain.Address,
	amount string,
	decimals uint8,
) (string, error) {
	if what == "mine" {
		return "", w.mine(ctx)
	}

	d, err := decimal.NewFromString(amount)
	if err != nil {
		return "", err
	}
	// Amounts on the page are exact, so there is nothing to round down.
	v, err := chaindata.AmountFromDecimalFloor(d, decimals)
	if err != nil {
		return "", err
	}

	switch what {
	case "pay":
		return w.send(ctx, to, v)
	case "fail":
		return w.sendFailing(ctx, to, v)
	}

	return "", fmt.Errorf("no such control: %s", what)
}

func TestPayInABrowserOnASimulatedNetwork(t *testing.T) {
	network := sim.New(sim.Config{})
	asset, _ := network.Network().Asset("USDX")
	payInABrowser(t, openShop(t, network, nil), simWallet{network, asset.Symbol}, asset)
}

type simWallet struct {
	network *sim.Chain
	asset   string
}

func (w simWallet) send(_ context.Context, to chain.Address, amount chain.Amount) (string, error) {
	return w.network.Pay(to, w.asset, amount), nil
}

func (w simWallet) sendFailing(_ context.Context, to chain.Address, amount chain.Amount) (string, error) {
	hash := w.network.PayFailing(to, w.asset, amount)
	w.network.Mine(1)

	return hash, nil
}

func (w simWallet) mine(context.Context) error {
	w.network.Mine(1)
	return nil
}

func (w simWallet) balance(_ context.Context, of chain.Address) (chain.Amount, error) {
	return w.network.Balance(of, w.asset), nil
}

func TestPayInABrowserOnAnvil(t *testing.T) {
	node := testenv.Anvil(t, testenv.AnvilOptions{Args: []string{"--no-mining"}})
	w, token := newTokenWallet(t, node.URL)
	// A connection that the driver keeps open would be taken for a leak.
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

	driver, err := evm.New(
		evm.Config{Network: evm.Local(node.ChainID, token), RPC: node.URL, HTTPClient: client},
	)
	if err != nil {
		t.Fatal(err)
	}

	payInABrowser(t, openShop(t, driver, nil), w, token)
}

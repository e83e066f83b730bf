//go:build unix

package solana_test

import (
	"testing"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
)

// TestRequestURI writes the parameters of the example of Solana Pay's specification.
func TestRequestURI(t *testing.T) {
	d, err := solana.New(solana.Config{Network: solana.Mainnet, RPC: "http://127.0.0.1:1"})
	must(t, err)

	const to = chain.Address("mvines9iiHiQTysrwkJjGf2gb9Ex9jXJX8ns3qwf2kN")

	one := chain.Units(sol)
	plain := "solana:" + string(to) + "?amount=1"
	said := chain.PaymentRequest{Label: "Michael", Message: "Thanks for all the fish"}

	for _, c := range []struct {
		request chain.PaymentRequest
		want    string
	}{
		{chain.PaymentRequest{}, plain},
		{said, plain + "&label=Michael&message=Thanks%20for%20all%20the%20fish"},
		{chain.PaymentRequest{Message: "a+b&amount=2#ü"}, plain + "&message=a%2Bb%26amount%3D2%23%C3%BC"},
		{chain.PaymentRequest{ID: "inv_1"}, plain}, // some wallets refuse a reference
	} {
		if got := d.(chain.RequestURIBuilder).RequestURI(
			to,
			d.Network().Assets[0],
			one,
			c.request,
		); got != c.want {
			t.Errorf("the URI is %s, want %s", got, c.want)
		}
	}

	named, err := solana.New(
		solana.Config{Network: solana.Mainnet, RPC: "http://127.0.0.1:1", Reference: true},
	)
	must(t, err)

	want := plain + "&reference=" + string(solana.Reference("inv_1"))
	if got := named.(chain.RequestURIBuilder).RequestURI(
		to, named.Network().Assets[0], one, chain.PaymentRequest{ID: "inv_1"},
	); got != want {
		t.Errorf("the URI with a reference is %s, want %s", got, want)
	}

	if _, err := d.ParseAddress(string(solana.Reference("inv_1"))); err != nil {
		t.Errorf("the reference is no key: %v", err)
	}

	if solana.Reference("inv_1") == solana.Reference("inv_2") {
		t.Error("two requests have one reference")
	}
}

// TestReferenceFindsThePayment pays requests with web3.js. One query of the reference lists the payment of its
// request alone. It counts like one that names no reference.
func TestReferenceFindsThePayment(t *testing.T) {
	n := startNode(t, solanago.TokenProgramID)
	d := n.driver(t, func(c *solana.Config) { c.Reference = true })
	assets := []chain.Asset{d.Network().Assets[0], d.Network().Assets[1]}
	follows := map[string]*followed{}
	to := newAddress(t)

	for way, driver := range ways {
		follows[way] = newFollowed(t, driver(t, n), to)
		follows[way].steps(2)
	}

	for _, asset := range assets {
		request := chain.PaymentRequest{
			ID:      "inv_" + asset.Symbol,
			Label:   "Nuts & bolts",
			Message: "rope, 2 m",
		}
		uri := d.RequestURI(to, asset, chain.Units(5_000_000), request)

		var paid struct{ Signature, Label, Message string }
		runWallet(t, map[string]any{
			"do":       "payURI",
			"url":      n.URL,
			"secret":   n.authority.String(),
			"program":  "token",
			"decimals": asset.Decimals,
			"uri":      uri,
		}, &paid)

		if paid.Label != request.Label || paid.Message != request.Message {
			t.Errorf("the wallet shows %q and %q", paid.Label, paid.Message)
		}

		without := n.pay(t, to, asset, 6_000_000)
		must(t, n.SolanaNode.Mine(3))

		var found []struct{ Signature string }
		must(t, n.Call(
			&found,
			"getSignaturesForAddress",
			solana.Reference(request.ID),
			map[string]any{"commitment": "confirmed"},
		))

		if len(found) != 1 || found[0].Signature != paid.Signature {
			t.Errorf("the reference of %s finds %+v, want %s alone", asset.Symbol, found, paid.Signature)
		}

		for way, f := range follows {
			f.steps(10)
			f.wants(to, paid.Signature, without)

			if got := f.seen[paid.Signature+"/"+string(to)].Amount; got != chain.Units(5_000_000) {
				t.Errorf("%s: %s of %s arrived", way, got, asset.Symbol)
			}
		}
	}
}

package checkout

import (
	"net/url"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/chain"
	solanadriver "github.com/seed-8ee7f392/payments/chain/solana"
)

// A wallet shows who is paid for what, in as many characters as a QR code can hold, and names the invoice's reference.
func TestTheURINamesMerchantAndInvoice(t *testing.T) {
	driver, err := solanadriver.New(solanadriver.Config{
		Network: solanadriver.Mainnet,
		RPC:     "http://127.0.0.1:1",

		Reference: true,
	})
	if err != nil {
		t.Fatal(err)
	}

	sol := driver.Network().Assets[0]

	f := snapshot{Merchant: merchant{Name: "Morning Roast"}}
	f.Invoice.ID, f.Invoice.Description = "inv_1", strings.Repeat("ü", maxRequestText+1)

	uri, err := url.Parse(f.paymentURI(driver, solAddress, sol, chain.Units(1)))
	if err != nil {
		t.Fatal(err)
	}

	for name, want := range map[string]string{
		"amount":    "0.000000001",
		"label":     "Morning Roast",
		"message":   strings.Repeat("ü", maxRequestText-1) + "…",
		"reference": string(solanadriver.Reference("inv_1")),
	} {
		if got := uri.Query().Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}

	plain := uriDriver{plainDriver{}, "coin"}
	if got := f.paymentURI(plain, "a", sol, chain.Units(1)); got != "coin:a?amount=0.000000001" {
		t.Errorf("the URI of a network without requests is %q", got)
	}

	if got := f.paymentURI(plainDriver{}, "a", sol, chain.Units(1)); got != "" {
		t.Errorf("the URI of a network without URIs is %q", got)
	}
}

//go:build unix

package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
)

// TestSolanaPayoutsBehindUnevenBackends pays through one URL with a backend that is two blocks behind: no payout waits
// for its check for long, and each arrives.
func TestSolanaPayoutsBehindUnevenBackends(t *testing.T) {
	t.Parallel()

	shop := openSolanaShop(t, func(c solana.Config) (payments.ChainDriver, error) {
		uneven := `{"jsonrpc":"2.0","id":1,"method":"svm_backends","params":[[0,2]]}`

		answer, err := http.Post(c.RPC, "application/json", strings.NewReader(uneven))
		if err != nil {
			return nil, err
		}

		c.RPC += "/balanced"

		if err := answer.Body.Close(); err != nil {
			return nil, err
		}

		return solana.New(c)
	})

	shop.p.tokens(shop.usdc, shop.master, chain.Units(9_000_000), "legacy")

	payouts, key := shop.askPayouts(6)
	for _, one := range payouts {
		shop.service.sent(key, "/v1/payouts/"+one.id, "confirmed")

		if got := shop.arrived(one); got != chain.Units(one.amount) {
			t.Errorf("%s arrived of a payout of %d %s", got, one.amount, one.asset)
		}
	}
}

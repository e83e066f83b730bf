//go:build unix

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
)

// nonced is a driver with nonce accounts that are opened later, and which loses the answers to its first broadcasts.
type nonced struct {
	crashing
	chain.DurableNonces

	accounts atomic.Pointer[[]chain.Address]
	mu       sync.Mutex
	sent     map[string]*chain.DurableNonce // by hash
}

func (d *nonced) NonceAccounts(chain.Address) []chain.Address {
	if accounts := d.accounts.Load(); accounts != nil {
		return *accounts
	}

	return nil
}

func (d *nonced) Broadcast(ctx context.Context, tx chain.Signed) error {
	d.mu.Lock()
	d.sent[tx.TxHash] = tx.DurableNonce
	d.mu.Unlock()

	return d.crashing.Broadcast(ctx, tx)
}

// TestSolanaNonces pays coin and tokens with a pool of two nonce accounts, one more that does not exist and answers
// that are lost: each payout arrives once, at a nonce of its own, and Health names the account that is none.
func TestSolanaNonces(t *testing.T) {
	d := &nonced{sent: map[string]*chain.DurableNonce{}}
	shop := openSolanaShop(t, func(c solana.Config) (payments.ChainDriver, error) {
		driver, err := solana.New(c)
		if err == nil {
			d.solanaDriver = driver.(solanaDriver)
			d.Recoverer, d.Decoder = driver.(chain.Recoverer), driver.(chain.Decoder)
			d.DurableNonces = driver.(chain.DurableNonces)
		}

		return d, err
	})
	s, p := shop.service, shop.p

	var pool []chain.Address
	for range 2 {
		opened := p.wallet(map[string]any{"do": "nonce", "to": shop.master})
		pool = append(pool, chain.Address(opened["account"]))
	}

	eventually(t, "the nonce accounts are final", func() (bool, string) {
		read, err := d.ReadNonces(t.Context(), shop.master, pool)
		return err == nil && read[0].Unusable == "" && read[1].Unusable == "", fmt.Sprint(read, err)
	})

	none := p.freshAddress()
	accounts := append(slices.Clone(pool), none)
	d.accounts.Store(&accounts)
	p.tokens(shop.usdc, shop.master, chain.Units(9_000_000), "legacy")

	d.lost.Store(3)

	type asked struct {
		id, to, asset string
		amount        uint64
	}

	var payouts []asked

	for n := range 6 {
		one := asked{to: string(p.freshAddress()), asset: "SOL", amount: uint64(2_000_000 + n)}
		if n%2 == 1 {
			one.asset, one.amount = "USDC", uint64(1_000_000+n)
		}

		one.id = s.pay(s.key, "/v1/payouts", fmt.Sprint("nonce", n), map[string]string{
			"network":     shop.slug,
			"asset":       one.asset,
			"amount":      fmt.Sprint(one.amount),
			"destination": one.to,
		})
		payouts = append(payouts, one)
	}

	used := map[string]string{}

	for _, one := range payouts {
		hash := s.sent(s.key, "/v1/payouts/"+one.id, "confirmed")

		d.mu.Lock()
		nonce := d.sent[hash]
		d.mu.Unlock()

		if nonce == nil || !slices.Contains(pool, nonce.Account) {
			t.Errorf("payout of %d %s was paid with %+v", one.amount, one.asset, nonce)
			continue
		}

		key := nonce.Spend().Key()
		if used[key] != "" {
			t.Errorf("nonce %s was used for %s and %s", key, used[key], one.id)
		}

		used[key] = one.id

		got := p.balance(chain.Address(one.to))
		if one.asset == "USDC" {
			got, _ = p.tokenBalance(shop.usdc, chain.Address(one.to))
		}

		if got != chain.Units(one.amount) {
			t.Errorf("%s arrived of a payout of %d %s", got, one.amount, one.asset)
		}
	}

	report, err := s.engine.Health(t.Context())
	p.must(err)

	if len(report.Wallets) != 1 || !strings.Contains(report.Wallets[0].Reason, string(none)) ||
		!report.NeedsPerson() {
		t.Errorf("Health names %+v, want %s", report.Wallets, none)
	}
}

//go:build unix

package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// nonced is a driver with nonce accounts that are opened later, and which loses the answers to its first broadcasts.
type nonced struct {
	crashing
	chain.DurableNonces

	accounts atomic.Pointer[[]chain.Address]
	cut      atomic.Bool // nothing is sent
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

	if d.cut.Load() {
		return errors.New("the node cannot be reached")
	}

	return d.crashing.Broadcast(ctx, tx)
}

// noncePayout is a payout of the scenario.
type noncePayout struct {
	id, to, asset string
	amount        uint64
}

// TestSolanaNonces pays coin and tokens with a pool of two nonce accounts, one more that does not exist and answers
// that are lost: each payout arrives once, at a nonce of its own, and Health names the account that is none.
func TestSolanaNonces(t *testing.T) {
	t.Parallel()

	d := &nonced{sent: map[string]*chain.DurableNonce{}}
	shop := openSolanaShop(t, d.open)
	s, p := shop.service, shop.p

	pool := shop.openNonces(d, 2)
	none := p.freshAddress()
	accounts := append(slices.Clone(pool), none)
	d.accounts.Store(&accounts)
	p.tokens(shop.usdc, shop.master, chain.Units(9_000_000), "legacy")

	d.lost.Store(3)

	payouts, key := shop.askPayouts(6)
	used := map[string]string{}

	for _, one := range payouts {
		hash := s.sent(key, "/v1/payouts/"+one.id, "confirmed")
		nonce := d.nonceOf(hash)

		if nonce == nil || !slices.Contains(pool, nonce.Account) {
			t.Errorf("payout of %d %s was paid with %+v", one.amount, one.asset, nonce)
			continue
		}

		spent := chaindata.SpendKey(chaindata.NonceSpend(*nonce))
		if used[spent] != "" {
			t.Errorf("nonce %s was used for %s and %s", spent, used[spent], one.id)
		}

		used[spent] = one.id

		if got := shop.arrived(one); got != chain.Units(one.amount) {
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

// open opens the driver of a configuration.
func (d *nonced) open(c solana.Config) (payments.ChainDriver, error) {
	driver, err := solana.New(c)
	if err == nil {
		d.solanaDriver = driver.(solanaDriver)
		d.Recoverer, d.Decoder = driver.(chain.Recoverer), driver.(chain.Decoder)
		d.DurableNonces = driver.(chain.DurableNonces)
	}

	return d, err
}

// nonceOf returns the durable nonce of a transaction that was sent; nil for one without.
func (d *nonced) nonceOf(hash string) *chain.DurableNonce {
	d.mu.Lock()
	defer d.mu.Unlock()

	return d.sent[hash]
}

// openNonces has the payer open nonce accounts of the master wallet, and waits until they are final.
func (shop solanaShop) openNonces(d *nonced, n int) (pool []chain.Address) {
	shop.t.Helper()

	for range n {
		opened := shop.p.wallet(map[string]any{"do": "nonce", "to": shop.master})
		pool = append(pool, chain.Address(opened["account"]))
	}

	eventually(shop.t, "the nonce accounts are final", func() (bool, string) {
		read, err := d.ReadNonces(shop.t.Context(), shop.master, pool)

		unusable := func(a chain.NonceAccount) bool { return a.Unusable != "" }

		return err == nil && !slices.ContainsFunc(read, unusable), fmt.Sprint(read, err)
	})

	return pool
}

// askPayouts asks for payouts, of coin and USDC in turns, each to an address of its own.
func (shop solanaShop) askPayouts(n int) (payouts []noncePayout, key string) {
	shop.t.Helper()

	var destinations []chain.Destination

	for i := range n {
		one := noncePayout{to: string(shop.p.freshAddress()), asset: "SOL", amount: uint64(2_000_000 + i)}
		if i%2 == 1 {
			one.asset, one.amount = "USDC", uint64(1_000_000+i)
		}

		payouts = append(payouts, one)
		destinations = append(destinations, chain.Destination{Address: chain.Address(one.to)})
	}

	_, key, err := shop.engine.Accounts.CreateKey(shop.t.Context(), account.KeyParams{
		AccountID:    shop.account.ID,
		Scopes:       account.AllScopes(),
		Destinations: destinations,
	})
	shop.p.must(err)

	for i := range payouts {
		one := &payouts[i]
		one.id = shop.pay(key, "/v1/payouts", fmt.Sprint("nonce", i), map[string]string{
			"network":     shop.slug,
			"asset":       one.asset,
			"amount":      fmt.Sprint(one.amount),
			"destination": one.to,
		})
	}

	return payouts, key
}

// arrived returns what the destination of a payout holds of its asset.
func (shop solanaShop) arrived(one noncePayout) chain.Amount {
	if one.asset == "USDC" {
		held, _ := shop.p.tokenBalance(shop.usdc, chain.Address(one.to))
		return held
	}

	return shop.p.balance(chain.Address(one.to))
}

//go:build unix

package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
)

// TestSolanaNonceUsedFromOutside has somebody with the master wallet's key use its nonce account after a payout was
// signed and before its bytes were sent. The wallet is frozen and Health names the transaction, the payout fails as a
// conflict and pays nobody, and the other one is paid once the transaction is acknowledged.
func TestSolanaNonceUsedFromOutside(t *testing.T) {
	t.Parallel()

	d := &nonced{sent: map[string]*chain.DurableNonce{}}
	shop := openSolanaShop(t, d.open)
	s, p := shop.service, shop.p

	pool := shop.openNonces(d, 1)
	d.accounts.Store(&pool)
	p.tokens(shop.usdc, shop.master, chain.Units(9_000_000), "legacy")
	d.cut.Store(true)

	payouts, key := shop.askPayouts(2)

	var stale *chain.DurableNonce

	eventually(t, "a payout is signed", func() (bool, string) {
		d.mu.Lock()
		defer d.mu.Unlock()

		for _, nonce := range d.sent {
			stale = nonce
		}

		return stale != nil, fmt.Sprint(d.sent)
	})

	outside := shop.useNonce(d, *stale)

	eventually(t, "Health names the transaction", func() (bool, string) {
		report, err := s.engine.Health(t.Context())
		p.must(err)

		named := len(report.Wallets) == 1 && report.Wallets[0].Frozen && report.Wallets[0].FrozenBy == outside

		return named && report.NeedsPerson(), fmt.Sprintf("%+v", report.Wallets)
	})

	d.cut.Store(false)

	lost, waiting := payouts[0], payouts[1]

	eventually(t, "the signed payout fails", func() (bool, string) {
		_, first := s.do("GET", "/v1/payouts/"+lost.id, key, "")
		if strings.Contains(string(first), `"conflict`) {
			return true, ""
		}

		lost, waiting = waiting, lost

		return false, string(first)
	})

	if _, b := s.do("GET", "/v1/payouts/"+waiting.id, key, ""); !strings.Contains(string(b), `"pending"`) {
		t.Errorf("while the wallet is frozen the other is %s", b)
	}

	eventually(t, "the transaction is acknowledged", func() (bool, string) {
		err := s.engine.Acknowledge(t.Context(), shop.slug, outside, payments.Foreign)
		return err == nil, fmt.Sprint(err)
	})

	s.sent(key, "/v1/payouts/"+waiting.id, "confirmed")

	if got := shop.arrived(waiting); got != chain.Units(waiting.amount) {
		t.Errorf("%s arrived of a payout of %d %s", got, waiting.amount, waiting.asset)
	}

	if got := shop.arrived(lost); !got.IsZero() {
		t.Errorf("%s arrived of the payout that failed", got)
	}
}

// useNonce includes a transaction at a durable nonce of the master wallet that is on no record, and returns its hash.
func (shop solanaShop) useNonce(d *nonced, nonce chain.DurableNonce) string {
	shop.t.Helper()

	from, err := internal.Of(shop.engine).Transactions.MasterWallet(
		shop.t.Context(), shop.slug, shop.account.Index,
	)
	shop.p.must(err)

	keys, err := hdkey.New(mnemonic, "")
	shop.p.must(err)

	network := d.Network()
	native, _ := network.Native()
	order := chain.Order{
		From:         from,
		DurableNonce: &nonce,
		MaxFee:       chain.Units(1_000_000),
		Outputs:      []chain.Output{{To: shop.feeTo, AssetID: native.ID, Amount: chain.Units(1_000_000)}},
	}

	unsigned, err := d.Build(shop.t.Context(), order)
	shop.p.must(err)

	signatures, err := keys.Sign(shop.t.Context(), chain.SignRequest{
		Network:  shop.slug,
		Unsigned: unsigned.Raw,
		Payloads: unsigned.Payloads,
	})
	shop.p.must(err)

	public, err := keys.PublicKey(shop.t.Context(), from.Key)
	shop.p.must(err)

	signed, err := d.Assemble(order, unsigned, []chain.PublicKey{public}, signatures)
	shop.p.must(err)
	shop.p.must(d.solanaDriver.Broadcast(shop.t.Context(), signed))

	return signed.TxHash
}

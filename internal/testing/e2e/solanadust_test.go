//go:build unix

package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/solana"
)

// dusted is a driver that has something happen before a transaction is sent.
type dusted struct {
	solanaDriver
	before atomic.Pointer[func(tx chain.Signed)]
}

// solanaDriver is what the driver can do.
type solanaDriver interface {
	chain.Driver
	chain.AddressScanner
	chain.AddressPoller
	chain.Agreed
	chain.Finder
	chain.Balancer
	chain.Deriver
	chain.TokenAccounter
	chain.URIBuilder
	chain.FeeEstimator
	chain.Sender
	chain.Sweeper
	chain.Checker
}

func (d *dusted) Broadcast(ctx context.Context, tx chain.Signed) error {
	if f := d.before.Load(); f != nil {
		(*f)(tx)
	}

	return d.solanaDriver.Broadcast(ctx, tx)
}

// TestSolanaDust has a stranger pay the least there is to a deposit address while the sweep that
// closes its account is on its way. That sweep fails on the real machine; the release goes on by
// itself, and the records agree with the node to the base unit.
func TestSolanaDust(t *testing.T) {
	t.Parallel()

	d := &dusted{}
	shop := openSolanaShop(t, func(c solana.Config) (payments.ChainDriver, error) {
		driver, err := solana.New(c)
		if err == nil {
			d.solanaDriver = driver.(solanaDriver)
		}

		return d, err
	})

	for _, native := range []bool{false, true} {
		name := map[bool]string{false: "tokens", true: "coin"}[native]
		t.Run(name, func(t *testing.T) {
			s, p := shop.in(t), shop.p.in(t)
			symbol := map[bool]string{false: "USDC", true: "SOL"}[native]
			inv := s.order("40", symbol, shop.slug)
			due, to := amount(t, inv.Options[0].AmountDue), inv.Options[0].Address
			sweeps, paid := make(chan chain.Signed), make(chan struct{})
			done := false // the outbox has one transaction of an address at a time
			before := func(tx chain.Signed) {
				if tx.From != to || done {
					return
				}

				done = true

				select {
				case sweeps <- tx:
					<-paid
				case <-t.Context().Done():
				}
			}

			d.before.Store(&before)
			defer d.before.Store(nil)

			coinBefore, tokensBefore := p.balance(shop.master), chain.Amount{}
			if native {
				p.native(to, due, "legacy")
			} else {
				tokensBefore, _ = p.tokenBalance(shop.usdc, shop.master)
				p.tokens(shop.usdc, to, due, "legacy")
			}

			var first chain.Signed
			select {
			case first = <-sweeps:
			case <-time.After(patience):
				t.Fatal("nothing was swept")
			}

			func() {
				defer close(paid)

				if native {
					p.native(to, chain.Units(1), "legacy")
					// The node would refuse it now; a leader that has it already does not.
					p.must(
						p.node.Call(
							nil, "sendTransaction", base64.StdEncoding.EncodeToString(first.Raw),
							map[string]any{"encoding": "base64", "skipPreflight": true},
						),
					)
				} else {
					p.tokens(shop.usdc, to, chain.Units(1), "legacy")
				}
			}()

			set := s.releasedOf(inv.ID, due)
			if set.SweepTx == first.TxHash {
				t.Fatal("the first sweep went through, so the test shows nothing")
			}

			if p.gain(first.TxHash, string(to)) > 0 {
				t.Error("the first sweep brought the deposit address something")
			}

			net, fee, network := amount(
				t, set.NetReleased,
			), amount(
				t, set.FeePaid,
			), amount(
				t, set.NetworkFees,
			)

			coin := p.balance(shop.master)
			if native {
				if got := coin.Sub(coinBefore); got != net {
					t.Errorf("the master wallet got %s, the API says %s", got, net)
				}
				// The rent minimum stays, of which the stranger brought one lamport.
				var least uint64
				p.must(p.node.Call(&least, "getMinimumBalanceForRentExemption", 0))

				if left := p.balance(to); left != chain.Units(least) {
					t.Errorf("%s are left at the deposit address, want the rent minimum of %d", left, least)
				}

				if want := net.Add(fee).Add(network).Add(chain.Units(least - 1)); due != want {
					t.Errorf("of %s, %s are accounted for", due, want)
				}

				return
			}

			if got, _ := p.tokenBalance(shop.usdc, shop.master); got.Sub(tokensBefore) != due || net != due {
				t.Errorf(
					"the master wallet got %s tokens of %s, the API says %s",
					got.Sub(tokensBefore), due, net,
				)
			}

			if left, opened := p.tokenBalance(shop.usdc, to); !opened || left != chain.Units(1) {
				t.Errorf("the deposit's token account is open: %v, and holds %s", opened, left)
			}

			if spent, want := coinBefore.Sub(coin), fee.Add(network); spent != want {
				t.Errorf("the master wallet spent %s; fee + network fees is %s", spent, want)
			}
		})
	}
}

// releasedOf waits until the payment of an amount is released; the dust beside it is held.
func (s *service) releasedOf(id string, gross chain.Amount) (set settlementView) {
	s.t.Helper()
	eventually(s.t, "the deposit is released", func() (bool, string) {
		list := s.payments(id)
		for _, p := range list {
			if p.Settlement != nil && p.Settlement.Gross == gross.String() {
				set = *p.Settlement
			}
		}

		if set.Status == "failed" {
			s.t.Fatalf("the release needs a person: %+v", set)
		}

		b, _ := json.Marshal(list)

		return set.Status == "released", string(b)
	})

	return set
}

//go:build unix

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/bitcoin"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/store"
)

// bitcoinStage is a service on a node, with what looks at both.
type bitcoinStage struct {
	*service
	node   harness
	feeTo  chain.Address
	master chain.Address
	slug   string
}

func stageBitcoin(t *testing.T, node harness) *bitcoinStage {
	t.Helper()

	driver, err := bitcoin.New(bitcoin.Config{Network: bitcoin.Regtest, RPC: node.url()})
	must(t, err)
	feeTo := node.address(t)
	s := &bitcoinStage{
		service: start(t, driver, feeTo),
		node:    node,
		feeTo:   chain.Address(feeTo),
		slug:    bitcoin.Regtest.Slug,
	}
	master, err := internal.Of(s.engine).Transactions.MasterWallet(t.Context(), s.slug, s.account.Index)
	must(t, err)

	s.master = master.Address

	return s
}

// mineUntil polls a condition and makes a block whenever nothing has happened for a while.
func (s *bitcoinStage) mineUntil(what string, ok func() (bool, string)) {
	s.t.Helper()

	polls := 0

	eventually(s.t, what, func() (bool, string) {
		done, state := ok()
		if polls++; !done && polls%10 == 0 {
			s.node.mine(s.t, 1)
		}

		return done, state
	})
}

func (s *bitcoinStage) at(t *testing.T) *bitcoinStage {
	c := *s
	c.service = s.service.in(t)

	return &c
}

// settled waits until all n payments of an invoice are released, making blocks meanwhile.
func (s *bitcoinStage) settled(id string, n int) (all []paymentView) {
	s.t.Helper()
	s.mineUntil(fmt.Sprintf("%d payments of invoice %s released", n, id), func() (bool, string) {
		all = s.payments(id)
		b, _ := json.Marshal(all)

		return len(all) == n &&
				!slices.ContainsFunc(
					all,
					func(p paymentView) bool { return p.Settlement == nil || p.Settlement.Status != "released" },
				), string(
				b,
			)
	})

	return all
}

// audited fails unless the records agree with the chain.
func (s *bitcoinStage) audited() {
	s.t.Helper()
	eventually(s.t, "a clean audit", func() (bool, string) {
		audit, err := s.engine.Audit(s.t.Context())
		if err != nil {
			return false, err.Error()
		}

		return audit.Clean(), fmt.Sprintf("%+v", audit.Networks)
	})
}

// balance is what the API shows of the master wallet.
func (s *bitcoinStage) balance() (available chain.Amount) {
	s.t.Helper()

	var page struct {
		Data []struct {
			Network   string `json:"network"`
			Available string `json:"available"`
		} `json:"data"`
	}
	s.call("GET", "/v1/balances", nil, &page)

	for _, b := range page.Data {
		if b.Network == s.slug {
			return amount(s.t, b.Available)
		}
	}

	return chain.Amount{}
}

// sendingKey makes a key that may pay to an address.
func (s *bitcoinStage) sendingKey(to ...string) string {
	s.t.Helper()

	var destinations []chain.Destination
	for _, address := range to {
		destinations = append(destinations, chain.Destination{Address: chain.Address(address)})
	}

	_, key, err := s.engine.Accounts.CreateKey(s.t.Context(), account.KeyParams{
		AccountID:    s.account.ID,
		Scopes:       account.AllScopes(),
		Destinations: destinations,
	})
	if err != nil {
		s.t.Fatal(err)
	}

	return key
}

// outgoing is a payout or refund as the API shows it.
type outgoing struct {
	ID          string `json:"id"`
	Status      string `json:"status"`
	TxHash      string `json:"tx_hash"`
	PayoutID    string `json:"payout_id"`
	NetworkFee  string `json:"network_fee"`
	FailureCode string `json:"failure_code"`
}

// send posts a payout or refund.
func (s *bitcoinStage) send(path, key string, body map[string]any) (o outgoing) {
	s.t.Helper()

	text, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
	}

	status, b := s.keyed("POST", path, key, string(text), fmt.Sprint(time.Now().UnixNano()))
	if status != 200 {
		s.t.Fatalf("POST %s answered %d: %s", path, status, b)
	}

	if err := json.Unmarshal(b, &o); err != nil {
		s.t.Fatal(err)
	}

	return o
}

// TestBitcoin plays the main job on both nodes and compares what the API says with the node, to the satoshi.
func TestBitcoin(t *testing.T) {
	t.Parallel()

	onBothNodes(t, playBitcoin)
}

func playBitcoin(t *testing.T, node harness) {
	s := stageBitcoin(t, node)

	// The wallet is watched from when its account was made.
	s.node.pay(t, s.master, chain.Units(50_000_000))
	s.mineUntil("the master wallet's balance", func() (bool, string) {
		v := s.balance()
		return v == chain.Units(50_000_000), v.String()
	})

	t.Run("two invoices, one sweep", func(t *testing.T) {
		s := s.at(t)
		masterBefore, feesBefore := s.node.holds(t, s.master), s.node.holds(t, s.feeTo)
		a, b := s.order("500", "BTC", s.slug), s.order("700", "BTC", s.slug)
		s.node.pay(t, a.Options[0].Address, amount(t, a.Options[0].AmountDue))
		s.node.pay(t, b.Options[0].Address, amount(t, b.Options[0].AmountDue))
		s.await(a.ID, "seen in the pool", func(v invoiceView) bool { return v.Status == "pending" })
		s.await(b.ID, "seen in the pool", func(v invoiceView) bool { return v.Status == "pending" })
		s.node.mine(t, 2)

		var net, fee, network, gross chain.Amount

		sweeps := map[string]bool{}

		for _, id := range []string{a.ID, b.ID} {
			for _, p := range s.settled(id, 1) {
				set := p.Settlement
				gross, net = gross.Add(amount(t, set.Gross)), net.Add(amount(t, set.NetReleased))
				fee, network = fee.Add(amount(t, set.FeePaid)), network.Add(amount(t, set.NetworkFees))

				sweeps[set.SweepTx] = true
				if set.FeeTx != set.SweepTx {
					t.Errorf(
						"the fee was paid in %s and the sweep is %s: one transaction pays both",
						set.FeeTx, set.SweepTx,
					)
				}
			}
		}

		if len(sweeps) != 1 {
			t.Errorf("two deposits of one merchant were swept by %d transactions", len(sweeps))
		}

		if gross != net.Add(fee).Add(network) || fee.IsZero() || network.IsZero() {
			t.Errorf(
				"gross %s = net %s + fee %s + network fees %s does not balance",
				gross, net, fee, network,
			)
		}

		if got := s.node.holds(t, s.master).Sub(masterBefore); got != net {
			t.Errorf("the master wallet got %s, the API says %s", got, net)
		}

		if got := s.node.holds(t, s.feeTo).Sub(feesBefore); got != fee {
			t.Errorf("the fee address got %s, the API says %s", got, fee)
		}

		for _, inv := range []invoiceView{a, b} {
			if left := s.node.holds(t, inv.Options[0].Address); !left.IsZero() {
				t.Errorf("%s is left at a deposit address", left)
			}
		}

		s.audited()
	})

	t.Run("payout", func(t *testing.T) {
		s := s.at(t)
		before, to := s.node.holds(t, s.master), s.node.address(t)
		key := s.sendingKey(to)

		var all []outgoing
		for range 3 { // the second and third spend change that is not in a block yet
			all = append(
				all,
				s.send(
					"/v1/payouts", key,
					map[string]any{"network": s.slug, "asset": "BTC", "amount": "1000000", "destination": to},
				),
			)
		}

		var fees chain.Amount

		for _, p := range all {
			s.mineUntil("payout "+p.ID+" confirmed", func() (bool, string) {
				s.call("GET", "/v1/payouts/"+p.ID, nil, &p)
				return p.Status == "confirmed", fmt.Sprintf("%+v", p)
			})
			fees = fees.Add(amount(t, p.NetworkFee))
		}

		if got := s.node.holds(t, chain.Address(to)); got != chain.Units(3_000_000) {
			t.Errorf("the destination got %s", got)
		}

		if spent := before.Sub(s.node.holds(t, s.master)); spent != chain.Units(3_000_000).Add(fees) {
			t.Errorf("the master wallet lost %s for 3000000 and network fees of %s", spent, fees)
		}

		s.audited()
	})

	t.Run("a refund and two payouts in one transaction", func(t *testing.T) {
		s := s.at(t)
		inv := s.order("200", "BTC", s.slug)
		due := amount(t, inv.Options[0].AmountDue)
		s.node.pay(t, inv.Options[0].Address, due)
		s.settled(inv.ID, 1)
		before := s.node.holds(t, s.master)
		to := []string{s.node.address(t), s.node.address(t), s.node.address(t)}
		amounts := []chain.Amount{chain.Units(400_000), chain.Units(600_000), due}
		key := s.sendingKey(to...)
		resume := s.pause()

		var payouts []outgoing
		for i := range 2 {
			payouts = append(
				payouts,
				s.send(
					"/v1/payouts",
					key,
					map[string]any{
						"network":     s.slug,
						"asset":       "BTC",
						"amount":      amounts[i].String(),
						"destination": to[i],
					},
				),
			)
		}

		r := s.send("/v1/refunds", key, map[string]any{"invoice_id": inv.ID, "destination": to[2]})
		payouts = append(payouts, outgoing{ID: r.PayoutID})

		resume()

		var hash string

		eventually(t, "one transaction in the pool", func() (bool, string) {
			pool := s.node.pool(t)
			if len(pool) == 1 {
				hash = pool[0]
			}

			return len(pool) == 1, strings.Join(pool, " ")
		})

		if n := s.node.outputs(t, hash); n != 4 { // and change
			t.Errorf("transaction %s has %d outputs", hash, n)
		}

		s.mineUntil("refund "+r.ID+" succeeded", func() (bool, string) {
			s.call("GET", "/v1/refunds/"+r.ID, nil, &r)
			return r.Status == "succeeded", fmt.Sprintf("%+v", r)
		})

		sum := chain.Units(1_000_000).Add(due)

		for _, p := range payouts {
			s.call("GET", "/v1/payouts/"+p.ID, nil, &p)

			if p.Status != "confirmed" || p.TxHash != hash {
				t.Errorf("payout %+v is not confirmed with transaction %s", p, hash)
			}

			sum = sum.Add(amount(t, p.NetworkFee))
		}

		if spent := before.Sub(s.node.holds(t, s.master)); spent != sum {
			t.Errorf("the master wallet lost %s, payouts, refund and network fees are %s", spent, sum)
		}

		for i, v := range amounts {
			if got := s.node.holds(t, chain.Address(to[i])); got != v {
				t.Errorf("%s got %s of %s", to[i], got, v)
			}
		}

		s.await(inv.ID, "refunded", func(v invoiceView) bool { return v.Status == "refunded" })
		s.audited()
	})

	t.Run("replaced by one that pays elsewhere", func(t *testing.T) {
		s := s.at(t)
		inv := s.order("50", "BTC", s.slug)
		hash := s.node.pay(t, inv.Options[0].Address, amount(t, inv.Options[0].AmountDue))
		s.await(inv.ID, "seen in the pool", func(v invoiceView) bool { return v.Status == "pending" })
		s.node.replace(t, hash, chain.Address(s.node.address(t)), chain.Units(10_000))
		eventually(t, "the payment dropped", func() (bool, string) {
			p := s.payments(inv.ID)
			return len(p) == 1 && p[0].Status == "dropped", fmt.Sprintf("%+v", p)
		})
		s.await(inv.ID, "open again", func(v invoiceView) bool { return v.Status == "open" })
		s.node.mine(t, 3)

		if inv = s.await(
			inv.ID, "read again", func(invoiceView) bool { return true },
		); inv.Status != "open" ||
			inv.Options[0].Paid != "0" {
			t.Errorf("after the other transaction's blocks the invoice is %+v", inv)
		}
	})

	t.Run("replaced by one that pays more to the miner", func(t *testing.T) {
		s := s.at(t)
		inv := s.order("50", "BTC", s.slug)
		due, to := amount(t, inv.Options[0].AmountDue), inv.Options[0].Address
		first := s.node.pay(t, to, due)
		s.await(inv.ID, "seen in the pool", func(v invoiceView) bool { return v.Status == "pending" })
		second := s.node.replace(t, first, to, due)
		s.mineUntil("one confirms, the other is dropped", func() (bool, string) {
			states := map[string]string{}
			for _, p := range s.payments(inv.ID) {
				states[p.TxHash] = p.Status
			}

			return len(states) == 2 && states[first] == "dropped" &&
					states[second] == "confirmed", fmt.Sprint(
					states,
				)
		})
		s.await(
			inv.ID, "paid, and not twice",
			func(v invoiceView) bool { return v.Status == "paid" && len(v.Flags) == 0 },
		)
	})
}

// A reorganisation of one block takes a payment that is not confirmed out and puts it in again; one
// of six blocks does that to a payment that was released, and to its release: both come back, and
// the money moved once.
func TestBitcoinReorganisation(t *testing.T) {
	t.Parallel()

	onBothNodes(t, reorganiseBitcoin)
}

func reorganiseBitcoin(t *testing.T, node harness) {
	s := stageBitcoin(t, node)
	t.Run("one block", func(t *testing.T) {
		s := s.at(t)
		inv := s.order("100", "BTC", s.slug)
		s.node.pay(t, inv.Options[0].Address, amount(t, inv.Options[0].AmountDue))
		s.node.mine(t, 1)
		s.await(inv.ID, "pending in a block", func(v invoiceView) bool { return v.Status == "pending" })
		before := s.payments(inv.ID)
		s.node.rewind(t, 1)
		s.node.mine(t, 2)
		s.await(inv.ID, "paid", func(v invoiceView) bool { return v.Status == "paid" })

		if after := s.settled(inv.ID, 1); after[0].ID != before[0].ID {
			t.Errorf("payment %s became %s", before[0].ID, after[0].ID)
		}

		s.audited()
	})
	t.Run("six blocks", func(t *testing.T) {
		s := s.at(t)
		masterBefore := s.node.holds(t, s.master)
		inv := s.order("100", "BTC", s.slug)
		s.node.pay(t, inv.Options[0].Address, amount(t, inv.Options[0].AmountDue))
		paidIn := s.node.height(t) + 1
		s.node.mine(t, 2)
		s.await(inv.ID, "paid", func(v invoiceView) bool { return v.Status == "paid" })

		var sweep string

		eventually(t, "a sweep in the pool", func() (bool, string) {
			pool := s.node.pool(t)
			if len(pool) == 1 {
				sweep = pool[0]
			}

			return len(pool) == 1, strings.Join(pool, " ")
		})
		s.node.mine(t, 4)
		before := s.settled(inv.ID, 1)
		s.node.rewind(t, int(s.node.height(t)-paidIn+1)) // six, or more on a slow machine
		s.await(
			inv.ID, "not paid any more",
			func(v invoiceView) bool { return v.Status == "open" || v.Status == "pending" },
		)
		eventually(t, "the settlement reverted", func() (bool, string) {
			p := s.payments(inv.ID)

			return len(p) == 1 && p[0].Settlement != nil &&
					p[0].Settlement.Status == "reverted", fmt.Sprintf(
					"%+v %+v", p, p[0].Settlement,
				)
		})
		s.node.mine(t, 2)
		s.await(inv.ID, "paid again", func(v invoiceView) bool { return v.Status == "paid" })

		after := s.settled(inv.ID, 1)
		if after[0].ID != before[0].ID || after[0].Settlement.SweepTx != sweep {
			t.Errorf(
				"payment %s swept by %s became %s swept by %s",
				before[0].ID, sweep, after[0].ID, after[0].Settlement.SweepTx,
			)
		}

		if got := s.node.holds(t, s.master).
			Sub(masterBefore); got != amount(
			t, after[0].Settlement.NetReleased,
		) {
			t.Errorf("the master wallet got %s, the API says %s", got, after[0].Settlement.NetReleased)
		}

		must(t, s.store.Update(t.Context(), func(ctx context.Context, tx store.Tx) error {
			r, _, err := tx.Residue(ctx, s.slug, inv.Options[0].Address)
			if !r.Amount.IsZero() || !r.Owed.IsZero() {
				t.Errorf("the books say that %s are left at the address, or %s owed", r.Amount, r.Owed)
			}

			return err
		}))
		s.audited()
	})
}

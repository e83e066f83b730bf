//go:build unix

package canonical_test

// This file holds faults of money out that were seen on real nodes: what blocks hold was paid, whatever a node
// says about its hash.

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/internal/testing/raced"
)

// refuser is whom a reverted payout was for.
const refuser = "0x00000000000000000000000000000000deadbee5"

// deniedFor is how many seconds a hash is denied.
const deniedFor = 13

// Rows 38 and 39 of the pitfalls: paid, stated as failed.
func TestWhatBlocksHoldDoesNotFail(t *testing.T) {
	play(t, map[string]func(t *testing.T, s *stage){
		"payout, hash denied": payoutBesideALie,
		"settlement and its top-up, hashes denied": func(t *testing.T, s *stage) {
			settlementBesideALie(t, s, lie{answer: denied}, lie{})
		},
		"settlement, receipts by hash without logs": func(t *testing.T, s *stage) {
			l := lie{answer: without("eth_getTransactionReceipt")}
			settlementBesideALie(t, s, l, l)
		},
	})
}

// payoutBesideALie has both endpoints deny the hash of a payout for 13 s after a block took it.
func payoutBesideALie(t *testing.T, s *stage) {
	const to = "0x00000000000000000000000000000000deadbeef"

	w := s.begin(t, orders{}, keep)
	before := w.balance("", to, w.tip())

	var made struct{ ID, Status string }
	w.service.ask("POST", "/v1/payouts", fmt.Sprintf(
		`{"asset":"ETH","network":%q,"amount":%q,"destination":%q}`, network, coin, to,
	), &made)
	w.service.work(0)
	w.mine(1)
	w.instruct(lie{answer: denied})

	payout := func() string {
		w.service.ask("GET", "/v1/payouts/"+made.ID, "", &made)
		return made.Status
	}

	for range deniedFor {
		if w.blocks(1); payout() == "failed" {
			t.Fatalf("it failed while a block holds it\n%s", w.service.tail())
		}
	}

	w.instruct(lie{})
	w.within(time.Minute, "it is confirmed", func() bool { return payout() == "confirmed" })

	if got := w.balance("", to, w.tip()); got.Sub(got, before).String() != coin {
		t.Errorf("%s arrived", got)
	}

	if sent := w.sentBy(w.master); len(sent) != 1 || w.happened("payout.failed") != 0 {
		t.Errorf("the wallet sent %+v", sent)
	}

	if w.liars[0].lied() == 0 {
		t.Error("no answer was a lie")
	}
}

// settlementBesideALie has both endpoints lie for 13 s after each block of a release, and say something else
// after that. No lie may be asked for.
func settlementBesideALie(t *testing.T, s *stage, l, after lie) {
	w := s.begin(t, orders{}, account.Settings{})
	inv := w.sell("HONEST", dollars100)
	feesBefore := w.balance("", feeTo, w.tip())
	w.transfer(1+honest, honest, inv, 100_000_000)

	var set struct {
		Status, Reason string
		FeePaid        string `json:"fee_paid"`
		NetworkFees    string `json:"network_fees"`
		NetReleased    string `json:"net_released"`
	}

	w.within(5*time.Minute, "the settlement ended", func() bool {
		w.instruct(l)
		w.mine(1)

		for range deniedFor {
			w.pass(time.Second)
		}

		w.instruct(after)

		var page struct {
			Data []struct{ Settlement json.RawMessage }
		}
		w.service.ask("GET", "/v1/invoices/"+inv.ID+"/payments", "", &page)

		if len(page.Data) == 0 || len(page.Data[0].Settlement) == 0 {
			return false
		}

		if err := json.Unmarshal(page.Data[0].Settlement, &set); err != nil {
			t.Fatal(err)
		}

		if set.Status == "failed" || set.Reason != "" {
			t.Fatalf("the settlement is %+v\n%s", set, w.service.tail())
		}

		return set.Status == "released"
	})
	w.instruct(lie{})

	tip := w.tip()
	arrived := w.balance(string(w.tokens[honest].Contract), w.master, tip).String()
	fees := w.balance("", feeTo, tip)
	fees.Sub(fees, feesBefore)

	if arrived != dollars100 || set.NetReleased != arrived || set.FeePaid != fees.String() ||
		fees.Sign() == 0 {
		t.Errorf("%s arrived and %s of fees; the settlement says %+v", arrived, fees, set)
	}

	burnt, topUps := new(big.Int), 0

	for _, address := range []string{w.master, inv.Address} {
		for _, tx := range w.sentBy(address) {
			burnt.Add(burnt, tx.fee)

			if tx.to == inv.Address {
				topUps++
			}
		}
	}

	if topUps != 1 || set.NetworkFees != burnt.String() {
		t.Errorf("%d top-ups, %s of network fees; the settlement says %s", topUps, burnt, set.NetworkFees)
	}

	if found := w.audit(); len(found) != 0 {
		t.Errorf("the audit finds %v", found)
	}
}

// sentTx is a transaction in a block.
type sentTx struct {
	to  string
	fee *big.Int
}

// sentBy returns what an address sent since the scenario began.
func (w *scenario) sentBy(address string) (all []sentTx) {
	w.t.Helper()

	for height := w.first + 1; height <= w.tip(); height++ {
		var receipts []struct{ From, To, GasUsed, EffectiveGasPrice string }
		w.call(&receipts, "eth_getBlockReceipts", hexOf(height))

		for _, r := range receipts {
			if r.From == address {
				fee := new(big.Int).Mul(number(w.t, r.GasUsed), number(w.t, r.EffectiveGasPrice))
				all = append(all, sentTx{r.To, fee})
			}
		}
	}

	return all
}

// A payout is reverted, and final; a fork deeper than the network's rule takes its block away, and another one that of
// the cancel which used its nonce. What was burnt is what the payout shows.
func TestRevertedPayoutThatForksTakeAway(t *testing.T) {
	if testing.Short() {
		t.Skip("needs anvil; run without -short")
	}

	raced.Skip(t)

	r := newRun(t, newStage(t), orders{}, 0)

	_, text, err := r.service.request("POST", "/v1/payouts", fmt.Sprintf(
		`{"asset":"NORETURN","network":%q,"amount":"5000000","destination":%q}`, network, refuser,
	))
	if err != nil {
		t.Fatal(err)
	}

	var p struct {
		ID, Status  string
		FailureCode string `json:"failure_code"`
		NetworkFee  string `json:"network_fee"`
		Conflict    struct {
			Own        bool
			NetworkFee string `json:"network_fee"`
		}
	}
	if err := json.Unmarshal(text, &p); err != nil || p.ID == "" {
		t.Fatalf("%s: %v", text, err)
	}

	r.payouts[p.ID] = asked{refuser, strings.ToLower(string(r.tokens[noReturn].Contract))}

	look := func() {
		p.NetworkFee, p.Conflict.NetworkFee = "", ""
		r.service.ask("GET", "/v1/payouts/"+p.ID, "", &p)
	}

	r.revertPayouts()
	r.finish(2 * confirmations)

	if look(); p.FailureCode != "reverted" || p.NetworkFee == "" {
		t.Fatalf("it did not fail as reverted: %+v\n%s", p, r.service.tail())
	}

	for range 2 {
		r.call(nil, "anvil_reorg", 40, []any{})

		for range 20 {
			r.service.now = r.service.now.Add(time.Minute)
			r.finish(1)
		}
	}

	r.compare()
	r.finish(64 + confirmations) // the conflict is proven where the network itself is final

	if look(); p.Status != "failed" || p.FailureCode != "conflict" || !p.Conflict.Own ||
		p.Conflict.NetworkFee == "" {
		t.Errorf("it is %+v\n%s", p, r.service.tail())
	}

	r.compare()
}

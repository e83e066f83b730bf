//go:build unix

package canonical_test

// This file compares the API with the independent ledger of outputs.

import (
	"fmt"
	"slices"
	"strings"

	"github.com/seed-8ee7f392/payments/store/sqlite"
)

// compare holds what the API shows against what a walk of the chain finds.
func (r *bitcoinRun) compare() {
	r.t.Helper()

	ours := map[string]bool{r.master: true}
	for _, p := range slices.Concat(r.honest, r.dusty) {
		ours[p.address] = true
	}

	l := walkOutputs(r.bitcoinNode, ours)

	for hash := range r.ours {
		if _, mined := l.fees[hash]; !mined {
			r.did.Replaced++
		}
	}

	stated := r.comparePayouts(l) + r.compareSettlements()
	for _, p := range r.honest {
		r.comparePlace(p, l)
	}

	for _, satoshi := range l.fees {
		stated -= satoshi
	}

	if stated != 0 {
		r.differ("payouts and settlements bear %d satoshi more than our transactions cost", stated)
	}

	b := r.balance()

	want := fmt.Sprint(l.spendable(r.master))
	if b.Balance != want || b.Available != want || b.Reserved != "0" {
		r.differ("the wallet holds %s, the API shows %+v", want, b)
	}

	var differences []any
	r.service.ask("GET", "/audit", "", &differences)

	for _, d := range differences {
		r.differ("the audit finds %v", d)
	}

	if r.did.Differences > 0 {
		r.t.Logf("what is not over:\n%s", strings.Join(r.records(), "\n"))
		r.t.Logf("what happened:\n%s", strings.Join(r.steps, "\n"))
		r.t.Logf("the last of what the service logged:\n%s", r.service.tail())
	}
}

// records returns the transactions of payouts that are not over, as the service stores them.
func (r *bitcoinRun) records() (lines []string) {
	r.t.Helper()

	db, err := sqlite.Open(r.service.DB)
	r.service.must(err)

	defer func() { _ = db.Close() }()

	for _, open := range r.unfinished() {
		id, _, _ := strings.Cut(open, " ")

		all, err := db.TransactionsOf(r.t.Context(), id)
		r.service.must(err)

		for _, t := range all {
			lines = append(lines, fmt.Sprintf("%s %s %s due %v", t.Kind, t.ID, t.State, t.DueAt))

			for _, a := range t.Attempts {
				lines = append(lines, fmt.Sprintf(
					"  %s at %v, sent %v %q, spends %v on %v", a.Signed.TxHash, a.SignedAt, a.LastSentAt,
					a.LastSendError, a.Signed.Inputs, a.Signed.UnconfirmedParents,
				))
			}
		}
	}

	return lines
}

func (r *bitcoinRun) differ(format string, args ...any) {
	r.t.Helper()

	r.did.Differences++
	r.t.Errorf(format, args...)
}

// comparePayouts checks that each is over, and arrived once or not at all. It returns the fees they state, in
// satoshi.
func (r *bitcoinRun) comparePayouts(l *outputLedger) (fees int64) {
	r.t.Helper()

	for _, id := range r.payouts {
		p := r.payout(id)
		want := decimal(p.Amount).Int64()

		switch p.Status {
		case "confirmed":
			r.did.Confirmed++
		case "failed":
			r.did.Failed++
			want = 0
		default:
			r.differ("payout %s came to no end: %s", id, p.Status)
		}

		for _, fee := range []string{p.NetworkFee, p.Conflict.NetworkFee} {
			if fee != "" {
				fees += decimal(fee).Int64()
			}
		}

		if got := l.received(r.to[id]); got != want || len(l.arrived[r.to[id]]) > 1 {
			r.differ("payout %s of %s is %s (%s), %d arrived", id, p.Amount, p.Status, p.FailureCode, got)
		}
	}

	return fees
}

// compareSettlements checks that none is under way, and returns the network fees that they state, in satoshi.
func (r *bitcoinRun) compareSettlements() (fees int64) {
	r.t.Helper()

	for after := ""; ; {
		var page struct {
			Data []struct {
				ID, Status  string
				NetworkFees string `json:"network_fees"`
			}
			HasMore bool   `json:"has_more"`
			Next    string `json:"next_cursor"`
		}
		r.service.ask("GET", "/v1/settlements?limit=100"+after, "", &page)

		for _, s := range page.Data {
			if s.Status == "releasing" {
				r.differ("settlement %s came to no end", s.ID)
			}

			fees += decimal(s.NetworkFees).Int64()
		}

		if !page.HasMore {
			return fees
		}

		after = "&starting_after=" + page.Next
	}
}

// comparePlace compares the payments of a deposit address with the walk.
func (r *bitcoinRun) comparePlace(p place, l *outputLedger) {
	r.t.Helper()

	var page struct{ Data []paymentView }
	r.service.ask("GET", p.path+"?limit=100", "", &page)

	shown := map[string]int64{}

	for _, pay := range page.Data {
		switch pay.Status {
		case "confirmed":
			shown[pay.TxHash] += decimal(pay.Amount).Int64()
		case "orphaned", "dropped":
		default:
			r.differ("%s: payment %+v came to no end", p.address, pay)
		}
	}

	arrived := l.arrived[p.address]
	if want, got := fmt.Sprint(arrived), fmt.Sprint(shown); len(arrived)+len(shown) > 0 && want != got {
		r.differ("%s: the chain has\n%s\nthe API shows\n%s", p.address, want, got)
	}
}

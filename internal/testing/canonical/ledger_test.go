//go:build unix

// Package canonical_test compares the API with an independent ledger, which walks the chain of a real node
// itself, after random runs. Nothing here is imported.
package canonical_test

import (
	"fmt"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/internal/testing/raced"
)

const (
	shortRuns = 2
	longRuns  = 40
	happen    = 60 // things in a run
)

// Whatever happens (tokens of five kinds, contracts whose payments depend on the branch, forks of 1 to 40
// blocks, two endpoints that lie in turns, kill -9 at any moment), in the end the API shows what an
// independent walk of the canonical chain finds. Under make soak there are 40 runs.
func TestSoakLedgerOnAnvil(t *testing.T) {
	if testing.Short() {
		t.Skip("needs anvil; run without -short")
	}

	runs, first := raced.Fewer(shortRuns), 0
	if raced.On {
		first = 1 // its deposits are released
	}

	if os.Getenv("SOAKTIME") != "" {
		runs = longRuns
	}

	var count tally

	for seed := first; seed < first+runs; seed++ {
		ok := t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			r := newRun(t, newStage(t), orders{}, uint64(seed))
			r.play(happen)
			r.compare()
			count.add(r.did)
		})
		if !ok {
			break // its steps are enough to read
		}
	}

	fmt.Printf(
		"independent ledger on anvil: %d runs, %d differences: %+v\n",
		count.Runs,
		count.Differences,
		count,
	)

	if count.Arrivals < 3*runs || count.Forks < runs || count.Kills < runs || count.Changed < runs ||
		count.Payouts == 0 || count.TokenPayouts == 0 {
		t.Errorf("the runs show too little: %+v", count)
	}
}

// paymentView and invoiceView are what the API shows.
type paymentView struct {
	ID, Status, Asset, Contract, Amount, Address string
	TxHash                                       string `json:"tx_hash"`
	Settlement                                   *settlementView
}

type settlementView struct {
	ID, Status, Reason string
	Gross              string
	FeePaid            string `json:"fee_paid"`
	NetworkFees        string `json:"network_fees"`
	NetReleased        string `json:"net_released"`
	SweepTx            string `json:"sweep_tx"`
}

type invoiceView struct {
	Status  string
	Options []struct {
		AmountPaid string `json:"amount_paid"`
	}
}

// compare holds what the API shows against what a walk of the chain finds.
func (r *run) compare() {
	r.t.Helper()

	w := newWalker(r.node, r.master)

	for _, p := range r.places {
		w.addresses[p.address] = true
	}

	for _, token := range r.tokens {
		w.tokens[strings.ToLower(string(token.Contract))] = true
	}

	arrived := w.walk(r.first)
	r.did.Arrivals = arrived.count()

	for _, p := range r.places {
		r.comparePlace(p, arrived)
	}

	burnt, paidOut := r.comparePayouts()
	burnt.Add(burnt, r.compareReleases(w, paidOut))

	if burnt.Cmp(w.gas) != 0 {
		r.differ("the API shows %s of network fees, %s were burnt", burnt, w.gas)
	}

	var differences []any
	r.service.ask("GET", "/audit", "", &differences)

	for _, d := range differences {
		r.differ("the audit finds %v", d)
	}

	if r.did.Differences > 0 {
		r.logSettlements()
		r.logPayouts()
		r.t.Logf("what happened:\n%s", strings.Join(r.steps, "\n"))

		_, health, err := r.service.request("GET", "/health", "")
		r.t.Logf("health: %s, %v", health, err)
		r.t.Logf("the last of what the service logged:\n%s", r.service.tail())
	}
}

// logSettlements logs every payment and its settlement.
func (r *run) logSettlements() {
	r.t.Helper()

	for _, p := range r.places {
		for _, pay := range r.payments(p) {
			r.t.Logf(
				"%s: %s %s %s %s: %+v",
				p.address, pay.Status, pay.Amount, pay.Asset, pay.TxHash, pay.Settlement,
			)
		}
	}
}

// logPayouts logs every payout as the API shows it.
func (r *run) logPayouts() {
	r.t.Helper()

	for id := range r.payouts {
		_, text, err := r.service.request("GET", "/v1/payouts/"+id, "")
		r.t.Logf("payout: %s, %v", text, err)
	}
}

func (r *run) differ(format string, args ...any) {
	r.t.Helper()

	r.did.Differences++
	r.t.Errorf(format, args...)
}

// comparePlace compares what the API shows of one address with the walk.
func (r *run) comparePlace(p place, arrived arrivals) {
	r.t.Helper()

	shown := arrivals{}

	for _, pay := range r.payments(p) {
		tx := pay.TxHash
		if tx == "" {
			tx = byContract
		}

		switch pay.Status {
		case "confirmed":
			shown.add(slot{p.address, strings.ToLower(pay.Contract)}, tx, decimal(pay.Amount))
		case "orphaned", "dropped":
		default:
			r.differ("%s: payment %+v came to no end", p.address, pay)
		}
	}

	tokens := []string{""}
	for _, token := range r.tokens {
		tokens = append(tokens, strings.ToLower(string(token.Contract)))
	}

	for _, token := range tokens {
		s := slot{p.address, token}
		if want, got := fmt.Sprint(arrived[s]), fmt.Sprint(shown[s]); want != got {
			r.differ("%s, asset %q: the chain has\n%s\nthe API shows\n%s", p.address, token, want, got)
		}
	}

	if p.invoice != "" {
		r.compareInvoice(p, arrived.sum(slot{p.address, p.token}))
	}
}

func (r *run) compareInvoice(p place, sum *big.Int) {
	r.t.Helper()

	var inv invoiceView
	r.service.ask("GET", "/v1/invoices/"+p.invoice, "", &inv)

	want := "underpaid"

	switch {
	case sum.Sign() == 0:
		want = "open"
	case sum.Cmp(p.due) >= 0:
		want = "paid"
	}

	if inv.Status != want || inv.Options[0].AmountPaid != sum.String() {
		r.differ(
			"invoice %s is %s with %s of %s, %s arrived",
			p.invoice, inv.Status, inv.Options[0].AmountPaid, p.due, sum,
		)
	}
}

// payments returns all payments of an address.
func (r *run) payments(p place) []paymentView {
	r.t.Helper()

	const limit = 100

	var page struct{ Data []paymentView }
	r.service.ask("GET", fmt.Sprintf("%s?limit=%d", p.path, limit), "", &page)

	if len(page.Data) == limit {
		r.t.Fatalf("%s has more payments than a page", p.address)
	}

	return page.Data
}

// compareReleases checks that what the settlements say is what reached the master wallet and the fee address, and
// returns the network fees that they show. paidOut is what payouts took of each token.
func (r *run) compareReleases(w *walker, paidOut map[string]*big.Int) (burnt *big.Int) {
	r.t.Helper()

	burnt = new(big.Int)
	net, fees := map[string]*big.Int{}, new(big.Int)

	for _, p := range r.places {
		for _, pay := range r.payments(p) {
			set := pay.Settlement
			if set == nil {
				continue
			}

			burnt.Add(burnt, decimal(set.NetworkFees))
			fees.Add(fees, decimal(set.FeePaid))

			switch set.Status {
			case "released":
				r.did.Releases++

				token := strings.ToLower(pay.Contract)
				if net[token] == nil {
					net[token] = new(big.Int)
				}

				net[token].Add(net[token], decimal(set.NetReleased))
			case "held", "failed", "reverted":
			case "pending":
				if !r.manual {
					r.differ("%s: settlement %+v came to no end", p.address, set)
				}
			default:
				r.differ("%s: settlement %+v came to no end", p.address, set)
			}
		}
	}

	tip := r.tip()
	got := map[string]*big.Int{"": w.released}

	for token := range w.tokens {
		got[token] = r.balance(token, r.master, tip)
		got[token].Sub(got[token], r.balance(token, r.master, r.first))

		if out := paidOut[token]; out != nil {
			got[token].Add(got[token], out)
		}
	}

	for token, reached := range got {
		if net[token] == nil {
			net[token] = new(big.Int)
		}

		if reached.Cmp(net[token]) != 0 {
			r.differ("%s of %q reached the wallet, the settlements say %s", reached, token, net[token])
		}
	}

	paid := r.balance("", feeTo, tip)
	if paid.Sub(paid, r.balance("", feeTo, r.first)); paid.Cmp(fees) != 0 {
		r.differ("%s of fees were paid, the settlements say %s", paid, fees)
	}

	return burnt
}

// comparePayouts checks that what is confirmed arrived once, and that what failed sent nothing. It returns the
// network fees that they show, and what they took of each token.
func (r *run) comparePayouts() (burnt *big.Int, paidOut map[string]*big.Int) {
	r.t.Helper()

	burnt, paidOut = new(big.Int), map[string]*big.Int{}
	tip := r.tip()

	for id, asked := range r.payouts {
		var p struct {
			Status, Amount string
			FailureCode    string `json:"failure_code"`
			NetworkFee     string `json:"network_fee"`
			TxHash         string `json:"tx_hash"`
			Conflict       struct {
				NetworkFee string `json:"network_fee"`
			}
		}
		r.service.ask("GET", "/v1/payouts/"+id, "", &p)

		if p.NetworkFee != "" {
			burnt.Add(burnt, decimal(p.NetworkFee))
		}

		if p.Conflict.NetworkFee != "" {
			r.did.Canceled++

			burnt.Add(burnt, decimal(p.Conflict.NetworkFee))
		}

		if p.FailureCode == "reverted" {
			r.did.Reverted++
		}

		want := decimal(p.Amount)

		switch p.Status {
		case "confirmed":
			r.did.Payouts++
		case "failed":
			want = new(big.Int)
		default:
			r.differ("payout %s came to no end: %s", id, p.Status)
		}

		if asked.token != "" && want.Sign() > 0 {
			if paidOut[asked.token] == nil {
				paidOut[asked.token] = new(big.Int)
			}

			paidOut[asked.token].Add(paidOut[asked.token], want)
			want.Sub(want, r.takenBy(asked, p.TxHash))
			r.did.TokenPayouts++
		}

		if got := r.balance(asked.token, asked.to, tip); got.Cmp(want) != 0 {
			r.differ(
				"payout %s of %s %q is %s (%s), %s arrived",
				id, p.Amount, asked.token, p.Status, p.FailureCode, got,
			)
		}
	}

	return burnt, paidOut
}

// takenBy returns what a token took of a payout: the fee that it says by a second log, or a hundredth where it is
// one that says nothing.
func (r *run) takenBy(payout asked, tx string) *big.Int {
	r.t.Helper()

	var receipt rawReceipt
	r.call(&receipt, "eth_getTransactionReceipt", tx)

	taken, moved := new(big.Int), new(big.Int)

	for _, l := range receipt.Logs {
		switch addressIn(l.Topics[2]) {
		case payout.token:
			taken.Add(taken, number(r.t, l.Data))
		default:
			moved.Add(moved, number(r.t, l.Data))
		}
	}

	if payout.token == strings.ToLower(string(r.tokens[silent].Contract)) {
		taken.Div(moved, big.NewInt(100))
	}

	return taken
}

func decimal(text string) *big.Int {
	n, ok := new(big.Int).SetString(text, 10)
	if !ok {
		panic("no number: " + text)
	}

	return n
}

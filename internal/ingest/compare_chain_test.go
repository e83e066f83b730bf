package ingest_test

import (
	"math/big"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/invoice"
)

// paidBy is what one transaction brought to a slot.
type paidBy struct {
	slot
	tx string
}

// compare compares what the API shows with the independent ledger.
func (r *randomRun) compare(count *tally) {
	r.t.Helper()

	differ := func(format string, args ...any) {
		r.t.Helper()

		r.did.Differences++
		r.t.Errorf(format, args...)
	}
	want, got := r.onChain(), r.confirmed(differ)

	for k, amount := range want {
		if got[k] == nil || got[k].Cmp(amount) != 0 {
			differ("on chain %s arrived by %s at %v, the records have %v", amount, k.tx, k.slot, got[k])
		}
	}

	for k, amount := range got {
		if want[k] == nil {
			differ("the records have %s by %s at %v, on chain nothing arrived", amount, k.tx, k.slot)
		}
	}

	for _, inv := range r.invoices {
		sum := new(big.Int)

		for k, amount := range want {
			if k.address == string(addressOf(inv)) && k.asset == inv.Options[0].AssetID {
				sum.Add(sum, amount)
			}
		}

		r.compareInvoice(r.get(inv), sum, differ)
	}

	count.add(r.did, len(want))
}

// onChain returns what the independent ledger finds.
func (r *randomRun) onChain() map[paidBy]*big.Int {
	r.t.Helper()

	addresses, tokens := map[string]bool{}, map[string]bool{}
	for _, inv := range r.invoices {
		addresses[string(addressOf(inv))] = true
	}

	for _, d := range r.deposits {
		addresses[string(d.Address)] = true
	}

	master, err := internal.Of(r.engine).Transactions.MasterWallet(r.t.Context(), network, 0)
	r.must(err)

	senders := map[string]bool{string(master.Address): true}
	for address := range addresses {
		senders[address] = true
	}

	for _, asset := range r.network.Assets {
		tokens[asset.ID] = asset.Kind == chain.Token
	}

	out := map[paidBy]*big.Int{}
	for _, a := range walk(r.t, r.chain, addresses, senders, tokens) {
		out[paidBy{a.slot, a.tx}] = a.amount
	}

	return out
}

// confirmed returns what the API shows as confirmed. At rest nothing waits.
func (r *randomRun) confirmed(differ func(string, ...any)) map[paidBy]*big.Int {
	r.t.Helper()

	var all []invoice.Payment
	for _, inv := range r.invoices {
		all = append(all, r.payments(inv.ID)...)
	}

	for _, d := range r.deposits {
		all = append(all, r.payments(d.ID)...)
	}

	out := map[paidBy]*big.Int{}

	for _, p := range all {
		r.compareEvents(p, differ)

		switch p.Status {
		case invoice.Confirmed:
			k := paidBy{slot{string(p.Address), p.AssetID}, p.TxHash}
			if out[k] == nil {
				out[k] = new(big.Int)
			}

			out[k].Add(out[k], number(r.t, p.Amount))
		case invoice.Detected, invoice.Orphaned:
			differ("payment %s is still %s: %+v", p.ID, p.Status, p)
		case invoice.Dropped:
		}
	}

	return out
}

// compareInvoice compares an invoice with the sum that arrived for its option.
func (r *randomRun) compareInvoice(inv invoice.Invoice, sum *big.Int, differ func(string, ...any)) {
	r.t.Helper()

	want := invoice.Underpaid

	switch {
	case sum.Sign() == 0:
		want = invoice.Open
	case sum.Cmp(number(r.t, inv.Options[0].AmountDue)) >= 0:
		want = invoice.Paid
	}

	shown := inv.Resource("").Options[0]
	if inv.Status != want || shown.AmountPaid != sum.String() || shown.AmountDetected != "0" {
		differ(
			"invoice %s is %s with %s paid and %s detected, on chain %s is %s",
			inv.ID, inv.Status, shown.AmountPaid, shown.AmountDetected, sum, want,
		)
	}
}

// compareEvents compares a payment with what its events state to a receiver that believes them.
func (r *randomRun) compareEvents(p invoice.Payment, differ func(string, ...any)) {
	r.t.Helper()

	var credited any = "0"

	for _, e := range r.events(p.ID) {
		switch e.Type {
		case event.InvoicePaymentConfirmed, event.DepositPaymentConfirmed:
			credited = e.payment()["amount"]
		case event.PaymentOrphaned:
			credited = "0"
		default: // says nothing of what is confirmed
		}
	}

	want := "0"
	if p.Status == invoice.Confirmed {
		want = p.Amount.String()
	}

	if credited != want {
		differ("payment %s is %s over %s, its events credit %v", p.ID, p.Status, p.Amount, credited)
	}
}

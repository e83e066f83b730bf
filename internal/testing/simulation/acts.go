package simulation

import (
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// requester is who asks for payouts.
var requester = payout.Requester{Type: "user", ID: "simulation"}

// pick returns one of a list; ok is false when it is empty.
func pick[T any](list []T, n uint64) (one T, ok bool) {
	if len(list) == 0 {
		return one, false
	}

	return list[n%uint64(len(list))], true
}

// playMerchant plays what a merchant does at one of the processes.
func (w *harness) playMerchant(op Op) {
	p, m := w.process(op.A>>32), w.merchant(op.A)

	switch op.Kind {
	case CreateInvoice:
		w.createInvoice(p, m, op)
	case SelectOption, CancelInvoice, AcceptInvoice, PayInvoice, Hint, PayHidden, PayFailing, PayVariable,
		PayBadToken:
		w.playInvoice(p, m, op)
	case CreateDeposit:
		d, err := p.alive().Invoices.CreateDeposit(
			w.ctx, invoice.DepositParams{Owner: m.owner, Network: w.network(op.B).slug()},
		)
		if err == nil {
			m.deposits = append(m.deposits, d.ID)
			m.places = append(m.places, place{d.Network, chain.Holding{Address: d.Address}})
		}
	case PayDeposit:
		w.payDeposit(m, op)
	case CreatePayout:
		w.createPayout(p, m, op)
	case CancelPayout:
		if id, ok := pick(m.payouts, op.B); ok {
			_, _ = p.alive().Payouts.Cancel(w.ctx, m.owner, id)
		}
	case CreateRefund:
		w.createRefund(p, m, op)
	case CancelRefund:
		if id, ok := pick(m.refunds, op.B); ok {
			_, _ = p.alive().Payouts.CancelRefund(w.ctx, m.owner, id)
		}
	case ChangeSettings:
		_, _ = p.alive().Accounts.UpdateSettings(w.ctx, m.owner.AccountID, account.Settings{
			Name:               m.host,
			PayoutsPerHour:     100_000,
			ToleranceBPS:       int(op.B % 501),
			AcceptLatePayments: op.C%2 == 0,
			SweepMinUSD:        decimal.New(int64(op.C>>8%20), 0),
		})
	case RetrySettle:
		w.retrySettlements(p, m)
	case ReadLists:
		w.readLists(p, m, op)
	case ReplacePayment, DropPayment:
		w.disturbPayment(op)
	default:
		w.playFault(op)
	}
}

// createInvoice makes an invoice in dollars or euros, or in an asset.
func (w *harness) createInvoice(p *process, m *merchant, op Op) {
	params := invoice.CreateParams{
		Owner:     m.owner,
		ExpiresIn: time.Duration(300+op.B%3300) * time.Second,
	}

	if op.C%4 == 0 {
		params.Options = []invoice.OptionParams{{
			Asset:   "USDX",
			Network: w.network(op.B >> 16).slug(),
			Amount:  chain.Pow10(4).Mul(100 + op.C>>8%9_900).Add(w.oddUnits(op.C >> 24)),
		}}
	} else {
		currency := []string{"USD", "EUR"}[op.C>>4%2]
		params.Price = &invoice.Price{
			Currency: currency,
			Amount:   decimal.New(int64(500+op.C>>8%20_000), -2).String(),
		}
	}

	inv, err := p.alive().Invoices.Create(w.ctx, params)
	if err == nil {
		m.invoices = append(m.invoices, inv.ID)
	}
}

// playInvoice plays what a merchant or a payer does with an invoice.
func (w *harness) playInvoice(p *process, m *merchant, op Op) {
	id, ok := pick(m.invoices, op.B)
	if !ok {
		return
	}

	invoices := p.alive().Invoices

	inv, err := invoices.Get(w.ctx, m.owner, id)
	if err != nil {
		return
	}

	switch op.Kind {
	case SelectOption:
		if option, ok := pick(inv.Options, op.C); ok {
			_, _ = invoices.Select(w.ctx, &m.owner, id, option.ID)
		}
	case CancelInvoice:
		_, _ = invoices.Cancel(w.ctx, m.owner, id)
	case AcceptInvoice:
		w.accepting = true
		_, _ = invoices.Accept(w.ctx, m.owner, id, op.C%2 == 0)
		w.accepting = false
	case Hint:
		for _, hashes := range w.pooled {
			if hash, ok := pick(hashes, op.C); ok {
				_, _ = invoices.Hint(w.ctx, id, hash)
			}
		}
	default:
		w.payInvoice(p, m, inv, op)
	}
}

// payInvoice pays an option of an invoice, which is selected first when none is: mostly what is due.
func (w *harness) payInvoice(p *process, m *merchant, inv invoice.Invoice, op Op) {
	option := inv.Option(inv.SelectedOptionID)
	if option == nil {
		first, ok := pick(inv.Options, op.C)
		if !ok {
			return
		}

		selected, err := p.alive().Invoices.Select(w.ctx, &m.owner, inv.ID, first.ID)
		if err != nil {
			return
		}

		option = selected.Option(first.ID)
	}

	due := option.AmountDue

	least := due.Sub(chaindata.BPS(due, inv.ToleranceBPS))

	switch op.C >> 8 % 8 {
	case 0:
		due = due.Share(chain.Units(1), chain.Units(2))
	case 1:
		due = due.Add(due)
	case 2:
		due = least
	case 3:
		due = least.SubFloor(chain.Units(1))
	case 4:
		due = due.Add(chaindata.BPS(due, inv.ToleranceBPS)).Add(option.DisplayStep())
	}

	if due.IsZero() {
		return
	}

	paid := chain.Output{To: option.Address, AssetID: option.AssetID, Amount: due}
	if op.Kind == PayInvoice && op.C>>40%8 == 0 && w.payTogether(m, option.Network, paid, op) {
		return
	}

	w.payTo(op.Kind, option.Network, option.Address, option.Asset, due)
}

// payTogether has one transaction make a payment, one to a deposit address of the same merchant, and one more to the
// first's receiver, as an exchange pays. It reports whether there is such an address.
func (w *harness) payTogether(m *merchant, slug string, paid chain.Output, op Op) bool {
	for i, n := range w.networks {
		if n.slug() != slug {
			continue
		}

		other, ok := w.depositOn(n, m, op.C>>44)
		if !ok || !w.plan.Wide {
			return false
		}

		hash := n.payMany(
			paid,
			chain.Output{To: other, Amount: chain.Units(1_000_000 + op.C>>50)},
			chain.Output{To: paid.To, Amount: chain.Units(2_000_000 + op.C>>51)},
		)
		w.pooled[i] = append(w.pooled[i], hash)
		w.account.count("payment of several places")

		return true
	}

	return false
}

// payTo sends a payment in one of the ways.
func (w *harness) payTo(kind Kind, slug string, to chain.Address, symbol string, amount chain.Amount) {
	for i, n := range w.networks {
		if n.slug() == slug {
			hash := w.payBy(kind, n, to, symbol, amount)
			w.pooled[i] = append(w.pooled[i], hash)
		}
	}
}

func (w *harness) payBy(kind Kind, n network, to chain.Address, symbol string, amount chain.Amount) string {
	if windows, ok := n.(*windowNetwork); ok && kind == PayFailing {
		return windows.PayFailing(to, symbol, amount)
	}

	accounts, ok := n.(*accountNetwork)
	if !ok {
		return n.pay(to, symbol, amount)
	}

	switch {
	case kind == PayHidden && symbol == "SIM":
		return accounts.PayInternal(to, amount)
	case kind == PayFailing:
		return accounts.PayFailing(to, symbol, amount)
	case kind == PayVariable:
		asset, _ := accounts.Network().Asset(symbol)

		return accounts.PayVariable(
			chain.Output{To: to, AssetID: asset.ID, Amount: amount},
			func(_, branch uint64) sim.Result {
				less := amount.Share(chain.Units(1), chain.Units(100+branch))

				return sim.Result{Outputs: []chain.Output{{To: to, AssetID: asset.ID, Amount: less}}}
			},
		)
	case kind == PayBadToken:
		accounts.SetToken("USDX", sim.TokenRules{FeeBPS: 100, Log: sim.FeeLog(amount.Big().Bit(3) + 1)})
	}

	return n.pay(to, symbol, amount)
}

// payDeposit pays a deposit address, rarely in the other asset or a dust amount.
func (w *harness) payDeposit(m *merchant, op Op) {
	id, ok := pick(m.deposits, op.B)
	if !ok {
		return
	}

	d, err := w.process(op.A>>32).alive().Invoices.GetDeposit(w.ctx, m.owner, id)
	if err != nil {
		return
	}

	symbol, amount := "SIM", chain.Pow10(15).Mul(1+op.C%400)
	if op.C>>16%3 == 0 {
		symbol, amount = "USDX", chain.Pow10(6).Mul(1+op.C%300)
	}

	if d.Network == w.networks[0].slug() && w.plan.UTXO {
		symbol, amount = "SIMB", chain.Units(20_000+op.C%2_000_000)
	}

	w.payTo(op.Kind, d.Network, d.Address, symbol, amount)
}

// createPayout asks for a payout to a new address.
func (w *harness) createPayout(p *process, m *merchant, op Op) {
	n := w.network(op.B)

	symbol, amount := "SIM", chain.Pow10(15).Mul(1+op.C%20)

	switch {
	case n.assets()[0].Symbol != "SIM":
		symbol, amount = n.assets()[0].Symbol, chain.Units(10_000+op.C%10_000)
	case op.C>>16%3 == 0:
		symbol, amount = "USDX", chain.Pow10(6).Mul(1+op.C%20)
	}

	created, err := p.alive().Payouts.Create(w.ctx, payout.Params{
		Owner:       m.owner,
		Network:     n.slug(),
		Asset:       symbol,
		Amount:      amount,
		Destination: string(n.newAddress()),
		RequestedBy: requester,
	})
	if err == nil {
		m.payouts = append(m.payouts, created.ID)
	}
}

// createRefund gives an invoice's payment back.
func (w *harness) createRefund(p *process, m *merchant, op Op) {
	id, ok := pick(m.invoices, op.B)
	if !ok {
		return
	}

	created, err := p.alive().Payouts.CreateRefund(w.ctx, payout.RefundParams{
		Owner:       m.owner,
		InvoiceID:   id,
		Destination: string(w.network(op.C).newAddress()),
		RequestedBy: requester,
	})
	if err == nil {
		m.refunds = append(m.refunds, created.ID)
	}
}

// retrySettlements is an operator's business.
func (w *harness) retrySettlements(p *process, m *merchant) {
	failed, _, err := p.alive().Settlements.List(w.ctx, settlement.Filter{
		Owner:    m.owner,
		Statuses: []settlement.Status{settlement.Failed},
		Limit:    100,
	})
	if err != nil {
		return
	}

	for _, s := range failed {
		if s.Reason == settlement.TransactionFailed {
			_, _ = p.alive().Settlements.Retry(w.ctx, m.owner, s.ID)
		}
	}
}

// disturbPayment replaces or forgets a payer's transaction that waits in a pool.
func (w *harness) disturbPayment(op Op) {
	i := op.A % uint64(len(w.networks))
	accounts, isAccount := w.networks[i].(*accountNetwork)

	hash, ok := pick(w.pooled[i], op.B)
	if outputs, spends := w.networks[i].(*utxoNetwork); ok && spends && w.plan.Coins {
		w.pooled[i] = append(w.pooled[i], outputs.disturb(op, hash)...)
	}

	if !ok || !isAccount {
		return
	}

	found, err := accounts.Transaction(w.ctx, hash)
	if err != nil || !found.Block.IsZero() {
		return
	}

	if op.Kind == ReplacePayment {
		accounts.Replace(hash)
	} else {
		accounts.Drop(hash)
	}
}

// oddUnits returns base units that make an amount of an invoice uneven.
func (w *harness) oddUnits(n uint64) chain.Amount {
	if !w.plan.Wide {
		return chain.Amount{}
	}

	return chain.Units(n % 10_000)
}

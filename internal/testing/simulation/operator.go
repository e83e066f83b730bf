package simulation

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// operate is an operator's business: networks that were stopped go on, settlements whose transactions failed are
// tried again, and transactions that are not on record are acknowledged as what they were.
func (w *harness) operate() {
	w.resume()

	for _, m := range w.merchants {
		w.retrySettlements(w.processes[0], m)
	}

	w.acknowledge()
	w.acknowledgePooled()
	w.review()
}

// acknowledgePooled says of what waits in a pool and is not on record that it is foreign, where Health names it: one of
// a deposit address may pay too little to end in a block. One of a master wallet waits for its block.
func (w *harness) acknowledgePooled() {
	report, err := w.processes[0].alive().Health(w.ctx)
	if err != nil {
		return
	}

	for _, n := range w.networks {
		for _, tx := range n.pool() {
			named := slices.ContainsFunc(report.Wallets, func(held health.Wallet) bool {
				return held.Network == n.slug() && !w.isMaster(chain.Address(held.Address)) &&
					strings.Contains(held.Reason, tx.TxHash)
			})
			if named {
				if err := w.processes[0].alive().
					Acknowledge(w.ctx, n.slug(), tx.TxHash, wallet.Foreign); err != nil {
					w.account.failed(err)
				}
			}
		}
	}
}

// review ends the freeze of a new epoch on each network whose blocks are read, whose transactions are all
// acknowledged, and whose pool has none of ours.
func (w *harness) review() {
	for _, n := range w.networks {
		read := w.oracle.records.cursors[n.slug()].At.Hash == n.tip().Hash
		if !read || w.poolHasOurs(n) || len(w.unacknowledged(n.slug())) > 0 {
			continue
		}

		if err := w.processes[0].alive().Unfreeze(w.ctx, n.slug(), ""); err != nil {
			w.account.failed(err)
		}
	}
}

// poolHasOurs reports whether a transaction of a master wallet waits in the pool of a network.
func (w *harness) poolHasOurs(n network) bool {
	for _, tx := range n.pool() {
		if slices.ContainsFunc(tx.Transfers, func(t chain.Transfer) bool { return w.isMaster(t.From) }) {
			return true
		}
	}

	return false
}

// unacknowledged returns the transactions of a network that wait for a person, lowest block first. One that has
// left the chain and still freezes its wallet has no block.
func (w *harness) unacknowledged(network string) []wallet.Outgoing {
	rows, err := w.store.UnrecordedOutgoing(w.ctx, network, "", w.clock.now().Add(365*24*time.Hour))
	must(err)

	rows = slices.DeleteFunc(rows, func(row wallet.Outgoing) bool { return !walletstate.IsOpen(row) })

	frozen, err := w.store.FrozenWallets(w.ctx, network, 0)
	must(err)

	for _, f := range frozen {
		if f.Frozen != wallet.FrozenUnrecorded {
			continue // for review
		}

		if !slices.ContainsFunc(rows, func(row wallet.Outgoing) bool { return row.TxHash == f.FrozenBy }) {
			rows = append(rows, wallet.Outgoing{TxHash: f.FrozenBy, Address: f.Party.Address})
		}
	}

	return rows
}

// acknowledge says of every transaction that is not on record what it was, once it is final. Of one that was called
// foreign it says which settlements it was that were opened later: while there is no price a payment has none.
func (w *harness) acknowledge() {
	w.acknowledging = true
	defer func() { w.acknowledging = false }()

	for _, n := range w.networks {
		for _, row := range w.unacknowledged(n.slug()) {
			w.acknowledgeAs(n, row, w.meanings(n, row))
		}

		since := w.clock.now().Add(-walletstate.ForeignFor)

		rows, err := w.store.UnrecordedOutgoing(w.ctx, n.slug(), "", since)
		must(err)

		for _, row := range rows {
			if !walletstate.IsOpen(row) {
				w.acknowledgeAs(n, row, w.sweptBy(n.slug(), row))
			}
		}
	}
}

// acknowledgeAs says that a transaction was the first of some meanings that it matches.
func (w *harness) acknowledgeAs(n network, row wallet.Outgoing, meanings [][]string) {
	for _, as := range meanings {
		err := w.processes[0].alive().Acknowledge(w.ctx, n.slug(), row.TxHash, as...)
		if err == nil {
			w.oracle.acknowledged(row)
		}

		if !mismatches(err) {
			return // acknowledged, or not to be now
		}
	}
}

func mismatches(err error) bool {
	var f *fault.Error

	return errors.As(err, &f) && f.Code == "transaction_mismatch"
}

// meanings returns what a transaction may have been, likeliest first: the payouts that it equals, the oldest
// settlements of the address that it emptied, or nothing on record.
func (w *harness) meanings(n network, row wallet.Outgoing) [][]string {
	var waiting [][]string

	foreign := []string{wallet.Foreign}

	if paid, ended := w.paidBy(n.slug(), row); len(paid) > 0 {
		waiting = append(waiting, paid)
	} else {
		foreign = append(foreign, ended...)
	}

	return slices.Concat(waiting, w.sweptBy(n.slug(), row), [][]string{foreign})
}

// paidBy returns the payouts that a transaction equals: those that wait, and those that have ended.
func (w *harness) paidBy(network string, row wallet.Outgoing) (waiting, ended []string) {
	for id, p := range w.oracle.records.payouts {
		outputs := []chain.Output{{To: p.Destination, AssetID: p.AssetID, Amount: p.Amount}}
		if p.Network != network || !walletstate.Pays(row, outputs) {
			continue
		}

		if p.Status == payout.Failed {
			ended = append(ended, id)
		} else {
			waiting = append(waiting, id)
		}
	}

	slices.Sort(waiting)
	slices.Sort(ended)

	return waiting, ended
}

// sweptBy returns which settlements a transaction may have released, likeliest first: those that hold little more than
// it brought, which fees took.
func (w *harness) sweptBy(network string, row wallet.Outgoing) [][]string {
	if row.Outpoint != (chain.Outpoint{}) {
		return w.spentBy(network, row)
	}

	brought := chain.Amount{}

	for _, t := range row.Transfers {
		if tookFrom(t, row) && w.isMaster(t.To) {
			brought = brought.Add(t.Amount)
		}
	}

	if brought.IsZero() {
		return nil
	}

	ids := w.waitingAt(network, row)
	ids = ids[:min(len(ids), mostChosen)]

	type choice struct {
		ids    []string
		excess chain.Amount
	}

	var choices []choice

	for bits := range 1 << len(ids) {
		var (
			c   choice
			sum chain.Amount
		)

		for i, id := range ids {
			if bits>>i&1 == 1 {
				c.ids, sum = append(c.ids, id), sum.Add(w.oracle.records.settlements[id].Gross)
			}
		}

		if !sum.Less(brought) {
			c.excess = sum.Sub(brought)
			choices = append(choices, c)
		}
	}

	slices.SortStableFunc(choices, func(a, b choice) int { return a.excess.Cmp(b.excess) })

	groups := make([][]string, len(choices))
	for i, c := range choices {
		groups[i] = c.ids
	}

	return groups
}

// spentBy returns the settlements whose coins a transaction spent, as one meaning for each merchant: after a restore an
// address may be another one's.
func (w *harness) spentBy(network string, row wallet.Outgoing) [][]string {
	rows, err := w.store.UnrecordedOutgoing(w.ctx, network, "", w.clock.now().Add(-walletstate.ForeignFor))
	must(err)

	ids := map[event.Owner][]string{}

	for id, s := range w.oracle.records.settlements {
		p := w.oracle.records.payments[s.PaymentID]
		coin := chain.Outpoint{TxHash: p.TxHash, Vout: p.TxIndex}

		if s.Network == network && waits(s) && slices.ContainsFunc(rows, func(of wallet.Outgoing) bool {
			return of.TxHash == row.TxHash && of.Outpoint == coin
		}) {
			ids[s.Owner] = append(ids[s.Owner], id)
		}
	}

	var groups [][]string

	for _, m := range w.merchants {
		if of := ids[m.owner]; len(of) > 0 {
			slices.Sort(of)
			groups = append(groups, of)
		}
	}

	return groups
}

// waits reports whether a settlement has not ended.
func waits(s settlement.Settlement) bool {
	return s.Status == settlement.Pending || s.Status == settlement.Held || s.Status == settlement.Releasing
}

// tookFrom reports whether a transfer took money from the address of a row; that of spent outputs names no sender.
func tookFrom(t chain.Transfer, row wallet.Outgoing) bool {
	return t.From == row.Address || t.From == ""
}

// mostChosen bounds the settlements of which sweptBy tries every choice.
const mostChosen = 8

// waitingAt returns the settlements that wait at the address that a transaction took money from, of the asset that it
// took, and whose payments came before it, oldest first.
func (w *harness) waitingAt(network string, row wallet.Outgoing) (ids []string) {
	for id, s := range w.oracle.records.settlements {
		p := w.oracle.records.payments[s.PaymentID]
		before := p.TxHash == "" || p.Block.Height <= row.Block.Height

		if s.Network != network || s.Deposit.Address != row.Address || !waits(s) || !before {
			continue
		}

		if slices.ContainsFunc(row.Transfers, func(t chain.Transfer) bool {
			return tookFrom(t, row) && t.AssetID == s.AssetID && w.isMaster(t.To)
		}) {
			ids = append(ids, id)
		}
	}

	slices.Sort(ids)

	return ids
}

// isMaster reports whether an address is a merchant's master wallet, also one that restored records lack.
func (w *harness) isMaster(address chain.Address) bool {
	return slices.ContainsFunc(
		w.merchants,
		func(m *merchant) bool { return slices.Contains(m.wallets, address) },
	)
}

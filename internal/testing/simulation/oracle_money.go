package simulation

import (
	"time"

	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// The rules of money.
const (
	ruleConfirmed = "confirmed is what arrived"
	ruleDepth     = "confirmed is as deep as the network asks for"
	rulePublished = "what arrived is published"
	ruleSent      = "what left is recorded, once"
	ruleFailed    = "what failed sent nothing"
	ruleReserved  = "reserved is what is under way"
	ruleSpendable = "available is what can be spent"
	ruleAudit     = "the audit sees every difference"
	ruleFinal     = "a fork below finality stops the network"
	ruleStored    = "signed bytes are stored before they are sent"
)

// checkConfirmed compares the sums of confirmed payments with what arrived up to the block that was read.
func (o *oracle) checkConfirmed(c *commit) {
	if len(c.cursors) > 0 {
		for at, sum := range o.records.confirmed {
			o.checkPlace(at, sum)
		}

		return
	}

	for _, p := range c.payments {
		o.checkPlace(placeOf(p), o.records.confirmed[placeOf(p)])
	}
}

func (o *oracle) checkPlace(at place, sum chain.Amount) {
	if sum.IsZero() {
		return
	}

	cursor := o.records.cursors[at.network]

	arrived, known := o.ledgers[at.network].arrived(cursor.At.Hash, at.Holding)
	if !known {
		o.violate(
			ruleConfirmed,
			"%s was read up to block %s, which never was in the chain",
			at.network,
			cursor.At.Hash,
		)

		return
	}

	if arrived.foreign.Less(sum) {
		o.violate(
			ruleConfirmed, "%s of %s is confirmed at %s, and %s arrived up to block %d",
			sum, o.symbol(at), at.Address, arrived.foreign, cursor.At.Height,
		)
	}
}

// checkDepth checks that the block of a payment that confirms has as many blocks on it as the network asks for.
func (o *oracle) checkDepth(c *commit, p invoice.Payment) {
	read := o.records.cursors[p.Network].At.Height

	for _, cursor := range c.cursors {
		if cursor.Network == p.Network {
			read = cursor.At.Height
		}
	}

	if !p.Simulated && read+1 < p.Block.Height+confirmations {
		o.violate(ruleDepth, "payment %s of block %d is confirmed at block %d", p.ID, p.Block.Height, read)
	}
}

func (o *oracle) symbol(at place) string {
	for _, asset := range o.ledgers[at.network].network.assets() {
		if asset.ID == at.AssetID {
			return asset.Symbol
		}
	}

	return at.AssetID
}

// left checks a transaction that one of our wallets or addresses sent.
func (o *oracle) sent(l *ledger, tx truthTx) {
	if _, stolen := o.thefts[tx.hash]; stolen {
		return
	}

	for _, t := range tx.shown {
		at := place{l.network.slug(), chain.Holding{Address: t.To, AssetID: t.AssetID}}
		if t.To == t.From || l.ours[t.To] || t.To == l.network.feeAddress() || o.asked[at] != nil {
			continue
		}

		if t.From != tx.sender {
			continue // a token's own fee
		}

		o.violate(ruleSent, "%s left %s for %s, which nobody asked for (%s)", t.Amount, t.From, t.To, tx.hash)
	}
}

// checkStored checks that bytes which a process gives to a node are on record: should it die now, they are known.
func (o *oracle) checkStored(network string, signed chain.Signed) {
	stored, err := o.harness.store.OwnTransactions(o.harness.ctx, network, []string{signed.TxHash})
	must(err)

	if len(stored) == 0 {
		o.violate(ruleStored, "transaction %s of %s is sent and is not on record", signed.TxHash, network)
	}
}

// checkSent compares what arrived at the destinations of payouts with what was asked for.
func (o *oracle) checkSent(l *ledger) {
	tip := l.tip()

	for at, asked := range o.asked {
		if at.network != l.network.slug() {
			continue
		}

		arrived := tip.arrived[at.Holding].all
		if arrived.IsZero() {
			continue
		}

		most, live := chain.Amount{}, chain.Amount{}

		for id, amount := range asked {
			most = most.Add(amount)
			if p, known := o.records.payouts[id]; !known || p.Status != payout.Failed {
				live = live.Add(amount)
			}
		}

		switch {
		case most.Less(arrived):
			o.violate(ruleSent, "%s was asked for at %s and %s arrived", most, at.Address, arrived)
		case live.Less(arrived):
			o.violate(ruleFailed, "a payout to %s is recorded as failed, and %s arrived", at.Address, arrived)
		}
	}
}

// checkFailed checks a payout or a settlement that has just failed against the chain as it is.
func (o *oracle) checkFailedPayout(p payout.Payout) {
	if p.FailureCode == "conflict" && !o.lost && !o.hasStolen(p.Network) && !o.isDisplaced(p.Network) &&
		!o.displacedItself(p) {
		o.violate(ruleFailed, "payout %s failed as conflict, and nobody else has the wallet's key", p.ID)
	}

	at := chain.Holding{Address: p.Destination, AssetID: p.AssetID}
	if arrived := o.ledgers[p.Network].tip().arrived[at].all; !arrived.IsZero() {
		o.violate(
			ruleFailed,
			"payout %s failed as %s, and %s arrived at its destination",
			p.ID,
			p.FailureCode,
			arrived,
		)
	}
}

// cancelAfter is how long a wallet waits for a transaction that pays too little before it displaces it.
const cancelAfter = 6 * time.Hour

// displacedItself reports whether a payout's own wallet displaced it by a transaction in the chain, after its time.
func (o *oracle) displacedItself(p payout.Payout) bool {
	if !p.Conflict.Own || o.harness.clock.now().Sub(p.CreatedAt) < cancelAfter {
		return false
	}

	_, included := o.ledgers[p.Network].heights[p.Conflict.TxHash]

	return included
}

// checkConfirmedPayout checks that a payout that is confirmed is in the chain, as deep as its network asks for.
func (o *oracle) checkConfirmedPayout(p payout.Payout) {
	l := o.ledgers[p.Network]
	height, known := l.heights[p.TxHash]

	if tip := l.tip().ref.Height; !known || tip+1 < height+confirmations {
		o.violate(
			ruleDepth,
			"payout %s is confirmed by block %d at block %d (%s)",
			p.ID,
			height,
			tip,
			p.TxHash,
		)
	}
}

// checkOrphanSettlements checks that no settlement stands for a payment that is gone.
func (o *oracle) checkOrphanSettlements() {
	for id, s := range o.records.settlements {
		if p := o.records.payments[s.PaymentID]; p.Status == invoice.Confirmed ||
			s.Status == settlement.Failed ||
			s.Status == settlement.Reverted {
			continue
		}

		o.violate(ruleConfirmed, "settlement %s is %s, and its payment is not confirmed", id, s.Status)
	}
}

func (o *oracle) checkFailedSettlement(s settlement.Settlement) {
	if s.Reason != settlement.TransactionFailed || s.SweepTx == "" {
		return
	}

	l := o.ledgers[s.Network]

	for height := l.tip().ref.Height; height > 0 && height+100 > l.tip().ref.Height; height-- {
		for _, tx := range l.network.block(height).txs {
			if tx.hash == s.SweepTx && !tx.failed {
				o.violate(
					ruleFailed,
					"settlement %s failed as %s, and its sweep is in block %d",
					s.ID,
					s.Reason,
					height,
				)
			}
		}
	}
}

// checkStopped checks that a network that is stopped has forked, and that one that has forked below what it called
// final is not read on before a person says so: that forgets what was final. What is not read yet may be the word of
// one node, and nothing was taken from it.
func (o *oracle) checkStopped(before, after scan.Cursor) {
	l := o.ledgers[after.Network]
	if before.Stopped == "" && !before.Final.IsZero() && before.Final.Height <= before.At.Height &&
		!l.has(before.Final) && after.Stopped == "" && after.At != before.At && l.has(after.At) {
		o.violate(
			ruleFinal, "%s is read on to block %d, and it forked below block %d, which was final",
			after.Network, after.At.Height, before.Final.Height,
		)
	}

	if before.Stopped != "" || after.Stopped == "" {
		return
	}

	if o.ledgers[after.Network].deepest == 0 {
		o.violate(
			ruleProgress,
			"%s was stopped, and its chain never forked: %s",
			after.Network,
			after.Stopped,
		)
	}
}

// checkPublished compares, once all is read, what arrived at every address that was ever shown with what is
// confirmed.
func (o *oracle) checkPublished() {
	for slug, l := range o.ledgers {
		for holding, arrived := range l.tip().arrived {
			if !o.records.addresses[holding.Address] || arrived.foreign.IsZero() ||
				o.isWallet(slug, holding.Address) {
				continue
			}

			at := place{slug, holding}
			if recorded := o.records.confirmed[at]; arrived.foreign.Less(recorded) ||
				recorded.Add(o.records.before[at]).Less(arrived.foreign) {
				o.violate(
					rulePublished, "%s of %s arrived at %s, and %s is recorded as confirmed",
					arrived.foreign, o.symbol(at), holding.Address, recorded,
				)
			}
		}
	}
}

// isWallet reports whether an address is a master wallet: what arrives there is no payment.
func (o *oracle) isWallet(network string, address chain.Address) bool {
	for at := range o.records.balances {
		if at.network == network && at.Address == address {
			return true
		}
	}

	return false
}

// checkReservedFor checks that what a payout that waits may take is reserved: its amount and its highest fee.
func (o *oracle) checkReservedFor(c *commit) {
	for id, p := range c.payouts {
		if p.Status != payout.Pending {
			continue
		}

		var reserved, needed chain.Amount

		for at, b := range o.records.balances {
			for _, r := range b.Reservations {
				if at.network == p.Network && r.ObjectID == id && !r.Unreserved {
					reserved = reserved.Add(r.Amount)
				}
			}
		}

		if needed = p.Amount.Add(p.MaxNetworkFee); reserved != needed {
			o.violate(ruleReserved, "payout %s may take %s, and %s is reserved for it", id, needed, reserved)
		}
	}
}

// checkReserved checks that nothing is reserved, but for payouts that wait for outputs that a fork took away.
func (o *oracle) checkReserved() {
	waiting := o.harness.awaitingOutputs()

	for at, b := range o.records.balances {
		if !b.Reserved.IsZero() && !holds(waiting, at.Address) {
			o.violate(
				ruleReserved, "%s of %s is reserved in wallet %s, and nothing is under way",
				b.Reserved, o.symbol(at), at.Address,
			)
		}
	}
}

// checkAudit compares the service's own audit with the truth.
func (o *oracle) checkAudit(wantClean bool) {
	report, err := o.harness.processes[0].alive().Audit(o.harness.ctx)
	if err != nil {
		o.violate(ruleAudit, "the audit failed: %v", err)
		return
	}

	if wantClean && !report.Clean() {
		for _, d := range report.Differences() {
			money := d.Kind == audit.MoneyUnexplained || d.Kind == audit.MoneyMissing
			if money && o.wasLost(d.Address, d.AssetID) {
				continue // the records that knew it, or what took it, were lost, and the audit says so
			}

			o.violate(ruleAudit, "%s at %s: %s", d.Kind, d.Address, d.Message)
		}
	}

	if !wantClean && report.Clean() {
		o.violate(ruleAudit, "money arrived that no record shows, and the audit is clean")
	}
}

// wasLost reports whether something had arrived at an address before it was shown.
func (o *oracle) wasLost(address chain.Address, assetID string) bool {
	for at := range o.records.before {
		if at.Address == address && at.AssetID == assetID {
			return true
		}
	}

	return false
}

// wasTakenBefore reports whether the money of a settlement may have been taken before the address was shown again whose
// records were lost: a hint shows its payment, and no block that is read what took it.
func (o *oracle) wasTakenBefore(s settlement.Settlement) bool {
	return s.Status == settlement.Failed && s.Reason == settlement.FundsMissing &&
		o.wasLost(s.Deposit.Address, s.AssetID)
}

// untold reports whether something arrived that is not published.
func (o *oracle) untold() bool {
	for slug, l := range o.ledgers {
		for holding, arrived := range l.tip().arrived {
			if o.records.addresses[holding.Address] && !o.isWallet(slug, holding.Address) &&
				o.records.confirmed[place{slug, holding}].Less(arrived.foreign) {
				return true
			}
		}
	}

	return false
}

// ended reports whether a payment waits for nothing.
func ended(p invoice.Payment) bool {
	return p.Status == invoice.Confirmed || p.Status == invoice.Dropped
}

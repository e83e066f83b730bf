package simulation

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// ruleCeiling bounds what nodes may have us pay, whatever they say of prices and gas.
const ruleCeiling = "no transaction costs more than its kind may"

// ceilings is a network whose oracle knows what transactions may cost.
type ceilings interface {
	// ceiling returns the most that a transaction of a kind may cost, in base units of the native coin.
	ceiling(kind wallet.Kind, tx truthTx) chain.Amount
}

// checkCost checks what a transaction of ours in a block cost. One of lost records has no kind: it is as any other.
func (o *oracle) checkCost(l *ledger, tx truthTx) {
	n, bounded := l.network.(ceilings)
	if _, stolen := o.thefts[tx.hash]; stolen || !bounded {
		return
	}

	stored, err := o.harness.store.OwnTransactions(o.harness.ctx, l.network.slug(), []string{tx.hash})
	must(err)

	kind := stored[tx.hash].Kind
	if most := n.ceiling(kind, tx); most.Less(tx.fee) {
		o.violate(
			ruleCeiling, "transaction %s, a %s of %s, cost %s, and may cost %s",
			tx.hash, kind, tx.sender, tx.fee, most,
		)
	}
}

const (
	// planned is what a maximum fee is of what a transaction offers when it is planned, and nodeMay what a node may
	// name alone of what blocks show.
	planned = 2
	nodeMay = 2
	// smallFee is the maximum fee that a payout may have whatever it pays, in US dollars, and lowestPrice what the coin
	// costs at least.
	smallFee    = 5
	lowestPrice = 1500
)

// ceiling multiplies the highest price that was ever asked for with the gas of the receivers by the dearest rules. A
// payout, and a sweep of coin, costs no more than half of what it moves beside that.
func (n *accountNetwork) ceiling(kind wallet.Kind, tx truthTx) chain.Amount {
	price := chain.Units(2*n.highest + sim.DefaultPriority).Mul(planned * nodeMay)
	if kind == wallet.Cancel {
		price = price.Mul(2) // of what it displaces
	}

	gas, moved, coin := uint64(0), chain.Amount{}, true

	for _, t := range tx.shown {
		if t.From != tx.sender {
			continue
		}

		most := max(sim.GasNative, n.rules.Native+n.rules.NewAccount)
		if t.AssetID != n.native() {
			most, coin = max(sim.GasToken, n.rules.Token+n.rules.NewSlot), false
		}

		gas += most
		moved = moved.Add(t.Amount)
	}

	if tx.failed { // it shows nothing of what it would have paid
		gas = uint64(
			n.MaxOutputs(),
		) * max(
			sim.GasToken,
			n.rules.Native+n.rules.NewAccount,
			n.rules.Token+n.rules.NewSlot,
		)
	}

	most := price.Mul(gas)

	switch {
	case tx.failed || !coin:
	case kind == wallet.Sweep:
		most = chaindata.Min(most, moved)
	case kind == wallet.Payout:
		small := chain.Pow10(18).Mul(smallFee).Share(chain.Units(1), chain.Units(lowestPrice))
		most = chaindata.Min(
			most,
			chaindata.Max(moved.Share(chain.Units(1), chain.Units(2)), small.Mul(uint64(n.MaxOutputs()))),
		)
	default:
	}

	return most
}

func (n *accountNetwork) native() string {
	native, _ := n.described.Native()

	return native.ID
}

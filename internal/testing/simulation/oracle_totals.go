package simulation

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/settlement"
)

// checkTotals checks that no settlement of a release shows more as released than was its own, unless more arrived than
// was all of theirs.
func (o *oracle) checkTotals(all []settlement.Settlement) {
	var own, net chain.Amount

	for _, s := range all {
		own, net = own.Add(ownOf(s)), net.Add(*s.NetReleased)
	}

	for _, s := range all {
		if !own.Less(net) && ownOf(s).Less(*s.NetReleased) {
			o.violate(
				ruleTotals, "settlement %s of %s shows %s as released, of %s that was its own",
				s.ID, s.Gross, *s.NetReleased, ownOf(s),
			)
		}
	}
}

// checkNative checks that what was released of native coin at each address is what became of it, to the base unit: the
// deposits and the residue before are what was released, both fees, and the residue after. A later release may have
// claimed what an earlier one brought, or borne what it cost; what other assets of the address cost is in the residue.
// What a sweep took beyond its deposits, the address owes until a later release bears it, and so is what one cost whose
// payment is gone. Where a settlement waits that shows costs, they were taken from what it holds, or from what others
// do: its address is left out.
func (o *oracle) checkNative() {
	in, out, skipped := map[place]chain.Amount{}, map[place]chain.Amount{}, map[place]bool{}

	for _, s := range o.records.settlements {
		at := place{s.Network, chain.Holding{Address: s.Deposit.Address}}
		if o.ledgers[s.Network].exact { // its release spends the coins of many addresses
			at.Address = chain.Address(s.SweepID)
		}

		if s.Status != settlement.Released || s.NetReleased == nil || s.Simulated || o.moved[s.ID] ||
			s.FeeSource != settlement.FromDeposit {
			costs := s.FeePaid.Add(s.NetworkFees)
			skipped[at] = skipped[at] || s.SweepID != "" || waits(s) && !costs.IsZero()

			if s.FeeSource == settlement.FromDeposit && s.Status == settlement.Failed &&
				s.Reason == settlement.PaymentOrphaned {
				out[at] = out[at].Add(costs)
			}

			continue
		}

		in[at] = in[at].Add(s.Gross).Add(s.ResidueIn)
		out[at] = out[at].Add(*s.NetReleased).Add(s.ResidueOut).Add(s.FeePaid).Add(s.NetworkFees)
	}

	for at, took := range in {
		row, _, err := o.harness.store.Residue(o.harness.ctx, at.network, at.Address)
		must(err)

		took = took.Add(row.Owed)
		if took != out[at] && !skipped[at] {
			o.violate(
				ruleTotals, "releases from %s took %s, and settlements show %s", at.Address, took, out[at],
			)
		}
	}
}

// ownOf returns what is left of a deposit when it has paid its own costs.
func ownOf(s settlement.Settlement) chain.Amount {
	if s.FeeSource == settlement.FromDeposit {
		return s.Gross.SubFloor(s.FeePaid).SubFloor(s.NetworkFees)
	}

	return s.Gross
}

// checkFeesPaid compares, at rest, what settlements say was paid of platform fees with what reached the fee addresses.
// What one that was released has left to later ones it has not paid itself.
func (o *oracle) checkFeesPaid() {
	paid := map[string]chain.Amount{}

	for _, s := range o.records.settlements {
		if s.Simulated {
			continue
		}

		paid[s.Network] = paid[s.Network].Add(s.FeePaid)

		if s.Status == settlement.Released && s.FeeCarried.Less(s.CarriedOut) && !o.lost {
			o.violate(
				ruleSums, "settlement %s left %s of its fee to later ones, and %s of it is not paid",
				s.ID, s.CarriedOut, s.FeeCarried,
			)
		}
	}

	for slug, l := range o.ledgers {
		var reached chain.Amount

		for at, arrived := range l.tip().arrived {
			if at.Address == l.network.feeAddress() {
				reached = reached.Add(arrived.all)
			}
		}

		if reached != paid[slug] && !o.lost {
			o.violate(
				ruleSums,
				"%s of fees were paid on %s, and settlements say %s",
				reached,
				slug,
				paid[slug],
			)
		}
	}
}

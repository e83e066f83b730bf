package sweep

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/settlementstate"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/settlement"
)

// net divides arrived (base units) among the settlements. Each gets its deposit less what it paid
// itself, and nothing where that is more. The oldest that has something bears a shortfall (what others could not bear,
// residue, token fees). Where more arrived than that, it is split by gross.
func (g group) net(arrived chain.Amount) []chain.Amount { // spec D4.18
	if len(g) == 0 {
		return nil // its payments came back after a later release had claimed what it brought
	}

	net := make([]chain.Amount, len(g))

	var sum chain.Amount

	for i, s := range g {
		net[i] = leftOfGross(s)
		sum = sum.Add(net[i])
	}

	if sum.Less(arrived) {
		return settlementstate.Split(arrived, grossOfEach(g))
	}

	short := sum.Sub(arrived)
	for i := range net {
		take := chaindata.Min(short, net[i])
		net[i], short = net[i].Sub(take), short.Sub(take)
	}

	return net
}

// leftOfGross returns a deposit less what it paid itself, in base units.
func leftOfGross(s settlement.Settlement) chain.Amount {
	return s.Gross.SubFloor(group{s}.spent())
}

// arrivedBy returns what a sweep brought to the master wallet, in base units of the asset: the net of the logs,
// because a token may say the gross amount and take its fee from the receiver by a second log. Coins that lost records
// held beside those of the release were not its own.
func arrivedBy(r *settlement.Sweep, sweep wallet.Transaction) (sum chain.Amount) {
	var taken chain.Amount

	for _, m := range sweep.Transfers {
		if m.From == r.Master.Address && m.AssetID == r.AssetID && m.To != r.Master.Address {
			taken = taken.Add(m.Amount)
		}
	}

	sum = sentToMaster(r, sweep.Transfers).SubFloor(taken)
	if walletstate.SpentCoins(sweep) {
		sum = chaindata.Min(sum, r.Amount.SubFloor(sweep.Fee))
	}

	return sum
}

// sentToMaster returns what transfers say was sent to the master wallet, in base units of the asset.
func sentToMaster(r *settlement.Sweep, transfers []chain.Transfer) chain.Amount {
	return sentTo(r.Master.Address, r.AssetID, transfers)
}

// sentTo returns what transfers say was sent to an address, in base units of the asset.
func sentTo(to chain.Address, assetID string, transfers []chain.Transfer) (sum chain.Amount) {
	for _, m := range transfers {
		if m.To == to && m.AssetID == assetID {
			sum = sum.Add(m.Amount)
		}
	}

	return sum
}

// grossOfEach returns the gross of each settlement, in base units.
func grossOfEach(g []settlement.Settlement) []chain.Amount {
	out := make([]chain.Amount, len(g))
	for i, s := range g {
		out[i] = s.Gross
	}

	return out
}

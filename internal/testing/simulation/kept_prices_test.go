package simulation

import "github.com/seed-8ee7f392/payments/internal/testing/sim"

// keptPrices are the kept plans of nodes that lie about prices and gas. The first two break ruleCeiling where prices
// are not bounded.
var keptPrices = map[string]Plan{
	"prices 1: a sweep paid what one of two nodes named": {
		Seed:      1,
		Processes: 1,
		Networks:  1,
		Nodes:     2,
		Finality:  true,
		Batch:     1,
		Epochs:    true,
		Late:      true,
		Wide:      true,
		Ops: []Op{
			{LiePrices, 17756070517055920285, 16368663760121286447, 8399221699905081037},
			{Wait, 5840843085605197026, 5070215309060798432, 1163674508515067858},
		},
	},
	"prices 7: a payout paid what one of two nodes named": {
		Seed:      7,
		Processes: 2,
		Networks:  1,
		Nodes:     2,
		Batch:     8,
		Epochs:    true,
		Apart:     true,
		Late:      true,
		Wide:      true,
		Ops: []Op{
			{Step, 7414524157464419795, 11335921630593917378, 13759269100646639909},
			{LiePrices, 3475132191512958888, 18158829604086359534, 9311343957037527062},
			{CreatePayout, 16122615071978926138, 13614561998455888011, 9475889307600012913},
			{Wait, 15881734913744632193, 8592719534850854572, 4861024751626151021},
		},
	},
	"prices 45: a cancel could never pay for what bytes of hardly any gas offered": {
		Seed:      45,
		Processes: 1,
		Networks:  2,
		Nodes:     1,
		Finality:  true,
		Batch:     8,
		Epochs:    true,
		Apart:     true,
		Late:      true,
		Wide:      true,
		Ops: []Op{
			{FeeSpike, 5825593815720116396, 17897915300023926711, 10193794796252145793},
			{LiePrices, 555099254810946753, 7843204791364445206, 1725229783291348632},
			{Wait, 9108423824592731886, 5100712206753305488, 4523938609071994569},
		},
	},
	"gas 19: the same, before gas becomes cheaper": {
		Seed:      19,
		Processes: 1,
		Networks:  1,
		Batch:     1,
		Epochs:    true,
		Apart:     true,
		Late:      true,
		Wide:      true,
		GasFork:   139,
		GasRules:  sim.GasRules{Native: 12_000, Token: 30_000},
		Ops: []Op{
			{LiePrices, 12555112738477787749, 6969067920631881707, 14566253441258744033},
			{FeeSpike, 763923876207530123, 8619400226676663872, 8990212503216234383},
			{Wait, 12651781400145978808, 3249759579518126688, 14614633093936213433},
		},
	},
}

package simulation

import "testing"

// thiefOps are what was left of the first seed that a thief failed, when it was shrunk: a settlement failed because its
// transaction could not be signed, and a fork brought its payment back with another amount. The settlement kept the
// amount of the lost branch, and the money that it asked for was never there.
var thiefOps = []Op{
	{CreateInvoice, 9619417467517585296, 16641135697430656801, 13631297563604766184},
	{Steal, 7263010474144275099, 14695136347026564356, 10065544008137360044},
	{Mine, 14807944083798223702, 5416896744533986871, 15984603270542187401},
	{Wait, 12884931616239230455, 6342347295206715418, 11936401899897720273},
	{Wait, 1927529111088696038, 13044669706385774046, 16292554490055133541},
	{PayVariable, 2746403168688327512, 18327984356832442020, 13866678141806083281},
	{Wait, 12379129763207401687, 9116218796060973010, 430117328649700546},
	{ForkChain, 5035803090977174957, 2649156031909577484, 13727274320351924420},
	{Wait, 13084448276579649811, 3765229623920378199, 7332691100387263677},
	{Heal, 18239615597897119795, 5947695546719408942, 12915229554801193649},
	{Step, 8360009883132103546, 14679538915894796256, 9564328992526333071},
	{KillProcess, 2539710113478036625, 17849074063597764097, 2202328088059899735},
	{SignerState, 12894441015586960451, 7508011706844055423, 7054202665702120421},
	{Wait, 11936740568488563798, 7795900604168380117, 1246735855614657556},
	{ForkDeep, 7830632879129387967, 8685252342383768695, 4265382897766857510},
}

func TestFailedSettlementFollowsItsPaymentToAnotherBranch(t *testing.T) {
	plan := NewPlan(9, 0)
	plan.Ops = thiefOps

	for _, v := range run(t, plan).Violations {
		t.Error(v)
	}
}

// A thief spends from a master wallet: it is frozen until a person has said so, and nothing is signed meanwhile.
func TestThiefFreezesTheWallet(t *testing.T) {
	for seed := range uint64(4) {
		plan := Plan{Seed: seed, Processes: 1 + int(seed%3), Networks: 1, Finality: seed%2 == 0, Epochs: true}
		plan.Ops = []Op{
			{CreatePayout, 0, 0, 1},
			{Steal, 0, 0, seed},
			{CreatePayout, 0, 0, 1},
			{Wait, 1, 1, 0},
			{CreatePayout, 0, 0, 1},
			{AuditNow, 0, 0, 0},
			{Wait, 9, 1, 0},
			{WorkOn, 0, 0, 0},
			{Heal, 0, 0, 0},
		}

		r := run(t, plan)
		for _, v := range r.Violations {
			t.Error(v)
		}

		if r.Account.Counts["theft"] == 0 {
			t.Error("nothing was stolen")
		}
	}
}

// While an audit asks its node another process reads the block of a theft: the audit is compared at its own.
func TestAuditIsComparedAtItsBlock(t *testing.T) {
	plan := Plan{Seed: 216, Processes: 2, Networks: 2, Batch: 8, Epochs: true}
	plan.Ops = []Op{
		{CreatePayout, 204890803965041018, 5787153301218913518, 2273586161406499642},
		{Wait, 3267676774988724174, 11030584645629642066, 39803919387776627},
		{Steal, 3450518425172005866, 7830038250933096799, 9353965584485229366},
		{PauseInCall, 4760374885038946961, 2985207041443136220, 8154531740926198261},
		{AuditNow, 10562218329691425945, 2737556232801120241, 12081544591063416986},
	}

	r := run(t, plan)
	for _, v := range r.Violations {
		t.Error(v)
	}

	if r.Account.Counts["theft"] == 0 {
		t.Error("nothing was stolen")
	}
}

// A thief uses a wallet just before it is on record, while a node that lags counts none of its transactions: what the
// wallet did before is nobody's to watch, and an audit does not go on reporting it. What was left of seed 2000137.
func TestTheftBeforeTheWalletIsOnRecord(t *testing.T) {
	plan := NewPlan(2000137, 0)
	plan.Ops = []Op{
		{LagFar, 1944085856746963596, 15205659327372832127, 2006033918512017995},
		{StoreSlow, 15052762395116774581, 12197808465118898043, 17129613914068086748},
		{Steal, 10925509497017699605, 7373370476240137443, 6606691329867628512},
		{CreatePayout, 17716491119408449139, 15164885974835793353, 10789993785890799965},
		{Wait, 15613414891709614862, 16352832433944545840, 2722466447987334299},
	}

	for _, v := range run(t, plan).Violations {
		t.Error(v)
	}
}

package ledger

import (
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/settlement"
)

// allocate says who bears and who gets what the transactions of a plan did. It is the whole rule of decisions part 4.
//
// Only members count whose payments the canonical chain holds and that no earlier plan released. They bear network
// costs by gross (by input where outputs are spent). The platform fee pays what they owe, the oldest first. Of what
// arrived each has its own: its gross less what it bore itself. The oldest bears a shortfall, and more than that is
// split by gross. What nobody bears or claims is brought forward to the next plan of the place.
func (w *fold) allocate(p Plan) {
	native, of := w.asset(w.facts.Native), w.asset(p.AssetID)
	members := w.standing(p.Members)
	residueIn := native.beyond.free

	// Network costs and top-ups.
	for _, part := range p.parts() {
		bearers := w.standing(part.members)
		for i, share := range w.split(part.cost(), bearers) {
			native.beyond = bearers[i].bear(native.beyond, &bearers[i].shown.NetworkFees, share)
		}

		native.beyond = native.beyond.plus(part.brought(), part.paidAtPlace())
	}

	// The platform fee.
	paid := p.feePaid()
	if p.isOf(w.facts.Native) {
		native.beyond = native.beyond.plus(chain.Amount{}, paid)
	}

	w.payFee(p, members, w.ahead.Add(paid), native)

	// What arrived.
	if swept, sent, arrived := p.swept(); swept || w.claims(p, members) {
		w.release(p, of, sent, arrived)
	}

	// What a transaction of outputs did concerns nobody else's.
	if w.facts.SpendsOutputs {
		*of, *native, w.ahead = asset{withheld: of.withheld}, asset{withheld: native.withheld}, chain.Amount{}
	}

	w.show(p, members, residueIn, native.beyond.free)
}

// bear has a holder bear an amount of native coin, in base units. What a deposit bears itself is not owed at its place,
// whose balance it returns.
func (h *holder) bear(at balance, figure *chain.Amount, amount chain.Amount) balance {
	*figure = figure.Add(amount)

	if h.Source == settlement.FromDeposit {
		return at.plus(amount, chain.Amount{})
	}

	return at
}

// payFee has members pay what they owe of the platform fee, the oldest first, out of what was paid. The bearer takes
// over what the plan carries, of a plan that is over without a sweep as far as it was paid. What is paid beyond is
// ahead.
func (w *fold) payFee(p Plan, members []*holder, paid chain.Amount, native *asset) {
	pay := func(h *holder, upTo chain.Amount) {
		part := chaindata.Min(paid, upTo)
		native.beyond = h.bear(native.beyond, &h.shown.FeePaid, part)
		h.shown.FeeCarried = h.shown.FeeCarried.Sub(part)
		paid = paid.Sub(part)
	}
	take := func(h *holder, amount chain.Amount) {
		h.shown.CarriedIn, h.shown.FeeCarried = h.shown.CarriedIn.Add(amount), h.shown.FeeCarried.Add(amount)
		w.carryIn = w.carryIn.Add(amount)
	}

	bearer := slices.IndexFunc(members, func(h *holder) bool { return h.ID == p.Bearer })

	switch {
	case !p.isStarted() && !p.Over:
		w.carryIn = w.carryIn.Add(p.CarryIn) // its bearer starts with it
	case bearer >= 0 && !p.cameToNothing():
		take(members[bearer], p.CarryIn)
	}

	for _, h := range members {
		pay(h, h.shown.FeeCarried)
	}

	if bearer >= 0 && p.cameToNothing() {
		more := chaindata.Min(paid, p.CarryIn)
		take(members[bearer], more)
		pay(members[bearer], more)
	}

	w.ahead = paid

	underWay := p.feeUnderWay()
	for _, h := range members {
		part := chaindata.Min(underWay, h.shown.FeeCarried.SubFloor(h.waiting))
		h.waiting, underWay = h.waiting.Add(part), underWay.Sub(part)
	}
}

// release divides what a plan sent and what arrived of it, with what earlier plans brought and nobody claimed, in base
// units of its asset.
func (w *fold) release(p Plan, of *asset, sent, arrived chain.Amount) {
	members := w.standing(p.sweptMembers())
	own, sum := make([]chain.Amount, len(members)), chain.Amount{}

	of.beyond = of.beyond.plus(chain.Amount{}, sent)

	for i, h := range members {
		own[i] = h.own()
		sum = sum.Add(own[i])
		of.beyond = of.beyond.plus(h.Gross, h.spent())
	}

	broughtBy := of.broughtBy
	arrived = arrived.Add(of.unclaimed)
	of.unclaimed, of.broughtBy = arrived.SubFloor(sum), p.sweptBy(of.broughtBy)

	if len(members) == 0 {
		return
	}

	// What was taken out of the deposits of others is theirs.
	of.unclaimed = chaindata.Min(of.unclaimed, of.beyond.owed)
	arrived = arrived.Sub(of.unclaimed)

	if of.unclaimed.IsZero() {
		of.broughtBy = ""
	}

	if sum.Less(arrived) {
		own = Split(arrived, grossOf(members))
	} else {
		short := sum.Sub(arrived)
		for i := range own {
			part := chaindata.Min(short, own[i])
			own[i], short = own[i].Sub(part), short.Sub(part)
		}
	}

	for i, h := range members {
		h.shown.NetReleased, h.shown.PlanID = &own[i], p.ID
		h.shown.SweepTx = p.sweptBy(broughtBy)
	}
}

// claims reports whether a plan without transactions releases its members: earlier ones took all that they have.
func (w *fold) claims(p Plan, members []*holder) bool {
	of := w.asset(p.AssetID)
	if len(p.Steps) > 0 || len(members) == 0 || of.unclaimed.IsZero() {
		return false
	}

	var sum chain.Amount
	for _, h := range members {
		sum = sum.Add(h.own())
	}

	return !of.beyond.owed.Less(sum)
}

// show has the members of a plan show its transactions, and their shares of the free native coin before and after.
func (w *fold) show(p Plan, members []*holder, before, after chain.Amount) {
	in, out := Split(before, grossOf(members)), Split(after, grossOf(members))

	for i, h := range members {
		if p.isStarted() || p.Over {
			h.shown.ResidueIn, h.shown.ResidueOut = in[i], out[i]
		}
	}

	for _, id := range p.Members {
		h := w.byID[id]
		if h == nil {
			continue
		}

		h.plans = append(h.plans, p)
		if h.shown.NetReleased == nil || h.shown.PlanID == p.ID {
			h.shown.PlanID, h.shown.RequiredNative = p.ID, p.Required
			h.showHashes(p)
		}
	}
}

// showHashes sets the hashes of a plan's transactions that a settlement shows.
func (h *holder) showHashes(p Plan) {
	for _, step := range p.steps() {
		if step.TxHash == "" || step.Members != nil && !slices.Contains(step.Members, h.ID) {
			continue
		}

		switch step.Kind {
		case chain.StepTopUp:
			h.shown.TopUpTx = step.TxHash
		case chain.StepFee:
			h.shown.FeeTx = step.TxHash
		case chain.StepSweep:
			h.shown.SweepTx = step.TxHash
			if !step.PaysFee.IsZero() {
				h.shown.FeeTx = step.TxHash
			}
		case chain.StepDelegate: // it moves no coin, or pays for energy
		}
	}
}

// standing returns the holders of ids that the canonical chain holds and no earlier plan released, oldest first.
func (w *fold) standing(ids []string) (all []*holder) {
	for _, id := range ids {
		if h := w.byID[id]; h != nil && h.Canonical && h.shown.NetReleased == nil {
			all = append(all, h)
		}
	}

	slices.SortFunc(all, compareHolders)

	return all
}

// split divides network costs: by input where outputs are spent, none more than its deposit less the fee while others
// can bear it, else by gross.
func (w *fold) split(cost chain.Amount, among []*holder) []chain.Amount {
	if !w.facts.SpendsOutputs {
		return Split(cost, grossOf(among))
	}

	limits := make([]chain.Amount, len(among))
	for i, h := range among {
		limits[i] = h.Gross.SubFloor(h.Fee)
	}

	return SplitByInput(cost, limits)
}

// spent returns what a deposit paid itself, in base units of its asset.
func (h *holder) spent() chain.Amount {
	if h.Source != settlement.FromDeposit {
		return chain.Amount{}
	}

	return h.shown.FeePaid.Add(h.shown.NetworkFees)
}

// own returns what is left of a deposit, in base units.
func (h *holder) own() chain.Amount { return h.Gross.SubFloor(h.spent()) }

func grossOf(all []*holder) []chain.Amount {
	gross := make([]chain.Amount, len(all))
	for i, h := range all {
		gross[i] = h.Gross
	}

	return gross
}

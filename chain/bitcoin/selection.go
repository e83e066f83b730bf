package bitcoin

// Coin selection without I/O: the choice of the coins that pay for an order, and the amount of change.

import (
	"cmp"
	"errors"
	"slices"

	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
)

// selection is a set of coins with its fee and change. The value of the coins is the sum of payments, fee and
// change.
type selection struct {
	coins []candidate
	// fee is the network fee in satoshi.
	fee int64
	// change is the change output in satoshi; 0 when there is none.
	change int64
	// waste is Bitcoin Core's waste metric in satoshi; see selectCoins.
	waste int64
}

var (
	errShort = errors.New("the coins do not cover payments and fee")
	// errInexact means that the payments bear the fee, but no coins add up to them or exceed them by enough
	// for change.
	errInexact = errors.New("no choice of coins adds up to the payments")
	errHeavy   = errors.New("it takes more coins than fit into one transaction")
)

// selectCoins returns the least wasteful selection that pays the target. Selections within the target's
// maximum fee come first. The required coins are always in it, because a replacement must share them with the
// transactions that it displaces. Unconfirmed coins are used only if the confirmed ones are too few, or cost
// too much.
//
// Three selections are compared: coins that match without change (branch and bound), the smallest single coin
// that is enough, and the largest coins until they are enough. Waste is the cost of the inputs beyond their
// cost at longTermRate, plus the cost of making and spending change. Without change it is the amount that the
// miner gets beyond the fee.
//
// Source: Murch, "An Evaluation of Coin Selection Strategies" (2016), and Bitcoin Core's waste metric.
func selectCoins(target coinTarget, policy feePolicy, coins, required []candidate) (selection, error) {
	confirmed := slices.DeleteFunc(slices.Clone(coins), func(coin candidate) bool { return coin.Height == 0 })

	selected, err := selectFrom(target, policy, confirmed, required)
	if err == nil && target.allows(selected) || len(confirmed) == len(coins) {
		return selected, err
	}

	all, allErr := selectFrom(target, policy, slices.Clone(coins), required)
	if err == nil && (allErr != nil || !target.allows(all)) {
		return selected, nil
	}

	return all, allErr
}

// selectFrom returns the least wasteful selection of coins. It sorts coins, largest first.
func selectFrom(target coinTarget, policy feePolicy, coins, required []candidate) (selection, error) {
	slices.SortFunc(coins, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(b.value, a.value), cmp.Compare(a.Outpoint.TxHash, b.Outpoint.TxHash),
			cmp.Compare(a.Outpoint.Vout, b.Outpoint.Vout),
		)
	})

	var best *selection

	reason := errShort
	try := func(chosen []candidate) bool {
		selected, err := target.evaluate(policy, slices.Concat(required, chosen))
		switch {
		case err != nil && !errors.Is(err, errShort):
			reason = err
		case err == nil && (best == nil || target.prefers(selected, *best)):
			best = &selected
		}

		return err == nil
	}

	if len(required) == 0 || !try(nil) {
		have := sumOf(required)

		try(target.branchAndBound(policy, coins, have.value))

		for i := len(coins) - 1; i >= 0; i-- { // the smallest coin that is enough
			if _, _, err := target.settle(policy, have.with(coins[i])); err == nil {
				try(coins[i : i+1])
				break
			}
		}

		sum := have
		for i, coin := range coins { // the largest coins until they are enough
			sum = sum.with(coin)

			_, _, err := target.settle(policy, sum)
			if err == nil || errors.Is(err, errHeavy) {
				try(coins[:i+1])
				break
			}

			if !errors.Is(err, errShort) {
				reason = err
			}
		}
	}

	if best == nil {
		return selection{}, reason
	}

	return *best, nil
}

// coinSum is the sum of coins: their number, their value in satoshi and the weight of their inputs.
type coinSum struct {
	coins         int
	value, weight int64
}

func sumOf(coins []candidate) (sum coinSum) {
	for _, coin := range coins {
		sum = sum.with(coin)
	}

	return sum
}

// with returns the sum with one more coin.
func (s coinSum) with(coin candidate) coinSum {
	return coinSum{s.coins + 1, s.value + coin.value, s.weight + coin.weight()}
}

// candidate is a coin that this package can sign for.
type candidate struct {
	chain.Coin
	// value is Coin.Amount in satoshi.
	value int64
	// script is the output script.
	script  []byte
	taproot bool
}

// weight returns the weight of the input that spends the coin, in weight units.
func (c candidate) weight() int64 {
	if c.taproot {
		return p2trWeight
	}

	return p2wpkhWeight
}

// coinTarget describes the payments of a transaction.
type coinTarget struct {
	// total is the sum of the outputs in satoshi, maxFee the most that the transaction may cost; maxFee 0
	// means no bound.
	total, maxFee int64
	// subtractFee takes the fee out of the payments; the coins then have to add up to the payments alone.
	subtractFee bool
	// outputs are the payments.
	outputs []*wire.TxOut
	// changeScript is the output script of change.
	changeScript []byte
}

// prefers reports whether a selection is better than another: one within the maximum fee first, then the less
// wasteful one. Waste alone would prefer many coins at low rates, as it is cheap to spend them now.
func (t coinTarget) prefers(selected, other selection) bool {
	within, otherWithin := t.allows(selected), t.allows(other)
	if within != otherWithin {
		return within
	}

	return selected.waste < other.waste
}

// allows reports whether a selection costs no more than the maximum fee.
func (t coinTarget) allows(selected selection) bool { return t.maxFee == 0 || selected.fee <= t.maxFee }

// evaluate returns the selection made of the coins, with its fee and change. Its errors are those of settle.
func (t coinTarget) evaluate(policy feePolicy, coins []candidate) (selection, error) {
	sum, selected := sumOf(coins), selection{coins: coins}

	var err error
	if selected.fee, selected.change, err = t.settle(policy, sum); err != nil {
		return selected, err
	}

	selected.waste = feeAt(policy.rate, sum.weight) - feeAt(longTermRate, sum.weight)
	if selected.change > 0 {
		selected.waste += t.changeCost(policy)
	} else if !t.subtractFee {
		selected.waste += selected.fee - policy.fee(t.txWeight(sum.coins, sum.weight, false))
	}

	return selected, nil
}

// settle returns the fee and the change, in satoshi, of a transaction that spends coins. It errors:
//   - errShort: the coins do not cover payments and fee
//   - errInexact: the payments bear the fee, and the rest above them is dust
//   - errHeavy: the transaction would be heavier than nodes relay
func (t coinTarget) settle(policy feePolicy, spent coinSum) (fee, change int64, err error) {
	if spent.coins == 0 {
		return 0, 0, errShort
	}

	bare, changed := t.txWeight(spent.coins, spent.weight, false), t.txWeight(spent.coins, spent.weight, true)

	left := spent.value - t.total
	if t.subtractFee {
		switch {
		case left < 0:
			return 0, 0, errShort
		case left == 0:
			fee = policy.fee(bare)
		case left < dustLimit(t.changeScript):
			return 0, 0, errInexact
		default:
			fee, change = policy.fee(changed), left
		}
	} else {
		switch fee = policy.fee(changed); {
		case left-fee >= dustLimit(t.changeScript):
			change = left - fee
		case left >= policy.fee(bare):
			fee = left // too little for change goes to the miner
		default:
			return 0, 0, errShort
		}
	}

	if changed > maxWeight {
		return 0, 0, errHeavy
	}

	return fee, change, nil
}

// txWeight returns the weight of a whole transaction, in weight units; inputWeights is the total weight of
// its inputs.
func (t coinTarget) txWeight(inputs int, inputWeights int64, change bool) int64 {
	outputs, weight := len(t.outputs), emptyWeight+inputWeights
	for _, output := range t.outputs {
		weight += outputWeight(output.PkScript)
	}

	if change {
		outputs++
		weight += outputWeight(t.changeScript)
	}

	return weight + countsWeight(inputs, outputs)
}

// changeCost returns the cost of making change and of spending it later, in satoshi.
func (t coinTarget) changeCost(policy feePolicy) int64 {
	return feeAt(policy.rate, outputWeight(t.changeScript)) + feeAt(longTermRate, p2wpkhWeight)
}

// branchAndBound returns coins that pay the target without change, or nil if it finds none. The coins must be
// sorted, largest first; have is the value of the required coins in satoshi.
//
// Less their own fees, the coins add up to the target, or exceed it by at most the cost of change. If the
// payments bear the fee, the coins add up exactly, whatever they cost.
func (t coinTarget) branchAndBound(policy feePolicy, coins []candidate, have int64) []candidate {
	search := bnbSearch{goal: t.total - have, bestWaste: -1}
	if !t.subtractFee {
		search.goal += policy.fee(t.txWeight(0, 0, false))
		search.slack = t.changeCost(policy)
	}

	if search.goal <= 0 {
		return nil
	}

	var available int64

	for _, coin := range coins {
		option := bnbOption{candidate: coin, value: coin.value, cost: feeAt(policy.rate, coin.weight())}
		if !t.subtractFee {
			option.value -= option.cost
		}

		if option.value > 0 {
			search.options = append(search.options, option)
			available += option.value
		}
	}

	search.most = int((maxWeight - t.txWeight(0, 0, false)) / p2trWeight)
	search.nextValues()
	search.from(0, available)

	chosen := make([]candidate, 0, len(search.best))
	for _, i := range search.best {
		chosen = append(chosen, search.options[i].candidate)
	}

	return chosen
}

// maxBnBTries bounds the nodes that branch and bound visits.
const maxBnBTries = 100_000

// bnbOption is a coin with its effective value and the fee of its input, both in satoshi.
type bnbOption struct {
	candidate
	value, cost int64
}

// bnbSearch is the state of a branch and bound search. Amounts are satoshi.
type bnbSearch struct {
	// options are sorted, the most valuable first.
	options []bnbOption
	// next is, for each option, the index of the first later option with another value. worth is the total
	// value of the options from it up to that index.
	next  []int
	worth []int64
	// goal is the value to reach; slack is the amount by which it may be exceeded.
	goal, slack int64
	// most is the number of options that fit into one transaction.
	most int

	// picked are indexes of options; value and cost are their sums.
	picked      []int
	value, cost int64
	tries       int

	// best is the least wasteful match and bestWaste its waste; -1 while there is none.
	best      []int
	bestWaste int64
}

// nextValues sets next and worth.
func (s *bnbSearch) nextValues() {
	n := len(s.options)
	s.next, s.worth = make([]int, n), make([]int64, n)

	for i := n - 1; i >= 0; i-- {
		s.next[i], s.worth[i] = i+1, s.options[i].value
		if i+1 < n && s.options[i+1].value == s.options[i].value {
			s.next[i], s.worth[i] = s.next[i+1], s.worth[i+1]+s.options[i].value
		}
	}
}

// from searches the options from index i on, depth first; available is their total value. Each option is
// first picked, then omitted.
func (s *bnbSearch) from(i int, available int64) {
	if s.tries++; s.tries > maxBnBTries || s.value > s.goal+s.slack || s.value+available < s.goal {
		return
	}

	if s.value >= s.goal {
		if waste := s.cost + s.value - s.goal; s.bestWaste < 0 || waste < s.bestWaste {
			s.best, s.bestWaste = slices.Clone(s.picked), waste
		}

		return // more coins would only add cost
	}

	if i == len(s.options) || len(s.picked) == s.most {
		return
	}

	option := s.options[i]

	s.picked, s.value, s.cost = append(s.picked, i), s.value+option.value, s.cost+option.cost
	s.from(i+1, available-option.value)
	s.picked, s.value, s.cost = s.picked[:len(s.picked)-1], s.value-option.value, s.cost-option.cost

	// Omit the other options of equal value too: they would give the same sums.
	s.from(s.next[i], available-s.worth[i])
}

// feePolicy is the minimum fee of a transaction. Rates are satoshi per 1000 virtual bytes.
type feePolicy struct {
	// rate is the fee rate of the transaction itself.
	rate int64
	// replacedFee and incrementalRate are the minimum of a replacement (BIP-125): replacedFee, in satoshi,
	// plus its own relay at incrementalRate.
	replacedFee, incrementalRate int64
	// parentFee and parentRate are the minimum of a child that pays for its parents: parentFee, the fee in
	// satoshi that they lack, plus its own virtual bytes, rounded up, at parentRate.
	parentFee, parentRate int64
}

// fee returns the minimum fee of a transaction, in satoshi, for its weight in weight units. Every rate is met
// on whole virtual bytes, rounded up, as nodes and miners count.
func (p feePolicy) fee(weight int64) int64 {
	size := roundToVBytes(weight)

	return max(
		feeAt(p.rate, size),
		p.replacedFee+feeAt(p.incrementalRate, size),
		p.parentFee+feeAt(p.parentRate, size),
	)
}

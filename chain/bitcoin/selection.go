package bitcoin

// Coin selection, pure: which coins pay for an order, and what is left as change.

import (
	"cmp"
	"errors"
	"slices"

	"github.com/btcsuite/btcd/wire/v2"

	"github.com/seed-8ee7f392/payments/chain"
)

// candidate is a coin of ours that can be spent.
type candidate struct {
	chain.Coin
	value   int64
	script  []byte
	taproot bool
}

func (c candidate) weight() int64 {
	if c.taproot {
		return p2trWeight
	}

	return p2wpkhWeight
}

// need is what a transaction has to pay.
type need struct {
	// payments is the sum of the outputs.
	payments int64
	// subtract takes the fee out of the payments; the coins have to add up to them alone.
	subtract bool
	// outputs are the payments.
	outputs []*wire.TxOut
	// change is the script that change is paid to.
	change []byte
}

// weight is that of the whole transaction with inputs of a total weight.
func (n need) weight(inputs int, inputWeights int64, change bool) int64 {
	outputs, w := len(n.outputs), emptyWeight+inputWeights
	for _, o := range n.outputs {
		w += outputWeight(o.PkScript)
	}

	if change {
		outputs++
		w += outputWeight(n.change)
	}

	return w + countsWeight(inputs, outputs)
}

// price is what a transaction has to cost.
type price struct {
	// rate is in satoshi per 1000 virtual bytes.
	rate int64
	// base and increment bound it from below for a replacement: base satoshi plus increment per
	// 1000 virtual bytes.
	base, increment int64
	// lift and liftRate do so for one that pays for others: lift satoshi, which they lack, plus
	// liftRate per 1000 virtual bytes, of which one that is begun counts whole, as it does with
	// miners.
	lift, liftRate int64
}

func (p price) of(weight int64) int64 {
	return max(
		feeAt(p.rate, weight), p.base+feeAt(p.increment, weight),
		p.lift+feeAt(p.liftRate, wholeBytes(weight)),
	)
}

// wholeBytes rounds a weight up to virtual bytes.
func wholeBytes(weight int64) int64 { return (weight + 3) / 4 * 4 }

// selection is a choice of coins. What the coins hold is what is paid, fee and change together.
type selection struct {
	coins []candidate
	fee   int64
	// change is 0 when there is none.
	change int64
	waste  int64
}

var (
	errShort = errors.New("the coins do not cover payments and fee")
	// errInexact: to take the fee out of the payments, coins must add up to them, or exceed them by
	// enough for change.
	errInexact = errors.New("no choice of coins adds up to the payments")
	errHeavy   = errors.New("it takes more coins than fit into one transaction")
)

// choose picks the coins. Those required are always spent (a replacement shares them with what it
// displaces). Three choices are made, and the one that wastes least is taken: coins that match without
// change (branch and bound), the smallest single coin that is enough, and the largest coins until they are
// enough. Unconfirmed coins are taken only when the confirmed ones are too few.
//
// Source of the method and of the measure: Murch, "An Evaluation of Coin Selection Strategies" (2016), and
// Bitcoin Core's waste metric. Waste is what the inputs cost now beyond what they would cost at
// longTermRate, plus what change costs to make and to spend, or, without change, what is given away.
func choose(n need, p price, coins, required []candidate) (selection, error) {
	confirmed := slices.DeleteFunc(slices.Clone(coins), func(c candidate) bool { return c.Height == 0 })

	s, err := chooseFrom(n, p, confirmed, required)
	if err != nil && len(confirmed) < len(coins) {
		s, err = chooseFrom(n, p, slices.Clone(coins), required)
	}

	return s, err
}

func chooseFrom(n need, p price, coins, required []candidate) (selection, error) {
	slices.SortFunc(coins, func(a, b candidate) int {
		return cmp.Or(
			cmp.Compare(b.value, a.value), cmp.Compare(a.Outpoint.TxHash, b.Outpoint.TxHash),
			cmp.Compare(a.Outpoint.Vout, b.Outpoint.Vout),
		)
	})

	var best *selection

	why := errShort

	take := func(chosen []candidate) bool {
		s, err := n.settle(p, append(slices.Clone(required), chosen...))
		switch {
		case err != nil && !errors.Is(err, errShort):
			why = err
		case err == nil && (best == nil || s.waste < best.waste):
			best = &s
		}

		return err == nil
	}
	if len(required) == 0 || !take(nil) {
		take(n.match(p, coins, sum(required)))

		for i := len(coins) - 1; i >= 0; i-- { // the smallest that is enough
			if take(coins[i : i+1]) {
				break
			}
		}

		for i := range coins {
			if take(coins[:i+1]) {
				break
			}
		}
	}

	if best == nil {
		return selection{}, why
	}

	return *best, nil
}

func sum(coins []candidate) (total int64) {
	for _, c := range coins {
		total += c.value
	}

	return total
}

// settle works out fee and change of a set of coins, or why it will not do.
func (n need) settle(p price, coins []candidate) (selection, error) {
	s := selection{coins: coins}
	if len(coins) == 0 {
		return s, errShort
	}

	var inputs int64
	for _, c := range coins {
		inputs += c.weight()
	}

	bare, changed := n.weight(len(coins), inputs, false), n.weight(len(coins), inputs, true)

	left := sum(coins) - n.payments
	if n.subtract {
		switch {
		case left < 0:
			return s, errShort
		case left == 0:
			s.fee = p.of(bare)
		case left < dustLimit(n.change):
			return s, errInexact
		default:
			s.fee, s.change = p.of(changed), left
		}
	} else {
		switch s.fee = p.of(changed); {
		case left-s.fee >= dustLimit(n.change):
			s.change = left - s.fee
		case left >= p.of(bare):
			s.fee = left // too little for change is given to the miner
		default:
			return s, errShort
		}
	}

	if changed > maxWeight {
		return s, errHeavy
	}

	s.waste = feeAt(p.rate, inputs) - feeAt(longTermRate, inputs)
	if s.change > 0 {
		s.waste += n.changeCost(p)
	} else if !n.subtract {
		s.waste += s.fee - p.of(bare)
	}

	return s, nil
}

// changeCost is what it costs to make change and to spend it later.
func (n need) changeCost(p price) int64 {
	return feeAt(p.rate, outputWeight(n.change)) + feeAt(longTermRate, p2wpkhWeight)
}

// maxTries bounds branch and bound.
const maxTries = 100_000

// match searches for coins (which are sorted, the largest first) that pay without change: with their own
// fees taken off they must add up to the target, or exceed it by no more than change would cost. Where the
// fee is taken out of the payments they must add up exactly, whatever they cost. nil: there are none, or
// they were not found within maxTries.
func (n need) match(p price, coins []candidate, have int64) []candidate {
	target, slack := n.payments-have, int64(0)
	if !n.subtract {
		target += p.of(n.weight(0, 0, false))
		slack = n.changeCost(p)
	}

	if target <= 0 {
		return nil
	}

	type option struct {
		candidate
		worth, cost int64
	}

	var options []option

	var rest int64 // what the options from here on are worth together

	for _, c := range coins {
		o := option{candidate: c, worth: c.value, cost: feeAt(p.rate, c.weight())}
		if !n.subtract {
			o.worth -= o.cost
		}

		if o.worth > 0 {
			options = append(options, o)
			rest += o.worth
		}
	}

	var best, picked []int

	bestWaste := int64(-1)

	var worth, cost int64

	tries := 0
	// Depth first, each coin first taken, then left out.
	var search func(i int, rest int64)

	search = func(i int, rest int64) {
		if tries++; tries > maxTries || worth > target+slack || worth+rest < target {
			return
		}

		if worth >= target {
			if waste := cost + worth - target; bestWaste < 0 || waste < bestWaste {
				best, bestWaste = slices.Clone(picked), waste
			}

			return // more coins would only cost more
		}

		if i == len(options) {
			return
		}

		o := options[i]
		picked, worth, cost = append(picked, i), worth+o.worth, cost+o.cost
		search(i+1, rest-o.worth)
		picked, worth, cost = picked[:len(picked)-1], worth-o.worth, cost-o.cost
		// Left out, its equals are left out too: they would be tried in its place for nothing.
		for rest -= o.worth; i+1 < len(options) && options[i+1].worth == o.worth; i++ {
			rest -= options[i+1].worth
		}

		search(i+1, rest)
	}
	search(0, rest)

	chosen := make([]candidate, 0, len(best))
	for _, i := range best {
		chosen = append(chosen, options[i].candidate)
	}

	return chosen
}

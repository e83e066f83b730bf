package solana

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"slices"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// A transaction costs 5,000 lamports per signature and, where a price per compute unit is offered,
// that price times the limit it names, whether the units are used or not. Both are known
// beforehand, so fees are exact. Source: solana.com/docs/core/fees.
const lamportsPerSignature = 5_000

// What instructions need at most, in compute units, with room for programs that grow. Finding an
// associated account's address takes a varying number of tries.
const (
	unitsOfBudget   = 300
	unitsOfCoin     = 450
	unitsOfTokens   = 30_000
	unitsOfAccount  = 60_000
	unitsOfClosing  = 10_000
	unitsOfHarvest  = 20_000
	unitsToTellFrom = 4_096 // two equal payments in one block differ in their limit
)

// units is the compute unit limit without what tells equal transactions apart.
func (s *spend) units() uint64 {
	n := uint64(unitsOfBudget)

	for _, p := range s.payments {
		switch {
		case p.mint == nil:
			n += unitsOfCoin
		case p.create:
			n += unitsOfAccount + unitsOfTokens
		default:
			n += unitsOfTokens
		}
	}

	if s.refund != nil {
		n += unitsOfClosing
		if s.sourceMint.program == solanago.Token2022ProgramID {
			n += unitsOfHarvest
		}
	}

	return n
}

func (s *spend) baseFee() uint64 {
	if s.payer != s.from {
		return 2 * lamportsPerSignature
	}

	return lamportsPerSignature
}

// feeAt returns the whole network fee at a price per unit, in millionths of a lamport, and a limit;
// the share of the price is rounded up.
func (s *spend) feeAt(price, limit uint64) uint64 {
	hi, lo := bits.Mul64(price, limit)
	lo, carry := bits.Add64(lo, 999_999, 0)
	share, _ := bits.Div64(hi+carry, lo, 1_000_000) // the price is bounded, so it fits

	return s.baseFee() + share
}

// mostUnits is the highest limit that limit returns.
func (s *spend) mostUnits() uint64 { return s.units() + unitsToTellFrom - 1 }

// limit is the compute unit limit of one transaction. It differs from one to the next, so that
// equal orders on one blockhash become different transactions; the outbox notices the rare case in
// which they do not, and builds again.
func (s *spend) limit() uint64 { return s.units() + rand.Uint64N(unitsToTellFrom) }

// price returns what is offered per compute unit: what the median of the recent blocks took from
// others that wrote to the same accounts, at most Config.MaxPriorityPrice.
func (d *Driver) price(ctx context.Context, e *endpoint, s *spend) (uint64, error) {
	written := []solanago.PublicKey{s.payer}
	for _, p := range s.payments {
		written = append(written, p.account)
	}

	var recent []struct {
		Price uint64 `json:"prioritizationFee"`
	}
	if err := e.call(
		ctx, &recent, "getRecentPrioritizationFees", written[:min(len(written), 128)],
	); err != nil {
		return 0, err
	}

	if len(recent) == 0 {
		return 0, nil
	}

	prices := make([]uint64, len(recent))
	for i, r := range recent {
		prices[i] = r.Price
	}

	slices.Sort(prices)

	return min(prices[len(prices)/2], d.config.MaxPriorityPrice), nil
}

// affordable lowers a price to what an order's maximum fee leaves; the fee without any price must
// be within it.
func (s *spend) affordable(price, limit uint64) (uint64, error) {
	least := chain.Units(s.baseFee()).Add(chain.Units(s.rent))
	if s.order.MaxFee.Less(least) {
		return 0, fault.New(
			fault.Limited, "fee_above_maximum",
			"the network asks for %s lamports now, rent of new accounts included, and the order allows %s",
			least, s.order.MaxFee,
		)
	}

	room := s.order.MaxFee.Sub(least)
	if room.Cmp(chain.Units(s.feeAt(price, limit)-s.baseFee())) >= 0 {
		return price, nil
	}

	most, _ := room.Uint64() // less than a fee, so it fits
	hi, lo := bits.Mul64(most, 1_000_000)
	lowered, _ := bits.Div64(hi, lo, limit)

	return lowered, nil
}

// EstimateFee returns what an order should be allowed to cost: twice the fee at present prices, and
// the rent of the token accounts that it has to make.
func (d *Driver) EstimateFee(ctx context.Context, order chain.Order) (chain.Amount, error) {
	s, err := d.spendOf(order)
	if err != nil {
		return chain.Amount{}, err
	}

	var fee chain.Amount

	err = d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		s := s

		s.payments = slices.Clone(s.payments)
		if err := d.survey(ctx, e, &s); err != nil {
			return err
		}

		price, err := d.price(ctx, e, &s)
		if err == nil {
			fee = s.allowance(price)
		}

		return err
	})

	return fee, err
}

// allowance is the maximum fee to give an order at a price.
func (s *spend) allowance(price uint64) chain.Amount {
	return chain.Units(s.feeAt(price, s.mostUnits())).Mul(2).Add(chain.Units(s.rent))
}

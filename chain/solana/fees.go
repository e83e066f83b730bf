package solana

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"slices"
	"time"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/price"
)

// EstimateFee returns the maximum fee to give an order, in lamports. It is twice the fee at present
// prices, plus the rent of the token accounts to create. A refusal is that of two nodes where two answer.
func (d *driver) EstimateFee(ctx context.Context, order chain.Order) (chain.Amount, error) {
	builder, err := d.newTxBuilder(order)
	if err != nil {
		return chain.Amount{}, err
	}

	var fee chain.Amount

	err = d.nodes.AskRefusable(ctx, d.config.Attempts, 0, func(ctx context.Context, e *endpoint) error {
		b := builder.clone()
		price, err := d.prepare(ctx, e, b)
		fee = b.suggestedMaxFee(price)

		return err
	})

	return fee, err
}

// prepare reads what the transaction of an order needs, and returns the price to offer per compute unit, in millionths
// of a lamport.
func (d *driver) prepare(ctx context.Context, e *endpoint, b *txBuilder) (uint64, error) {
	if err := d.load(ctx, e, b); err != nil {
		return 0, err
	}

	if err := d.planClose(ctx, e, b); err != nil {
		return 0, err
	}

	return d.unitPrice(ctx, e, b)
}

// suggestedMaxFee returns the maximum fee to give an order at a price, in lamports.
func (b *txBuilder) suggestedMaxFee(price uint64) chain.Amount {
	return chain.Units(b.networkFee(price, b.maxUnitLimit())).Mul(2).Add(chain.Units(b.rent))
}

// unitPrice returns the price to offer per compute unit, in millionths of a lamport: what a node says, the lower of two
// nodes above quietPrice, at most Config.MaxPriorityPrice. No block that the driver reads shows what others paid.
func (d *driver) unitPrice(ctx context.Context, e *endpoint, b *txBuilder) (uint64, error) {
	said, err := e.recentPrice(ctx, b)
	if err != nil {
		return 0, err
	}

	bound := price.Bound{Alone: chain.Units(quietPrice), Highest: chain.Units(d.config.MaxPriorityPrice)}
	if len(d.nodes.Nodes) == 1 {
		bound.Alone = bound.Highest
	}

	bounded := bound.Of(chain.Units(said), func() (other chain.Amount, ok bool) {
		brief, stop := context.WithTimeout(ctx, secondOpinionWithin)
		defer stop()

		_ = d.nodes.AskBeside(brief, e, 0, func(ctx context.Context, e *endpoint) (bool, error) {
			said, err := e.recentPrice(ctx, b)
			other, ok = chain.Units(said), err == nil

			return ok, err
		})

		return other, ok
	})

	if ctx.Err() != nil {
		return 0, ctx.Err()
	}

	offered, _ := bounded.Uint64() // at most MaxPriorityPrice or said

	return min(offered, d.config.MaxPriorityPrice), nil
}

// quietPrice is the price that one of several nodes may name alone, in millionths of a lamport per compute unit: at
// most a quarter of the base fee for a payment to a new token account.
const quietPrice = lowestRaise

// secondOpinionWithin is how long another node has for its price.
const secondOpinionWithin = 2 * time.Second

// recentPrice returns the median price of recent transactions that wrote to the same accounts, as one node says.
func (e *endpoint) recentPrice(ctx context.Context, b *txBuilder) (uint64, error) {
	written := []solanago.PublicKey{b.payer}
	for _, p := range b.payments {
		written = append(written, p.account)
	}

	written = written[:min(len(written), maxFeeAccounts)]

	var recent []struct {
		Price uint64 `json:"prioritizationFee"`
	}
	if err := e.call(ctx, &recent, "getRecentPrioritizationFees", written); err != nil {
		return 0, err
	}

	if len(recent) == 0 {
		return 0, nil
	}

	prices := make([]uint64, len(recent))
	for i, entry := range recent {
		prices[i] = entry.Price
	}

	slices.Sort(prices)

	return prices[len(prices)/2], nil
}

// maxFeeAccounts is the limit of getRecentPrioritizationFees. Source:
// solana.com/docs/rpc/http/getrecentprioritizationfees.
const maxFeeAccounts = 128

// capPrice lowers a price per compute unit so that fee and rent are within the order's maximum. An order
// that does not cover the base fee and the rent is fault.Limited.
func (b *txBuilder) capPrice(price, unitLimit uint64) (uint64, error) {
	minFee := chain.Units(b.baseFee()).Add(chain.Units(b.rent))
	if b.order.MaxFee.Less(minFee) {
		return 0, fault.New(
			fault.Limited, "fee_above_maximum",
			"the network asks for %s lamports now, rent of new accounts included, and the order allows %s",
			minFee, b.order.MaxFee,
		)
	}

	allowed := b.order.MaxFee.Sub(minFee)
	if allowed.Cmp(chain.Units(b.networkFee(price, unitLimit)-b.baseFee())) >= 0 {
		return price, nil
	}

	lamports, _ := allowed.Uint64() // less than a fee, so it fits
	hi, lo := bits.Mul64(lamports, 1_000_000)
	lowered, _ := bits.Div64(hi, lo, unitLimit)

	return lowered, nil
}

// networkFee returns the fee in lamports at a price per compute unit, in millionths of a lamport, and a
// unit limit. The share of the price is rounded up.
//
// A transaction costs 5,000 lamports per signature, and the price times the unit limit, whether the units
// are used or not. Both are known in advance, so fees are exact. Source: solana.com/docs/core/fees.
func (b *txBuilder) networkFee(price, unitLimit uint64) uint64 {
	hi, lo := bits.Mul64(price, unitLimit)
	lo, carry := bits.Add64(lo, 999_999, 0)
	share, _ := bits.Div64(hi+carry, lo, 1_000_000) // the price is bounded, so it fits

	return b.baseFee() + share
}

const lamportsPerSignature = 5_000

// baseFee returns the fee of the signatures, in lamports.
func (b *txBuilder) baseFee() uint64 {
	if b.payer != b.from {
		return 2 * lamportsPerSignature
	}

	return lamportsPerSignature
}

// Upper limits of what instructions need, in compute units, with a margin for programs that grow. The
// search for an associated account's address takes a varying number of tries.
const (
	unitsForBudget  = 300
	unitsForCoin    = 450
	unitsForNonce   = 450
	unitsForTokens  = 30_000
	unitsForAccount = 60_000
	unitsForClosing = 10_000
	unitsForHarvest = 20_000
	unitsForEntropy = 4_096 // range of the random part of the limit
)

// unitLimit returns the compute unit limit of one transaction. A random part makes equal orders on one
// blockhash different transactions. The caller detects the rare collision and builds once more.
func (b *txBuilder) unitLimit() uint64 { return b.requiredUnits() + rand.Uint64N(unitsForEntropy) }

// maxUnitLimit returns the highest result of unitLimit.
func (b *txBuilder) maxUnitLimit() uint64 { return b.requiredUnits() + unitsForEntropy - 1 }

// requiredUnits returns the compute units that the transaction needs.
func (b *txBuilder) requiredUnits() uint64 {
	units := uint64(unitsForBudget)
	if b.nonce != nil {
		units += unitsForNonce
	}

	for _, p := range b.payments {
		switch {
		case p.mint == nil:
			units += unitsForCoin
		case p.create:
			units += unitsForAccount + unitsForTokens
		default:
			units += unitsForTokens
		}
	}

	if b.unwraps {
		units += unitsForClosing
	}

	if b.rentRecipient != nil {
		units += unitsForClosing
		if b.sourceMint.program == solanago.Token2022ProgramID {
			units += unitsForHarvest
		}
	}

	return units
}

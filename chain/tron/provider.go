package tron

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// EnergyProvider sells energy for deposit addresses, such as a market that rents it out. The master wallet pays it
// before the sweep, in a step of the release. Implementations are safe for concurrent use.
type EnergyProvider interface {
	// Seller returns the account that is paid. It is always the same, and the method does no I/O.
	Seller() chain.Address
	// Price returns what an amount of energy at an active account costs until its sweep is over, in sun; 0 where none
	// is for sale. It is called for each plan, and costs nothing: the payment of that price is the order. An error has
	// the sweep topped up.
	Price(ctx context.Context, receiver chain.Address, energy uint64) (chain.Amount, error)
	// Pending reports whether energy that was paid for may still arrive at an account. The release waits as long as it
	// may; false and an error have the sweep topped up.
	Pending(ctx context.Context, receiver chain.Address) (bool, error)
}

var _ chain.EnergyBuyer = (*driver)(nil)

// EnergySellers returns the account of the configured provider; none without one.
func (d *driver) EnergySellers() []chain.Address {
	if d.provider == nil {
		return nil
	}

	return []chain.Address{d.provider.Seller()}
}

// planPurchase returns the step that pays the provider for the energy that a sweep lacks. ok is false where it sells
// none for less than the sweep burns without it.
func (p *sweepPlan) planPurchase(
	ctx context.Context,
	sweep feeQuote,
	energy uint64,
) (step chain.SweepStep, ok bool, err error) {
	price, err := p.provider.Price(ctx, p.release.Deposit.Address, energy)
	if err != nil || price.IsZero() {
		return step, false, ctx.Err()
	}

	step, _, err = p.planStep(ctx, chain.StepDelegate, chain.Order{
		From:    p.release.Master,
		Outputs: []chain.Output{{To: p.provider.Seller(), AssetID: p.native.ID, Amount: price}},
	})
	if errors.Is(err, fault.Invalid) {
		return step, false, nil // the network pays no such seller
	}

	step.NetworkFee = step.NetworkFee.Add(price)

	return step, err == nil && step.NetworkFee.Less(sweep.energyFee()), err
}

// awaitPurchase returns fault.Unavailable while energy that was paid for may still arrive.
func (p *sweepPlan) awaitPurchase(ctx context.Context) error {
	pending, err := p.provider.Pending(ctx, p.release.Deposit.Address)
	if err != nil || !pending {
		return ctx.Err()
	}

	return fault.New(
		fault.Unavailable, "energy_pending", "the energy that was bought for %s is not there yet",
		p.release.Deposit.Address,
	)
}

// offers asks a provider once for each answer, so that what two nodes say is compared at one price. It serves one plan.
type offers struct {
	EnergyProvider
	prices  map[uint64]offer // by energy
	waiting *offer
}

// offer is one answer of a provider.
type offer struct {
	price   chain.Amount
	pending bool
	err     error
}

// offersOf returns the offers of a provider; nil without one.
func offersOf(provider EnergyProvider) EnergyProvider {
	if provider == nil {
		return nil
	}

	return &offers{EnergyProvider: provider, prices: map[uint64]offer{}}
}

// Price is EnergyProvider.Price, asked once for each amount.
func (o *offers) Price(ctx context.Context, receiver chain.Address, energy uint64) (chain.Amount, error) {
	known, asked := o.prices[energy]
	if !asked {
		known.price, known.err = o.EnergyProvider.Price(ctx, receiver, energy)
		o.prices[energy] = known
	}

	return known.price, known.err
}

// Pending is EnergyProvider.Pending, asked once.
func (o *offers) Pending(ctx context.Context, receiver chain.Address) (bool, error) {
	if o.waiting == nil {
		pending, err := o.EnergyProvider.Pending(ctx, receiver)
		o.waiting = &offer{pending: pending, err: err}
	}

	return o.waiting.pending, o.waiting.err
}

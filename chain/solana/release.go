package solana

import (
	"context"
	"errors"
	"slices"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// PlanRelease plans the steps that are still to be done.
//
// A native deposit pays for itself, in one transaction: the platform fee, and all that is left of
// the deposit to the master wallet. An address must keep nothing or the rent minimum, so where less
// would stay behind, the master wallet gets less by what is missing. Token deposits are paid for by
// the master wallet: the platform fee in a transaction of its own, then the tokens, with the master
// wallet as fee payer, so that no coin has to be sent to the deposit address. A platform fee too
// small to open the fee address is left out.
//
// A sweep that leaves nothing closes the account. With KeepOpen the rent minimum of a native
// deposit stays, and the rent of a token account: whatever arrives meanwhile, the sweep goes
// through.
//
// Beyond what chain.Sweeper says, an address that holds less than its deposits explain is
// fault.State with code funds_missing.
func (d *Driver) PlanRelease(ctx context.Context, r chain.Release) ([]chain.ReleaseStep, error) {
	if slices.Contains(r.Done, chain.StepSweep) {
		return nil, ctx.Err()
	}

	asset, ok := d.network.AssetByID(r.Asset.ID)
	if !ok {
		return nil, fault.New(
			fault.Invalid, "not_releasable", "network %s has no asset with id %q",
			d.network.Slug, r.Asset.ID,
		)
	}

	var steps []chain.ReleaseStep

	err := d.ask(ctx, func(ctx context.Context, e *endpoint) (err error) {
		if asset.Kind == chain.Native {
			steps, err = d.planNative(ctx, e, r)
		} else {
			steps, err = d.planToken(ctx, e, r)
		}

		return err
	})
	if err != nil {
		return nil, err
	}

	return steps, nil
}

func (d *Driver) planNative(ctx context.Context, e *endpoint, r chain.Release) ([]chain.ReleaseStep, error) {
	share := r.Amount.SubFloor(r.Spent)

	fee, err := d.payableFee(ctx, e, r)
	if err != nil {
		return nil, err
	}

	if share.Cmp(fee) <= 0 {
		return nil, uneconomic(r)
	}

	step := chain.ReleaseStep{
		Kind:    chain.StepSweep,
		PaysFee: fee,
		Order:   chain.Order{From: r.Deposit, SubtractFee: true},
	}
	if !fee.IsZero() {
		step.Order.Outputs = append(
			step.Order.Outputs, chain.Output{To: r.FeeAddress, AssetID: d.native.ID, Amount: fee},
		)
	}

	step.Order.Outputs = append(
		step.Order.Outputs,
		chain.Output{To: r.Master.Address, AssetID: d.native.ID, Amount: share.Sub(fee)},
	)

	s, price, err := d.quote(ctx, e, r, step.Order)
	if err != nil {
		return nil, err
	}

	held, least := chain.Units(s.coin), chain.Units(s.least)
	if held.Less(share) {
		return nil, fundsMissing(r, held)
	}

	last := &step.Order.Outputs[len(step.Order.Outputs)-1]
	missing := s.missing(share, r.KeepOpen)
	last.Amount = last.Amount.SubFloor(chain.Units(missing))
	step.Order.Close = held == share && missing == 0
	step.NetworkFee = chain.Units(s.feeAt(price, s.mostUnits()))

	arrives := last.Amount.SubFloor(step.NetworkFee)
	if arrives.IsZero() {
		return nil, uneconomic(r)
	}

	opened, err := e.exists(ctx, r.Master.Address)
	if err != nil {
		return nil, err
	}

	if !opened && arrives.Less(least) {
		return nil, uneconomic(r)
	}

	step.Order.MaxFee = chain.Min(s.allowance(price), last.Amount.Sub(chain.Units(1)))

	return []chain.ReleaseStep{step}, nil
}

func (d *Driver) planToken(ctx context.Context, e *endpoint, r chain.Release) ([]chain.ReleaseStep, error) {
	var steps []chain.ReleaseStep

	if !slices.Contains(r.Done, chain.StepFee) {
		fee, err := d.payableFee(ctx, e, r)
		if err != nil {
			return nil, err
		}

		if !fee.IsZero() {
			step := chain.ReleaseStep{
				Kind:    chain.StepFee,
				PaysFee: fee,
				Order: chain.Order{
					From:    r.Master,
					Outputs: []chain.Output{{To: r.FeeAddress, AssetID: d.native.ID, Amount: fee}},
				},
			}
			if err := d.complete(ctx, e, r, &step); err != nil {
				return nil, err
			}

			steps = append(steps, step)
		}
	}

	m, _ := d.mintOf(r.Asset.ID)

	arrives, err := d.netOf(ctx, e, r, m)
	if err != nil {
		return nil, err
	}

	sweep := chain.ReleaseStep{
		Kind: chain.StepSweep,
		Order: chain.Order{
			From:     r.Deposit,
			FeePayer: &r.Master,
			Outputs:  []chain.Output{{To: r.Master.Address, AssetID: r.Asset.ID, Amount: arrives}},
			Close:    !r.KeepOpen,
		},
	}
	if err := d.complete(ctx, e, r, &sweep); err != nil {
		return nil, err
	}

	return append(steps, sweep), nil
}

// complete prices a step that the master wallet pays for; whether it has the money now is not asked.
func (d *Driver) complete(ctx context.Context, e *endpoint, r chain.Release, step *chain.ReleaseStep) error {
	s, price, err := d.quote(ctx, e, r, step.Order)
	if err != nil {
		return err
	}

	if s.sourceMint != nil {
		if s.held.frozen {
			return notReleasable(
				fault.New(fault.State, "wallet_frozen", "the token account %s is frozen", s.source),
				r,
			)
		}

		if held := chain.Units(s.held.amount); held.Less(r.Amount) {
			return fundsMissing(r, held)
		}
	}

	step.Order.Close = s.refund != nil
	step.NetworkFee = chain.Units(s.feeAt(price, s.mostUnits())).Add(chain.Units(s.rent))
	step.Order.MaxFee = s.allowance(price)

	return nil
}

// quote asks the network what an order takes.
func (d *Driver) quote(
	ctx context.Context,
	e *endpoint,
	r chain.Release,
	order chain.Order,
) (*spend, uint64, error) {
	s, err := d.spendOf(order)
	if err == nil {
		err = d.survey(ctx, e, &s)
	}

	if err == nil {
		err = d.closing(ctx, e, &s)
	}

	if errors.Is(err, fault.Invalid) || errors.Is(err, fault.Unsupported) {
		return nil, 0, notReleasable(err, r)
	}

	if err != nil {
		return nil, 0, err
	}

	price, err := d.price(ctx, e, &s)

	return &s, price, err
}

// payableFee is the platform fee to pay now: none when it is too little to open the account it goes to.
func (d *Driver) payableFee(ctx context.Context, e *endpoint, r chain.Release) (chain.Amount, error) {
	if r.Fee.IsZero() {
		return r.Fee, nil
	}

	least, err := e.rentFor(ctx, 0)
	if err != nil || !r.Fee.Less(chain.Units(least)) {
		return r.Fee, err
	}

	opened, err := e.exists(ctx, r.FeeAddress)
	if err != nil || opened {
		return r.Fee, err
	}

	return chain.Amount{}, nil
}

// exists says whether there is an account at an address.
func (e *endpoint) exists(ctx context.Context, address chain.Address) (bool, error) {
	key, err := parseKey(string(address))
	if err != nil {
		return false, err
	}

	accounts, _, err := e.accounts(ctx, []solanago.PublicKey{key}, 0)

	return err == nil && accounts[0] != nil, err
}

// netOf is what arrives at the master wallet of a token deposit, less the mint's transfer fee.
func (d *Driver) netOf(ctx context.Context, e *endpoint, r chain.Release, m mint) (chain.Amount, error) {
	amount, fits := r.Amount.Uint64()
	if !fits || amount == 0 {
		return chain.Amount{}, fundsMissing(r, chain.Amount{})
	}

	accounts, _, err := e.accounts(ctx, []solanago.PublicKey{m.key}, 0)
	if err != nil {
		return chain.Amount{}, err
	}

	state, err := readMint(m, accounts[0])
	if err != nil {
		return chain.Amount{}, err
	}

	rate, err := e.feeRate(ctx, state)
	if err != nil {
		return chain.Amount{}, err
	}

	if rate.of(amount) >= amount {
		return chain.Amount{}, uneconomic(r)
	}

	return chain.Units(amount - rate.of(amount)), nil
}

func notReleasable(cause error, r chain.Release) error {
	return fault.Wrap(
		cause, fault.Invalid, "not_releasable", "the deposit at %s cannot be moved",
		r.Deposit.Address,
	)
}

func fundsMissing(r chain.Release, held chain.Amount) error {
	return fault.New(
		fault.State, "funds_missing",
		"%s holds %s base units of %s, less than its deposits of %s explain after %s were spent",
		r.Deposit.Address, held, r.Asset.Symbol, r.Amount, r.Spent,
	)
}

func uneconomic(r chain.Release) error {
	return fault.New(
		fault.State, "uneconomic",
		"the deposit of %s base units at %s does not cover the fees of its release",
		r.Amount, r.Deposit.Address,
	)
}

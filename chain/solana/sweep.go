package solana

import (
	"context"
	"errors"
	"slices"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

// PlanSweep returns the remaining steps of a sweep.
//
// A native deposit pays for itself, in one transaction: the platform fee, and the remainder to the master
// wallet. An address must keep nothing or the rent minimum, so the master wallet receives less where less
// would remain. For a token deposit the master wallet pays: the platform fee in its own transaction, then
// the fee of the token sweep. So the deposit address needs no coin. A platform fee below the rent minimum
// of a new fee address is omitted.
//
// A sweep that leaves nothing closes the account. With KeepOpen the rent minimum of a native deposit and
// the token account remain, so that payments arriving meanwhile do not fail the sweep. A native sweep without it has
// Order.Close whether coin remains or not: what arrives, or a balance that was another one, may fail each of them.
//
// Balances, rent minimums and the existence of accounts are what two nodes say, where two answer.
//
// In addition to the errors of chain.Sweeper, an address that holds less than its deposits is fault.State
// with code funds_missing.
func (d *driver) PlanSweep(ctx context.Context, r chain.SweepRequest) ([]chain.SweepStep, error) {
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

	account, err := d.holdingAccount(chain.Holding{Address: r.Deposit.Address, AssetID: asset.ID})
	if err != nil {
		return nil, err
	}

	held, err := d.sharedBalance(ctx, account)
	if err != nil {
		return nil, err
	}

	var steps []chain.SweepStep

	err = d.nodes.AskFinal(ctx, d.config.Attempts, 0, func(ctx context.Context, e *endpoint) (err error) {
		if asset.Kind == chain.Native {
			steps, err = d.planNative(ctx, e, r, held)
		} else {
			steps, err = d.planToken(ctx, e, r, held)
		}

		return err
	})
	if err != nil {
		return nil, err
	}

	return steps, nil
}

func (d *driver) planNative(
	ctx context.Context,
	e *endpoint,
	r chain.SweepRequest,
	held uint64,
) ([]chain.SweepStep, error) {
	remaining := r.Amount.SubFloor(r.Spent)

	fee, err := d.payableFee(ctx, e, r)
	if err != nil {
		return nil, err
	}

	if remaining.Cmp(fee) <= 0 {
		return nil, uneconomic(r)
	}

	step := d.nativeSweep(r, remaining, fee)

	b, price, err := d.quote(ctx, e, r, step.Order, &held)
	if err != nil {
		return nil, err
	}

	if balance := chain.Units(b.coin); balance.Less(remaining) {
		return nil, fundsMissing(r, balance)
	}

	// What stays at the deposit address.
	last := &step.Order.Outputs[len(step.Order.Outputs)-1]
	shortfall := b.rentShortfall(remaining, r.KeepOpen)
	last.Amount = last.Amount.SubFloor(chain.Units(shortfall))

	// What arrives at the master wallet.
	step.NetworkFee = chain.Units(b.networkFee(price, b.maxUnitLimit()))

	arrives := last.Amount.SubFloor(step.NetworkFee)
	if arrives.IsZero() {
		return nil, uneconomic(r)
	}

	opened, err := d.exists(ctx, e, r.Master.Address)
	if err != nil {
		return nil, err
	}

	if !opened && arrives.Less(chain.Units(b.minBalance)) {
		return nil, uneconomic(r)
	}

	step.Order.MaxFee = chaindata.Min(b.suggestedMaxFee(price), last.Amount.Sub(chain.Units(1)))

	return []chain.SweepStep{step}, nil
}

// nativeSweep returns the sweep of an amount in lamports, of which the platform fee is paid.
func (d *driver) nativeSweep(r chain.SweepRequest, amount, fee chain.Amount) chain.SweepStep {
	var outputs []chain.Output
	if !fee.IsZero() {
		outputs = append(outputs, chain.Output{To: r.FeeAddress, AssetID: d.native.ID, Amount: fee})
	}

	outputs = append(outputs, chain.Output{
		To:      r.Master.Address,
		AssetID: d.native.ID,
		Amount:  amount.Sub(fee),
	})

	return chain.SweepStep{
		Kind:    chain.StepSweep,
		PaysFee: fee,
		Order: chain.Order{
			From:        r.Deposit,
			SubtractFee: true,
			Outputs:     outputs,
			Close:       !r.KeepOpen,
		},
	}
}

func (d *driver) planToken(
	ctx context.Context,
	e *endpoint,
	r chain.SweepRequest,
	held uint64,
) ([]chain.SweepStep, error) {
	var steps []chain.SweepStep

	if !slices.Contains(r.Done, chain.StepFee) {
		fee, err := d.payableFee(ctx, e, r)
		if err != nil {
			return nil, err
		}

		if !fee.IsZero() {
			step := chain.SweepStep{
				Kind:    chain.StepFee,
				PaysFee: fee,
				Order: chain.Order{
					From:    r.Master,
					Outputs: []chain.Output{{To: r.FeeAddress, AssetID: d.native.ID, Amount: fee}},
				},
			}
			if err := d.priceStep(ctx, e, r, &step, nil); err != nil {
				return nil, err
			}

			steps = append(steps, step)
		}
	}

	m, _ := d.mintOf(r.Asset.ID)

	arrives, err := d.amountAfterFee(ctx, e, r, m)
	if err != nil {
		return nil, err
	}

	sweep := chain.SweepStep{
		Kind: chain.StepSweep,
		Order: chain.Order{
			From:     r.Deposit,
			FeePayer: &r.Master,
			Outputs:  []chain.Output{{To: r.Master.Address, AssetID: r.Asset.ID, Amount: arrives}},
			Close:    !r.KeepOpen,
		},
	}
	if err := d.priceStep(ctx, e, r, &sweep, &held); err != nil {
		return nil, err
	}

	return append(steps, sweep), nil
}

// priceStep sets the fees of a step that the master wallet pays for. It does not check the master
// wallet's funds. held is the balance of the sender in what it sends, in base units; nil for what the node says.
func (d *driver) priceStep(
	ctx context.Context,
	e *endpoint,
	r chain.SweepRequest,
	step *chain.SweepStep,
	held *uint64,
) error {
	b, price, err := d.quote(ctx, e, r, step.Order, held)
	if err != nil {
		return err
	}

	if b.sourceMint != nil {
		if b.held.frozen {
			frozen := fault.New(fault.State, "wallet_frozen", "the token account %s is frozen", b.source)
			return notSweepable(frozen, r)
		}

		if balance := chain.Units(b.held.amount); balance.Less(r.Amount) {
			return fundsMissing(r, balance)
		}
	}

	step.Order.Close = b.rentRecipient != nil
	step.NetworkFee = chain.Units(b.networkFee(price, b.maxUnitLimit())).Add(chain.Units(b.rent))
	step.Order.MaxFee = b.suggestedMaxFee(price)

	return nil
}

// quote returns the loaded builder of an order and the price per compute unit, in millionths of a
// lamport. held is that of priceStep. An order that cannot be executed is fault.Invalid with code not_releasable.
func (d *driver) quote(
	ctx context.Context,
	e *endpoint,
	r chain.SweepRequest,
	order chain.Order,
	held *uint64,
) (*txBuilder, uint64, error) {
	b, err := d.newTxBuilder(order)
	b.shared = held

	var price uint64
	if err == nil {
		price, err = d.prepare(ctx, e, &b)
	}

	if errors.Is(err, fault.Invalid) || errors.Is(err, fault.Unsupported) {
		err = notSweepable(err, r)
	}

	return &b, price, err
}

// payableFee returns the platform fee in lamports, or 0 when it cannot open the fee address.
func (d *driver) payableFee(ctx context.Context, e *endpoint, r chain.SweepRequest) (chain.Amount, error) {
	if r.Fee.IsZero() {
		return r.Fee, nil
	}

	minBalance, err := d.rentMinimum(ctx, e, 0)
	if err != nil || !r.Fee.Less(chain.Units(minBalance)) {
		return r.Fee, err
	}

	opened, err := d.exists(ctx, e, r.FeeAddress)
	if err != nil || opened {
		return r.Fee, err
	}

	return chain.Amount{}, nil
}

// amountAfterFee returns what arrives at the master wallet of a token deposit, in base units: the amount
// less the mint's transfer fee.
func (d *driver) amountAfterFee(
	ctx context.Context,
	e *endpoint,
	r chain.SweepRequest,
	m mint,
) (chain.Amount, error) {
	amount, fits := r.Amount.Uint64()
	if !fits || amount == 0 {
		return chain.Amount{}, fundsMissing(r, chain.Amount{})
	}

	accounts, _, err := e.accounts(ctx, []solanago.PublicKey{m.key}, 0)
	if err != nil {
		return chain.Amount{}, err
	}

	state, err := parseMint(m, accounts[0])
	if err != nil {
		return chain.Amount{}, err
	}

	rate, err := d.currentFee(ctx, e, m, state)
	if err != nil {
		return chain.Amount{}, err
	}

	fee := rate.calculateFee(amount)
	if fee >= amount {
		return chain.Amount{}, uneconomic(r)
	}

	return chain.Units(amount - fee), nil
}

func notSweepable(cause error, r chain.SweepRequest) error {
	return fault.Wrap(
		cause, fault.Invalid, "not_releasable", "the deposit at %s cannot be moved",
		r.Deposit.Address,
	)
}

func fundsMissing(r chain.SweepRequest, balance chain.Amount) error {
	return fault.New(
		fault.State, "funds_missing",
		"%s holds %s base units of %s, less than its deposits of %s explain after %s were spent",
		r.Deposit.Address, balance, r.Asset.Symbol, r.Amount, r.Spent,
	)
}

func uneconomic(r chain.SweepRequest) error {
	return fault.New(
		fault.State, "uneconomic",
		"the deposit of %s base units at %s does not cover the fees of its release",
		r.Amount, r.Deposit.Address,
	)
}

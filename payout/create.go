package payout

import (
	"cmp"
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/id"
)

// Params are the parameters of a payout.
type Params struct {
	Owner          event.Owner
	Network, Asset string
	// Amount is the amount that the destination receives, in base units; above 0.
	Amount      chain.Amount
	Destination string
	// MaxNetworkFee is the highest network fee, in base units of the native coin; nil: the network's current
	// fee with a margin. While the network asks for more, the payout waits, and in the end goes stale.
	MaxNetworkFee *chain.Amount
	// Memo is the merchant's own note, at most 200 characters; it never leaves this service.
	Memo        string
	RequestedBy Requester
	// Destinations are the only allowed destinations; nil: any.
	Destinations []chain.Destination
}

// Prepared is a payout that was checked against the network and waits for its transaction.
type Prepared struct {
	payout Payout
	master chain.Party
	limit  int // payouts per hour; 0: not limited
	native chain.Asset
	refund *Refund
}

// PrepareCreate checks the request, estimates the highest network fee and reads the wallet's balance; it
// stores only that balance. Refusals are fault.Invalid with the codes asset_not_enabled, destination_invalid,
// destination_not_payable, token_unsafe, amount_too_small and parameter_invalid; fault.Forbidden with
// destination_not_allowed; fault.State with insufficient_balance.
func (s *Service) PrepareCreate(ctx context.Context, p Params) (Prepared, error) {
	settings, err := s.db.PayoutSettings(ctx, p.Owner.AccountID)
	if err != nil {
		return Prepared{}, err
	}

	if err := checkText("memo", p.Memo, maxMemo); err != nil {
		return Prepared{}, err
	}

	prepared, err := s.prepare(ctx, settings, p)
	if err != nil {
		return Prepared{}, err
	}

	prepared.limit = cmp.Or(settings.PerHour, defaultPerHour)
	prepared.payout.Memo = p.Memo

	return prepared, nil
}

// prepare does the checks that payouts and refunds have in common.
func (s *Service) prepare(ctx context.Context, settings Settings, p Params) (Prepared, error) {
	n, asset, err := s.enabledAsset(p)
	if err != nil {
		return Prepared{}, err
	}

	if p.Amount.IsZero() { // spec D5.18
		return Prepared{}, fault.Param(
			"amount", "amount_too_small", "the amount must be at least 1 base unit",
		)
	}

	driver, err := s.registry.Driver(p.Network)
	if err != nil {
		return Prepared{}, err
	}

	master, to, err := s.parties(ctx, driver, settings, p)
	if err != nil {
		return Prepared{}, err
	}

	fee, err := s.estimate(ctx, driver, p, asset, master, to)
	if err != nil {
		return Prepared{}, err
	}

	if p.MaxNetworkFee != nil {
		fee = *p.MaxNetworkFee
	}

	if chain.MaxTransfer.Less(p.Amount) || chain.MaxTransfer.Less(fee) {
		// The sum may not fit an Amount, and no wallet holds that much.
		return Prepared{}, fault.New(
			fault.State, "insufficient_balance",
			"the master wallet %s does not hold %s base units and a network fee of up to %s",
			master.Address, p.Amount, fee,
		)
	}

	if err := s.sender.RefreshBalances(ctx, p.Network, master); err != nil {
		return Prepared{}, err
	}

	native, _ := n.Native()

	out := s.newPayout(p, asset, native, to)
	out.MaxNetworkFee = fee

	out.Approval, err = s.approvalOf(ctx, settings, out, asset, native, p.MaxNetworkFee != nil)
	if err != nil {
		return Prepared{}, err
	}

	return Prepared{master: master, native: native, payout: out}, nil
}

// parties returns the master wallet that pays, and the destination, which must be another address.
func (s *Service) parties(
	ctx context.Context,
	driver chain.Driver,
	settings Settings,
	p Params,
) (master chain.Party, to chain.Address, err error) {
	if to, err = destination(driver, p.Destination, p.Destinations); err != nil {
		return chain.Party{}, "", err
	}

	if master, err = s.sender.MasterWallet(ctx, p.Network, settings.Index); err != nil {
		return chain.Party{}, "", err
	}

	if master.Address == to {
		return chain.Party{}, "", fault.Param(
			"destination", "destination_invalid", "the destination is the master wallet itself",
		)
	}

	return master, to, nil
}

// newPayout returns a pending payout that has no transaction and no fee yet.
func (s *Service) newPayout(p Params, asset, native chain.Asset, to chain.Address) Payout {
	return Payout{
		ID:             s.config.IDs.Next(),
		Owner:          p.Owner,
		Status:         Pending,
		Network:        p.Network,
		Asset:          asset.Symbol,
		AssetID:        asset.ID,
		Contract:       asset.Contract,
		Decimals:       asset.Decimals,
		Amount:         p.Amount,
		Destination:    to,
		RequestedBy:    p.RequestedBy,
		NativeAsset:    native.Symbol,
		NativeDecimals: native.Decimals,
	}
}

// enabledAsset returns the network and the asset of a request, or fault.Invalid with code asset_not_enabled.
// It ignores the account's list of assets: every asset that its wallet holds can be paid out (decisions part
// 11).
func (s *Service) enabledAsset(p Params) (chain.Network, chain.Asset, error) { // spec D5.12, D11.14
	n, ok := s.registry.Network(p.Network)
	if !ok || n.Livemode != p.Owner.Livemode {
		return chain.Network{}, chain.Asset{}, fault.Param(
			"network", "asset_not_enabled",
			"network %q is not enabled; GET /v1/networks lists those that are",
			p.Network,
		)
	}

	asset, ok := n.Asset(p.Asset)
	if !ok {
		return chain.Network{}, chain.Asset{}, fault.Param(
			"asset", "asset_not_enabled",
			"asset %q is not enabled on network %s",
			p.Asset, p.Network,
		)
	}

	return n, asset, nil
}

// estimate returns the highest network fee of a payout, in native base units. If outputs are spent, it is the
// fee for the coins that the wallet has now: many small ones cost more. If these cannot make the payment, the
// payout is refused, unless other coins of the wallet wait for a block: then the payout waits for them.
func (s *Service) estimate(
	ctx context.Context,
	driver chain.Driver,
	p Params,
	asset chain.Asset,
	master chain.Party,
	to chain.Address,
) (chain.Amount, error) {
	coins, waiting, err := s.sender.SpendableCoins(ctx, p.Network, master)
	if err != nil {
		return chain.Amount{}, err
	}

	fee, err := estimateFee(ctx, driver, p, asset, master, to, coins)
	if waiting && len(coins) > 0 && errors.Is(err, fault.State) {
		return estimateFee(ctx, driver, p, asset, master, to, nil)
	}

	return fee, err
}

// messageOf returns the message of the outermost fault of an error.
func messageOf(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		return f.Message
	}

	return err.Error()
}

// estimateFee returns the highest network fee of a payout from coins, in native base units.
func estimateFee(
	ctx context.Context,
	driver chain.Driver,
	p Params,
	asset chain.Asset,
	master chain.Party,
	to chain.Address,
	coins []chain.Coin,
) (chain.Amount, error) {
	estimator, ok := driver.(chain.FeeEstimator)
	if !ok {
		return chain.Amount{}, fault.New(
			fault.Unsupported, "send_unsupported", "network %s cannot send", p.Network,
		)
	}

	fee, err := estimator.EstimateFee(ctx, chain.Order{
		From:    master,
		Coins:   coins,
		Outputs: []chain.Output{{To: to, AssetID: asset.ID, Amount: p.Amount}},
	})
	switch {
	case fault.Code(err) == "amount_too_small":
		tooSmall := fault.Wrap(
			err, fault.Invalid, "amount_too_small",
			"%s base units of %s are less than network %s moves",
			p.Amount, asset.Symbol, p.Network,
		)

		return chain.Amount{}, tooSmall.WithParam("amount")
	case fault.Code(err) == wallet.FailTokenUnsafe:
		unsafe := fault.Wrap(
			err, fault.Invalid, wallet.FailTokenUnsafe,
			"nothing is sent in %s on %s for now: %s", asset.Symbol, p.Network, messageOf(err),
		)

		return chain.Amount{}, unsafe.WithParam("asset").AsTransient()
	case errors.Is(err, fault.Invalid):
		return chain.Amount{}, notPayable(err, asset, to)
	case fault.Code(err) == "amount_too_large":
		return chain.Amount{}, fault.Wrap(err, fault.State, "amount_too_large", "%s", messageOf(err)).
			WithParam("amount")
	case errors.Is(err, fault.State):
		// The node does not estimate a payment that exceeds the wallet's balance.
		return chain.Amount{}, fault.Wrap(
			err, fault.State, "insufficient_balance",
			"the master wallet cannot pay this amount and its network fee: top it up, or send less (%s)",
			messageOf(err),
		)
	case err != nil:
		return chain.Amount{}, err
	}

	return fee, nil
}

// CreateTx accepts a prepared payout in one transaction: the hourly limit, the reservation of amount and fee,
// the row in the outbox and the record. A balance that is too small is fault.State with code
// insufficient_balance; too many payouts are fault.Limited with code payout_limit_exceeded.
func (s *Service) CreateTx(ctx context.Context, tx Tx, prepared Prepared) (Payout, error) { // spec D5.15
	p, now := prepared.payout, s.now()
	if err := prepared.checkLimit(ctx, tx, now); err != nil {
		return Payout{}, err
	}

	for _, r := range reservations(p, prepared.native) {
		if err := s.sender.ReserveTx(
			ctx, tx, p.Owner, p.Network, prepared.master.Address, r.AssetID, p.ID, r.Amount,
		); err != nil {
			return Payout{}, err
		}
	}

	t, err := s.sender.EnqueueTx(ctx, tx, wallet.Transaction{
		Owner:    p.Owner,
		Network:  p.Network,
		Kind:     wallet.Payout,
		ObjectID: p.ID,
		GiveUpAt: now.Add(GiveUpAfter),
		Order: chain.Order{
			From:    prepared.master,
			MaxFee:  p.MaxNetworkFee,
			Outputs: []chain.Output{{To: p.Destination, AssetID: p.AssetID, Amount: p.Amount}},
		},
	})
	if err != nil {
		return Payout{}, err
	}

	if p.Approval.Required {
		// It is not due before it is approved, or stale.
		t.DueAt = t.GiveUpAt
		if err := tx.PutTransaction(ctx, &t); err != nil {
			return Payout{}, err
		}
	}

	p.TransactionID, p.CreatedAt = t.ID, id.CreatedAt(p.ID)
	if err := s.authenticate(&p); err != nil {
		return Payout{}, err
	}

	return p, s.save(ctx, tx, &p, event.PayoutCreated) // spec D5.16
}

// Create is PrepareCreate and CreateTx in a transaction of its own.
func (s *Service) Create(ctx context.Context, params Params) (p Payout, err error) {
	prepared, err := s.PrepareCreate(ctx, params)
	if err != nil {
		return Payout{}, err
	}

	err = s.db.Update(ctx, func(ctx context.Context, tx Tx) (err error) {
		p, err = s.CreateTx(ctx, tx, prepared)
		return err
	})

	return p, err
}

// reservations returns the most that a payout takes out of the master wallet, in base units, by asset id in
// the order of locks.
func reservations(p Payout, native chain.Asset) []chain.Output { // spec D5.1
	if p.AssetID == native.ID {
		return []chain.Output{{AssetID: native.ID, Amount: p.Amount.Add(p.MaxNetworkFee)}}
	}

	out := []chain.Output{
		{AssetID: native.ID, Amount: p.MaxNetworkFee},
		{AssetID: p.AssetID, Amount: p.Amount},
	}
	if out[1].AssetID < out[0].AssetID {
		out[0], out[1] = out[1], out[0]
	}

	return out
}

// notPayable wraps a driver's refusal of a destination. If the address cannot receive the asset, the code is
// destination_not_payable, with the reason; else it is destination_invalid.
func notPayable(refusal error, asset chain.Asset, to chain.Address) error { // spec D11.18
	if reason, ok := errors.AsType[*fault.Error](refusal); ok && reason.Code == wallet.FailNotPayable {
		return reason.WithParam("destination").AsTransient()
	}

	return fault.Wrap(
		refusal, fault.Invalid, "destination_invalid", "%s cannot receive %s", to, asset.Symbol,
	).WithParam("destination")
}

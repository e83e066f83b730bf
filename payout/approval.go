package payout

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// Approval is the consent of a second key or user, for which a payout above its account's sum waits. A payout
// that is not approved in time fails as stale.
type Approval struct { // spec D11.20
	Required bool `json:"required,omitempty"`
	// Reason is ReasonNetworkFee if the maximum network fee requires it, and empty if the account's sum does.
	Reason     string    `json:"reason,omitempty"`
	ApprovedBy string    `json:"approved_by,omitempty"` // the id of an API key or user
	ApprovedAt time.Time `json:"approved_at,omitzero"`
}

// ReasonNetworkFee is the reason of an approval for a maximum network fee above a share of the amount; see
// Config.MaxFeeShare.
const ReasonNetworkFee = "network_fee"

// Missing reports whether the payout waits for its approval.
func (a Approval) Missing() bool { return a.Required && a.ApprovedBy == "" }

// ApprovalResource is an approval as the API shows it (decisions part 11).
type ApprovalResource struct {
	Required   bool   `json:"required"`
	Reason     string `json:"reason,omitempty" enum:"network_fee"`
	ApprovedBy string `json:"approved_by,omitempty"`
	ApprovedAt string `json:"approved_at,omitempty" format:"date-time"`
}

// authenticator makes and verifies authentication tags of payouts. internal/seal.Sealer implements it.
type authenticator interface {
	// MAC returns a tag that VerifyMAC accepts for the same message and context only.
	MAC(message, context []byte) []byte
	// VerifyMAC checks that MAC made the tag for the message and the context. A tag of a key that is not
	// configured is fault.Unavailable, a wrong one fault.Forbidden.
	VerifyMAC(message, context, tag []byte) error
}

// message is what the tag of a payout covers: all that decides what is sent, and who asked for and approved
// it.
type message struct {
	AccountID     string
	Livemode      bool
	Network       string
	AssetID       string
	Amount        chain.Amount
	Destination   chain.Address
	MaxNetworkFee chain.Amount
	RefundID      string
	RequestedBy   Requester
	CreatedAt     int64 // Unix milliseconds
	Required      bool
	ApprovedBy    string
	ApprovedAt    int64
	Signing       Signing
}

func (p Payout) toAuthenticate() (text, context []byte, err error) {
	text, err = json.Marshal(message{
		AccountID:     p.Owner.AccountID,
		Livemode:      p.Owner.Livemode,
		Network:       p.Network,
		AssetID:       p.AssetID,
		Amount:        p.Amount,
		Destination:   p.Destination,
		MaxNetworkFee: p.MaxNetworkFee,
		RefundID:      p.RefundID,
		RequestedBy:   p.RequestedBy,
		CreatedAt:     p.CreatedAt.UnixMilli(),
		Required:      p.Approval.Required,
		ApprovedBy:    p.Approval.ApprovedBy,
		ApprovedAt:    p.Approval.ApprovedAt.UnixMilli(),
		Signing:       p.Signing,
	})

	return text, []byte("payouts/" + p.ID), err
}

// authenticate sets the tag of a payout.
func (s *Service) authenticate(p *Payout) error {
	text, context, err := p.toAuthenticate()
	if err == nil && s.config.Seal != nil {
		p.MAC = s.config.Seal.MAC(text, context)
	}

	return err
}

// Verify checks that the payout, and its approval, were made through this service.
//
// Errors: fault.Unavailable, code payout_damaged or secret_key_unknown.
func (s *Service) Verify(p Payout) error {
	text, context, err := p.toAuthenticate()
	if err != nil || s.config.Seal == nil {
		return err
	}

	if err = s.config.Seal.VerifyMAC(text, context, p.MAC); errors.Is(err, fault.Forbidden) {
		return fault.Wrap(
			err, fault.Unavailable, "payout_damaged", "payout %s was changed outside this service", p.ID,
		)
	}

	return err
}

// approvalOf returns the approval that a payout needs. It needs one if its amount and maximum network fee
// together exceed the account's sum; an amount or fee without a price counts as above it. It also needs one
// if the maximum network fee exceeds its share of the amount. That second rule skips amounts and fees without
// a price, and a fee that the request allows.
func (s *Service) approvalOf(
	ctx context.Context,
	settings Settings,
	out Payout,
	asset, native chain.Asset,
	feeAllowed bool,
) (Approval, error) { // spec D12.3
	value, priced, err := s.valueUSD(ctx, asset, out.Amount)
	if err != nil {
		return Approval{}, err
	}

	fee, feePriced, err := s.valueUSD(ctx, native, out.MaxNetworkFee)
	if err != nil {
		return Approval{}, err
	}

	limit := settings.ApproveAboveUSD
	if limit != nil && !(priced && feePriced && value.Add(fee).LessThanOrEqual(*limit)) {
		return Approval{Required: true}, nil
	}

	if feeAllowed || !priced || !feePriced {
		return Approval{}, nil
	}

	if fee.GreaterThan(decimal.Max(value.Mul(s.config.MaxFeeShare), smallFeeUSD)) {
		return Approval{Required: true, Reason: ReasonNetworkFee}, nil
	}

	return Approval{}, nil
}

// smallFeeUSD is the maximum network fee that every payout may have, in USD.
var smallFeeUSD = decimal.NewFromInt(5)

// valueUSD returns the value of an amount in USD; priced is false without a fresh price.
func (s *Service) valueUSD(
	ctx context.Context,
	asset chain.Asset,
	amount chain.Amount,
) (value decimal.Decimal, priced bool, err error) {
	if s.config.Price == nil {
		return value, false, nil
	}

	price, err := s.config.Price(ctx, asset)
	if err != nil {
		return value, false, ctx.Err()
	}

	return amount.Decimal(asset.Decimals).Mul(price), true, nil // exact
}

// Approver approves a payout: an API key, or a user of the host's own interface.
type Approver struct {
	Requester
	// SameHolder are the ids of the keys that replaced the approving key or were replaced by it: one person
	// has them all.
	SameHolder []string
	// Destinations are the only destinations that the approver and the account allow now; nil: any.
	Destinations []chain.Destination
}

// ApproveTx approves a payout that waits for it, so that it is signed at once. It is idempotent.
//
// Errors:
//   - fault.Forbidden, code approval_by_requester: the requester of a payout cannot approve it
//   - fault.Forbidden, code destination_not_allowed: its destination is not among Approver.Destinations
//   - fault.State, code payout_not_pending: it was canceled, is stale or is being paid
//   - fault.State, code payout_approval_not_required
//   - fault.Unavailable, code payout_damaged: the payout was changed outside this service
func (s *Service) ApproveTx(
	ctx context.Context,
	tx Tx,
	owner event.Owner,
	payoutID string,
	by Approver,
) (Payout, error) {
	p, err := tx.Payout(ctx, owner, payoutID)
	if err != nil {
		return Payout{}, err
	}

	if err := s.checkApprover(p, by); err != nil {
		return Payout{}, err
	}

	if !p.Approval.Missing() {
		return p, nil
	}

	t, err := tx.Transaction(ctx, p.TransactionID)
	if err != nil {
		return Payout{}, err
	}

	now := s.now()
	if p.Status != Pending || walletstate.Stale(&t, now) {
		return Payout{}, fault.New(
			fault.State, "payout_not_pending",
			"payout %s does not wait for its approval any more: create it again",
			p.ID,
		)
	}

	t.ReadyAt, t.DueAt = now, now
	if err := tx.PutTransaction(ctx, &t); err != nil {
		return Payout{}, err
	}

	p.Approval.ApprovedBy, p.Approval.ApprovedAt = by.ID, now
	if err := s.authenticate(&p); err != nil {
		return Payout{}, err
	}

	return p, s.save(ctx, tx, &p)
}

// checkApprover refuses an approver who may not approve, and a payout that must not be approved.
func (s *Service) checkApprover(p Payout, by Approver) error {
	if err := s.Verify(p); err != nil {
		return err
	}

	to := chain.Destination{Network: p.Network, Address: p.Destination}

	switch {
	case !p.Approval.Required:
		return fault.New(
			fault.State, "payout_approval_not_required", "payout %s needs no approval", p.ID,
		)
	case p.RequestedBy.ID == by.ID, slices.Contains(by.SameHolder, p.RequestedBy.ID):
		return fault.New(
			fault.Forbidden, "approval_by_requester",
			"payout %s was requested by this key: another one has to approve it",
			p.ID,
		)
	case p.Approval.Missing() && !chaindata.AllowsDestination(by.Destinations, to):
		return fault.New(
			fault.Forbidden,
			"destination_not_allowed",
			"%s is not on the list of destinations of the approver or of the account: cancel payout %s, or add it",
			to,
			p.ID,
		)
	}

	return nil
}

// Approve is ApproveTx in a transaction of its own.
func (s *Service) Approve(
	ctx context.Context,
	owner event.Owner,
	payoutID string,
	by Approver,
) (p Payout, err error) {
	err = s.db.Update(ctx, func(ctx context.Context, tx Tx) (err error) {
		p, err = s.ApproveTx(ctx, tx, owner, payoutID, by)
		return err
	})

	return p, err
}

package settlement

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/wire"
)

// Resource is a settlement as the API shows it (specification 2.8).
type Resource struct { // spec 2.8.1
	ID                  string        `json:"id"`
	Status              Status        `json:"status" enum:"pending,held,releasing,released,failed,reverted"`
	PaymentID           string        `json:"payment_id"`
	InvoiceID           string        `json:"invoice_id,omitempty"`
	DepositAddressID    string        `json:"deposit_address_id,omitempty"`
	Network             string        `json:"network"`
	Asset               string        `json:"asset"`
	AssetID             string        `json:"asset_id"`
	NativeAsset         string        `json:"native_asset"`
	Gross               string        `json:"gross"`
	USDValue            string        `json:"usd_value"`
	FeeBPS              int           `json:"fee_bps"`
	FeeNative           string        `json:"fee_native"`
	FeeSource           FeeSource     `json:"fee_source" enum:"deposit,master"`
	FeePaid             string        `json:"fee_paid"`
	FeeCarried          string        `json:"fee_carried"`
	RequiredNative      string        `json:"required_native,omitempty"`
	MasterWalletAddress chain.Address `json:"master_wallet_address,omitempty"`
	Reason              Reason        `json:"reason,omitempty"`
	// ReasonMessage explains why it waits or failed. WaitingSince is present once it has waited for more than
	// a minute.
	ReasonMessage string `json:"reason_message,omitempty"`
	WaitingSince  string `json:"waiting_since,omitempty" format:"date-time"`

	FeeTx       string `json:"fee_tx,omitempty"`
	TopUpTx     string `json:"topup_tx,omitempty"`
	SweepTx     string `json:"sweep_tx,omitempty"`
	NetworkFees string `json:"network_fees"`
	ResidueIn   string `json:"residue_in,omitempty"`
	ResidueOut  string `json:"residue_out,omitempty"`
	NetReleased string `json:"net_released,omitempty"`
	Simulated   bool   `json:"simulated"`
	ConfirmedAt string `json:"confirmed_at" format:"date-time"`
	HeldSince   string `json:"held_since,omitempty" format:"date-time"`
	ReleasedAt  string `json:"released_at,omitempty" format:"date-time"`
	FailedAt    string `json:"failed_at,omitempty" format:"date-time"`
	FeeUSD      string `json:"fee_usd"`
	NativePrice string `json:"native_price"`
	Livemode    bool   `json:"livemode"`
}

// EventObject returns the settlement as the object of an event.
func (s Settlement) EventObject() event.Object {
	return event.Object{
		Owner:     s.Owner,
		ID:        s.ID,
		InvoiceID: s.InvoiceID,
		PaymentID: s.PaymentID,
		Sequence:  s.Sequence,
	}
}

// Resource returns the settlement as the API shows it.
func (s Settlement) Resource() Resource { // spec 2.8.4
	r := Resource{
		ID:                  s.ID,
		Status:              s.Status,
		PaymentID:           s.PaymentID,
		InvoiceID:           s.InvoiceID,
		DepositAddressID:    s.DepositAddressID,
		Network:             s.Network,
		Asset:               s.Asset,
		AssetID:             s.AssetID,
		NativeAsset:         s.NativeAsset,
		Gross:               s.Gross.String(),
		USDValue:            wire.Decimal(s.USDValue),
		FeeBPS:              s.FeeBPS,
		FeeNative:           s.FeeNative.String(),
		FeeSource:           s.FeeSource,
		FeePaid:             s.FeePaid.String(),
		FeeCarried:          s.FeeCarried.String(),
		MasterWalletAddress: s.MasterWalletAddress,
		Reason:              s.Reason,
		FeeTx:               s.FeeTx,
		TopUpTx:             s.TopUpTx,
		SweepTx:             s.SweepTx,
		NetworkFees:         s.NetworkFees.String(),
		Simulated:           s.Simulated,
		ConfirmedAt:         wire.Time(s.ConfirmedAt),
		HeldSince:           wire.Time(s.HeldSince),
		ReleasedAt:          wire.Time(s.ReleasedAt),
		FailedAt:            wire.Time(s.FailedAt),
		FeeUSD:              wire.Decimal(s.FeeUSD),
		NativePrice:         wire.Decimal(s.NativePrice),
		Livemode:            s.Owner.Livemode,
	}
	switch {
	case s.Status != Held && s.Status != Failed:
		r.Reason = ""
	case s.FailedFor != "":
		r.Reason = s.FailedFor
	}

	r.ReasonMessage, r.WaitingSince = s.message(r.Reason)

	if s.RequiredNative != nil {
		r.RequiredNative = s.RequiredNative.String()
	}

	if !s.ResidueIn.IsZero() {
		r.ResidueIn = s.ResidueIn.String()
	}

	if !s.ResidueOut.IsZero() {
		r.ResidueOut = s.ResidueOut.String()
	}

	if s.NetReleased != nil {
		r.NetReleased = s.NetReleased.String()
	}

	return r
}

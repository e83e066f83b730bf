package invoice

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/wire"
)

// Price is the price of a fiat invoice, as the API shows it.
type Price struct {
	Currency string `json:"currency" example:"EUR"`
	Amount   string `json:"amount" example:"49.90"`
}

// Resource is an invoice as the API and events show it (specification 2.2).
type Resource struct { // spec 2.2.1
	ID                    string            `json:"id"`
	Number                int64             `json:"number"`
	Status                Status            `json:"status" enum:"open,pending,underpaid,paid,expired,canceled,refunded"`
	OutcomeFlags          []Flag            `json:"outcome_flags" nullable:"false"`
	Kind                  Kind              `json:"kind" enum:"fiat,crypto"`
	Price                 *Price            `json:"price,omitempty"`
	Options               []OptionResource  `json:"options" nullable:"false"`
	SelectedOptionID      string            `json:"selected_option_id,omitempty"`
	PaidOptionID          string            `json:"paid_option_id,omitempty"`
	ToleranceBPS          int               `json:"tolerance_bps"`
	OrderID               string            `json:"order_id,omitempty"`
	CustomerEmail         string            `json:"customer_email,omitempty"`
	Description           string            `json:"description,omitempty"`
	Metadata              map[string]string `json:"metadata,omitempty"`
	SuccessURL            string            `json:"success_url,omitempty"`
	CancelURL             string            `json:"cancel_url,omitempty"`
	ExpiresAt             string            `json:"expires_at" format:"date-time"`
	PreSelectionExpiresAt string            `json:"pre_selection_expires_at" format:"date-time"`
	CreatedAt             string            `json:"created_at" format:"date-time"`
	PaidAt                string            `json:"paid_at,omitempty" format:"date-time"`
	ExpiredAt             string            `json:"expired_at,omitempty" format:"date-time"`
	CanceledAt            string            `json:"canceled_at,omitempty" format:"date-time"`
	RefundedAt            string            `json:"refunded_at,omitempty" format:"date-time"`
	Livemode              bool              `json:"livemode"`
	CheckoutURL           string            `json:"checkout_url" format:"uri"`
}

// OptionResource is an invoice option as the API shows it.
type OptionResource struct { // spec 2.2.4
	ID              string        `json:"id"`
	Network         string        `json:"network"`
	Asset           string        `json:"asset"`
	AssetID         string        `json:"asset_id"`
	Contract        chain.Address `json:"contract,omitempty"`
	Decimals        uint8         `json:"decimals"`
	AmountDue       string        `json:"amount_due,omitempty"`
	DisplayDecimals *uint8        `json:"display_decimals,omitempty"`
	Rate            string        `json:"rate,omitempty"`
	QuoteExpiresAt  string        `json:"quote_expires_at,omitempty" format:"date-time"`
	Address         chain.Address `json:"address,omitempty"`
	TokenAccount    chain.Address `json:"token_account,omitempty"`
	SelectedAt      string        `json:"selected_at,omitempty" format:"date-time"`
	AmountPaid      string        `json:"amount_paid"`
	AmountDetected  string        `json:"amount_detected"`
}

// Resource returns the invoice as the API shows it; checkoutBase is the URL that CheckoutID is appended to.
func (inv Invoice) Resource(checkoutBase string) Resource {
	r := Resource{
		ID:                    inv.ID,
		Number:                inv.Number,
		Status:                inv.Status,
		OutcomeFlags:          append([]Flag{}, inv.Flags...),
		Kind:                  inv.Kind,
		Options:               make([]OptionResource, len(inv.Options)),
		SelectedOptionID:      inv.SelectedOptionID,
		PaidOptionID:          inv.PaidOptionID,
		ToleranceBPS:          inv.ToleranceBPS,
		OrderID:               inv.OrderID,
		CustomerEmail:         inv.CustomerEmail,
		Description:           inv.Description,
		Metadata:              inv.Metadata,
		SuccessURL:            inv.SuccessURL,
		CancelURL:             inv.CancelURL,
		ExpiresAt:             wire.Time(inv.ExpiresAt),
		PreSelectionExpiresAt: wire.Time(inv.PreSelectionExpiresAt),
		CreatedAt:             wire.Time(inv.CreatedAt),
		PaidAt:                wire.Time(inv.PaidAt),
		ExpiredAt:             wire.Time(inv.ExpiredAt),
		CanceledAt:            wire.Time(inv.CanceledAt),
		RefundedAt:            wire.Time(inv.RefundedAt),
		Livemode:              inv.Owner.Livemode,
		CheckoutURL:           checkoutBase + inv.CheckoutID(),
	}
	if inv.Kind == Fiat {
		r.Price = &Price{Currency: inv.Currency, Amount: wire.Decimal(inv.Price)}
	}

	for i, o := range inv.Options {
		v := OptionResource{
			ID:             o.ID,
			Network:        o.Network,
			Asset:          o.Asset,
			AssetID:        o.AssetID,
			Contract:       o.Contract,
			Decimals:       o.Decimals,
			QuoteExpiresAt: wire.Time(o.QuoteExpiresAt),
			Address:        o.Address,
			TokenAccount:   o.TokenAccount,
			SelectedAt:     wire.Time(o.SelectedAt),
			AmountPaid:     o.AmountPaid.String(),
			AmountDetected: o.AmountDetected.String(),
		}
		if !o.AmountDue.IsZero() {
			display := o.DisplayDecimals
			v.AmountDue, v.DisplayDecimals = o.AmountDue.String(), &display
		}

		if !o.Rate.IsZero() {
			v.Rate = wire.Decimal(o.Rate)
		}

		r.Options[i] = v
	}

	return r
}

// DepositResource is a deposit address as the API shows it (decisions part 7).
type DepositResource struct { // spec D7.1
	ID            string            `json:"id"`
	Name          string            `json:"name,omitempty"`
	Network       string            `json:"network"`
	Address       chain.Address     `json:"address"`
	TokenAccounts []TokenAccount    `json:"token_accounts,omitempty"`
	Status        DepositStatus     `json:"status" enum:"active,disabled"`
	Metadata      map[string]string `json:"metadata,omitempty"`
	LastPaymentAt string            `json:"last_payment_at,omitempty" format:"date-time"`
	CreatedAt     string            `json:"created_at" format:"date-time"`
	Livemode      bool              `json:"livemode"`
}

// Resource returns the deposit address as the API shows it, with the result of Service.TokenAccounts for it.
func (d DepositAddress) Resource(accounts []TokenAccount) DepositResource {
	return DepositResource{
		ID:            d.ID,
		Name:          d.Name,
		Network:       d.Network,
		Address:       d.Address,
		TokenAccounts: accounts,
		Status:        d.Status,
		Metadata:      d.Metadata,
		LastPaymentAt: wire.Time(d.LastPaymentAt),
		CreatedAt:     wire.Time(d.CreatedAt),
		Livemode:      d.Owner.Livemode,
	}
}

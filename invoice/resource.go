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

// PaymentResource is a payment as the API and events show it (specification 2.7). Settlement holds a
// settlement.Resource, or its id and status alone inside an event.
type PaymentResource struct { // spec 2.7.1
	ID                    string        `json:"id"`
	Status                PaymentStatus `json:"status" enum:"detected,confirmed,orphaned,dropped"`
	InvoiceID             string        `json:"invoice_id,omitempty"`
	OptionID              string        `json:"option_id,omitempty"`
	DepositAddressID      string        `json:"deposit_address_id,omitempty"`
	Network               string        `json:"network"`
	Asset                 string        `json:"asset"`
	AssetID               string        `json:"asset_id"`
	Contract              chain.Address `json:"contract,omitempty"`
	Decimals              uint8         `json:"decimals"`
	Address               chain.Address `json:"address"`
	FromAddress           chain.Address `json:"from_address,omitempty"`
	TxHash                string        `json:"tx_hash,omitempty"`
	TxIndex               *uint32       `json:"tx_index,omitempty"`
	Amount                string        `json:"amount"`
	Confirmations         uint64        `json:"confirmations"`
	ConfirmationsRequired uint64        `json:"confirmations_required"`
	BlockHeight           *uint64       `json:"block_height,omitempty"`
	BlockHash             string        `json:"block_hash,omitempty"`
	USDValue              string        `json:"usd_value,omitempty"`
	Late                  bool          `json:"late"`
	Simulated             bool          `json:"simulated"`
	DetectedBy            Detection     `json:"detected_by" enum:"poll,hint,balance,simulated"`
	DetectedAt            string        `json:"detected_at" format:"date-time"`
	ConfirmedAt           string        `json:"confirmed_at,omitempty" format:"date-time"`
	InvoiceNumber         int64         `json:"invoice_number,omitempty"`
	DepositAddressName    string        `json:"deposit_address_name,omitempty"`
	Livemode              bool          `json:"livemode"`
}

// Resource returns the payment as the API shows it, without its settlement; tip is the newest block
// seen on its network.
func (p Payment) Resource(tip uint64) PaymentResource { // spec 2.7.3
	r := PaymentResource{
		ID:                    p.ID,
		Status:                p.Status,
		InvoiceID:             p.InvoiceID,
		OptionID:              p.OptionID,
		DepositAddressID:      p.DepositAddressID,
		Network:               p.Network,
		Asset:                 p.Asset,
		AssetID:               p.AssetID,
		Contract:              p.Contract,
		Decimals:              p.Decimals,
		Address:               p.Address,
		FromAddress:           p.FromAddress,
		TxHash:                p.TxHash,
		Amount:                p.Amount.String(),
		Confirmations:         p.ConfirmationsAt(tip),
		ConfirmationsRequired: p.Required,
		BlockHash:             p.Block.Hash,
		USDValue:              wire.OptionalDecimal(p.USDValue),
		Late:                  p.Late,
		Simulated:             p.Simulated,
		DetectedBy:            p.DetectedBy,
		DetectedAt:            wire.Time(p.DetectedAt),
		ConfirmedAt:           wire.Time(p.ConfirmedAt),
		InvoiceNumber:         p.InvoiceNumber,
		DepositAddressName:    p.DepositAddressName,
		Livemode:              p.Owner.Livemode,
	}
	if p.TxHash != "" {
		index := p.TxIndex
		r.TxIndex = &index
	}

	if !p.Block.IsZero() {
		height := p.Block.Height
		r.BlockHeight = &height
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

// Resource returns the deposit address as the API shows it.
func (d DepositAddress) Resource() DepositResource {
	return DepositResource{
		ID:            d.ID,
		Name:          d.Name,
		Network:       d.Network,
		Address:       d.Address,
		TokenAccounts: d.TokenAccounts,
		Status:        d.Status,
		Metadata:      d.Metadata,
		LastPaymentAt: wire.Time(d.LastPaymentAt),
		CreatedAt:     wire.Time(d.CreatedAt),
		Livemode:      d.Owner.Livemode,
	}
}

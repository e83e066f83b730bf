package invoice

import (
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Option is one way to pay: an asset on a network. It has an address of its own once it was selected.
type Option struct {
	ID       string        `json:"id"`
	Network  string        `json:"network"`
	Asset    string        `json:"asset"`
	AssetID  string        `json:"asset_id"`
	Contract chain.Address `json:"contract,omitempty"`
	Decimals uint8         `json:"decimals"`
	// AmountDue is the total amount that a payer has to pay to this option, in base units; 0 before a quote.
	AmountDue chain.Amount `json:"amount_due,omitzero"`
	// DisplayDecimals: AmountDue is a whole number of 10^(Decimals−DisplayDecimals) base units.
	DisplayDecimals uint8 `json:"display_decimals,omitzero"`
	// Raise is the part of AmountDue that raised a remainder to the asset's smallest amount. Paying it is not
	// an overpayment.
	Raise chain.Amount `json:"raise,omitzero"`
	// Rate is the price of one unit in the invoice's currency; zero for crypto invoices and before a quote.
	Rate           decimal.Decimal `json:"rate,omitzero"`
	QuoteExpiresAt time.Time       `json:"quote_expires_at,omitzero"`
	Address        chain.Address   `json:"address,omitempty"`
	TokenAccount   chain.Address   `json:"token_account,omitempty"`
	Key            chain.KeyRef    `json:"key,omitzero"`
	SelectedAt     time.Time       `json:"selected_at,omitzero"`
	// AmountPaid and AmountDetected are the sums of confirmed and of detected payments to this option.
	AmountPaid     chain.Amount `json:"amount_paid,omitzero"`
	AmountDetected chain.Amount `json:"amount_detected,omitzero"`
	// MAC authenticates the option's owner and its asset. It holds until the option is selected: then the tag
	// of its address takes over.
	MAC []byte `json:"mac,omitempty"`
}

// Selected reports whether the option has an address.
func (o Option) Selected() bool { return o.Address != "" }

// selectableLater reports whether an option of the invoice may be selected, now or once a payment is gone.
func (inv *Invoice) selectableLater() bool {
	return inv.Status == Open || inv.Status == Pending || inv.Status == Underpaid
}

// Option returns the option of an id, or nil.
func (inv *Invoice) Option(id string) *Option {
	for i := range inv.Options {
		if inv.Options[i].ID == id {
			return &inv.Options[i]
		}
	}

	return nil
}

// selectOption makes an option the selected one, without an address or a quote. Only options of open and
// underpaid invoices that have not run out can be selected (fault.State).
func (inv *Invoice) selectOption(optionID string, now time.Time) error {
	o, err := inv.selectable(optionID, now)
	if err != nil {
		return err
	}

	inv.SelectedOptionID, o.SelectedAt = o.ID, now
	inv.Schedule()

	return nil
}

func (inv *Invoice) selectable(optionID string, now time.Time) (*Option, error) {
	o := inv.Option(optionID)
	if o == nil {
		return nil, fault.Missing("option", optionID)
	}

	switch {
	case inv.Status == Pending:
		return nil, fault.New(fault.State, "invoice_payment_pending",
			"invoice %s waits for a payment to confirm; an option can be chosen again if it does not", inv.ID)
	case inv.Status != Open && inv.Status != Underpaid:
		return nil, fault.New(
			fault.State, "invoice_not_open",
			"invoice %s is %s, so no option can be chosen any more",
			inv.ID, inv.Status,
		)
	case !now.Before(inv.Deadline()):
		return nil, fault.New(
			fault.State, "invoice_expired",
			"the time to pay invoice %s is over; ask for a new invoice",
			inv.ID,
		)
	}

	return o, nil
}

// quoted reports whether the option's amount holds at a time: a quote that has not run out, or the fixed
// amount of a crypto invoice, which never does.
func (o Option) quoted(now time.Time) bool { // spec D2.2.10
	return !o.AmountDue.IsZero() && (o.QuoteExpiresAt.IsZero() || now.Before(o.QuoteExpiresAt))
}

// DisplayStep is one unit of the last decimal that is shown, in base units.
func (o Option) DisplayStep() chain.Amount { return chain.Pow10(o.Decimals - o.DisplayDecimals) }

package checkout

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/wire"
	"github.com/seed-8ee7f392/payments/invoice"
)

// pageState is the JSON of /checkout/{id}/state.json. Amounts are in base units as digits; each amount_text
// is the same amount in whole units, exact, as it is shown and copied. Fields without a value are left out.
type pageState struct { // spec D10.5
	ID string `json:"id"`
	// Revision is a hash of all fields but ServerTime and the estimates.
	Revision     string         `json:"revision"`
	Phase        phase          `json:"state"`
	Status       invoice.Status `json:"status"`
	OutcomeFlags []invoice.Flag `json:"outcome_flags"`
	// Final is set when neither the payer nor a network can change anything any more.
	Final       bool           `json:"final"`
	Livemode    bool           `json:"livemode"`
	Kind        invoice.Kind   `json:"kind"`
	Merchant    merchantView   `json:"merchant"`
	Description string         `json:"description,omitempty"`
	Price       *invoice.Price `json:"price,omitempty"`
	// Outstanding is the missing part of the price, in its currency, once a payment arrived.
	Outstanding string   `json:"outstanding,omitempty"`
	Options     []choice `json:"options"`
	// CanSelect is set when POST …/select accepts another option or renews the quote.
	CanSelect bool `json:"can_select"`
	// Payment has the payment details of the selected option.
	Payment *paymentDetails `json:"payment,omitempty"`
	// Transactions are the newest payments so far, oldest first; EarlierTransactions is how many are left out.
	Transactions        []transaction `json:"transactions"`
	EarlierTransactions int           `json:"earlier_transactions,omitempty"`
	// ReceivedText has the sum of the payments that count, by asset: "0.5 ETH + 3 USDC".
	ReceivedText string `json:"received_text,omitempty"`
	// NetworkTrouble is "stopped" or "behind" when the selected option's network is read late.
	NetworkTrouble string `json:"network_trouble,omitempty"`
	ExpiresAt      string `json:"expires_at"`
	// SelectBefore is the deadline to select an option; absent once one is selected.
	SelectBefore string `json:"select_before,omitempty"`
	// ReturnURL is success_url once paid, cancel_url before, else the merchant's website.
	ReturnURL  string `json:"return_url,omitempty"`
	ServerTime string `json:"server_time"`
}

// merchantView shows the account that is paid.
type merchantView struct {
	Name       string `json:"name"`
	WebsiteURL string `json:"website_url,omitempty"`
	// LogoURL is relative to the page.
	LogoURL string `json:"logo_url,omitempty"`
}

// choice is one way to pay.
type choice struct {
	ID          string `json:"id"`
	Network     string `json:"network"`
	NetworkName string `json:"network_name"`
	Asset       string `json:"asset"`
	AssetName   string `json:"asset_name,omitempty"`
	Selected    bool   `json:"selected"`
	// AmountText is the amount to pay, if it is fixed. EstimateText is an estimate while the payer may choose
	// and a price is known.
	AmountText   string `json:"amount_text,omitempty"`
	EstimateText string `json:"estimate_text,omitempty"`
}

// paymentDetails describe how to pay by the selected option.
type paymentDetails struct {
	OptionID         string        `json:"option_id"`
	Network          string        `json:"network"`
	NetworkName      string        `json:"network_name"`
	Asset            string        `json:"asset"`
	AssetName        string        `json:"asset_name,omitempty"`
	Contract         chain.Address `json:"contract,omitempty"`
	Decimals         uint8         `json:"decimals"`
	DisplayDecimals  uint8         `json:"display_decimals"`
	Address          chain.Address `json:"address"`
	AmountDue        string        `json:"amount_due"`
	AmountPaid       string        `json:"amount_paid"`
	AmountDetected   string        `json:"amount_detected"`
	AmountMissing    string        `json:"amount_missing"`
	DueText          string        `json:"due_text"`
	MissingText      string        `json:"missing_text"`
	ReceivedText     string        `json:"received_text"`
	ExcessText       string        `json:"excess_text,omitempty"`
	Rate             string        `json:"rate,omitempty"`
	QuoteExpiresAt   string        `json:"quote_expires_at,omitempty"`
	QuoteExpired     bool          `json:"quote_expired"`
	URI              string        `json:"uri,omitempty"`
	ConfirmationRule chain.Rule    `json:"confirmation_rule,omitempty"`
	// UsuallySeconds is the expected time from sending to confirmed.
	UsuallySeconds int64 `json:"usually_seconds,omitempty"`
}

// transaction is a payment to the invoice.
type transaction struct {
	TxHash      string                `json:"tx_hash,omitempty"`
	Status      invoice.PaymentStatus `json:"status"`
	Network     string                `json:"network"`
	NetworkName string                `json:"network_name"`
	Asset       string                `json:"asset"`
	Amount      string                `json:"amount"`
	AmountText  string                `json:"amount_text"`
	// Confirmations count up to ConfirmationsRequired; networks with finality ignore both after the first.
	Confirmations         uint64     `json:"confirmations"`
	ConfirmationsRequired uint64     `json:"confirmations_required"`
	ConfirmationRule      chain.Rule `json:"confirmation_rule,omitempty"`
	InBlock               bool       `json:"in_block"`
	Late                  bool       `json:"late"`
	// Counts reports whether it pays the invoice; false for an asset or network that was not offered.
	Counts      bool   `json:"counts"`
	Simulated   bool   `json:"simulated"`
	ExplorerURL string `json:"explorer_url,omitempty"`
	DetectedAt  string `json:"detected_at"`
	ConfirmedAt string `json:"confirmed_at,omitempty"`
}

var (
	// selectPhases are the phases in which the payer may select another option.
	selectPhases = []phase{phaseChoose, phasePay, phaseQuoteExpired, phaseUnderpaid}

	// finalPhases are the phases after which the page needs no further update.
	finalPhases = []phase{phasePaid, phaseExpired, phaseCanceled, phaseRefunded, phaseLate}
)

// stateOf returns the state of an invoice. It is pure: the time is snapshot.Now.
func stateOf(f snapshot) pageState {
	inv := &f.Invoice
	selected := selectedOption(inv)

	s := pageState{
		ID:           inv.ID,
		Status:       inv.Status,
		OutcomeFlags: append([]invoice.Flag{}, inv.Flags...),
		Livemode:     inv.Owner.Livemode,
		Kind:         inv.Kind,
		Merchant:     merchantView{Name: f.Merchant.Name, WebsiteURL: webURL(f.Merchant.WebsiteURL)},
		Description:  inv.Description,
		Options:      []choice{},
		Transactions: []transaction{},
		ExpiresAt:    wire.Time(inv.ExpiresAt),
		ServerTime:   wire.Time(f.Now),
	}
	if f.Merchant.LogoVersion != "" {
		s.Merchant.LogoURL = inv.CheckoutID() + "/logo?v=" + f.Merchant.LogoVersion
	}

	if inv.Kind == invoice.Fiat {
		s.Price = &invoice.Price{Currency: inv.Currency, Amount: wire.Decimal(inv.Price)}
	}

	s.addTransactions(f)
	s.ReceivedText = receivedText(f.Payments)

	arrived := slices.ContainsFunc(f.Payments, counts)

	missing := outstanding(inv, f.Payments)
	if arrived && inv.Kind == invoice.Fiat && missing.Sign() > 0 {
		s.Outstanding = wire.Decimal(missing)
	}

	if selected != nil {
		s.Payment = f.details(selected)
		s.NetworkTrouble = networkTrouble(f, selected.Network)
	} else {
		s.SelectBefore = wire.Time(inv.PreSelectionExpiresAt)
	}

	s.Phase = phaseOf(f, selected, arrived)
	s.CanSelect = slices.Contains(selectPhases, s.Phase)
	s.Final = slices.Contains(finalPhases, s.Phase)

	if s.Payment != nil && s.Phase != phasePay && s.Phase != phaseUnderpaid {
		s.Payment.URI = "" // the payer should send nothing
	}

	for _, o := range inv.Options {
		s.Options = append(s.Options, f.choice(o, s.CanSelect))
	}

	s.ReturnURL = f.returnURL(s.Phase)
	s.Revision = revision(s)

	return s
}

// addTransactions adds the newest payments, as many as fit.
func (s *pageState) addTransactions(f snapshot) {
	if f.MaxPayments > 0 {
		s.EarlierTransactions = max(len(f.Payments)-f.MaxPayments, 0)
	}

	for _, p := range f.Payments[s.EarlierTransactions:] {
		s.Transactions = append(s.Transactions, f.transaction(p))
	}
}

// selectedOption returns the option that completed the payment, else the latest selection, else nil.
func selectedOption(inv *invoice.Invoice) *invoice.Option {
	o := inv.Option(inv.PaidOptionID)
	if o == nil {
		o = inv.Option(inv.SelectedOptionID)
	}

	if o == nil || !o.Selected() {
		return nil
	}

	return o
}

// counts reports whether a payment stands and pays the invoice.
func counts(p invoice.Payment) bool {
	return p.OptionID != "" && (p.Status == invoice.Detected || p.Status == invoice.Confirmed)
}

// receivedText returns State.ReceivedText.
func receivedText(payments []invoice.Payment) string {
	var order []string

	sums, decimals, symbols := map[string]chain.Amount{}, map[string]uint8{}, map[string]string{}

	for _, p := range payments {
		if !counts(p) {
			continue
		}

		if _, known := sums[p.AssetID]; !known {
			order = append(order, p.AssetID)
		}

		sums[p.AssetID] = sums[p.AssetID].Add(p.Amount)
		decimals[p.AssetID], symbols[p.AssetID] = p.Decimals, p.Asset
	}

	texts := make([]string, len(order))
	for i, id := range order {
		texts[i] = formatUnits(sums[id], decimals[id]) + " " + symbols[id]
	}

	return strings.Join(texts, " + ")
}

// outstanding returns the price less the payments' credits, in its currency; never below zero.
func outstanding(inv *invoice.Invoice, payments []invoice.Payment) decimal.Decimal {
	owed := inv.Price

	for _, p := range payments {
		if counts(p) {
			owed = owed.Sub(p.Credit)
		}
	}

	if owed.Sign() < 0 {
		return decimal.Decimal{}
	}

	return owed
}

// returnURL returns State.ReturnURL for a phase.
func (f snapshot) returnURL(p phase) string {
	inv := &f.Invoice
	if p == phasePaid || p == phaseRefunded {
		return webURL(cmp.Or(inv.SuccessURL, f.Merchant.SuccessURL, f.Merchant.WebsiteURL))
	}

	return webURL(cmp.Or(inv.CancelURL, f.Merchant.CancelURL, f.Merchant.WebsiteURL))
}

// webURL returns an http or https URL unchanged, and "" for any other.
func webURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}

	return u.String()
}

// revision returns State.Revision: the first 8 bytes of SHA-256 over the JSON, in hex.
func revision(s pageState) string {
	s.Revision, s.ServerTime = "", ""

	s.Options = slices.Clone(s.Options)
	for i := range s.Options {
		s.Options[i].EstimateText = ""
	}

	b, err := json.Marshal(s)
	if err != nil {
		panic("checkout: a state cannot be encoded as JSON: " + err.Error())
	}

	h := sha256.Sum256(b)

	return hex.EncodeToString(h[:8])
}

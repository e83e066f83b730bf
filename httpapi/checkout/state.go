package checkout

// The state of an invoice as a payer may know it: what /checkout/{id}/state.json and the event
// stream say, and what the page is written from. It is made of facts by a pure function.

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/wire"
	"github.com/seed-8ee7f392/payments/invoice"
)

// Phase is where the payer stands: what the page shows and what there is to do.
type Phase string

// The phases. A client must expect others to be added.
const (
	// Choose an option; none was selected yet.
	Choose Phase = "choose"
	// Pay the amount to the address.
	Pay Phase = "pay"
	// QuoteExpired: the amount no longer holds; select the option again for a new one.
	QuoteExpired Phase = "quote_expired"
	// Seen: enough is on its way, and in no block yet.
	Seen Phase = "seen"
	// Confirming: enough has arrived, and the network has yet to confirm it.
	Confirming Phase = "confirming"
	// Interrupted: the block with the payment left the chain; it usually returns, so nothing should be sent.
	Interrupted Phase = "interrupted"
	// Underpaid: something arrived, and some is missing.
	Underpaid Phase = "underpaid"
	// Closing: the time is up, and payments made in time are still looked for.
	Closing Phase = "closing"
	// Paid, Expired, Canceled and Refunded are the invoice's status of that name.
	Paid     Phase = "paid"
	Expired  Phase = "expired"
	Canceled Phase = "canceled"
	Refunded Phase = "refunded"
	// Late: money arrived, and the invoice has expired or was canceled.
	Late Phase = "late"
)

// State is the JSON of /checkout/{id}/state.json. Amounts are in base units as digits; each
// amount_text is the same amount in whole units, exact, as it is shown and copied. Fields without a
// value are left out.
type State struct {
	ID string `json:"id"`
	// Revision changes with everything but ServerTime and the estimates: equal revisions look the same.
	Revision     string         `json:"revision"`
	Phase        Phase          `json:"state"`
	Status       invoice.Status `json:"status"`
	OutcomeFlags []invoice.Flag `json:"outcome_flags"`
	// Final says that nothing more is expected of the payer or of a network.
	Final       bool           `json:"final"`
	Livemode    bool           `json:"livemode"`
	Kind        invoice.Kind   `json:"kind"`
	Merchant    Merchant       `json:"merchant"`
	Description string         `json:"description,omitempty"`
	Price       *invoice.Price `json:"price,omitempty"`
	// Outstanding is what is missing of the price, in its currency, once something has arrived.
	Outstanding string   `json:"outstanding,omitempty"`
	Options     []Choice `json:"options"`
	// CanSelect says that POST …/select is open: another option, or a new quote.
	CanSelect bool `json:"can_select"`
	// Payment is how to pay by the selected option.
	Payment *PaymentDetails `json:"payment,omitempty"`
	// Transactions are the payments so far, oldest first.
	Transactions []Transaction `json:"transactions"`
	// NetworkTrouble is "stopped" or "behind" when payments on the selected option's network are seen late.
	NetworkTrouble string `json:"network_trouble,omitempty"`
	ExpiresAt      string `json:"expires_at"`
	// SelectBefore is until when an option has to be selected; absent once one was.
	SelectBefore string `json:"select_before,omitempty"`
	// ReturnURL leads back to the merchant: success_url once paid, cancel_url before, the
	// merchant's page without them.
	ReturnURL  string `json:"return_url,omitempty"`
	ServerTime string `json:"server_time"`
}

// Merchant is who is paid.
type Merchant struct {
	Name       string `json:"name"`
	WebsiteURL string `json:"website_url,omitempty"`
	// LogoURL is relative to the page.
	LogoURL string `json:"logo_url,omitempty"`
}

// Choice is one way to pay.
type Choice struct {
	ID          string `json:"id"`
	Network     string `json:"network"`
	NetworkName string `json:"network_name"`
	Asset       string `json:"asset"`
	AssetName   string `json:"asset_name,omitempty"`
	Selected    bool   `json:"selected"`
	// AmountText is what to pay by it, where that is fixed; EstimateText is about what it would be,
	// while options are there to choose from and a price is at hand.
	AmountText   string `json:"amount_text,omitempty"`
	EstimateText string `json:"estimate_text,omitempty"`
}

// PaymentDetails say how to pay by the selected option.
type PaymentDetails struct {
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

// Transaction is a payment as a payer sees it.
type Transaction struct {
	TxHash      string                `json:"tx_hash,omitempty"`
	Status      invoice.PaymentStatus `json:"status"`
	Network     string                `json:"network"`
	NetworkName string                `json:"network_name"`
	Asset       string                `json:"asset"`
	Amount      string                `json:"amount"`
	AmountText  string                `json:"amount_text"`
	// Confirmations of ConfirmationsRequired; under a rule of finality only the first means something.
	Confirmations         uint64     `json:"confirmations"`
	ConfirmationsRequired uint64     `json:"confirmations_required"`
	ConfirmationRule      chain.Rule `json:"confirmation_rule,omitempty"`
	InBlock               bool       `json:"in_block"`
	Late                  bool       `json:"late"`
	// Counts says whether it pays the invoice: false for an asset or network that was not offered.
	Counts      bool   `json:"counts"`
	Simulated   bool   `json:"simulated"`
	ExplorerURL string `json:"explorer_url,omitempty"`
	DetectedAt  string `json:"detected_at"`
	ConfirmedAt string `json:"confirmed_at,omitempty"`
}

// facts are what a state is made from, read together.
type snapshot struct {
	Invoice  invoice.Invoice
	Payments []invoice.Payment // oldest first
	Merchant merchant
	Networks *chain.Registry
	// NetworkStatuses are those of the selected option's and the payments' networks, by slug.
	NetworkStatuses map[string]networkStatus
	// Prices are of one unit of an asset in the invoice's currency, by asset id; those at hand.
	Prices map[string]decimal.Decimal
	Now    time.Time
}

// merchant is what the page keeps of an account.
type merchant struct {
	Name, WebsiteURL, SuccessURL, CancelURL string
	// LogoVersion names the logo's bytes; empty without a logo.
	LogoVersion string
}

// stateOf makes the state from the facts.
func stateOf(f snapshot) State {
	inv := &f.Invoice
	selected := selectedOption(inv)

	s := State{
		ID:           inv.ID,
		Status:       inv.Status,
		OutcomeFlags: append([]invoice.Flag{}, inv.Flags...),
		Livemode:     inv.Owner.Livemode,
		Kind:         inv.Kind,
		Merchant:     Merchant{Name: f.Merchant.Name, WebsiteURL: webURL(f.Merchant.WebsiteURL)},
		Description:  inv.Description,
		Options:      []Choice{},
		Transactions: []Transaction{},
		ExpiresAt:    wire.Time(inv.ExpiresAt),
		ServerTime:   wire.Time(f.Now),
	}
	if f.Merchant.LogoVersion != "" {
		s.Merchant.LogoURL = inv.ID + "/logo?v=" + f.Merchant.LogoVersion
	}

	if inv.Kind == invoice.Fiat {
		s.Price = &invoice.Price{Currency: inv.Currency, Amount: wire.Decimal(inv.Price)}
	}

	for _, p := range f.Payments {
		s.Transactions = append(s.Transactions, f.transaction(p))
	}

	arrived := slices.ContainsFunc(f.Payments, counts)
	if missing := outstanding(inv, f.Payments); arrived && inv.Kind == invoice.Fiat && missing.Sign() > 0 {
		s.Outstanding = wire.Decimal(missing)
	}

	if selected != nil {
		s.Payment = f.details(selected)
		s.NetworkTrouble = networkTrouble(f, selected.Network)
	} else {
		s.SelectBefore = wire.Time(inv.PreSelectionExpiresAt)
	}

	s.Phase = phaseOf(f, selected, arrived)
	if s.Payment != nil && s.Phase != Pay && s.Phase != Underpaid {
		s.Payment.URI = "" // nothing should be sent now
	}

	s.CanSelect = slices.Contains([]Phase{Choose, Pay, QuoteExpired, Underpaid}, s.Phase)

	s.Final = slices.Contains([]Phase{Paid, Expired, Canceled, Refunded, Late}, s.Phase)
	for _, o := range inv.Options {
		s.Options = append(s.Options, f.choice(o, s.CanSelect))
	}

	s.ReturnURL = f.returnURL(s.Phase)
	s.Revision = revision(s)

	return s
}

// selectedOption is the option that the page is about: the one that made it enough, else the latest
// selection.
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

// counted reports whether a payment stands and pays the invoice.
func counts(p invoice.Payment) bool {
	return p.OptionID != "" && (p.Status == invoice.Detected || p.Status == invoice.Confirmed)
}

// outstanding is the price less what payments are credited with; never below zero.
func outstanding(inv *invoice.Invoice, payments []invoice.Payment) decimal.Decimal {
	left := inv.Price

	for _, p := range payments {
		if counts(p) {
			left = left.Sub(p.Credit)
		}
	}

	if left.Sign() < 0 {
		return decimal.Decimal{}
	}

	return left
}

func phaseOf(f snapshot, selected *invoice.Option, arrived bool) Phase {
	inv := &f.Invoice
	switch inv.Status {
	case invoice.Paid:
		return Paid
	case invoice.Refunded:
		return Refunded
	case invoice.Expired, invoice.Canceled:
		switch {
		case arrived:
			return Late
		case inv.Status == invoice.Expired:
			return Expired
		}

		return Canceled
	case invoice.Pending:
		if p := slowestPayment(f); p != nil && p.Block.IsZero() && !p.Simulated {
			return Seen
		}

		return Confirming
	case invoice.Open, invoice.Underpaid:
		return openPhase(f, selected, arrived)
	}

	return Pay
}

// openPhase is the phase of an invoice that waits for money.
func openPhase(f snapshot, selected *invoice.Option, arrived bool) Phase {
	inv := &f.Invoice

	switch {
	case slices.ContainsFunc(
		f.Payments,
		func(p invoice.Payment) bool { return p.Status == invoice.Orphaned && p.OptionID != "" },
	):
		return Interrupted
	case selected == nil && !f.Now.Before(inv.PreSelectionExpiresAt), !f.Now.Before(inv.ExpiresAt):
		return Closing
	case inv.Status == invoice.Underpaid || arrived:
		return Underpaid
	case selected == nil:
		return Choose
	case quoteExpired(inv, selected, f.Now):
		return QuoteExpired
	}

	return Pay
}

// slowest returns the detected payment that has furthest to go, or nil.
func slowestPayment(f snapshot) *invoice.Payment {
	var (
		found *invoice.Payment
		left  uint64
	)

	for i := range f.Payments {
		p := &f.Payments[i]
		if p.Status != invoice.Detected {
			continue
		}

		toGo := p.Required - min(p.Required, f.confirmations(*p))
		if p.Block.IsZero() {
			toGo++ // one that waits for a block comes after one whose block is there
		}

		if found == nil || toGo > left {
			found, left = p, toGo
		}
	}

	return found
}

// confirmations counts from the newest block that is known, which is at least the payment's own.
func (f snapshot) confirmations(p invoice.Payment) uint64 {
	return p.ConfirmationsAt(max(f.NetworkStatuses[p.Network].Tip, p.Block.Height))
}

// missing is what is still to be paid to an option by its quote.
func missing(o *invoice.Option) chain.Amount {
	return o.AmountDue.SubFloor(o.AmountPaid.Add(o.AmountDetected))
}

// quoteOver reports whether the amount of an option no longer tells what to pay: its time is over,
// or all of it arrived and the price moved in between. Crypto amounts hold.
func quoteExpired(inv *invoice.Invoice, o *invoice.Option, now time.Time) bool {
	return inv.Kind == invoice.Fiat && (!now.Before(o.QuoteExpiresAt) || missing(o).IsZero())
}

func (f snapshot) choice(o invoice.Option, choosing bool) Choice {
	n, a := f.names(o.Network, o.AssetID)

	c := Choice{
		ID:          o.ID,
		Network:     o.Network,
		NetworkName: n.DisplayName,
		Asset:       o.Asset,
		AssetName:   a.Name,
		Selected:    o.ID == f.Invoice.SelectedOptionID,
	}
	switch left := missing(&o); {
	case !choosing:
	case !left.IsZero() && !quoteExpired(&f.Invoice, &o, f.Now):
		c.AmountText = formatUnits(left, o.Decimals, o.DisplayDecimals)
	case f.Invoice.Kind == invoice.Fiat:
		c.EstimateText, _ = estimate(outstanding(&f.Invoice, f.Payments), f.Prices[o.AssetID], o.Decimals)
	}

	return c
}

// names returns the network and asset for display; what is not enabled any more keeps its short names.
func (f snapshot) names(slug, assetID string) (chain.Network, chain.Asset) {
	n, ok := f.Networks.Network(slug)
	if !ok {
		n = chain.Network{Slug: slug}
	}

	n.DisplayName = cmp.Or(n.DisplayName, slug)
	a, _ := n.AssetByID(assetID)

	return n, a
}

func (f snapshot) details(o *invoice.Option) *PaymentDetails {
	n, a := f.names(o.Network, o.AssetID)
	left, received := missing(o), o.AmountPaid.Add(o.AmountDetected)

	d := &PaymentDetails{
		OptionID:         o.ID,
		Network:          o.Network,
		NetworkName:      n.DisplayName,
		Asset:            o.Asset,
		AssetName:        a.Name,
		Contract:         o.Contract,
		Decimals:         o.Decimals,
		DisplayDecimals:  o.DisplayDecimals,
		Address:          o.Address,
		AmountDue:        o.AmountDue.String(),
		AmountPaid:       o.AmountPaid.String(),
		AmountDetected:   o.AmountDetected.String(),
		AmountMissing:    left.String(),
		DueText:          formatUnits(o.AmountDue, o.Decimals, o.DisplayDecimals),
		MissingText:      formatUnits(left, o.Decimals, o.DisplayDecimals),
		ReceivedText:     formatUnits(received, o.Decimals, o.DisplayDecimals),
		QuoteExpiresAt:   wire.Time(o.QuoteExpiresAt),
		QuoteExpired:     quoteExpired(&f.Invoice, o, f.Now),
		ConfirmationRule: n.Rule,
		UsuallySeconds:   int64(n.EstimatedConfirmation / time.Second),
	}
	if !o.Rate.IsZero() {
		d.Rate = wire.Decimal(o.Rate)
	}

	if f.Invoice.Has(invoice.Overpaid) && o.AmountDue.Less(received) && f.paidOnlyTo(o.ID) {
		d.ExcessText = formatUnits(received.Sub(o.AmountDue), o.Decimals, o.DisplayDecimals)
	}

	if driver, err := f.Networks.Driver(o.Network); err == nil && !left.IsZero() && !d.QuoteExpired {
		if b, ok := driver.(chain.URIBuilder); ok {
			d.URI = b.PaymentURI(o.Address, a, left)
		}
	}

	return d
}

// onlyTo reports whether all that arrived went to one option, so that its amounts alone tell what
// was too much.
func (f snapshot) paidOnlyTo(optionID string) bool {
	return !slices.ContainsFunc(
		f.Payments, func(p invoice.Payment) bool { return counts(p) && p.OptionID != optionID },
	)
}

func (f snapshot) transaction(p invoice.Payment) Transaction {
	n, _ := f.names(p.Network, p.AssetID)

	t := Transaction{
		TxHash:                p.TxHash,
		Status:                p.Status,
		Network:               p.Network,
		NetworkName:           n.DisplayName,
		Asset:                 p.Asset,
		Amount:                p.Amount.String(),
		AmountText:            formatUnits(p.Amount, p.Decimals, 0),
		Confirmations:         f.confirmations(p),
		ConfirmationsRequired: p.Required,
		ConfirmationRule:      n.Rule,
		InBlock:               !p.Block.IsZero(),
		Late:                  p.Late,
		Counts:                p.OptionID != "",
		Simulated:             p.Simulated,
		DetectedAt:            wire.Time(p.DetectedAt),
		ConfirmedAt:           wire.Time(p.ConfirmedAt),
	}
	if p.Status == invoice.Confirmed {
		// Blocks go on; what counts is that it is done, and the page need not change with every block.
		t.Confirmations = p.Required
	}

	if p.TxHash != "" && !p.Simulated && n.ExplorerTxURL != "" {
		t.ExplorerURL = webURL(strings.ReplaceAll(n.ExplorerTxURL, "{txHash}", url.PathEscape(p.TxHash)))
	}

	return t
}

// How far a network may be behind before the payer is told: reading that stands still, or blocks
// not read yet.
const (
	stallAfter   = 5 * time.Minute
	stallBlocks  = 12
	behindBlocks = 12
)

// trouble says whether payments on a network are seen late, as State.NetworkTrouble.
func networkTrouble(f snapshot, slug string) string {
	c, known := f.NetworkStatuses[slug]

	n, _ := f.Networks.Network(slug)
	switch {
	case !known || c.ReadAt.IsZero():
		return ""
	case c.Stopped:
		return "stopped"
	case f.Now.Sub(c.ReadAt) > max(stallAfter, stallBlocks*n.BlockTime):
		return "behind"
	case c.Tip > c.Height+behindBlocks && time.Duration(min(c.Tip-c.Height, 1<<20))*n.BlockTime > stallAfter:
		return "behind"
	}

	return ""
}

func (f snapshot) returnURL(p Phase) string {
	inv := &f.Invoice
	if p == Paid || p == Refunded {
		return webURL(cmp.Or(inv.SuccessURL, f.Merchant.SuccessURL, f.Merchant.WebsiteURL))
	}

	return webURL(cmp.Or(inv.CancelURL, f.Merchant.CancelURL, f.Merchant.WebsiteURL))
}

// webURL returns a URL that may be linked to, or "": only http and https.
func webURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}

	return u.String()
}

// revision is a hash of all that does not move by itself.
func revision(s State) string {
	s.Revision, s.ServerTime = "", ""

	s.Options = slices.Clone(s.Options)
	for i := range s.Options {
		s.Options[i].EstimateText = ""
	}

	b, err := json.Marshal(s)
	if err != nil {
		// it holds strings and numbers only
		panic("checkout: a state cannot be written as JSON: " + err.Error())
	}

	h := sha256.Sum256(b)

	return hex.EncodeToString(h[:8])
}

package checkout

import (
	"cmp"
	"html/template"
	"regexp"
	"slices"
	"strconv"

	"github.com/seed-8ee7f392/payments/invoice"
)

// payView shows how to pay.
type payView struct {
	// Amount is in whole units, exact; it is shown and copied unchanged.
	Amount, Asset, Network, Address string
	// Label describes Amount as the whole or the missing amount; Long is set when it needs smaller type.
	Label     string
	Long      bool
	Coin      payCoin
	Only      string // the warning to use this asset and network alone
	QR        *qrCode
	QRLabel   string
	WalletURL template.URL
	Until     *instant
	Rate      string
}

// choiceView is one way to pay.
type choiceView struct {
	ID, Asset, Name, Network, Amount string
	Coin                             payCoin
	Selected                         bool
}

// progress counts confirmations. Of is 0 if there is no number to count to.
type progress struct {
	Have, Of uint64
	Text     string
}

// transactionRow is a payment to the invoice.
type transactionRow struct {
	Amount, Asset, Network, Status, Hash, URL string
	// HashHead and HashTail are the two parts of Hash; narrow pages shorten HashHead.
	HashHead, HashTail string
	Tone               tone
	At                 instant
}

// setPay sets the payment details, or the option to renew, in the phases that wait for the payer.
func (w *pageView) setPay(l *language) {
	s := &w.State

	p := s.Payment
	if p == nil || !slices.Contains([]phase{phasePay, phaseUnderpaid, phaseQuoteExpired}, s.Phase) {
		return
	}

	if p.QuoteExpired {
		w.Renew = p.OptionID
		return
	}

	pairs := []string{"asset", p.Asset, "network", p.NetworkName, "amount", p.MissingText}
	w.Pay = &payView{
		Amount:    p.MissingText,
		Asset:     p.Asset,
		Network:   p.NetworkName,
		Address:   string(p.Address),
		Coin:      coin(p.Asset),
		Only:      l.message("only", pairs...),
		QRLabel:   l.message("qr.label", pairs...),
		WalletURL: walletURL(p.URI),
		QR:        newQR(cmp.Or(p.URI, string(p.Address))),
	}

	w.Pay.Label, w.Pay.Long = l.message("amount"), len(p.MissingText) > longAmount
	if s.Phase == phaseUnderpaid {
		w.Pay.Label = l.message("amount.missing")
	}

	if p.QuoteExpiresAt != "" {
		until := moment(p.QuoteExpiresAt)
		w.Pay.Until = &until
	}

	if p.Rate != "" && s.Price != nil {
		unitPrice := formatMoney(mustDecimal(p.Rate), s.Price.Currency)
		w.Pay.Rate = l.message("rate", "asset", p.Asset, "price", unitPrice+"\u00a0"+s.Price.Currency)
	}
}

// longAmount is the number of characters that fit on one line of a phone in large type.
const longAmount = 13

// walletScheme matches the schemes that a wallet may register (RFC 3986 section 3.1).
// browserSchemes are refused: a browser handles them itself.
var (
	walletScheme   = regexp.MustCompile(`^[a-z][a-z0-9+-]{1,30}:`)
	browserSchemes = []string{
		"javascript:",
		"data:",
		"vbscript:",
		"http:",
		"https:",
		"file:",
		"blob:",
		"about:",
		"ftp:",
		"view-source:",
	}
)

// walletURL returns a payment URI as a link, or "" for a bare address, which opens no wallet.
func walletURL(uri string) template.URL {
	scheme := walletScheme.FindString(uri)
	if scheme == "" || slices.Contains(browserSchemes, scheme) {
		return ""
	}

	return template.URL(uri)
}

// addChoices adds the options.
func (w *pageView) addChoices() {
	for _, o := range w.State.Options {
		c := choiceView{
			ID:       o.ID,
			Asset:    o.Asset,
			Name:     o.AssetName,
			Network:  o.NetworkName,
			Coin:     coin(o.Asset),
			Selected: o.Selected,
		}
		switch {
		case o.AmountText != "":
			c.Amount = o.AmountText
		case o.EstimateText != "":
			c.Amount = "≈ " + o.EstimateText
		}

		w.Choices = append(w.Choices, c)
	}
}

// setProgress sets the progress of the slowest detected payment.
func (w *pageView) setProgress(l *language) {
	s := &w.State
	if s.Phase != phaseSeen && s.Phase != phaseConfirming {
		return
	}

	var slow *transaction

	for i := range s.Transactions {
		t := &s.Transactions[i]
		if t.Status == invoice.Detected && (slow == nil || t.remaining() > slow.remaining()) {
			slow = t
		}
	}

	if slow == nil {
		return
	}

	p := &progress{Have: min(slow.Confirmations, slow.ConfirmationsRequired), Of: slow.ConfirmationsRequired}
	switch {
	case !slow.InBlock && !slow.Simulated:
		p.Of = 0
		p.Text = l.message("progress.pool", "network", slow.NetworkName)
	case slow.ConfirmationRule != "" && slow.ConfirmationRule != "confirmations":
		p.Of = 0
		p.Text = l.message("progress.finality", "network", slow.NetworkName)
	default:
		p.Text = l.message("progress.count", "n", formatCount(p.Have), "m", formatCount(p.Of))
	}

	if s.Payment != nil && s.Payment.UsuallySeconds > 0 {
		p.Text += " " + l.message("progress.usually", "time", duration(s.Payment.UsuallySeconds, l))
	}

	w.Progress = p
}

// remaining returns the number of missing confirmations, one more without a block.
func (t *transaction) remaining() uint64 {
	n := t.ConfirmationsRequired - min(t.ConfirmationsRequired, t.Confirmations)
	if !t.InBlock {
		n++
	}

	return n
}

// formatCount returns a count in decimal digits.
func formatCount(n uint64) string { return strconv.FormatUint(n, 10) }

// duration returns a time in seconds as text; from a minute on in minutes, rounded up.
func duration(seconds int64, l *language) string {
	if seconds < 60 {
		return l.message("time.seconds", "n", strconv.FormatInt(seconds, 10))
	}

	return l.message("time.minutes", "n", strconv.FormatInt((seconds+59)/60, 10))
}

// hashTail is the number of characters of a hash's end that are always shown.
const hashTail = 8

// transactionView returns a payment with its status as text.
func transactionView(t transaction, l *language) transactionRow {
	v := transactionRow{
		Amount:  t.AmountText,
		Asset:   t.Asset,
		Network: t.NetworkName,
		Hash:    t.TxHash,
		URL:     t.ExplorerURL,
		At:      moment(t.DetectedAt),
	}

	end := max(0, len(t.TxHash)-hashTail)
	v.HashHead, v.HashTail = t.TxHash[:end], t.TxHash[end:]

	switch {
	case t.Status == invoice.Confirmed:
		v.Status, v.Tone = l.message("payment.confirmed"), toneGood
	case t.Status == invoice.Orphaned:
		v.Status, v.Tone = l.message("payment.orphaned"), toneWarning
	case t.Status == invoice.Dropped:
		v.Status, v.Tone = l.message("payment.dropped"), toneOff
	case !t.InBlock && !t.Simulated:
		v.Status, v.Tone = l.message("payment.pool"), toneWaiting
	case t.ConfirmationRule != "" && t.ConfirmationRule != "confirmations":
		v.Status, v.Tone = l.message("payment.finality"), toneWaiting
	default:
		confirmations := formatCount(min(t.Confirmations, t.ConfirmationsRequired))
		required := formatCount(t.ConfirmationsRequired)
		v.Status, v.Tone = l.message("payment.count", "n", confirmations, "m", required), toneWaiting
	}

	return v
}

// payCoin is the icon of an asset: one that the template draws, or "other" with the symbol's first letter.
type payCoin struct{ Picture, Letter string }

// coins are the assets that the template draws.
var coins = map[string]string{
	"BTC":  "btc",
	"ETH":  "eth",
	"SOL":  "sol",
	"TRX":  "trx",
	"USDC": "usdc",
	"USDT": "usdt",
}

// coin returns the icon of a symbol.
func coin(symbol string) payCoin { return payCoin{cmp.Or(coins[symbol], "other"), initial(symbol)} }

// initial returns the first letter of a name.
func initial(name string) string {
	for _, r := range name {
		return string(r)
	}

	return ""
}

package checkout

// The page in words: a state, a language and what the visitor asked for make a View, which holds
// every string that the templates print.

import (
	"cmp"
	"html/template"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/seed-8ee7f392/payments/invoice"
)

// Tone is how good or bad the news is; the stylesheet has a colour and the template a picture for each.
type Tone string

// The tones.
const (
	Neutral Tone = "neutral"
	Waiting Tone = "waiting"
	Good    Tone = "good"
	Warning Tone = "warning"
	Off     Tone = "off"
)

// View is what the templates print. Everything in it is in the visitor's language.
type View struct {
	State State
	// Lang is the BCP 47 tag of the language; T its messages that are printed as they are.
	Lang string
	T    map[string]string
	// Root leads from the page's address to where assets/ lies: "" or "../".
	Root string
	// Query keeps the language that was asked for in links: "" or "?lang=es".
	Query string
	// Title is the document's title; Headline and Message say where the payer stands.
	Title, Headline, Message string
	Tone                     Tone
	Notices                  []Notice
	Steps                    []Step
	// Merchant is never empty; Initial is its first letter, for a merchant without a logo.
	Merchant, Initial string
	LogoURL           string
	Price, Currency   string
	Expires           Moment
	Choices           []ChoiceView
	Pay               *PayView
	// Renew is the option whose quote ran out, to be selected again; empty when there is none.
	Renew string
	// Progress is there while a payment confirms.
	Progress     *Progress
	Transactions []TransactionView
	// CanChange shows the way to another option, CanKeep the way back from there.
	CanChange, CanKeep bool
	// CanHint shows the form for a transaction hash; HintHash is what was entered last, HintAnswer
	// what it came to.
	CanHint    bool
	HintHash   string
	HintAnswer *Notice
	// Outcomes are what can be simulated; test mode only.
	Outcomes    []Outcome
	ReturnLabel string
	Languages   []LanguageLink
	ServerTime  string
}

// Notice is something to know beside the headline.
type Notice struct {
	Tone Tone
	Text string
}

// Step is one of the payer's steps.
type Step struct {
	Label         string
	Done, Current bool
}

// Moment is a time: for machines, and in words in UTC.
type Moment struct{ ISO, Text string }

// ChoiceView is one way to pay.
type ChoiceView struct {
	ID, Asset, Name, Network, Amount string
	Coin                             Coin
	Selected                         bool
}

// PayView is how to pay.
type PayView struct {
	// Amount is shown and copied as it is.
	Amount, Asset, Network, Address string
	// Label says whether Amount is all of it or what is missing; Long that it has many digits.
	Label     string
	Long      bool
	Coin      Coin
	Only      string // the warning to use this asset and network alone
	QR        *qrCode
	QRLabel   string
	WalletURL template.URL
	Until     *Moment
	Rate      string
}

// Progress counts confirmations. Of is 0 where there is nothing to count to.
type Progress struct {
	Have, Of uint64
	Text     string
}

// TransactionView is a payment so far.
type TransactionView struct {
	Amount, Asset, Network, Status, Hash, URL string
	// HashHead and HashTail are Hash in two parts, for where there is room for the ends only.
	HashHead, HashTail string
	Tone               Tone
	At                 Moment
}

// Outcome is a simulation to press.
type Outcome struct {
	Value invoice.Outcome
	Label string
}

// LanguageLink leads to the page in another language.
type LanguageLink struct {
	Tag, Name, Query string
	Current          bool
}

// visit is what the visitor asked for, beside the invoice.
type pageQuery struct {
	// Choosing asks for the options although one is selected.
	Choosing bool
	// Lang is the language asked for by name; empty when it came from the browser.
	Lang string
	// Notice names a message notice.<Notice> about what the visitor did last; HintAnswer one
	// hint.<HintAnswer>.
	Notice, HintAnswer, HintHash string
}

// newView writes the page.
func newView(s State, l *language, all languages, v pageQuery) View {
	w := View{
		State:      s,
		Lang:       l.Tag,
		T:          l.text,
		Merchant:   cmp.Or(s.Merchant.Name, l.message("merchant.unnamed")),
		LogoURL:    s.Merchant.LogoURL,
		Query:      langQuery(v.Lang),
		Expires:    moment(cmp.Or(s.SelectBefore, s.ExpiresAt)),
		ServerTime: s.ServerTime,
	}

	w.Initial = initial(w.Merchant)
	if s.Price != nil {
		w.Price, w.Currency = price(*s.Price), s.Price.Currency
	} else if s.Payment != nil {
		w.Price, w.Currency = s.Payment.DueText, s.Payment.Asset
	}

	w.setMessage(l)
	w.Title = l.message("title", "headline", w.Headline, "merchant", w.Merchant)
	w.addNotices(l, v)
	w.addSteps(l)
	w.setPay(l)

	choosing := s.Phase == Choose || s.CanSelect && v.Choosing
	if choosing {
		w.addChoices()

		w.CanKeep = s.Phase != Choose
		if w.CanKeep {
			w.Headline, w.Message, w.Tone = l.message("change.headline"), l.message("change.message"), Neutral
		}

		w.Pay, w.Renew = nil, ""
	} else {
		w.CanChange = s.CanSelect && len(s.Options) > 1
		w.CanHint = s.Payment != nil &&
			slices.Contains([]Phase{Pay, QuoteExpired, Underpaid, Closing, Expired, Canceled}, s.Phase)
	}

	w.setProgress(l)

	for _, t := range s.Transactions {
		w.Transactions = append(w.Transactions, transactionView(t, l))
	}

	w.HintHash = v.HintHash
	if v.HintAnswer != "" && w.CanHint {
		tone := Warning
		if v.HintAnswer == string(invoice.HintFound) {
			tone = Good
		}

		w.HintAnswer = &Notice{tone, l.message("hint."+v.HintAnswer, "merchant", w.Merchant)}
	}

	w.addOutcomes(l)

	if s.ReturnURL != "" {
		w.ReturnLabel = l.message("return", "merchant", w.Merchant)
	}

	for _, other := range all {
		w.Languages = append(
			w.Languages, LanguageLink{other.Tag, other.Name, langQuery(other.Tag), other == l},
		)
	}

	return w
}

func langQuery(tag string) string {
	if tag == "" {
		return ""
	}

	return "?" + url.Values{"lang": {tag}}.Encode()
}

func price(p invoice.Price) string {
	return formatMoney(mustDecimal(p.Amount), p.Currency)
}

// words fills in the headline, the message and the tone.
func (w *View) setMessage(l *language) {
	s := &w.State

	key, pairs := string(s.Phase), []string{"merchant", w.Merchant}
	if p := s.Payment; p != nil {
		pairs = append(
			pairs, "asset", p.Asset, "network", p.NetworkName, "missing", p.MissingText, "received",
			w.received(), "excess", p.ExcessText,
		)
	}

	if s.Price != nil && s.Outstanding != "" {
		pairs = append(
			pairs,
			"outstanding",
			formatMoneyCeil(
				mustDecimal(s.Outstanding), mustDecimal(s.Price.Amount), s.Price.Currency,
			)+"\u00a0"+s.Price.Currency,
		)
	}

	w.Tone = map[Phase]Tone{
		Choose:       Neutral,
		Pay:          Neutral,
		QuoteExpired: Warning,
		Seen:         Waiting,
		Confirming:   Waiting,
		Interrupted:  Waiting,
		Underpaid:    Warning,
		Closing:      Waiting,
		Paid:         Good,
		Expired:      Off,
		Canceled:     Off,
		Refunded:     Good,
		Late:         Warning,
	}[s.Phase]

	has := func(f invoice.Flag) bool { return slices.Contains(s.OutcomeFlags, f) }
	switch {
	case s.Phase == Choose && s.Kind == invoice.Crypto:
		key = "choose_crypto"
	case s.Phase == Paid && has(invoice.PartiallyRefunded):
		key = "paid_partially_refunded"
	case s.Phase == Paid && has(invoice.Overpaid) && s.Payment != nil && s.Payment.ExcessText != "":
		key = "paid_overpaid_by"
	case s.Phase == Paid && has(invoice.Overpaid):
		key = "paid_overpaid"
	case s.Phase == Paid && has(invoice.UnderpaidAccepted):
		key = "paid_underpaid_accepted"
	case s.Phase == Paid && has(invoice.Late):
		key = "paid_late"
	case s.Phase == Late && s.Status == invoice.Canceled:
		key = "late_canceled"
	case s.Phase == Late && !slices.ContainsFunc(s.Transactions, func(t Transaction) bool { return t.Late }):
		key = "expired_underpaid"
	case s.Phase == Underpaid && s.Payment != nil && s.Payment.QuoteExpired && s.Outstanding != "":
		key = "underpaid_renew"
	}

	w.Headline, w.Message = l.message(key+".headline", pairs...), l.message(key+".message", pairs...)
}

// received lists what has arrived, in each asset.
func (w *View) received() string {
	out := ""

	for _, t := range w.State.Transactions {
		if t.Counts && (t.Status == invoice.Detected || t.Status == invoice.Confirmed) {
			if out != "" {
				out += " + "
			}

			out += t.AmountText + " " + t.Asset
		}
	}

	return out
}

func (w *View) addNotices(l *language, v pageQuery) {
	s := &w.State

	add := func(t Tone, key string, pairs ...string) {
		w.Notices = append(
			w.Notices, Notice{t, l.message("notice."+key, append(pairs, "merchant", w.Merchant)...)},
		)
	}
	if v.Notice != "" {
		add(Warning, v.Notice)
	}

	open := !s.Final && s.Phase != Closing
	if s.NetworkTrouble != "" && !s.Final {
		add(Warning, "network_"+s.NetworkTrouble, "network", s.Payment.NetworkName)
	}

	dropped, foreign, standing := false, false, false

	for _, t := range s.Transactions {
		switch {
		case t.Status == invoice.Dropped:
			dropped = true
		case !t.Counts:
			foreign = true
		default:
			standing = true
		}
	}

	if foreign {
		add(Warning, "foreign")
	}

	if dropped && !standing && open {
		add(Warning, "dropped")
	}
}

func (w *View) addSteps(l *language) {
	at := map[Phase]int{
		Choose:       1,
		Pay:          2,
		QuoteExpired: 2,
		Underpaid:    2,
		Seen:         3,
		Confirming:   3,
		Interrupted:  3,
		Closing:      3,
		Paid:         4,
	}[w.State.Phase]
	if at == 0 {
		return
	}

	for i, key := range []string{"step.choose", "step.pay", "step.confirm"} {
		w.Steps = append(w.Steps, Step{Label: l.message(key), Done: i+1 < at, Current: i+1 == at})
	}

	if len(w.State.Options) == 1 {
		w.Steps = w.Steps[1:]
	}
}

func (w *View) setPay(l *language) {
	s := &w.State

	p := s.Payment
	if p == nil || !slices.Contains([]Phase{Pay, Underpaid, QuoteExpired}, s.Phase) {
		return
	}

	if p.QuoteExpired {
		w.Renew = p.OptionID
		return
	}

	pairs := []string{"asset", p.Asset, "network", p.NetworkName, "amount", p.MissingText}
	w.Pay = &PayView{
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
	if s.Phase == Underpaid {
		w.Pay.Label = l.message("amount.missing")
	}

	if p.QuoteExpiresAt != "" {
		m := moment(p.QuoteExpiresAt)
		w.Pay.Until = &m
	}

	if p.Rate != "" && s.Price != nil {
		w.Pay.Rate = l.message(
			"rate", "asset", p.Asset, "price",
			formatMoney(mustDecimal(p.Rate), s.Price.Currency)+"\u00a0"+s.Price.Currency,
		)
	}
}

// longAmount is how many characters fit on one line of a phone in large type.
const longAmount = 13

// walletScheme is a scheme that some wallet may have registered; those that a browser acts on
// itself are refused.
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

// walletURL is a payment URI as a link, or "" where it is none: a bare address opens no wallet.
func walletURL(uri string) template.URL {
	scheme := walletScheme.FindString(uri)
	if scheme == "" || slices.Contains(browserSchemes, scheme) {
		return ""
	}

	return template.URL(uri)
}

func (w *View) addChoices() {
	for _, o := range w.State.Options {
		c := ChoiceView{
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

func (w *View) setProgress(l *language) {
	s := &w.State
	if s.Phase != Seen && s.Phase != Confirming {
		return
	}

	var slow *Transaction

	for i := range s.Transactions {
		t := &s.Transactions[i]
		if t.Status == invoice.Detected && (slow == nil || t.left() > slow.left()) {
			slow = t
		}
	}

	if slow == nil {
		return
	}

	p := &Progress{Have: min(slow.Confirmations, slow.ConfirmationsRequired), Of: slow.ConfirmationsRequired}
	n, m := strconv.FormatUint(p.Have, 10), strconv.FormatUint(p.Of, 10)

	switch {
	case !slow.InBlock && !slow.Simulated:
		p.Of = 0
		p.Text = l.message("progress.pool", "network", slow.NetworkName)
	case slow.ConfirmationRule != "" && slow.ConfirmationRule != "confirmations":
		p.Of = 0
		p.Text = l.message("progress.finality", "network", slow.NetworkName)
	default:
		p.Text = l.message("progress.count", "n", n, "m", m)
	}

	if s.Payment != nil && s.Payment.UsuallySeconds > 0 {
		p.Text += " " + l.message("progress.usually", "time", duration(s.Payment.UsuallySeconds, l))
	}

	w.Progress = p
}

// left is how many confirmations are missing; one that waits for a block comes last.
func (t *Transaction) left() uint64 {
	n := t.ConfirmationsRequired - min(t.ConfirmationsRequired, t.Confirmations)
	if !t.InBlock {
		n++
	}

	return n
}

// duration writes about how long something takes, rounded up.
func duration(seconds int64, l *language) string {
	if seconds < 60 {
		return l.message("time.seconds", "n", strconv.FormatInt(seconds, 10))
	}

	return l.message("time.minutes", "n", strconv.FormatInt((seconds+59)/60, 10))
}

// hashTail is how many characters of a hash's end are always shown.
const hashTail = 8

func transactionView(t Transaction, l *language) TransactionView {
	v := TransactionView{
		Amount:  t.AmountText,
		Asset:   t.Asset,
		Network: t.NetworkName,
		Hash:    t.TxHash,
		URL:     t.ExplorerURL,
		At:      moment(t.DetectedAt),
	}
	end := max(0, len(t.TxHash)-hashTail)
	v.HashHead, v.HashTail = t.TxHash[:end], t.TxHash[end:]

	n, m := strconv.FormatUint(
		min(t.Confirmations, t.ConfirmationsRequired), 10,
	), strconv.FormatUint(
		t.ConfirmationsRequired, 10,
	)
	switch {
	case t.Status == invoice.Confirmed:
		v.Status, v.Tone = l.message("payment.confirmed"), Good
	case t.Status == invoice.Orphaned:
		v.Status, v.Tone = l.message("payment.orphaned"), Warning
	case t.Status == invoice.Dropped:
		v.Status, v.Tone = l.message("payment.dropped"), Off
	case !t.InBlock && !t.Simulated:
		v.Status, v.Tone = l.message("payment.pool"), Waiting
	case t.ConfirmationRule != "" && t.ConfirmationRule != "confirmations":
		v.Status, v.Tone = l.message("payment.finality"), Waiting
	default:
		v.Status, v.Tone = l.message("payment.count", "n", n, "m", m), Waiting
	}

	return v
}

func (w *View) addOutcomes(l *language) {
	s := &w.State
	if s.Livemode || s.Payment == nil {
		return
	}

	var values []invoice.Outcome

	switch s.Phase {
	case Pay, QuoteExpired, Underpaid:
		values = []invoice.Outcome{
			invoice.SimulatePaid,
			invoice.SimulateDetected,
			invoice.SimulateUnderpaid,
			invoice.SimulateOverpaid,
		}
	case Seen, Confirming:
		values = []invoice.Outcome{invoice.SimulatePaid, invoice.SimulateDropped}
	case Expired, Canceled:
		values = []invoice.Outcome{invoice.SimulateLate}
	case Choose, Interrupted, Closing, Paid, Refunded, Late:
		// Nothing can be simulated.
	}

	for _, v := range values {
		w.Outcomes = append(w.Outcomes, Outcome{v, l.message("simulate." + string(v))})
	}
}

// Coin is the picture of an asset: one that the template draws, or "other" with the symbol's first letter.
type Coin struct{ Picture, Letter string }

// coins are the assets that the template draws.
var coins = map[string]string{
	"BTC":  "btc",
	"ETH":  "eth",
	"SOL":  "sol",
	"TRX":  "trx",
	"USDC": "usdc",
	"USDT": "usdt",
}

func coin(symbol string) Coin { return Coin{cmp.Or(coins[symbol], "other"), initial(symbol)} }

// initial returns the first letter of a name.
func initial(name string) string {
	for _, r := range name {
		return string(r)
	}

	return ""
}

// moment writes a wire timestamp for people, in UTC, which is said.
func moment(iso string) Moment {
	t, err := time.Parse(time.RFC3339Nano, iso)
	if err != nil {
		return Moment{}
	}

	return Moment{iso, t.UTC().Format("2006-01-02 15:04") + " UTC"}
}

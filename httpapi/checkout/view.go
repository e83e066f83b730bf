package checkout

import (
	"cmp"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/invoice"
)

// tone is the kind of a message; the stylesheet has a colour and the template an icon for each.
type tone string

// The tones.
const (
	toneNeutral tone = "neutral"
	toneWaiting tone = "waiting"
	toneGood    tone = "good"
	toneWarning tone = "warning"
	toneOff     tone = "off"
)

// pageView is the data of page.html: every string that it prints, in the visitor's language.
type pageView struct {
	State pageState
	// Lang is the BCP 47 tag of the language; T are its messages by key.
	Lang string
	T    map[string]string
	// Root is the relative address of the directory of assets/: "" or "../".
	Root string
	// Link is the last part of the page's address; with Root before it, it is relative.
	Link string
	// Query is the query of links, which keeps the requested language: "" or "?lang=es".
	Query string
	// Title is the document's title; Headline and Message describe the phase.
	Title, Headline, Message string
	Tone                     tone
	Notices                  []notice
	Steps                    []step
	// Merchant is never empty; Initial is its first letter, for a merchant without a logo.
	Merchant, Initial string
	LogoURL           string
	Price, Currency   string
	Expires           instant
	Choices           []choiceView
	Pay               *payView
	// Renew is the id of the option whose quote expired; "" when there is none.
	Renew string
	// Progress is set while a payment confirms.
	Progress     *progress
	Transactions []transactionRow
	// Earlier is a text with the number of payments that are not shown; "" if all are.
	Earlier string
	// CanChange shows the link to the other options, CanKeep the link back from them.
	CanChange, CanKeep bool
	// CanHint shows the form for a transaction hash; HintHash was entered last, HintAnswer is its result.
	CanHint    bool
	HintHash   string
	HintAnswer *notice
	// Outcomes are the simulations; test mode only.
	Outcomes    []outcome
	ReturnLabel string
	Languages   []languageLink
	ServerTime  string
}

// notice is a message besides the headline.
type notice struct {
	Tone tone
	Text string
}

// step is one of the payer's steps, shown as a list.
type step struct {
	Label         string
	Done, Current bool
}

// instant is a time: in RFC 3339 for scripts, and as text in UTC.
type instant struct{ ISO, Text string }

// outcome is the button of a simulation.
type outcome struct {
	Value invoice.Outcome
	Label string
}

// languageLink links to the page in another language.
type languageLink struct {
	Tag, Name, Query string
	Current          bool
}

// pageQuery is the content of the page's query string.
type pageQuery struct {
	// Link is the last part of the page's address.
	Link string
	// Choosing shows the options although one is selected.
	Choosing bool
	// Lang is the tag of the requested language; "" leaves it to the browser.
	Lang string
	// Notice selects the message notice.<Notice>, HintAnswer the message hint.<HintAnswer>.
	Notice, HintAnswer string
	// HintHash is the transaction hash that the payer entered last.
	HintHash string
}

// hintPhases are the phases in which a payer may enter the hash of a payment.
var hintPhases = []phase{
	phasePay,
	phaseQuoteExpired,
	phaseUnderpaid,
	phaseClosing,
	phaseExpired,
	phaseCanceled,
}

// newView returns the page of a state in a language.
func newView(s pageState, l *language, all languages, query pageQuery) pageView {
	w := pageView{
		State:      s,
		Link:       query.Link,
		Lang:       l.Tag,
		T:          l.text,
		Merchant:   cmp.Or(s.Merchant.Name, l.message("merchant.unnamed")),
		LogoURL:    s.Merchant.LogoURL,
		Query:      langQuery(query.Lang),
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
	w.addNotices(l, query)
	w.addSteps(l)

	if s.Phase == phaseChoose || s.CanSelect && query.Choosing {
		w.setChoosing(l)
	} else {
		w.setPay(l)
		w.CanChange = s.CanSelect && len(s.Options) > 1
		w.CanHint = s.Payment != nil && slices.Contains(hintPhases, s.Phase)
	}

	w.setProgress(l)

	for _, t := range s.Transactions {
		w.Transactions = append(w.Transactions, transactionView(t, l))
	}

	if s.EarlierTransactions > 0 {
		w.Earlier = l.message("payments_earlier", "count", strconv.Itoa(s.EarlierTransactions))
	}

	w.setHintAnswer(l, query)
	w.addOutcomes(l)

	if s.ReturnURL != "" {
		w.ReturnLabel = l.message("return", "merchant", w.Merchant)
	}

	w.addLanguages(l, all)

	return w
}

// addLanguages links to the page in every language.
func (w *pageView) addLanguages(current *language, all languages) {
	for _, l := range all {
		w.Languages = append(w.Languages, languageLink{
			Tag:     l.Tag,
			Name:    l.Name,
			Query:   langQuery(l.Tag),
			Current: l == current,
		})
	}
}

// setChoosing shows the options in place of the payment details.
func (w *pageView) setChoosing(l *language) {
	w.addChoices()

	w.CanKeep = w.State.Phase != phaseChoose
	if w.CanKeep {
		w.Headline, w.Message, w.Tone = l.message("change.headline"), l.message("change.message"), toneNeutral
	}
}

// setHintAnswer shows the hash that the payer entered last, and the answer to it.
func (w *pageView) setHintAnswer(l *language, query pageQuery) {
	found := query.HintAnswer == string(invoice.HintFound)
	if !found {
		w.HintHash = query.HintHash
	}

	// Anybody can write the query: a hash that it calls found must be on record.
	if query.HintAnswer == "" || !w.CanHint || found && !w.State.has(query.HintHash) {
		return
	}

	tone := toneWarning
	if found {
		tone = toneGood
	}

	w.HintAnswer = &notice{Tone: tone, Text: l.message("hint."+query.HintAnswer, "merchant", w.Merchant)}
}

// has reports whether one of the payments shown has the hash that a payer entered.
func (s *pageState) has(hash string) bool {
	return slices.ContainsFunc(s.Transactions, func(t transaction) bool {
		return t.TxHash != "" && strings.EqualFold(bareHash(t.TxHash), bareHash(hash))
	})
}

// bareHash returns a hash without the prefix 0x.
func bareHash(hash string) string {
	if len(hash) > 2 && hash[0] == '0' && (hash[1] == 'x' || hash[1] == 'X') {
		return hash[2:]
	}

	return hash
}

// langQuery returns the query of links for a language tag, "" for none.
func langQuery(tag string) string {
	if tag == "" {
		return ""
	}

	return "?" + url.Values{"lang": {tag}}.Encode()
}

// price returns a price as text, without its currency.
func price(p invoice.Price) string {
	return formatMoney(mustDecimal(p.Amount), p.Currency)
}

// addNotices adds the query's notice, and the notices about the payments and the network.
func (w *pageView) addNotices(l *language, query pageQuery) {
	s := &w.State

	add := func(t tone, key string, pairs ...string) {
		text := l.message("notice."+key, append(pairs, "merchant", w.Merchant)...)
		w.Notices = append(w.Notices, notice{Tone: t, Text: text})
	}

	if query.Notice != "" {
		add(toneWarning, query.Notice)
	}

	open := !s.Final && s.Phase != phaseClosing
	if s.NetworkTrouble != "" && !s.Final {
		add(toneWarning, "network_"+s.NetworkTrouble, "network", s.Payment.NetworkName)
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
		add(toneWarning, "foreign")
	}

	if dropped && !standing && open {
		add(toneWarning, "dropped")
	}
}

// addSteps adds the payer's steps, unless the invoice ended without payment.
func (w *pageView) addSteps(l *language) {
	at := map[phase]int{
		phaseChoose:       1,
		phasePay:          2,
		phaseQuoteExpired: 2,
		phaseUnderpaid:    2,
		phaseSeen:         3,
		phaseConfirming:   3,
		phaseInterrupted:  3,
		phaseClosing:      3,
		phasePaid:         4,
	}[w.State.Phase]
	if at == 0 {
		return
	}

	for i, key := range []string{"step.choose", "step.pay", "step.confirm"} {
		w.Steps = append(w.Steps, step{Label: l.message(key), Done: i+1 < at, Current: i+1 == at})
	}

	if len(w.State.Options) == 1 {
		w.Steps = w.Steps[1:]
	}
}

// addOutcomes adds the simulations that the phase allows.
func (w *pageView) addOutcomes(l *language) {
	s := &w.State
	if s.Livemode || s.Payment == nil {
		return
	}

	var values []invoice.Outcome

	switch s.Phase {
	case phasePay, phaseQuoteExpired, phaseUnderpaid:
		values = []invoice.Outcome{
			invoice.SimulatePaid,
			invoice.SimulateDetected,
			invoice.SimulateUnderpaid,
			invoice.SimulateOverpaid,
		}
	case phaseSeen, phaseConfirming:
		values = []invoice.Outcome{invoice.SimulatePaid, invoice.SimulateDropped}
	case phaseExpired, phaseCanceled:
		values = []invoice.Outcome{invoice.SimulateLate}
	case phaseChoose, phaseInterrupted, phaseClosing, phasePaid, phaseRefunded, phaseLate:
		// Nothing can be simulated.
	}

	for _, v := range values {
		w.Outcomes = append(w.Outcomes, outcome{v, l.message("simulate." + string(v))})
	}
}

// moment returns an RFC 3339 time with its text in UTC; a malformed one is zero.
func moment(iso string) instant {
	t, err := time.Parse(time.RFC3339Nano, iso)
	if err != nil {
		return instant{}
	}

	return instant{iso, t.UTC().Format("2006-01-02 15:04") + " UTC"}
}

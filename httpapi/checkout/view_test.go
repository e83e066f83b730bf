package checkout

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/invoice"
)

func allLanguages(t testing.TB) languages {
	t.Helper()

	files, err := fs.Sub(builtIn, "web")
	if err != nil {
		t.Fatal(err)
	}

	all, err := loadLanguages(files)
	if err != nil {
		t.Fatal(err)
	}

	return all
}

func viewOf(t testing.TB, e exhibit, lang string) pageView {
	t.Helper()
	all := allLanguages(t)

	v := pageQuery{}
	if strings.Contains(e.query, "choose=") {
		v.Choosing = true
	}

	if strings.Contains(e.query, "hint=") {
		v.HintAnswer, v.HintHash = "unknown", "0xab"
	}

	return newView(stateOf(snapshotOf(e)), all.byTag(lang), all, v)
}

// What each state says, shows and lets the payer do.
func TestEveryStateInWords(t *testing.T) {
	type want struct {
		headline string
		message  string // a part of it
		tone     tone
		amount   string // to pay; "" when nothing is asked for
		// c: choices, r: renew, o: other option, h: hint, f: final, b: back from choosing, s: simulate
		can      string
		notice   string // a part of the first one
		progress string
	}

	table := map[string]want{
		"choose":          {"Choose how to pay", "exact amount is fixed", toneNeutral, "", "c", "", ""},
		"choose-unpriced": {"Choose how to pay", "exact amount is fixed", toneNeutral, "", "c", "", ""},
		"pay": {
			"Pay with ETH on Ethereum",
			"exact amount",
			toneNeutral,
			"0.021321",
			"oh",
			"",
			"",
		},
		"pay-bitcoin": {
			"Pay with BTC on Bitcoin",
			"exact amount",
			toneNeutral,
			"0.00058",
			"oh",
			"",
			"",
		},
		"pay-tron": {"Pay with USDT on Tron", "exact amount", toneNeutral, "54.239", "oh", "", ""},
		"pay-long-network": {
			"Pay with BNB on BNB Smart Chain Testnet",
			"exact amount",
			toneNeutral,
			"0.0815",
			"oh",
			"",
			"",
		},
		"pay-crypto": {
			"Pay with ETH on Ethereum",
			"exact amount",
			toneNeutral,
			"1.234567890123456789",
			"h",
			"",
			"",
		},
		"change": {"Pay another way", "Nothing is lost", toneNeutral, "", "cb", "", ""},
		"quote-expired": {
			"This amount has run out",
			"do not pay again",
			toneWarning,
			"",
			"roh",
			"",
			"",
		},
		"seen": {
			"Payment seen",
			"nothing more to do",
			toneWaiting,
			"",
			"",
			"",
			"Waiting for a block on Ethereum. This usually takes about 3 min.",
		},
		"confirming": {
			"Confirming your payment",
			"Ethereum is confirming",
			toneWaiting,
			"",
			"",
			"",
			"5 of 12 confirmations. This usually takes about 3 min.",
		},
		"confirming-finality": {
			"Confirming your payment",
			"Solana is confirming",
			toneWaiting,
			"",
			"",
			"",
			"Waiting until Solana makes it final. This usually takes about 15 seconds.",
		},
		"underpaid": {
			"A part is still missing",
			"received 0.015 ETH. Send the missing 0.006321 ETH",
			toneWarning,
			"0.006321",
			"oh",
			"",
			"",
		},
		"underpaid-quote-expired": {
			"A part is still missing",
			"14.80\u00a0EUR is still missing",
			toneWarning,
			"",
			"roh",
			"",
			"",
		},
		"underpaid-price-moved": {
			"A part is still missing",
			"3.20\u00a0EUR is still missing",
			toneWarning,
			"",
			"roh",
			"",
			"",
		},
		"underpaid-detected": {
			"A part is still missing",
			"received 0.015 ETH",
			toneWarning,
			"0.006321",
			"oh",
			"",
			"",
		},
		"closing": {"The time is up", "do not send anything", toneWaiting, "", "h", "", ""},
		"paid":    {"Paid", "Morning Roast has received", toneGood, "", "f", "", ""},
		"overpaid": {
			"Paid, with something over",
			"0.003679 ETH more",
			toneGood,
			"",
			"f",
			"",
			"",
		},
		"paid-late":               {"Paid", "came late", toneGood, "", "f", "", ""},
		"paid-underpaid-accepted": {"Paid", "although a part was missing", toneGood, "", "f", "", ""},
		"paid-partially-refunded": {
			"Paid, and partly refunded",
			"a part of it back",
			toneGood,
			"",
			"f",
			"",
			"",
		},
		"refunded": {"Refunded", "sent your payment back", toneGood, "", "f", "", ""},
		"expired": {
			"This invoice has expired",
			"do not send anything",
			toneOff,
			"",
			"fh",
			"",
			"",
		},
		"late": {
			"Your payment came too late",
			"received 0.021321 ETH",
			toneWarning,
			"",
			"f",
			"",
			"",
		},
		"expired-underpaid": {
			"Expired before it was paid in full",
			"received 0.015 ETH",
			toneWarning,
			"",
			"f",
			"",
			"",
		},
		"canceled": {
			"This invoice was canceled",
			"do not send anything",
			toneOff,
			"",
			"fh",
			"",
			"",
		},
		"canceled-paid": {
			"Paid to a canceled invoice",
			"received 0.021321 ETH",
			toneWarning,
			"",
			"f",
			"",
			"",
		},
		"interrupted": {
			"Your payment is interrupted",
			"do not pay again",
			toneWaiting,
			"",
			"",
			"",
			"",
		},
		"dropped": {
			"Pay with ETH on Ethereum",
			"exact amount",
			toneNeutral,
			"0.021321",
			"oh",
			"Please pay again",
			"",
		},
		"foreign-asset": {
			"Pay with ETH on Ethereum",
			"exact amount",
			toneNeutral,
			"0.021321",
			"oh",
			"not asked for",
			"",
		},
		"network-stopped": {
			"Pay with ETH on Ethereum",
			"exact amount",
			toneNeutral,
			"0.021321",
			"oh",
			"checked by hand",
			"",
		},
		"network-behind": {
			"Pay with ETH on Ethereum",
			"exact amount",
			toneNeutral,
			"0.021321",
			"oh",
			"slow to answer",
			"",
		},
		"hint-failed": {
			"Pay with ETH on Ethereum",
			"exact amount",
			toneNeutral,
			"0.021321",
			"oh",
			"",
			"",
		},
		"long-names": {
			"Pay with ETH on Ethereum",
			"exact amount",
			toneNeutral,
			"0.021321",
			"oh",
			"",
			"",
		},
		"long-names-choose": {"Pay another way", "Nothing is lost", toneNeutral, "", "cb", "", ""},
		"long-names-paid":   {"Paid", longName + " has received", toneGood, "", "f", "", ""},
		"hint-not-found": {
			"Pay with ETH on Ethereum",
			"exact amount",
			toneNeutral,
			"0.021321",
			"oh",
			"",
			"",
		},
		"test-mode": {
			"Pay with ETH on Ethereum",
			"exact amount",
			toneNeutral,
			"0.021321",
			"ohs",
			"",
			"",
		},
	}
	for name, w := range table {
		t.Run(name, func(t *testing.T) {
			e := named(t, name)

			v := viewOf(t, e, "en")
			if v.State.Phase != e.phase {
				t.Errorf("phase %s, want %s", v.State.Phase, e.phase)
			}

			if v.Headline != w.headline || !strings.Contains(v.Message, w.message) || v.Tone != w.tone {
				t.Errorf("says %q, %q, %s", v.Headline, v.Message, v.Tone)
			}

			amount := ""
			if v.Pay != nil {
				amount = v.Pay.Amount
			}

			if amount != w.amount {
				t.Errorf("asks for %q, want %q", amount, w.amount)
			}

			can := ""

			for _, c := range []struct {
				letter string
				is     bool
			}{
				{"c", len(v.Choices) > 0},
				{"r", v.Renew != ""},
				{"o", v.CanChange},
				{"f", v.State.Final},
				{"h", v.CanHint},
				{"b", v.CanKeep},
				{"s", len(v.Outcomes) > 0},
			} {
				if c.is {
					can += c.letter
				}
			}

			if can != w.can {
				t.Errorf("can %q, want %q", can, w.can)
			}

			notice := ""
			if len(v.Notices) > 0 {
				notice = v.Notices[0].Text
			}

			if (w.notice == "") != (notice == "") || !strings.Contains(notice, w.notice) {
				t.Errorf("notice %q, want %q", notice, w.notice)
			}

			progress := ""
			if v.Progress != nil {
				progress = v.Progress.Text
			}

			if progress != w.progress {
				t.Errorf("progress %q, want %q", progress, w.progress)
			}
		})
	}

	for _, e := range gallery() {
		if _, ok := table[e.name]; !ok {
			t.Errorf("the table does not say what %q shows", e.name)
		}
	}
}

// Where money would be lost or paid twice, the page asks for none.
func TestNothingIsAskedForWhenNothingShouldBeSent(t *testing.T) {
	for _, e := range gallery() {
		v := viewOf(t, e, "en")

		should := slices.Contains([]phase{phasePay, phaseUnderpaid}, v.State.Phase) &&
			!strings.Contains(e.query, "choose")
		if should && v.State.Payment.QuoteExpired {
			should = false
		}

		if (v.Pay != nil) != should {
			t.Errorf("%s: asks for a payment: %v", e.name, v.Pay != nil)
		}

		if p := v.State.Payment; p != nil && p.URI != "" &&
			(p.QuoteExpired || v.State.Phase != phasePay && v.State.Phase != phaseUnderpaid) {
			t.Errorf("%s: still has the payment URI %s", e.name, p.URI)
		}
	}
}

func TestReturnLinks(t *testing.T) {
	for name, want := range map[string]string{
		"pay":      "https://shop.example.com/cart",
		"expired":  "https://shop.example.com/cart",
		"paid":     "https://shop.example.com/thanks",
		"refunded": "https://shop.example.com/thanks",
	} {
		if got := stateOf(snapshotOf(named(t, name))).ReturnURL; got != want {
			t.Errorf("%s returns to %q, want %q", name, got, want)
		}
	}

	e := named(t, "paid")
	e.invoice.SuccessURL = ""
	f := snapshotOf(e)

	f.Merchant.SuccessURL = "https://shop.example.com/default"
	if got := stateOf(f).ReturnURL; got != "https://shop.example.com/default" {
		t.Errorf("without a success URL of its own: %q", got)
	}

	f.Merchant.SuccessURL = ""
	for _, bad := range []string{
		"javascript:alert(1)",
		"javascript://shop.example.com/%0aalert(1)",
		"ftp://shop.example.com",
		"//shop.example.com",
		"shop",
	} {
		f.Merchant.WebsiteURL = bad
		if got := stateOf(f).ReturnURL; got != "" {
			t.Errorf("a URL that is none of the web is linked: %q", got)
		}
	}
}

func TestWalletLinks(t *testing.T) {
	for uri, want := range map[string]string{
		"bitcoin:bc1q?amount=1":  "bitcoin:bc1q?amount=1",
		"ethereum:0x1@1?value=1": "ethereum:0x1@1?value=1",
		"javascript:alert(1)":    "",
		"data:text/html,x":       "",
		"https://example.com":    "",
		"TAddress":               "",
		"":                       "",
		"JAVASCRIPT:alert(1)":    "",
	} {
		if got := string(walletURL(uri)); got != want {
			t.Errorf("walletURL(%q) = %q, want %q", uri, got, want)
		}
	}
}

func TestNetworkTrouble(t *testing.T) {
	e := named(t, "pay")
	for name, c := range map[string]struct {
		status networkStatus
		want   string
	}{
		"fine":                   {networkStatus{Height: 100, Tip: 101, ReadAt: noon.Add(-time.Minute)}, ""},
		"never read":             {networkStatus{}, ""},
		"stopped":                {networkStatus{Height: 100, Tip: 101, ReadAt: noon, Stopped: true}, "stopped"},
		"stands still":           {networkStatus{Height: 100, Tip: 100, ReadAt: noon.Add(-6 * time.Minute)}, "behind"},
		"a thousand blocks left": {networkStatus{Height: 100, Tip: 1100, ReadAt: noon, Lags: true}, "behind"},
	} {
		f := snapshotOf(e)

		f.NetworkStatuses["ethereum"] = c.status
		if got := stateOf(f).NetworkTrouble; got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	// Bitcoin's blocks are rare: half an hour without one is nothing to speak of.
	f := snapshotOf(named(t, "pay-bitcoin"))

	f.NetworkStatuses["bitcoin"] = networkStatus{
		Height: 100,
		Tip:    100,
		Pace:   10 * time.Minute,
		ReadAt: noon.Add(-30 * time.Minute),
	}
	if got := stateOf(f).NetworkTrouble; got != "" {
		t.Errorf("bitcoin after half an hour: %q", got)
	}
}

// Confirmations change the revision, time alone and prices do not.
func TestRevision(t *testing.T) {
	f := snapshotOf(named(t, "confirming"))
	before := stateOf(f).Revision

	f.Now = f.Now.Add(time.Second)
	if stateOf(f).Revision != before {
		t.Error("a second changes the revision")
	}

	c := f.NetworkStatuses["ethereum"]
	c.Tip++

	f.NetworkStatuses["ethereum"] = c
	if stateOf(f).Revision == before {
		t.Error("a confirmation does not change the revision")
	}

	f = snapshotOf(named(t, "choose"))
	before = stateOf(f).Revision

	f.Prices = nil
	if stateOf(f).Revision != before {
		t.Error("estimates change the revision")
	}
}

// Every fact that is secret stays out of the state, whatever is added to it.
func TestStateHasNoSecrets(t *testing.T) {
	for _, e := range gallery() {
		b, err := json.Marshal(stateOf(snapshotOf(e)))
		if err != nil {
			t.Fatal(err)
		}

		for _, secret := range []string{
			secretEmail, secretOrder, secretMeta, "metadata", "order_id", "email", "account",
		} {
			if strings.Contains(strings.ToLower(string(b)), strings.ToLower(secret)) {
				t.Errorf("%s: the state holds %q", e.name, secret)
			}
		}
	}
}

// Every language has every message, with the same {names}.
func TestLanguagesAreComplete(t *testing.T) {
	name := regexp.MustCompile(`\{[a-z]+\}`)
	tables := map[string]map[string]string{}

	entries, err := fs.Glob(builtIn, "web/lang/*.json")
	if err != nil || len(entries) != 3 {
		t.Fatalf("%v, %v", entries, err)
	}

	for _, file := range entries {
		data, err := builtIn.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}

		var table map[string]string
		if err := json.Unmarshal(data, &table); err != nil {
			t.Fatal(file, err)
		}

		if n := strings.Count(string(data), "\": \""); n != len(table) {
			t.Errorf("%s has %d lines for %d messages: one is there twice", file, n, len(table))
		}

		tables[file] = table
	}

	english := tables["web/lang/en.json"]
	for file, table := range tables {
		if !reflect.DeepEqual(keys(table), keys(english)) {
			t.Errorf("%s has other messages than English", file)
		}

		for key, text := range table {
			if strings.TrimSpace(text) == "" {
				t.Errorf("%s: %s is empty", file, key)
			}

			a, b := name.FindAllString(text, -1), name.FindAllString(english[key], -1)
			slices.Sort(a)
			slices.Sort(b)

			if !slices.Equal(slices.Compact(a), slices.Compact(b)) {
				t.Errorf("%s: %s fills in %v, English %v", file, key, a, b)
			}
		}
	}
}

// In no state and no language a key or a {name} is shown instead of words.
func TestNoMessageIsMissing(t *testing.T) {
	all := allLanguages(t)
	broken := regexp.MustCompile(`\{[a-z]+\}|^[a-z_]+(\.[a-z_]+)+$`)

	var walk func(path string, v reflect.Value)

	walk = func(path string, v reflect.Value) {
		switch v.Kind() {
		case reflect.String:
			if broken.MatchString(v.String()) {
				t.Errorf("%s: %q", path, v.String())
			}
		case reflect.Pointer:
			if !v.IsNil() {
				walk(path, v.Elem())
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(fmt.Sprintf("%s[%d]", path, i), v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if f := v.Type().Field(i).Name; f != "State" && f != "T" {
					walk(path+"."+f, v.Field(i))
				}
			}
		}
	}

	for _, l := range all {
		for _, e := range gallery() {
			state := stateOf(snapshotOf(e))
			for _, s := range []pageState{state, func() pageState { s := state; s.Merchant.Name = ""; return s }()} {
				visits := []pageQuery{{}, {Choosing: true, Lang: l.Tag}}
				for n := range knownNotices {
					visits = append(visits, pageQuery{Notice: n})
				}

				for h := range knownHints {
					visits = append(visits, pageQuery{HintAnswer: h})
				}

				for _, v := range visits {
					walk(l.Tag+" "+e.name, reflect.ValueOf(newView(s, l, all, v)))
				}
			}
		}
	}
}

// A payment whose block is newer than the tip that was last stored has that block's own confirmation.
func TestConfirmationsBeforeTheTipIsStored(t *testing.T) {
	f := snapshotOf(named(t, "confirming"))

	f.NetworkStatuses["ethereum"] = networkStatus{Height: 5, Tip: 5, ReadAt: noon}
	if got := stateOf(f).Transactions[0].Confirmations; got != 1 {
		t.Errorf("%d confirmations", got)
	}
}

// Whatever the phase, there are words and a tone for it.
func TestEveryPhaseHasAMessage(t *testing.T) {
	source, err := os.ReadFile("phase.go")
	if err != nil {
		t.Fatal(err)
	}

	phases := regexp.MustCompile(`phase = "([a-z_]+)"`).FindAllStringSubmatch(string(source), -1)

	shown := map[phase]bool{}
	for _, e := range gallery() {
		shown[stateOf(snapshotOf(e)).Phase] = true
	}

	if len(phases) < 13 {
		t.Fatalf("only %d phases were found in phase.go", len(phases))
	}

	for _, p := range phases {
		if !shown[phase(p[1])] {
			t.Errorf("the gallery does not show %s", p[1])
		}

		for _, l := range allLanguages(t) {
			if l.text[p[1]+".headline"] == "" || l.text[p[1]+".message"] == "" {
				t.Errorf("no words for %s in %s", p[1], l.Tag)
			}
		}
	}
}

func TestChooseLanguage(t *testing.T) {
	all := allLanguages(t)
	for _, c := range []struct{ asked, header, want string }{
		{"", "", "en"},
		{"", "es", "es"},
		{"", "es-MX,es;q=0.9,en;q=0.8", "es"},
		{"", "fr-FR,fr;q=0.9,zh-TW;q=0.5,en;q=0.4", "zh"},
		{"", "en;q=0.1, es;q=0.2", "es"},
		{"", "es;q=0", "en"},
		{"", "fr, es;q=0.01", "es"},
		{"", "es;q=abc, zh;q=1.5;x", "en"},
		{"", "*", "en"},
		{"zh", "es", "zh"},
		{"zh-Hans", "es", "zh"},
		{"../../etc", "es", "es"},
	} {
		if got := all.match(c.asked, c.header).Tag; got != c.want {
			t.Errorf("choose(%q, %q) = %s, want %s", c.asked, c.header, got, c.want)
		}
	}
}

func FuzzChooseLanguage(f *testing.F) {
	f.Add("", "es-MX,es;q=0.9")
	f.Add("zh", ";;,,q=")
	all := allLanguages(f)
	f.Fuzz(func(t *testing.T, asked, header string) {
		if all.match(asked, header) == nil {
			t.Fatal("no language")
		}
	})
}

// A payment that pays nothing is neither counted nor credited.
func TestForeignMoneyPaysNothing(t *testing.T) {
	e := named(t, "expired")
	p := named(t, "foreign-asset").payments[0]
	e.payments = []invoice.Payment{p}

	s := stateOf(snapshotOf(e))
	if s.Phase != phaseExpired || s.Transactions[0].Counts {
		t.Errorf("phase %s, %+v", s.Phase, s.Transactions)
	}
}

// docs/checkout.md names every phase and every field of the state.
func TestStateIsDocumented(t *testing.T) {
	doc, err := os.ReadFile("../../docs/checkout.md")
	if err != nil {
		t.Fatal(err)
	}

	for _, typ := range []reflect.Type{
		reflect.TypeFor[pageState](),
		reflect.TypeFor[merchantView](),
		reflect.TypeFor[choice](),
		reflect.TypeFor[paymentDetails](),
		reflect.TypeFor[transaction](),
	} {
		for i := range typ.NumField() {
			name, _, _ := strings.Cut(typ.Field(i).Tag.Get("json"), ",")
			if !strings.Contains(string(doc), "`"+name+"`") {
				t.Errorf("docs/checkout.md does not name %s.%s", typ.Name(), name)
			}
		}
	}

	for _, e := range gallery() {
		if !strings.Contains(string(doc), "`"+string(e.phase)+"`") {
			t.Errorf("docs/checkout.md does not name the state %s", e.phase)
		}
	}
}

package checkout

// A gallery of invoices, one for every state that a payer can meet: the view's table, the handler's
// tests and the screenshots are all made from it.

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
)

// noon is when the gallery is looked at.
var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// What must never be shown.
const (
	secretEmail = "payer.secret@example.net"
	secretOrder = "ORDER-SECRET-4711"
	secretMeta  = "metadata-secret-value"
)

// plainDriver is a network without payment URIs, uriDriver one with them.
type plainDriver struct{ network chain.Network }

func (d plainDriver) Network() chain.Network { return d.network }
func (d plainDriver) Head(context.Context) (chain.Head, error) {
	return chain.Head{}, fault.New(fault.Unavailable, "node_unavailable", "the gallery has no node")
}

func (d plainDriver) RefAt(context.Context, uint64) (chain.Ref, error) {
	return chain.Ref{}, fault.New(fault.Unavailable, "node_unavailable", "the gallery has no node")
}

func (d plainDriver) ParseAddress(s string) (chain.Address, error) { return chain.Address(s), nil }

type uriDriver struct {
	plainDriver
	scheme string
}

func (d uriDriver) PaymentURI(to chain.Address, a chain.Asset, amount chain.Amount) string {
	return d.scheme + ":" + string(to) + "?amount=" + amount.Decimal(a.Decimals).String()
}

func network(
	slug, name string,
	family chain.Family,
	caip2 string,
	rule chain.Rule,
	n uint64,
	block, usual time.Duration,
	explorer string,
	assets ...chain.Asset,
) chain.Network {
	return chain.Network{
		Slug:                  slug,
		DisplayName:           name,
		Family:                family,
		CAIP2:                 caip2,
		NativeAsset:           assets[0].Symbol,
		Rule:                  rule,
		Confirmations:         n,
		BlockTime:             block,
		EstimatedConfirmation: usual,
		ExplorerTxURL:         explorer,
		Livemode:              true,
	}.With(assets...)
}

var (
	ethereum = network(
		"ethereum",
		"Ethereum",
		chain.EVM,
		"eip155:1",
		chain.RuleConfirmations,
		12,
		12*time.Second,
		3*time.Minute,
		"https://explorer.example/tx/{txHash}",
		chain.Asset{
			Symbol:    "ETH",
			Name:      "Ether",
			Kind:      chain.Native,
			Decimals:  18,
			MinAmount: chain.Units(1),
		},
		chain.Asset{
			Symbol:    "USDC",
			Name:      "USD Coin",
			Kind:      chain.Token,
			Contract:  "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48",
			Decimals:  6,
			MinAmount: chain.Units(1),
		},
	)
	bitcoin = network(
		"bitcoin",
		"Bitcoin",
		chain.Bitcoin,
		"bip122:000000000019d6689c085ae165831e93",
		chain.RuleConfirmations,
		2,
		10*time.Minute,
		20*time.Minute,
		"https://explorer.example/btc/{txHash}",
		chain.Asset{
			Symbol:    "BTC",
			Name:      "Bitcoin",
			Kind:      chain.Native,
			Decimals:  8,
			MinAmount: chain.Units(546),
		},
	)
	solana = network(
		"solana",
		"Solana",
		chain.Solana,
		"solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp",
		chain.RuleFinalized,
		32,
		time.Second/2,
		15*time.Second,
		"https://explorer.example/sol/{txHash}",
		chain.Asset{
			Symbol:    "SOL",
			Name:      "Solana",
			Kind:      chain.Native,
			Decimals:  9,
			MinAmount: chain.Units(1),
		},
	)
	tron = network(
		"tron",
		"Tron",
		chain.Tron,
		"tron:0x2b6653dc",
		chain.RuleConfirmations,
		20,
		3*time.Second,
		time.Minute,
		"",
		chain.Asset{
			Symbol:    "TRX",
			Name:      "Tronix",
			Kind:      chain.Native,
			Decimals:  6,
			MinAmount: chain.Units(1),
		},
		chain.Asset{
			Symbol:    "USDT",
			Name:      "Tether USD",
			Kind:      chain.Token,
			Contract:  "TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t",
			Decimals:  6,
			MinAmount: chain.Units(1),
		},
	)
	bnb = network(
		"bnb-testnet",
		"BNB Smart Chain Testnet",
		chain.EVM,
		"eip155:97",
		chain.RuleFinalized,
		15,
		time.Second,
		5*time.Second,
		"",
		chain.Asset{
			Symbol:    "BNB",
			Name:      "BNB",
			Kind:      chain.Native,
			Decimals:  18,
			MinAmount: chain.Units(1),
		},
	)
	base = network(
		"base",
		"Base",
		chain.EVM,
		"eip155:8453",
		chain.RuleSafe,
		60,
		2*time.Second,
		time.Minute,
		"",
		chain.Asset{
			Symbol:    "ETH",
			Name:      "Ether",
			Kind:      chain.Native,
			Decimals:  18,
			MinAmount: chain.Units(1),
		},
	)
)

func registry() *chain.Registry {
	r, err := chain.NewRegistry(
		uriDriver{
			plainDriver{ethereum},
			"ethereum",
		},
		uriDriver{plainDriver{bitcoin}, "bitcoin"},
		uriDriver{plainDriver{solana}, "solana"},
		plainDriver{tron},
		uriDriver{plainDriver{bnb}, "ethereum"},
		uriDriver{plainDriver{base}, "ethereum"},
	)
	if err != nil {
		panic(err)
	}

	return r
}

const (
	ethAddress  = "0x8C8D7C46219D9205f056f28fee5950aD564d7465"
	btcAddress  = "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"
	solAddress  = "7EcDhSYGxXyscszYEp35KHN8vvw3svAuLKTzXwCFLtV"
	tronAddress = "TQn9Y2khEsLJW1ChVWFMSMeRDow5KcbLSE"
)

func option(id string, n chain.Network, symbol string) invoice.Option {
	a, ok := n.Asset(symbol)
	if !ok {
		panic("no " + symbol + " on " + n.Slug)
	}

	return invoice.Option{
		ID:       id,
		Network:  n.Slug,
		Asset:    symbol,
		AssetID:  a.ID,
		Contract: a.Contract,
		Decimals: a.Decimals,
	}
}

// chosen is an option with an address and a quote of 49.90 that holds for 14:32 more.
func chosen(o invoice.Option, address chain.Address, due string, display uint8, rate string) invoice.Option {
	o.Address, o.AmountDue, o.DisplayDecimals = address, chain.MustAmount(due), display

	o.SelectedAt = noon.Add(-328 * time.Second)
	if rate != "" {
		o.Rate, o.QuoteExpiresAt = decimal.RequireFromString(rate), noon.Add(14*time.Minute+32*time.Second)
	}

	return o
}

func ethPaid(id string) invoice.Option {
	return chosen(option(id, ethereum, "ETH"), ethAddress, "21321000000000000", 6, "2340.5")
}

// fiat is an open invoice over 49.90 EUR with five ways to pay.
func fiat() invoice.Invoice {
	return invoice.Invoice{
		ID:            "65c9a1f0b2d34e5f60718293",
		Owner:         event.Owner{AccountID: "65c9a1f0b2d34e5f60710001", Livemode: true},
		Number:        1042,
		Kind:          invoice.Fiat,
		Status:        invoice.Open,
		Currency:      "EUR",
		Price:         decimal.RequireFromString("49.9"),
		Description:   "Single-origin coffee, two bags of 1 kg",
		OrderID:       secretOrder,
		CustomerEmail: secretEmail,
		Metadata:      map[string]string{"internal": secretMeta},
		SuccessURL:    "https://shop.example.com/thanks",
		CancelURL:     "https://shop.example.com/cart",
		Options: []invoice.Option{
			option("65c9a1f0b2d34e5f6071a001", ethereum, "ETH"),
			option("65c9a1f0b2d34e5f6071a002", ethereum, "USDC"),
			option("65c9a1f0b2d34e5f6071a003", bitcoin, "BTC"),
			option("65c9a1f0b2d34e5f6071a004", solana, "SOL"),
			option("65c9a1f0b2d34e5f6071a005", tron, "USDT"),
		},
		CreatedAt:             noon.Add(-10 * time.Minute),
		PreSelectionExpiresAt: noon.Add(110 * time.Minute),
		ExpiresAt:             noon.Add(23*time.Hour + 50*time.Minute),
		Version:               3,
	}
}

// selectedFiat is fiat with its first option selected.
func selectedFiat() invoice.Invoice {
	inv := fiat()
	inv.Options[0] = ethPaid(inv.Options[0].ID)
	inv.SelectedOptionID = inv.Options[0].ID

	return inv
}

// payment is one of the first option, credited at its rate.
func payment(
	inv *invoice.Invoice,
	status invoice.PaymentStatus,
	amount string,
	height uint64,
) invoice.Payment {
	o := &inv.Options[0]
	for i := range inv.Options {
		if inv.Options[i].ID == inv.SelectedOptionID {
			o = &inv.Options[i]
		}
	}

	n, _ := registry().Network(o.Network)

	p := invoice.Payment{
		ID:         "65c9a1f0b2d34e5f6072b001",
		Owner:      inv.Owner,
		Status:     status,
		InvoiceID:  inv.ID,
		OptionID:   o.ID,
		Network:    o.Network,
		Asset:      o.Asset,
		AssetID:    o.AssetID,
		Decimals:   o.Decimals,
		Address:    o.Address,
		TxHash:     "0x5c504ed432cb51138bcf09aa5e8a410dd4a1e204ef84bfed1be16dfba1b22060",
		Amount:     chain.MustAmount(amount),
		Required:   n.Confirmations,
		Rate:       o.Rate,
		Credit:     chain.MustAmount(amount).Decimal(o.Decimals).Mul(o.Rate),
		DetectedAt: noon.Add(-70 * time.Second),
	}
	if height > 0 {
		p.Block = chain.Ref{Height: height, Hash: "0xb10c", Time: noon.Add(-60 * time.Second)}
	}

	switch status {
	case invoice.Confirmed:
		p.ConfirmedAt = noon.Add(-5 * time.Second)
		o.AmountPaid = o.AmountPaid.Add(p.Amount)
	case invoice.Detected:
		o.AmountDetected = o.AmountDetected.Add(p.Amount)
	case invoice.Orphaned, invoice.Dropped:
	}

	return p
}

// exhibit is one state to show.
type exhibit struct {
	name     string
	invoice  invoice.Invoice
	payments []invoice.Payment
	// stopped and still describe the selected network: halted, or not read for hours.
	stopped, still bool
	unpriced       bool   // no price is at hand
	query          string // of the page's address
	merchant       string // one without a logo; empty: Morning Roast
	phase          phase
}

// longName is as long as a merchant's name may be: 80 characters.
const longName = "GesellschaftfürnachhaltigenKaffeehandelundRöstereibedarfmitbeschränkterHaftungKG"

// tip is the newest block of every network of the gallery.
const tip = 1000

func due(inv *invoice.Invoice) string { return inv.Options[0].AmountDue.String() }

// gallery returns every exhibit, each with an id of its own.
func gallery() []exhibit {
	var all []exhibit

	add := func(e exhibit) {
		e.invoice.ID = e.invoice.ID[:22] + string(
			"0123456789abcdef"[len(all)/16],
		) + string(
			"0123456789abcdef"[len(all)%16],
		)

		e.invoice.Options = slices.Clone(e.invoice.Options)
		for i := range e.payments {
			e.payments[i].InvoiceID = e.invoice.ID
		}

		all = append(all, e)
	}
	paid := func(change func(*invoice.Invoice)) exhibit {
		inv := selectedFiat()
		p := payment(&inv, invoice.Confirmed, due(&inv), 980)

		inv.Status, inv.PaidAt, inv.PaidOptionID = invoice.Paid, noon, inv.SelectedOptionID
		if change != nil {
			change(&inv)
		}

		return exhibit{invoice: inv, payments: []invoice.Payment{p}, phase: phasePaid}
	}
	named := func(name string, e exhibit) { e.name = name; add(e) }

	add(exhibit{name: "choose", invoice: fiat(), phase: phaseChoose})
	add(exhibit{name: "choose-unpriced", invoice: fiat(), phase: phaseChoose, unpriced: true})
	add(exhibit{name: "pay", invoice: selectedFiat(), phase: phasePay})
	{
		inv := fiat()
		inv.Options[2] = chosen(inv.Options[2], btcAddress, "58000", 8, "86034.5")
		inv.SelectedOptionID = inv.Options[2].ID
		add(exhibit{name: "pay-bitcoin", invoice: inv, phase: phasePay})
	}
	{
		inv := fiat()
		inv.Options[4] = chosen(inv.Options[4], tronAddress, "54239000", 3, "0.92")
		inv.SelectedOptionID = inv.Options[4].ID
		add(exhibit{name: "pay-tron", invoice: inv, phase: phasePay})
	}
	{
		inv := fiat()
		o := chosen(
			option("65c9a1f0b2d34e5f6071a006", bnb, "BNB"),
			ethAddress,
			"81500000000000000",
			4,
			"612.4",
		)
		inv.Options, inv.SelectedOptionID = append(inv.Options, o), o.ID
		add(exhibit{name: "pay-long-network", invoice: inv, phase: phasePay})
	}
	{
		inv := fiat()
		inv.Kind, inv.Currency, inv.Price, inv.Description = invoice.Crypto, "", decimal.Decimal{}, ""
		inv.Options = inv.Options[:1]
		inv.Options[0] = chosen(inv.Options[0], ethAddress, "1234567890123456789", 18, "")
		inv.SelectedOptionID = inv.Options[0].ID
		add(exhibit{name: "pay-crypto", invoice: inv, phase: phasePay})
	}

	add(exhibit{name: "change", invoice: selectedFiat(), query: "choose=1", phase: phasePay})
	{
		inv := selectedFiat()
		inv.Options[0].QuoteExpiresAt = noon.Add(-time.Second)
		add(exhibit{name: "quote-expired", invoice: inv, phase: phaseQuoteExpired})
	}
	{
		inv := selectedFiat()
		p := payment(&inv, invoice.Detected, due(&inv), 0)
		inv.Status = invoice.Pending
		add(exhibit{name: "seen", invoice: inv, payments: []invoice.Payment{p}, phase: phaseSeen})
	}
	{
		inv := selectedFiat()
		p := payment(&inv, invoice.Detected, due(&inv), tip-4)
		inv.Status = invoice.Pending
		add(exhibit{name: "confirming", invoice: inv, payments: []invoice.Payment{p}, phase: phaseConfirming})
	}
	{
		inv := fiat()
		inv.Options[3] = chosen(inv.Options[3], solAddress, "312000000", 4, "160.1")
		inv.SelectedOptionID = inv.Options[3].ID
		p := payment(&inv, invoice.Detected, "312000000", tip-4)
		p.TxHash = "5VERv8NMvzbJMEkV8xnrLkEaWRtSz9CosKDYjCJjBRnbJLgp8uirBgmQpjKhoR4tjF3ZpRzrFmBV6UjKdiSZkQUW"
		inv.Status = invoice.Pending
		add(
			exhibit{
				name:     "confirming-finality",
				invoice:  inv,
				payments: []invoice.Payment{p},
				phase:    phaseConfirming,
			},
		)
	}
	{
		inv := selectedFiat()
		p := payment(&inv, invoice.Confirmed, "15000000000000000", 980)
		inv.Status = invoice.Underpaid
		add(exhibit{name: "underpaid", invoice: inv, payments: []invoice.Payment{p}, phase: phaseUnderpaid})
		inv.Options = slices.Clone(inv.Options)
		inv.Options[0].QuoteExpiresAt = noon.Add(-time.Minute)
		add(
			exhibit{
				name:     "underpaid-quote-expired",
				invoice:  inv,
				payments: []invoice.Payment{p},
				phase:    phaseUnderpaid,
			},
		)
	}
	{
		// All of the amount came, after its time, and is worth 3.20 less by now.
		inv := selectedFiat()
		p := payment(&inv, invoice.Confirmed, due(&inv), 980)
		p.Credit = decimal.RequireFromString("46.7")
		inv.Status = invoice.Underpaid
		add(
			exhibit{
				name:     "underpaid-price-moved",
				invoice:  inv,
				payments: []invoice.Payment{p},
				phase:    phaseUnderpaid,
			},
		)
	}
	{
		inv := selectedFiat()
		p := payment(&inv, invoice.Detected, "15000000000000000", tip)
		add(
			exhibit{
				name:     "underpaid-detected",
				invoice:  inv,
				payments: []invoice.Payment{p},
				phase:    phaseUnderpaid,
			},
		)
	}
	{
		inv := selectedFiat()
		inv.ExpiresAt = noon.Add(-time.Second)
		add(exhibit{name: "closing", invoice: inv, phase: phaseClosing})
	}

	named("paid", paid(nil))
	{
		inv := selectedFiat()
		p := payment(&inv, invoice.Confirmed, "25000000000000000", 980)
		inv.Status, inv.PaidOptionID, inv.Flags = invoice.Paid, inv.SelectedOptionID, []invoice.Flag{
			invoice.Overpaid,
		}
		add(exhibit{name: "overpaid", invoice: inv, payments: []invoice.Payment{p}, phase: phasePaid})
	}

	named("paid-late", paid(func(inv *invoice.Invoice) { inv.Flags = []invoice.Flag{invoice.Late} }))
	named(
		"paid-underpaid-accepted",
		paid(func(inv *invoice.Invoice) { inv.Flags = []invoice.Flag{invoice.UnderpaidAccepted} }),
	)
	named(
		"paid-partially-refunded",
		paid(func(inv *invoice.Invoice) { inv.Flags = []invoice.Flag{invoice.PartiallyRefunded} }),
	)
	{
		e := paid(func(inv *invoice.Invoice) { inv.Status, inv.RefundedAt = invoice.Refunded, noon })
		e.phase = phaseRefunded
		named("refunded", e)
	}
	{
		inv := selectedFiat()
		inv.Status, inv.ExpiredAt, inv.ExpiresAt = invoice.Expired, noon.Add(
			-time.Minute,
		), noon.Add(
			-time.Minute,
		)
		add(exhibit{name: "expired", invoice: inv, phase: phaseExpired})
		late := inv
		late.Options = slices.Clone(inv.Options)
		p := payment(&late, invoice.Confirmed, due(&late), 980)
		p.Late = true
		add(exhibit{name: "late", invoice: late, payments: []invoice.Payment{p}, phase: phaseLate})

		short := inv
		short.Options = slices.Clone(inv.Options)
		q := payment(&short, invoice.Confirmed, "15000000000000000", 980)
		add(
			exhibit{
				name:     "expired-underpaid",
				invoice:  short,
				payments: []invoice.Payment{q},
				phase:    phaseLate,
			},
		)
	}
	{
		inv := selectedFiat()
		inv.Status, inv.CanceledAt = invoice.Canceled, noon.Add(-time.Minute)
		add(exhibit{name: "canceled", invoice: inv, phase: phaseCanceled})
		late := inv
		late.Options = slices.Clone(inv.Options)
		p := payment(&late, invoice.Detected, due(&late), tip-1)
		add(exhibit{name: "canceled-paid", invoice: late, payments: []invoice.Payment{p}, phase: phaseLate})
	}
	{
		inv := selectedFiat()
		p := payment(&inv, invoice.Orphaned, due(&inv), tip-2)
		add(
			exhibit{
				name:     "interrupted",
				invoice:  inv,
				payments: []invoice.Payment{p},
				phase:    phaseInterrupted,
			},
		)
		d := payment(&inv, invoice.Dropped, due(&inv), 0)
		add(exhibit{name: "dropped", invoice: inv, payments: []invoice.Payment{d}, phase: phasePay})
	}
	{
		inv := selectedFiat()
		p := payment(&inv, invoice.Dropped, "20000000", 980)
		usdc, _ := ethereum.Asset("USDC")
		p.Status, p.OptionID, p.ConfirmedAt = invoice.Confirmed, "", noon
		p.Asset, p.AssetID, p.Decimals = "USDC", usdc.ID, usdc.Decimals
		p.Credit = decimal.Decimal{}
		add(exhibit{name: "foreign-asset", invoice: inv, payments: []invoice.Payment{p}, phase: phasePay})
	}

	add(exhibit{name: "network-stopped", invoice: selectedFiat(), stopped: true, phase: phasePay})
	add(exhibit{name: "network-behind", invoice: selectedFiat(), still: true, phase: phasePay})
	add(
		exhibit{
			name:    "hint-failed",
			invoice: selectedFiat(),
			query:   "hint=failed&tx=0x" + strings.Repeat("ab", 32),
			phase:   phasePay,
		},
	)
	{
		// As long as names and prices may be, and without a space to break them at.
		inv := selectedFiat()
		inv.Price, inv.Currency = decimal.RequireFromString("1234567890.12345678"), "VND"
		inv.Description = strings.Repeat("Invoice-2026/11-0042-", 20)
		add(exhibit{name: "long-names", invoice: inv, merchant: longName, phase: phasePay})
		add(
			exhibit{
				name:     "long-names-choose",
				invoice:  inv,
				merchant: longName,
				query:    "choose=1",
				phase:    phasePay,
			},
		)
		p := payment(&inv, invoice.Confirmed, due(&inv), 980)
		inv.Status, inv.PaidAt, inv.PaidOptionID = invoice.Paid, noon, inv.SelectedOptionID
		add(
			exhibit{
				name:     "long-names-paid",
				invoice:  inv,
				payments: []invoice.Payment{p},
				merchant: longName,
				phase:    phasePaid,
			},
		)
	}

	add(
		exhibit{
			name:    "hint-not-found",
			invoice: selectedFiat(),
			query:   "hint=unknown&tx=0x" + strings.Repeat("ab", 32),
			phase:   phasePay,
		},
	)
	{
		inv := selectedFiat()
		inv.Owner.Livemode = false
		add(exhibit{name: "test-mode", invoice: inv, phase: phasePay})
	}

	return all
}

// pricesOf are the gallery's prices in EUR by asset id.
func pricesOf(e exhibit) map[string]decimal.Decimal {
	if e.unpriced {
		return nil
	}

	bySymbol := map[string]string{
		"ETH":  "2340.5",
		"USDC": "0.921",
		"BTC":  "86034.5",
		"SOL":  "160.1",
		"USDT": "0.92",
		"TRX":  "0.21",
		"BNB":  "612.4",
	}

	out := map[string]decimal.Decimal{}
	for _, o := range e.invoice.Options {
		out[o.AssetID] = decimal.RequireFromString(bySymbol[o.Asset])
	}

	return out
}

func networkStatusOf(e exhibit) networkStatus {
	c := networkStatus{Height: tip, Tip: tip, ReadAt: noon.Add(-8 * time.Second), Stopped: e.stopped}
	if e.still {
		c.ReadAt = noon.Add(-time.Hour)
	}

	return c
}

func snapshotOf(e exhibit) snapshot {
	f := snapshot{
		Invoice:         e.invoice,
		Payments:        e.payments,
		Networks:        registry(),
		NetworkStatuses: map[string]networkStatus{},
		Prices:          pricesOf(e),
		Now:             noon,
		Merchant: merchant{
			Name:        "Morning Roast",
			WebsiteURL:  "https://shop.example.com",
			LogoVersion: "abc123",
		},
	}
	if e.merchant != "" {
		f.Merchant.Name, f.Merchant.LogoVersion = e.merchant, ""
	}

	for _, o := range e.invoice.Options {
		f.NetworkStatuses[o.Network] = networkStatusOf(e)
	}

	return f
}

package invoice_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
)

func TestCreateRefuses(t *testing.T) {
	w := newHarness(t, account.Settings{})
	sim1 := []invoice.OptionParams{{Asset: "SIM", Network: "simnet"}}
	bps := func(n int) *int { return &n }

	for _, row := range []struct {
		name        string
		change      func(p *invoice.CreateParams)
		param, code string // code "" : it is taken
	}{
		{"as it is", func(*invoice.CreateParams) {}, "", ""},
		{"price 0", func(p *invoice.CreateParams) { p.Price.Amount = "0" }, "price.amount", "parameter_invalid"},
		{
			"negative price",
			func(p *invoice.CreateParams) { p.Price.Amount = "-1" },
			"price.amount",
			"parameter_invalid",
		},
		{
			"9 places",
			func(p *invoice.CreateParams) { p.Price.Amount = "1.000000001" },
			"price.amount",
			"parameter_invalid",
		},
		{"8 places", func(p *invoice.CreateParams) { p.Price.Amount = "1.00000001" }, "", ""},
		{"no currency", func(p *invoice.CreateParams) { p.Price.Currency = "" }, "price.currency", "parameter_invalid"},
		{
			"currency in lower case",
			func(p *invoice.CreateParams) { p.Price.Currency = "eur" },
			"price.currency",
			"parameter_invalid",
		},
		{
			"a currency nobody quotes",
			func(p *invoice.CreateParams) { p.Price.Currency = "XTS" },
			"price.currency",
			"parameter_invalid",
		},
		{
			"below the minimum",
			func(p *invoice.CreateParams) { p.Price.Amount = "0.00000001" },
			"price.amount",
			"amount_too_small",
		},
		{"too much", func(p *invoice.CreateParams) { p.Price.Amount = "1" + strings.Repeat("0", 39) }, "", ""},
		{
			"no price, no options",
			func(p *invoice.CreateParams) { p.Price, p.Options = nil, nil },
			"options",
			"parameter_missing",
		},
		{
			"no price, no amount",
			func(p *invoice.CreateParams) { p.Price = nil },
			"options[0].amount",
			"parameter_missing",
		},
		{
			"price and amount",
			func(p *invoice.CreateParams) { p.Options[0].Amount = chain.Units(1) },
			"options[0].amount",
			"parameter_invalid",
		},
		{
			"amount below the minimum",
			func(p *invoice.CreateParams) { p.Price = nil; p.Options[0].Amount = chain.Units(1) },
			"options[0].amount",
			"amount_too_small",
		},
		{
			"amount above any",
			func(p *invoice.CreateParams) {
				p.Price = nil
				p.Options[0].Amount = chain.MaxTransfer.Add(chain.Units(1))
			},
			"options[0].amount",
			"parameter_invalid",
		},
		{
			"empty options",
			func(p *invoice.CreateParams) { p.Options = []invoice.OptionParams{} },
			"options",
			"parameter_invalid",
		},
		{
			"21 options",
			func(p *invoice.CreateParams) { p.Options = make([]invoice.OptionParams, 21) },
			"options",
			"parameter_invalid",
		},
		{
			"an option twice",
			func(p *invoice.CreateParams) { p.Options = append(p.Options, p.Options[0]) },
			"options[1]",
			"parameter_invalid",
		},
		{
			"unknown asset",
			func(p *invoice.CreateParams) { p.Options[0].Asset = "NOPE" },
			"options[0].asset",
			"asset_not_enabled",
		},
		{
			"unknown network",
			func(p *invoice.CreateParams) { p.Options[0].Network = "nope" },
			"options[0].network",
			"asset_not_enabled",
		},
		{
			"a test network with a live key",
			func(p *invoice.CreateParams) { p.Owner.Livemode = true },
			"options[0].network",
			"asset_not_enabled",
		},
		{"order_id of 128 characters", func(p *invoice.CreateParams) { p.OrderID = strings.Repeat("ä", 128) }, "", ""},
		{
			"order_id of 129",
			func(p *invoice.CreateParams) { p.OrderID = strings.Repeat("ä", 129) },
			"order_id",
			"parameter_invalid",
		},
		{"a NUL character", func(p *invoice.CreateParams) { p.OrderID = "a\x00" }, "order_id", "parameter_invalid"},
		{"no UTF-8", func(p *invoice.CreateParams) { p.Description = "\xff" }, "description", "parameter_invalid"},
		{
			"description of 501",
			func(p *invoice.CreateParams) { p.Description = strings.Repeat("x", 501) },
			"description",
			"parameter_invalid",
		},
		{
			"no e-mail address",
			func(p *invoice.CreateParams) { p.CustomerEmail = "alice" },
			"customer_email",
			"parameter_invalid",
		},
		{
			"e-mail of 255",
			func(p *invoice.CreateParams) { p.CustomerEmail = strings.Repeat("a", 243) + "@example.com" },
			"customer_email",
			"parameter_invalid",
		},
		{
			"e-mail of 255 bytes",
			func(p *invoice.CreateParams) { p.CustomerEmail = strings.Repeat("é", 121) + "a@example.com" },
			"customer_email",
			"parameter_invalid",
		},
		{"e-mail", func(p *invoice.CreateParams) { p.CustomerEmail = "alice+shop@mail.example.com" }, "", ""},
		{
			"empty metadata key",
			func(p *invoice.CreateParams) { p.Metadata = map[string]string{"": "x"} },
			"metadata",
			"parameter_invalid",
		},
		{
			"metadata key of 41",
			func(p *invoice.CreateParams) { p.Metadata = map[string]string{strings.Repeat("k", 41): "x"} },
			"metadata",
			"parameter_invalid",
		},
		{
			"metadata value of 501",
			func(p *invoice.CreateParams) { p.Metadata = map[string]string{"k": strings.Repeat("v", 501)} },
			"metadata.k",
			"parameter_invalid",
		},
		{
			"51 metadata keys",
			func(p *invoice.CreateParams) {
				p.Metadata = map[string]string{}
				for i := range 51 {
					p.Metadata[fmt.Sprint(i)] = ""
				}
			},
			"metadata",
			"parameter_invalid",
		},
		{
			"tolerance 501",
			func(p *invoice.CreateParams) { p.ToleranceBPS = bps(501) },
			"tolerance_bps",
			"parameter_invalid",
		},
		{
			"tolerance -1",
			func(p *invoice.CreateParams) { p.ToleranceBPS = bps(-1) },
			"tolerance_bps",
			"parameter_invalid",
		},
		{"299 s", func(p *invoice.CreateParams) { p.ExpiresIn = 299 * time.Second }, "expires_in", "parameter_invalid"},
		{
			"604801 s",
			func(p *invoice.CreateParams) { p.ExpiresIn = 604801 * time.Second },
			"expires_in",
			"parameter_invalid",
		},
		{"300 s", func(p *invoice.CreateParams) { p.ExpiresIn = 300 * time.Second }, "", ""},
		{
			"299 s to choose",
			func(p *invoice.CreateParams) { p.PreSelectionExpiresIn = 299 * time.Second },
			"pre_selection_expires_in",
			"parameter_invalid",
		},
		{
			"longer to choose than to live",
			func(p *invoice.CreateParams) {
				p.ExpiresIn, p.PreSelectionExpiresIn = 300*time.Second, 301*time.Second
			},
			"pre_selection_expires_in",
			"parameter_invalid",
		},
		{"http in test mode", func(p *invoice.CreateParams) { p.SuccessURL = "http://localhost:3000/thanks" }, "", ""},
		{"ftp", func(p *invoice.CreateParams) { p.CancelURL = "ftp://example.com" }, "cancel_url", "parameter_invalid"},
		{
			"script",
			func(p *invoice.CreateParams) { p.SuccessURL = "javascript:alert(1)" },
			"success_url",
			"parameter_invalid",
		},
		{"no host", func(p *invoice.CreateParams) { p.SuccessURL = "https:///x" }, "success_url", "parameter_invalid"},
		{
			"http in live mode",
			func(p *invoice.CreateParams) { p.Owner.Livemode, p.SuccessURL = true, "http://example.com" },
			"success_url",
			"parameter_invalid",
		},
		{
			"URL of 2049",
			func(p *invoice.CreateParams) { p.CancelURL = "https://example.com/" + strings.Repeat("x", 2029) },
			"cancel_url",
			"parameter_invalid",
		},
	} {
		p := invoice.CreateParams{
			Owner:   w.owner,
			Price:   &invoice.Price{Currency: "EUR", Amount: "90"},
			Options: append([]invoice.OptionParams(nil), sim1...),
		}
		row.change(&p)
		_, err := w.svc.Create(context.Background(), p)

		var e *fault.Error
		switch {
		case row.code == "" && err != nil:
			t.Errorf("%s: %v", row.name, err)
		case row.code != "" && (!errors.As(err, &e) || !errors.Is(err, fault.Invalid) ||
			e.Code != row.code || e.Param != row.param):
			t.Errorf("%s: %v (%+v), want %s at %s", row.name, err, e, row.code, row.param)
		}
	}

	_, err := w.svc.Create(
		context.Background(),
		invoice.CreateParams{
			Owner: event.Owner{AccountID: "nobody"},
			Price: &invoice.Price{Currency: "EUR", Amount: "1"},
		},
	)
	if !errors.Is(err, fault.NotFound) {
		t.Errorf("an account that does not exist: %v", err)
	}
}

func TestCreateTakesTheAccountsSettings(t *testing.T) {
	w := newHarness(t, account.Settings{ToleranceBPS: 70})
	usdx, _ := w.chains[0].Network().Asset("USDX")

	inv := w.create(invoice.CreateParams{Price: &invoice.Price{Currency: "EUR", Amount: "90"}})
	if inv.ToleranceBPS != 70 || len(inv.Options) != 2 {
		t.Errorf("created %+v", inv)
	}

	only := newHarness(t, account.Settings{Assets: []string{usdx.ID}})

	inv = only.create(
		invoice.CreateParams{Price: &invoice.Price{Currency: "EUR", Amount: "90"}, ExpiresIn: time.Hour},
	)
	if len(inv.Options) != 1 || inv.Options[0].Asset != "USDX" || inv.SelectedOptionID != inv.Options[0].ID ||
		inv.Options[0].AmountDue.String() != "100000000" {
		t.Errorf("the only option is selected at creation: %+v", inv)
	}

	if !inv.PreSelectionExpiresAt.Equal(start.Add(time.Hour)) || !inv.DueAt.Equal(inv.ExpiresAt) {
		t.Errorf("before a selection %s, due %s", inv.PreSelectionExpiresAt, inv.DueAt)
	}

	_, err := only.svc.Create(context.Background(), invoice.CreateParams{
		Owner:   only.owner,
		Price:   &invoice.Price{Currency: "EUR", Amount: "90"},
		Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet"}},
	})
	wantCode(t, err, fault.Invalid, "asset_not_enabled")
}

func TestNoPriceNoInvoice(t *testing.T) {
	w := newHarness(t, account.Settings{})
	p := invoice.CreateParams{Owner: w.owner, Price: &invoice.Price{Currency: "EUR", Amount: "90"}}
	w.must(w.rates.Set("ETH/EUR", ""))

	if _, err := w.svc.Create(context.Background(), p); err != nil {
		t.Errorf("one of two options can be priced: %v", err)
	}

	w.must(w.rates.Set("USDC/EUR", ""))
	_, err := w.svc.Create(context.Background(), p)
	wantCode(t, err, fault.Unavailable, "price_unavailable")

	list, more, err := w.svc.List(context.Background(), invoice.Filter{Owner: w.owner, Limit: 10})
	if err != nil || more || len(list) != 1 {
		t.Errorf("%d invoices, %v", len(list), err)
	}
}

// TestAssetWithoutAPrice has one of two assets priced in a currency: it is the other asset that
// cannot be in the invoice.
func TestAssetWithoutAPrice(t *testing.T) {
	w := newHarness(t, account.Settings{})

	p := invoice.CreateParams{Owner: w.owner, Price: &invoice.Price{Currency: "GBP", Amount: "90"}}
	for _, price := range []string{"1500", ""} { // "": known, but not fresh
		w.must(w.rates.Set("ETH/GBP", price))

		p.Options = []invoice.OptionParams{
			{Asset: "SIM", Network: "simnet"},
			{Asset: "USDX", Network: "simnet"},
		}
		_, err := w.svc.Create(context.Background(), p)

		var e *fault.Error
		if !errors.As(err, &e) || e.Code != "asset_not_enabled" || e.Param != "options[1].asset" ||
			!strings.Contains(e.Error(), `USDX on simnet has no price in "GBP"`) {
			t.Errorf("named in the options: %v", err)
		}
	}

	p.Options = nil
	_, err := w.svc.Create(context.Background(), p)
	wantCode(t, err, fault.Unavailable, "price_unavailable")
	w.must(w.rates.Set("ETH/GBP", "1500"))

	// Left out, the options are every asset. One without a price cannot be selected until it has one.
	inv := w.create(p)
	if len(inv.Options) != 2 || inv.Options[0].Asset != "SIM" || inv.Options[1].Asset != "USDX" {
		t.Fatalf("not named in the options: %+v", inv.Options)
	}

	for _, price := range []string{"", "0.8"} {
		_, err := w.svc.Select(context.Background(), &w.owner, inv.ID, inv.Options[1].ID)
		wantCode(t, err, fault.Unavailable, "price_unavailable")
		w.must(w.rates.Set("USDC/GBP", price)) // "": known, but not fresh
	}

	selected, err := w.svc.Select(context.Background(), &w.owner, inv.ID, inv.Options[1].ID)
	if err != nil || selected.SelectedOptionID != inv.Options[1].ID {
		t.Errorf("with a price: %+v, %v", selected, err)
	}
}

// Numbers and addresses are unique across processes that create at the same time. Row 27: the same order id
// makes two invoices; it is a label.
func TestManyProcessesCreateAtOnce(t *testing.T) {
	w := newHarness(t, account.Settings{})
	services := []*invoice.Service{w.svc}
	w.restart()
	services = append(services, w.svc)

	var mu sync.Mutex

	numbers, addresses := map[int64]bool{}, map[chain.Address]bool{}

	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			inv, err := services[i%2].Create(context.Background(), invoice.CreateParams{
				Owner:   w.owner,
				Price:   &invoice.Price{Currency: "EUR", Amount: "90"},
				Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet"}},
				OrderID: "same",
			})
			if err != nil {
				t.Error(err)
				return
			}

			mu.Lock()
			defer mu.Unlock()

			numbers[inv.Number], addresses[inv.Options[0].Address] = true, true
		})
	}

	group.Wait()

	if len(numbers) != 40 || len(addresses) != 40 || !numbers[1] || numbers[0] {
		t.Errorf("%d numbers and %d addresses for 40 invoices", len(numbers), len(addresses))
	}

	page, more, err := w.svc.List(
		context.Background(), invoice.Filter{Owner: w.owner, OrderID: "same", Limit: 30},
	)
	if err != nil || len(page) != 30 || !more {
		t.Errorf("%d invoices, more %t, %v", len(page), more, err)
	}

	page, more, err = w.svc.List(
		context.Background(),
		invoice.Filter{Owner: w.owner, OrderID: "same", Limit: 30, After: page[29].ID},
	)
	if err != nil || len(page) != 10 || more {
		t.Errorf("%d invoices, more %t, %v", len(page), more, err)
	}
}

func TestDepositAddresses(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.follow()

	ctx := context.Background()
	d, err := w.svc.CreateDeposit(
		ctx,
		invoice.DepositParams{
			Owner:    w.owner,
			Network:  "simnet",
			Name:     "customer 7",
			Metadata: map[string]string{"a": "b"},
		},
	)
	w.must(err)

	if d.Status != invoice.Active || d.Address == "" || d.Key.Role != chain.RoleDeposit {
		t.Fatalf("created %+v", d)
	}

	disabled, name, none := invoice.Disabled, "customer 8", map[string]string(nil)
	d, err = w.svc.UpdateDeposit(
		ctx, w.owner, d.ID, invoice.DepositUpdate{Name: &name, Metadata: &none, Status: &disabled},
	)
	w.must(err)

	if d.Name != name || len(d.Metadata) != 0 || d.Status != invoice.Disabled {
		t.Errorf("changed to %+v", d)
	}
	// A disabled address is still watched and credited.
	w.chains[0].Pay(d.Address, "USDX", chain.Units(5_000_000))
	w.follow()
	w.confirm()
	list, more, err := w.svc.ListPayments(
		ctx, invoice.PaymentFilter{Owner: w.owner, DepositAddressID: d.ID, Limit: 1},
	)
	w.must(err)

	if len(list) != 1 || more || list[0].Status != invoice.Confirmed || list[0].DepositAddressName != name ||
		list[0].USDValue.Decimal.String() != "5" {
		t.Errorf("payments %+v", list)
	}

	var published []string
	for _, e := range w.events {
		published = append(published, string(e.Type))
	}

	if got := strings.Join(
		published, " ",
	); got != "deposit.payment_detected deposit.payment_confirmed payment_valued" {
		t.Errorf("published %q", got)
	}

	if d, err = w.svc.GetDeposit(ctx, w.owner, d.ID); err != nil || d.LastPaymentAt.IsZero() {
		t.Errorf("last payment at %s, %v", d.LastPaymentAt, err)
	}

	_, err = w.svc.GetDeposit(ctx, event.Owner{AccountID: w.owner.AccountID, Livemode: true}, d.ID)
	wantCode(t, err, fault.NotFound, "resource_missing")

	odd := invoice.DepositStatus("gone")
	_, err = w.svc.UpdateDeposit(ctx, w.owner, d.ID, invoice.DepositUpdate{Status: &odd})
	wantCode(t, err, fault.Invalid, "parameter_invalid")

	long := strings.Repeat("x", 65)
	_, err = w.svc.CreateDeposit(ctx, invoice.DepositParams{Owner: w.owner, Network: "simnet", Name: long})
	wantCode(t, err, fault.Invalid, "parameter_invalid")
	_, err = w.svc.CreateDeposit(
		ctx,
		invoice.DepositParams{
			Owner:   event.Owner{AccountID: w.owner.AccountID, Livemode: true},
			Network: "simnet",
		},
	)
	wantCode(t, err, fault.Invalid, "parameter_invalid")
}

func TestImport(t *testing.T) {
	w := newHarness(t, account.Settings{})
	ctx := context.Background()
	old := sim.NewSigner(1, nil).Party(chain.RoleDeposit, 9, w.chains[0])
	w.follow()
	// before FromHeight: history that was carried over
	w.chains[0].Pay(old.Address, "USDX", chain.Units(1_000_000))
	w.mine(1)
	w.chains[0].Pay(old.Address, "USDX", chain.Units(7_000_000))
	w.mine(60)
	w.follow()
	p := invoice.ImportParams{
		Owner:      w.owner,
		Network:    "simnet",
		Name:       "old",
		Address:    strings.ToUpper(string(old.Address)),
		Key:        old.Key,
		FromHeight: 2,
	}

	wrong := p
	wrong.Key.Index = 10
	_, err := w.svc.Import(ctx, wrong)
	wantCode(t, err, fault.Invalid, "key_mismatch")

	wrong = p
	wrong.Key.Role = chain.RoleMaster
	_, err = w.svc.Import(ctx, wrong)
	wantCode(t, err, fault.Invalid, "key_mismatch")

	wrong = p
	wrong.Address = "nonsense"
	_, err = w.svc.Import(ctx, wrong)
	wantCode(t, err, fault.Invalid, "address_invalid")

	d, err := w.svc.Import(ctx, p)
	w.must(err)

	if d.Address != old.Address || d.Key != old.Key || d.Name != "old" {
		t.Fatalf("imported %+v", d)
	}

	w.follow()
	list, _, err := w.svc.ListPayments(
		ctx, invoice.PaymentFilter{Owner: w.owner, DepositAddressID: d.ID, Limit: 10},
	)
	w.must(err)

	if len(list) != 1 || list[0].Amount != chain.Units(7_000_000) || list[0].Status != invoice.Confirmed {
		t.Errorf("read again: %+v", list)
	}

	if _, err = w.svc.Import(ctx, p); !errors.Is(err, fault.Duplicate) {
		t.Errorf("imported twice: %v", err)
	}
	// The index is not handed out again.
	for range 12 {
		prepared, err := w.svc.PrepareDeposit(ctx, invoice.DepositParams{Owner: w.owner, Network: "simnet"})
		w.must(err)

		var fresh invoice.DepositAddress

		w.must(w.update(ctx, func(ctx context.Context, tx *tx) (err error) {
			fresh, err = prepared(ctx, tx)
			return err
		}))

		if fresh.Address == old.Address {
			t.Fatal("an imported address was handed out again")
		}
	}
}

// An address is the same on every network of its family: an import has each read again from the
// height that is named for it.
func TestImportOnSeveralNetworks(t *testing.T) {
	named := func(slug string) sim.Config {
		n := sim.DefaultNetwork()
		n.Slug, n.CAIP2 = slug, "sim:"+slug

		return sim.Config{Network: n, Seed: uint64(len(slug))}
	}
	w := newHarness(t, account.Settings{}, sim.Config{}, named("simnet-two"), named("simnet-three"))
	ctx := context.Background()
	old := sim.NewSigner(1, nil).Party(chain.RoleDeposit, 9, w.chains[0])
	w.follow()

	for i, c := range w.chains {
		c.Mine(1)
		c.Pay(old.Address, "USDX", chain.Units(uint64(i+1)*1_000_000))
		c.Mine(5)
	}

	w.follow()
	p := invoice.ImportParams{
		Owner:       w.owner,
		Network:     "simnet",
		Address:     string(old.Address),
		Key:         old.Key,
		FromHeight:  1,
		FromHeights: map[string]uint64{"simnet-two": 1, "nowhere": 1},
	}
	_, err := w.svc.Import(ctx, p)
	wantCode(t, err, fault.Invalid, "parameter_invalid")
	delete(p.FromHeights, "nowhere")
	d, err := w.svc.Import(ctx, p)
	w.must(err)
	w.follow()

	var got []string

	list, _, err := w.svc.ListPayments(
		ctx, invoice.PaymentFilter{Owner: w.owner, DepositAddressID: d.ID, Limit: 10},
	)
	w.must(err)

	for _, p := range list {
		got = append(got, p.Network+" "+p.Amount.String())
	}

	slices.Sort(got)

	if want := []string{"simnet 1000000", "simnet-two 2000000"}; !slices.Equal(got, want) {
		t.Errorf("read again: %v, want %v", got, want)
	}
}

// An address made inside a host's own transaction is looked for from before that transaction on.
func TestJoined(t *testing.T) {
	w := newHarness(t, account.Settings{})
	w.follow()

	ctx := context.Background()
	prepared, err := w.svc.PrepareCreate(ctx, invoice.CreateParams{
		Owner:   w.owner,
		Price:   &invoice.Price{Currency: "EUR", Amount: "90"},
		Options: []invoice.OptionParams{{Asset: "SIM", Network: "simnet"}},
		Joined:  true,
	})
	w.must(err)

	var inv invoice.Invoice

	w.must(w.update(ctx, func(ctx context.Context, tx *tx) (err error) {
		inv, err = prepared(ctx, tx)
		return err
	}))
	ranges, err := w.store.Ranges(ctx, "simnet", 10)
	w.must(err)

	if len(ranges) != 1 || ranges[0].Next != 1 || ranges[0].To != 3000 ||
		ranges[0].Addresses[0] != inv.Options[0].Address {
		t.Fatalf("ranges %+v", ranges)
	}

	w.pay(inv, due)
	w.confirm()
	w.want(w.get(inv.ID), invoice.Paid)
	w.onlyPayment(inv.ID)
}

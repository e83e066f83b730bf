package httpapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
	"github.com/seed-8ee7f392/payments/webhook"
)

var update = flag.Bool("update", false, "write testdata/golden anew")

// Every resource is rendered from a record that has every field, whose values are the fields'
// names, so that a mapping of one field to another shows; and from a record that has none.
func TestGolden(t *testing.T) {
	networks, err := chain.NewRegistry(sim.New(sim.Config{}))
	if err != nil {
		t.Fatal(err)
	}

	a := &api{&engine.Engine{Networks: networks}}
	balance := fill[wallet.Balance]()
	asset := networks.Assets(false)[0]
	balance.Network, balance.AssetID = asset.Network, asset.ID
	payment := func(p invoice.Payment) any { return engine.PaymentResource{PaymentResource: p.Resource(100)} }
	settled := payment(fill[invoice.Payment]()).(engine.PaymentResource)
	held := fill[settlement.Settlement]()
	held.Status = settlement.Held // the only kind with a reason, but for failed ones
	full := held.Resource()
	settled.Settlement = &full
	emptyInvoice := invoice.Invoice{Options: []invoice.Option{{}}}
	fullInvoice := fill[invoice.Invoice]()
	fullInvoice.Kind = invoice.Fiat
	endpoint := fill[webhook.Endpoint]().Resource()
	endpoint.Secret = "Secret"

	next := "NextCursor"
	for _, test := range []struct {
		name        string
		full, empty any
	}{
		{
			"invoice",
			fullInvoice.Resource("https://pay.example.com/checkout/"),
			emptyInvoice.Resource("https://pay.example.com/checkout/"),
		},
		{"payment", settled, payment(invoice.Payment{})},
		{"settlement", full, settlement.Settlement{}.Resource()},
		{
			"deposit_address",
			fill[invoice.DepositAddress]().Resource([]invoice.TokenAccount{fill[invoice.TokenAccount]()}),
			invoice.DepositAddress{}.Resource(nil),
		},
		{"payout", fill[payout.Payout]().Resource(), payout.Payout{}.Resource()},
		{"refund", fill[payout.Refund]().Resource(), payout.Refund{}.Resource()},
		{"webhook_endpoint", endpoint, webhook.Endpoint{}.Resource()},
		{"webhook_delivery", fill[webhook.Delivery]().Resource(true), webhook.Delivery{}.Resource(true)},
		{"network", newNetworkResource(fill[chain.Network]()), newNetworkResource(chain.Network{})},
		{"asset", newAssetResource(fill[chain.Asset]()), newAssetResource(chain.Asset{})},
		{"rate", fill[rateResource](), rateResource{}},
		{
			"balance",
			a.balanceResource(balance, fill[wallet.Wallet]()),
			a.balanceResource(wallet.Balance{}, wallet.Wallet{}),
		},
		{
			"list",
			listing[rateResource]{Data: []rateResource{{}}, HasMore: true, NextCursor: &next},
			listing[rateResource]{Data: []rateResource{}},
		},
		{"deleted", fill[deletedResource](), deletedResource{}},
		{"error", fill[errorBody](), errorBody{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			golden(t, test.name+"_full", test.full)
			golden(t, test.name+"_empty", test.empty)
			names := jsonNames(reflect.TypeOf(test.full))

			body, err := render(test.full)
			if err != nil {
				t.Fatal(err)
			}

			for _, name := range names {
				if !bytes.Contains(body, []byte(`"`+name+`":`)) {
					t.Errorf(
						"the full %s has no %s: the record's field is not mapped, or the test does not fill it",
						test.name,
						name,
					)
				}
			}
		})
	}
}

func golden(t *testing.T, name string, v any) {
	t.Helper()

	body, err := render(v)
	if err != nil {
		t.Fatal(err)
	}

	var got bytes.Buffer
	if err := json.Indent(&got, body, "", "  "); err != nil {
		t.Fatal(err)
	}

	file := filepath.Join("testdata", "golden", name+".json")
	if *update {
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (go test ./httpapi -update writes it)", err)
	}

	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("%s: %s", file, diff)
	}
}

// jsonNames lists the names of all fields of a type, those inside included.
func jsonNames(t reflect.Type) []string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return jsonNames(t.Elem())
	case reflect.Struct:
	default:
		return nil
	}

	var names []string

	for i := range t.NumField() {
		f := t.Field(i)

		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" {
			names = append(names, name)
		}

		names = append(names, jsonNames(f.Type)...)
	}

	slices.Sort(names)

	return slices.Compact(names)
}

// fill returns a value each of whose fields says its name, or is a number that differs from the others.
func fill[T any]() T {
	var v T

	n := 0
	fillValue(reflect.ValueOf(&v).Elem(), reflect.TypeFor[T]().Name(), &n)

	return v
}

func fillValue(v reflect.Value, name string, n *int) {
	*n++

	switch v.Interface().(type) {
	case time.Time:
		v.Set(reflect.ValueOf(time.Date(2026, 1, 2, 3, 4, *n%60, 5_000_000, time.FixedZone("", 3600))))
		return
	case time.Duration:
		v.Set(reflect.ValueOf(time.Duration(*n) * time.Second))
		return
	case decimal.Decimal:
		v.Set(reflect.ValueOf(decimal.New(int64(*n), 0).Add(decimal.New(5, -1))))
		return
	case decimal.NullDecimal:
		v.Set(reflect.ValueOf(decimal.NewNullDecimal(decimal.New(int64(*n), -1))))
		return
	case chain.Amount:
		v.Set(reflect.ValueOf(chain.Units(uint64(*n) * 1000)))
		return
	}

	switch v.Kind() {
	case reflect.String:
		v.SetString(name)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64, reflect.Int32:
		v.SetInt(int64(*n))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n) % 100)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(v.Elem(), name, n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillValue(v.Index(0), name, n)
	case reflect.Array:
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		value := reflect.New(v.Type().Elem()).Elem()
		fillValue(value, name+"Value", n)
		v.SetMapIndex(reflect.ValueOf(name+"Key").Convert(v.Type().Key()), value)
	case reflect.Struct:
		for i := range v.NumField() {
			fillValue(v.Field(i), v.Type().Field(i).Name, n)
		}
	default:
		panic(fmt.Sprintf("a %s cannot be filled", v.Type()))
	}
}

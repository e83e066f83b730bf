package drivertest

import (
	"net/url"
	"slices"
	"strings"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

var keyTests = []testCase{
	{"DeriveAddress", []Capability{Deriver}, testDerive},
	{"DeriveAddressRefusesOtherKeys", []Capability{Deriver}, testDeriveRefuses},
	{"TokenAccount", []Capability{TokenAccounter}, testTokenAccount},
	{"PaymentURI", []Capability{URIBuilder}, testPaymentURI},
	{"RequestURI", []Capability{RequestURIBuilder}, testRequestURI},
}

func (e *env) publicKey(role chain.Role, index uint32) chain.PublicKey {
	e.t.Helper()
	ref := chain.KeyRef{Family: e.network.Family, Livemode: e.network.Livemode, Role: role, Index: index}
	key, err := e.Signer.PublicKey(e.ctx, ref)
	e.must("Signer.PublicKey", err)

	return key
}

func testDerive(e *env) {
	drivers := map[string]chain.Driver{"the driver": e.Driver}
	if e.has(UnreachableNode) {
		drivers["the driver without a node"] = e.Unreachable
	}

	seen := map[chain.Address]uint32{}

	for index := range uint32(5) {
		key := e.publicKey(chain.RoleDeposit, index)
		first, err := as[chain.Deriver](e).DeriveAddress(key)
		e.must("DeriveAddress", err)

		if other, twice := seen[first]; twice {
			e.t.Errorf("keys %d and %d have the same address %s", other, index, first)
		}

		seen[first] = index
		canonical, err := e.Driver.ParseAddress(string(first))
		e.must("ParseAddress of a derived address", err)

		if canonical != first {
			e.t.Errorf("the derived address %s is not canonical: that is %s", first, canonical)
		}

		for name, driver := range drivers {
			second, err := driver.(chain.Deriver).DeriveAddress(key)
			if err != nil || second != first {
				e.t.Errorf("%s derives %q, %v from the same key, first it was %q", name, second, err, first)
			}
		}
	}
}

func testDeriveRefuses(e *env) {
	key := e.publicKey(chain.RoleDeposit, 0)

	other := chain.Ed25519
	if key.Curve == chain.Ed25519 {
		other = chain.Secp256k1
	}

	for name, bad := range map[string]chain.PublicKey{
		"an empty key":           {Curve: key.Curve},
		"a key cut short":        {Curve: key.Curve, Bytes: key.Bytes[:len(key.Bytes)-1]},
		"a key with a byte more": {Curve: key.Curve, Bytes: append(append([]byte(nil), key.Bytes...), 0)},
		"a key of another curve": {Curve: other, Bytes: key.Bytes},
	} {
		address, err := as[chain.Deriver](e).DeriveAddress(bad)
		e.expectFault("DeriveAddress of "+name, err, fault.Invalid, "")

		if address != "" {
			e.t.Errorf("DeriveAddress of %s returned %s beside its error", name, address)
		}
	}
}

func testTokenAccount(e *env) {
	token, ok := e.token()
	if !ok {
		e.t.Fatal("a driver with token accounts has no token to test them with")
	}

	owner, other := e.newAddress(), e.newAddress()
	accounts := as[chain.TokenAccounter](e)
	first, err := accounts.TokenAccount(owner, token)
	e.must("TokenAccount", err)

	if first == owner || first == "" {
		e.t.Errorf("the token account of %s is %q", owner, first)
	}

	drivers := []chain.Driver{e.Driver}
	if e.has(UnreachableNode) {
		drivers = append(drivers, e.Unreachable)
	}

	for _, driver := range drivers {
		second, err := driver.(chain.TokenAccounter).TokenAccount(owner, token)
		if err != nil || second != first {
			e.t.Errorf("TokenAccount is %q, then %q, %v", first, second, err)
		}
	}

	if second, err := accounts.TokenAccount(other, token); err != nil || second == first {
		e.t.Errorf("TokenAccount of another owner is %q, %v", second, err)
	}

	if _, err := accounts.TokenAccount("not an address", token); err == nil {
		e.t.Error("TokenAccount of a malformed owner succeeds")
	}
}

func testPaymentURI(e *env) {
	uris := as[chain.URIBuilder](e)
	for _, asset := range e.assets() {
		to := e.newAddress()

		uri := uris.PaymentURI(to, asset, amount(asset))
		if !strings.Contains(uri, string(to)) {
			e.t.Errorf("PaymentURI of %s is %q, which does not contain the address %s", asset.Symbol, uri, to)
		}

		if strings.ContainsAny(uri, " \n\"<>") {
			e.t.Errorf("PaymentURI of %s is %q, which is not a URI", asset.Symbol, uri)
		}

		if second := uris.PaymentURI(to, asset, amount(asset)); second != uri {
			e.t.Errorf("PaymentURI is %q, then %q", uri, second)
		}

		// A bare address is allowed; a URI with an amount has to have the right one.
		double := uris.PaymentURI(to, asset, amount(asset).Add(amount(asset)))
		if double == uri && uri != string(to) {
			e.t.Errorf("PaymentURI %q is the same for twice the amount", uri)
		}
	}
}

func testRequestURI(e *env) {
	uris := as[chain.RequestURIBuilder](e)
	request := chain.PaymentRequest{ID: "inv_1", Label: "Nuts & bolts", Message: "2 m of #8 rope?"}

	for _, asset := range e.assets() {
		to := e.newAddress()
		plain := uris.PaymentURI(to, asset, amount(asset))

		if uri := uris.RequestURI(to, asset, amount(asset), chain.PaymentRequest{}); uri != plain {
			e.t.Errorf("RequestURI of %s without a request is %q, PaymentURI %q", asset.Symbol, uri, plain)
		}

		uri := uris.RequestURI(to, asset, amount(asset), request)

		without, err := url.Parse(plain)
		if err != nil {
			e.t.Fatal(err)
		}

		with, err := url.Parse(uri)
		if err != nil || strings.ContainsAny(uri, " \n\"<>") {
			e.t.Fatalf("RequestURI of %s is %q, which is not a URI: %v", asset.Symbol, uri, err)
		}

		if with.Scheme != without.Scheme || with.Opaque != without.Opaque || with.Path != without.Path {
			e.t.Errorf("RequestURI of %s is %q, which pays another than %q", asset.Symbol, uri, plain)
		}

		params := with.Query()
		for name, values := range without.Query() {
			if !slices.Equal(params[name], values) {
				e.t.Errorf(
					"RequestURI of %s is %q, whose %s is not that of %q",
					asset.Symbol,
					uri,
					name,
					plain,
				)
			}
		}

		for _, text := range []string{request.Label, request.Message} {
			said := false
			for _, values := range params {
				said = said || slices.Contains(values, text)
			}

			if !said {
				e.t.Errorf("RequestURI of %s is %q, which does not say %q", asset.Symbol, uri, text)
			}
		}
	}
}

package drivertest

import (
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

var decodeTests = []testCase{
	{"an unsigned transaction decodes to its order", nil, testDecode},
	{"what differs from the intent is told", nil, testDecodeMismatch},
	{"other bytes are refused", nil, testDecodeGarbage},
}

// decoding returns a transaction of an asset with the request that a signer gets.
func (e *env) decoding(asset chain.Asset) (chain.SignRequest, []chain.Address) {
	e.t.Helper()

	from := e.wallet(asset)
	unsigned := e.build(e.order(from, asset, e.newAddress(), amount(asset)))

	return chain.SignRequest{
		Network:  e.network.Slug,
		Unsigned: unsigned.Raw,
		Payloads: unsigned.Payloads,
		Intent:   chain.Intent{Outputs: unsigned.Outputs, MaxFee: unsigned.MaxFee},
	}, []chain.Address{from.Address}
}

func testDecode(e *env) {
	bounded := false

	for _, asset := range e.assets() {
		request, own := e.decoding(asset)

		decoded, err := as[chain.Decoder](e).Decode(request.Unsigned)
		e.must("Decode", err)

		if err := chain.CheckDecoded(decoded, request, own); err != nil {
			e.t.Errorf("%s: %v; it decodes to %+v", asset.Symbol, err, decoded)
		}

		bounded = bounded || !decoded.MaxFee.IsZero()
	}

	// A network may charge a transfer what its bytes do not bound, but not every kind of transaction.
	if !bounded {
		e.t.Error("every transaction is said to cost nothing")
	}
}

func testDecodeMismatch(e *env) {
	for _, asset := range e.assets() {
		testDecodeMismatchOf(e, asset)
	}
}

func testDecodeMismatchOf(e *env, asset chain.Asset) {
	request, own := e.decoding(asset)

	decoded, err := as[chain.Decoder](e).Decode(request.Unsigned)
	e.must("Decode", err)

	const lowerFee = "a lower fee"

	for name, change := range map[string]func(r *chain.SignRequest){
		"another destination": func(r *chain.SignRequest) { r.Intent.Outputs[0].To = e.newAddress() },
		"another amount":      func(r *chain.SignRequest) { r.Intent.Outputs[0].Amount = chain.Units(1) },
		"another asset":       func(r *chain.SignRequest) { r.Intent.Outputs[0].AssetID = "another" },
		"one output more": func(r *chain.SignRequest) {
			r.Intent.Outputs = append(r.Intent.Outputs, r.Intent.Outputs[0])
		},
		"no output":      func(r *chain.SignRequest) { r.Intent.Outputs = nil },
		lowerFee:         func(r *chain.SignRequest) { r.Intent.MaxFee = chain.Units(0) },
		"another digest": func(r *chain.SignRequest) { r.Payloads[0].Data[0] ^= 1 },
		"no signature":   func(r *chain.SignRequest) { r.Payloads = nil },
	} {
		changed := request
		changed.Intent.Outputs = slices.Clone(request.Intent.Outputs)
		changed.Payloads = slices.Clone(request.Payloads)

		for i, p := range changed.Payloads {
			changed.Payloads[i].Data = slices.Clone(p.Data)
		}

		change(&changed)

		if name == lowerFee && decoded.MaxFee.IsZero() {
			continue // the bytes do not bound it: testDecode asks for one kind whose bytes do
		}

		if err := chain.CheckDecoded(decoded, changed, own); !errors.Is(err, fault.Forbidden) {
			e.t.Errorf("%s, %s: %v", asset.Symbol, name, err)
		}
	}
}

func testDecodeGarbage(e *env) {
	request, own := e.decoding(e.native)

	for name, raw := range map[string][]byte{
		"nothing":       nil,
		"a byte less":   request.Unsigned[:len(request.Unsigned)-1],
		"a byte more":   append(slices.Clone(request.Unsigned), 0),
		"another start": append([]byte{^request.Unsigned[0]}, request.Unsigned[1:]...),
	} {
		decoded, err := as[chain.Decoder](e).Decode(raw)
		if err == nil && chain.CheckDecoded(decoded, request, own) == nil {
			e.t.Errorf("%s: it passes for the transaction", name)
		}

		if err != nil && !errors.Is(err, fault.Invalid) {
			e.t.Errorf("%s: %v, want fault.Invalid", name, err)
		}
	}
}

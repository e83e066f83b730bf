package drivertest

import (
	"bytes"
	"errors"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

var decodeTests = []testCase{
	{"BytesPayTheOrder", nil, testDecode},
	{"OtherIntentIsRefused", nil, testDecodeMismatch},
	{"SpendsAreWhatItUsesUp", nil, testDecodeSpends},
	{"LaterBuildsDoNotMatter", nil, testDecodeEarlier},
	{"OtherBytesAreInvalid", nil, testDecodeGarbage},
	{"SignedBytesDecide", nil, testDecodeChangedBytes},
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

		if err := chaindata.CheckDecoded(decoded, request, own); err != nil {
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

		if err := chaindata.CheckDecoded(decoded, changed, own); !errors.Is(err, fault.Forbidden) {
			e.t.Errorf("%s, %s: %v", asset.Symbol, name, err)
		}
	}
}

// testDecodeSpends compares what the bytes are said to use up with the order's nonce, or the coins that Build took.
func testDecodeSpends(e *env) {
	for _, asset := range e.assets() {
		from := e.wallet(asset)
		order := e.order(from, asset, e.newAddress(), amount(asset))
		order.Nonce += 7

		unsigned := e.build(order)

		decoded, err := as[chain.Decoder](e).Decode(unsigned.Raw)
		e.must("Decode", err)

		var want []string
		if e.has(Nonces) {
			want = append(want, chaindata.SpendKey(chain.Spend{Sender: from.Address, Nonce: order.Nonce}))
		}

		for _, outpoint := range unsigned.Inputs {
			want = append(want, chaindata.SpendKey(chain.Spend{Outpoint: outpoint}))
		}

		if got := chaindata.SpendsOf(decoded, from.Address); !slices.Equal(got, want) {
			e.t.Errorf("%s: it uses up %q, want %q", asset.Symbol, got, want)
		}
	}
}

// testDecodeEarlier decodes an order after another one was built: a decoder remembers none.
func testDecodeEarlier(e *env) {
	for _, asset := range e.assets() {
		first, own := e.decoding(asset)
		second, others := e.decoding(asset)

		for _, c := range []struct {
			name    string
			request chain.SignRequest
			own     []chain.Address
		}{{"the first", first, own}, {"the second", second, others}} {
			decoded, err := as[chain.Decoder](e).Decode(c.request.Unsigned)
			e.must("Decode", err)

			if err := chaindata.CheckDecoded(decoded, c.request, c.own); err != nil {
				e.t.Errorf("%s, %s of two: %v; it decodes to %+v", asset.Symbol, c.name, err, decoded)
			}
		}
	}
}

// testDecodeChangedBytes changes each byte. Bytes that ask for the same signatures pay the same, and bytes whose
// outputs differ ask for others.
func testDecodeChangedBytes(e *env) {
	for _, asset := range e.assets() {
		request, _ := e.decoding(asset)

		decoded, err := as[chain.Decoder](e).Decode(request.Unsigned)
		e.must("Decode", err)

		changes := 0 // of what is signed

		for at := range request.Unsigned {
			raw := slices.Clone(request.Unsigned)
			raw[at] ^= 1

			changed, err := as[chain.Decoder](e).Decode(raw)
			if err != nil {
				if !errors.Is(err, fault.Invalid) {
					e.t.Errorf("%s, byte %d: %v, want fault.Invalid", asset.Symbol, at, err)
				}

				changes++

				continue
			}

			if !slices.EqualFunc(changed.Digests, decoded.Digests, bytes.Equal) {
				changes++
			} else if !slices.Equal(changed.Outputs, decoded.Outputs) || changed.MaxFee != decoded.MaxFee ||
				!slices.Equal(changed.Spends, decoded.Spends) {
				e.t.Errorf(
					"%s, byte %d: the same signatures are said to pay %+v at %s, and %+v at %s",
					asset.Symbol, at, decoded.Outputs, decoded.MaxFee, changed.Outputs, changed.MaxFee,
				)
			}
		}

		if changes == 0 {
			e.t.Errorf("%s: no byte changes what is signed", asset.Symbol)
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
		if err == nil && chaindata.CheckDecoded(decoded, request, own) == nil {
			e.t.Errorf("%s: it passes for the transaction", name)
		}

		if err != nil && !errors.Is(err, fault.Invalid) {
			e.t.Errorf("%s: %v, want fault.Invalid", name, err)
		}
	}
}

package conformance_test

import (
	"bytes"
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/conformance"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
)

// Decoders that a signer's policy must not believe.
var decodeMutants = map[string]driverMutant{
	"an output is not decoded": {
		"Decoder/BytesPayTheOrder",
		mutateDecoded(func(_ []byte, d *chain.Decoded) { d.Outputs = d.Outputs[1:] }),
	},
	"an amount is not that of the bytes": {
		"Decoder/BytesPayTheOrder",
		mutateDecoded(func(_ []byte, d *chain.Decoded) { d.Outputs[0].Amount = chain.Units(1) }),
	},
	"the digest is not that of the bytes": {
		"Decoder/BytesPayTheOrder",
		mutateDecoded(func(_ []byte, d *chain.Decoded) { d.Digests[0] = make([]byte, 32) }),
	},
	"a digest is left out": {
		"Decoder/BytesPayTheOrder",
		mutateDecoded(func(_ []byte, d *chain.Decoded) { d.Digests = nil }),
	},
	"no transaction costs anything": {
		"Decoder/BytesPayTheOrder",
		mutateDecoded(func(_ []byte, d *chain.Decoded) { d.MaxFee = chain.Amount{} }),
	},
	"nothing is used up": {
		"Decoder/SpendsAreWhatItUsesUp",
		mutateDecoded(func(_ []byte, d *chain.Decoded) { d.Spends = nil }),
	},
	"another nonce is used up": {
		"Decoder/SpendsAreWhatItUsesUp",
		mutateDecoded(func(_ []byte, d *chain.Decoded) { d.Spends[0].Nonce-- }),
	},
	"what was built last is decoded": {
		"Decoder/LaterBuildsDoNotMatter",
		mutateLastBuilt(func(d *chain.Decoded, last chain.Unsigned) {
			d.Outputs, d.Digests = last.Outputs, [][]byte{last.Payloads[0].Data}
		}),
	},
	"the outputs of the last intent are decoded": {
		"Decoder/LaterBuildsDoNotMatter",
		mutateLastBuilt(func(d *chain.Decoded, last chain.Unsigned) { d.Outputs = last.Outputs }),
	},
	"the digest of what was built passes for other bytes": {
		"Decoder/SignedBytesDecide",
		mutateLastBuilt(func(d *chain.Decoded, last chain.Unsigned) {
			d.Digests = [][]byte{last.Payloads[0].Data}
		}),
	},
	"bytes behind the transaction are read over": {
		"Decoder/OtherBytesAreInvalid",
		mutate(func(f *faulty, c *sim.Chain) {
			built := map[string]bool{}

			rememberBuilt(f, c, func(u chain.Unsigned) { built[string(u.Raw)] = true })

			f.decode = func(raw []byte) (chain.Decoded, error) {
				for known := range built {
					if bytes.HasPrefix(raw, []byte(known)) {
						raw = []byte(known)
					}
				}

				return c.Decode(raw)
			}
		}),
	},
}

func init() {
	for name, m := range decodeMutants {
		driverMutants[name] = m
	}
}

// mutateDecoded changes what Decode returns.
func mutateDecoded(
	change func(raw []byte, d *chain.Decoded),
) func(*conformance.DriverHarness, *sim.Chain) {
	return mutate(func(f *faulty, c *sim.Chain) {
		f.decode = func(raw []byte) (chain.Decoded, error) {
			d, err := c.Decode(raw)
			if err == nil {
				change(raw, &d)
			}

			return d, err
		}
	})
}

// mutateLastBuilt changes what Decode returns by what was built last.
func mutateLastBuilt(
	change func(d *chain.Decoded, last chain.Unsigned),
) func(*conformance.DriverHarness, *sim.Chain) {
	return mutate(func(f *faulty, c *sim.Chain) {
		var last chain.Unsigned

		rememberBuilt(f, c, func(u chain.Unsigned) { last = u })

		f.decode = func(raw []byte) (chain.Decoded, error) {
			d, err := c.Decode(raw)
			if err == nil {
				change(&d, last)
			}

			return d, err
		}
	})
}

// rememberBuilt calls f with all that is built.
func rememberBuilt(f *faulty, c *sim.Chain, remember func(chain.Unsigned)) {
	f.build = func(ctx context.Context, o chain.Order) (chain.Unsigned, error) {
		u, err := c.Build(ctx, o)
		u.Outputs = slices.Clone(u.Outputs)
		remember(u)

		return u, err
	}
}

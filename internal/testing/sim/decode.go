package sim

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

var _ chain.Decoder = (*Chain)(nil)

// Decode implements chain.Decoder.
func (c *Chain) Decode(raw []byte) (chain.Decoded, error) {
	tx, err := decodeUnsigned(raw)
	if err != nil {
		return chain.Decoded{}, fault.Wrap(
			err,
			fault.Invalid,
			"unsigned_invalid",
			"the transaction cannot be decoded",
		)
	}

	if tx.network != c.networkID {
		return chain.Decoded{}, fault.New(
			fault.Invalid,
			"unsigned_invalid",
			"the transaction is of another network than %s",
			c.network.Slug,
		)
	}

	digest := tx.digest()

	return chain.Decoded{
		Outputs: c.outputs(tx),
		MaxFee:  tx.maxFee(),
		Digests: [][]byte{digest[:]},
		Spends:  []chain.Spend{{Nonce: tx.nonce}},
	}, nil
}

package evm

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

var _ chain.Decoder = (*driver)(nil)

// Decode implements chain.Decoder. It decodes plain transfers of the coin and calls of
// transfer(address,uint256) of an enabled token. MaxFee leaves out the L1 data fee of rollups, which the
// bytes do not bound.
func (d *driver) Decode(raw []byte) (chain.Decoded, error) {
	tx, err := decodeUnsigned(raw)
	if err != nil {
		return chain.Decoded{}, fault.Wrap(
			err,
			fault.Invalid,
			"unsigned_invalid",
			"the transaction cannot be decoded",
		)
	}

	if tx.chainID != d.network.ChainID {
		return chain.Decoded{}, fault.New(
			fault.Invalid, "unsigned_invalid", "the transaction is of chain %d and not of %d",
			tx.chainID, d.network.ChainID,
		)
	}

	output, err := d.decodedOutput(tx)
	if err != nil {
		return chain.Decoded{}, err
	}

	digest := signingHash(raw)

	return chain.Decoded{
		Outputs: []chain.Output{output},
		MaxFee:  tx.feeCap.Mul(tx.gas),
		Digests: [][]byte{digest[:]},
		Spends:  []chain.Spend{{Nonce: tx.nonce}},
	}, nil
}

// decodedOutput returns the output that a transaction pays.
func (d *driver) decodedOutput(tx *unsignedTx) (chain.Output, error) {
	token, isToken := d.tokens[tx.to]

	switch {
	case isToken && tx.value.IsZero():
		if to, amount, ok := parseTransferInput(tx.data); ok {
			return chain.Output{To: canonical(to), AssetID: token.ID, Amount: amount}, nil
		}
	case !isToken && len(tx.data) == 0:
		return chain.Output{To: canonical(tx.to), AssetID: d.native.ID, Amount: tx.value}, nil
	}

	return chain.Output{}, fault.New(
		fault.Invalid, "unsigned_invalid",
		"the transaction to %s is neither a transfer of the coin nor of an enabled token", canonical(tx.to),
	)
}

package tron

import (
	"bytes"
	"errors"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
)

var _ chain.Decoder = (*driver)(nil)

// Decode implements chain.Decoder. It decodes transfers of TRX, calls of transfer(address,uint256) of an enabled
// token, delegations of energy where Config.DelegateEnergy is set, and their ends. MaxFee is the fee limit of a
// call; it leaves out bandwidth and the activation of an account, which the bytes do not bound.
func (d *driver) Decode(raw []byte) (chain.Decoded, error) {
	decoded, err := d.decodeRaw(raw)
	if err != nil {
		return chain.Decoded{}, fault.Wrap(
			err, fault.Invalid, "unsigned_invalid", "the transaction cannot be decoded",
		)
	}

	return decoded, nil
}

func (d *driver) decodeRaw(raw []byte) (chain.Decoded, error) {
	tx, ok := decodeTransaction(raw)
	if !ok {
		return chain.Decoded{}, errors.New("it is no transfer or call")
	}

	// The decoder reads over unknown fields, such as tokens that a call sends.
	if !bytes.Equal(tx.encode(), raw) {
		return chain.Decoded{}, errors.New("it has fields that this driver does not write")
	}

	if tx.permission != d.permissions[tx.owner] {
		return chain.Decoded{}, errors.New("it is signed by another permission than the configured one")
	}

	if len(tx.memo) > 0 || tx.feeLimit < 0 {
		return chain.Decoded{}, errors.New("it has a memo, or a negative fee limit")
	}

	output, err := d.decodeOutput(tx)
	if err != nil {
		return chain.Decoded{}, err
	}

	digest := txID(raw)

	return chain.Decoded{
		Outputs: []chain.Output{output},
		MaxFee:  chain.Units(uint64(tx.feeLimit)),
		Digests: [][]byte{digest[:]},
	}, nil
}

// decodeOutput returns what a transaction pays.
func (d *driver) decodeOutput(tx *transaction) (chain.Output, error) {
	sun := chain.Output{To: canonical(tx.to), AssetID: d.native.ID, Amount: chain.Units(uint64(tx.amount))}

	switch tx.kind {
	case transferContract:
		return sun, nil
	case delegateContract:
		if !d.delegates {
			return chain.Output{}, errors.New("it delegates energy, and Config.DelegateEnergy is not set")
		}

		sun.AssetID = chaindata.DelegateEnergy

		return sun, nil
	case undelegateContract:
		sun.AssetID = chaindata.UndelegateEnergy
		return sun, nil
	case triggerContract:
	}

	token, enabled := d.tokens[tx.to]

	to, amount, ok := parseTransferInput(tx.data)
	if !enabled || !ok || tx.amount != 0 {
		return chain.Output{}, errors.New("it calls something else than the transfer of an enabled token")
	}

	return chain.Output{
		To:      canonical(to),
		AssetID: token.ID,
		Amount:  amount,
	}, nil
}

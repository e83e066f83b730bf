package evm

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// transferMsg is the one transfer of an order, with the fields of its transaction.
type transferMsg struct {
	asset  chain.Asset
	from   common.Address
	payee  common.Address // the receiver of the asset
	amount chain.Amount
	// to, value and data are the transaction's: the payee itself, or the token's contract.
	to    common.Address
	value chain.Amount
	data  []byte
	// fromMaster is set if a master wallet sends it.
	fromMaster bool
	// exact is set if the sender keeps nothing: gas that the transfer does not use would stay behind.
	exact bool
	// fundedLater is set if the sender need not hold the amount yet.
	fundedLater bool
}

// simulation returns the transfer as an argument of eth_simulateV1.
func (m transferMsg) simulation() map[string]any {
	calls := map[string]any{"calls": []any{m.callArgs()}}

	return map[string]any{"blockStateCalls": []any{calls}}
}

// callArgs returns the transfer as an argument of eth_call and eth_estimateGas.
func (m transferMsg) callArgs() map[string]any {
	return map[string]any{
		"from":  m.from,
		"to":    m.to,
		"value": (*hexutil.Big)(m.value.Big()),
		"data":  hexutil.Bytes(m.data),
	}
}

// messageOf returns the transfer of an order. Errors:
//
//   - fault.Invalid (destination_not_payable, address_invalid, asset_not_enabled, amount_too_small)
//   - fault.Invalid (subtract_fee_invalid): the fee cannot be taken out of a token
//   - fault.Unsupported (outputs_unsupported, fee_payer_unsupported)
func (d *driver) messageOf(order chain.Order) (transferMsg, error) {
	if len(order.Outputs) != 1 {
		return transferMsg{}, fault.New(fault.Unsupported, "outputs_unsupported",
			"a transaction of network %s pays one destination, not %d", d.network.Slug, len(order.Outputs))
	}

	if order.FeePayer != nil && *order.FeePayer != order.From {
		return transferMsg{}, fault.New(
			fault.Unsupported, "fee_payer_unsupported", "on network %s the sender pays the fee",
			d.network.Slug,
		)
	}

	from, err := parseAddress(string(order.From.Address))
	if err != nil {
		return transferMsg{}, err
	}

	output := order.Outputs[0]

	payee, err := parseAddress(string(output.To))
	if err != nil {
		return transferMsg{}, notPayable(err, output.To)
	}

	asset, ok := d.network.AssetByID(output.AssetID)
	if !ok {
		return transferMsg{}, fault.New(
			fault.Invalid, "asset_not_enabled", "network %s has no asset %s", d.network.Slug,
			output.AssetID,
		)
	}

	_, isToken := d.tokens[payee]
	switch {
	case payee == (common.Address{}), isToken:
		return transferMsg{}, notPayable(nil, output.To)
	// A payment of nothing to oneself cancels a nonce.
	case output.Amount.IsZero() && (payee != from || asset.Kind == chain.Token):
		return transferMsg{}, fault.New(
			fault.Invalid, "amount_too_small", "the order pays %s nothing", output.To,
		)
	case order.SubtractFee && asset.Kind != chain.Native:
		return transferMsg{}, fault.New(
			fault.Invalid, "subtract_fee_invalid", "the network fee can be taken out of %s only",
			d.native.Symbol,
		)
	}

	msg := transferMsg{asset: asset, from: from, payee: payee, amount: output.Amount}
	msg.fromMaster, msg.exact = order.From.Key.Role == chain.RoleMaster, order.SubtractFee

	if asset.Kind == chain.Token {
		msg.to, msg.data = common.HexToAddress(string(asset.Contract)), transferInput(payee, output.Amount)
	} else {
		msg.to, msg.value = payee, output.Amount
	}

	return msg, nil
}

// notPayable returns fault.Invalid (destination_not_payable).
func notPayable(cause error, to chain.Address) error {
	const code = "destination_not_payable"

	const text = "%s cannot be paid: it refuses the transfer, or is no address for money"

	if cause == nil {
		return fault.New(fault.Invalid, code, text, to)
	}

	return fault.Wrap(cause, fault.Invalid, code, text, to)
}

// insufficientFunds returns fault.State for a sender with the given balance (base units).
func (d *driver) insufficientFunds(msg transferMsg, balance chain.Amount) error {
	return fault.New(
		fault.State, "insufficient_funds",
		"%s holds %s base units of %s, too little for what it has to send and its fee",
		canonical(msg.from), balance, msg.asset.Symbol,
	)
}

// unsignedTx is an unsigned type-2 transaction (EIP-1559).
type unsignedTx struct {
	chainID        uint64
	nonce          uint64
	tipCap, feeCap chain.Amount // wei per gas
	gas            uint64
	to             common.Address
	value          chain.Amount
	data           []byte
}

// dynamicFeeRLP is the wire form: 0x02 || rlp([chain_id, nonce, max_priority_fee_per_gas,
// max_fee_per_gas, gas_limit, destination, amount, data, access_list]). The Keccak-256 of these
// bytes is signed. Source: EIP-1559.
type dynamicFeeRLP struct {
	ChainID        uint64
	Nonce          uint64
	TipCap, FeeCap *big.Int
	Gas            uint64
	To             common.Address
	Value          *big.Int
	Data           []byte
	AccessList     types.AccessList
}

// encode returns the wire form.
func (tx *unsignedTx) encode() []byte {
	body, err := rlp.EncodeToBytes(&dynamicFeeRLP{
		ChainID: tx.chainID,
		Nonce:   tx.nonce,
		TipCap:  tx.tipCap.Big(),
		FeeCap:  tx.feeCap.Big(),
		Gas:     tx.gas,
		To:      tx.to,
		Value:   tx.value.Big(),
		Data:    tx.data,
	})
	if err != nil {
		// RLP encodes these types whatever their values.
		panic("evm: a transaction of numbers and bytes does not encode: " + err.Error())
	}

	return append([]byte{types.DynamicFeeTxType}, body...)
}

// decodeUnsigned decodes the output of encode; other bytes are fault.Invalid (transaction_malformed).
func decodeUnsigned(raw []byte) (*unsignedTx, error) {
	var decoded dynamicFeeRLP

	if len(raw) == 0 || raw[0] != types.DynamicFeeTxType {
		return nil, malformedTx(nil)
	}

	if err := rlp.DecodeBytes(raw[1:], &decoded); err != nil {
		return nil, malformedTx(err)
	}

	tx := &unsignedTx{
		chainID: decoded.ChainID,
		nonce:   decoded.Nonce,
		gas:     decoded.Gas,
		to:      decoded.To,
		data:    decoded.Data,
	}

	var err error
	for _, number := range []struct {
		to   *chain.Amount
		from *big.Int
	}{{&tx.tipCap, decoded.TipCap}, {&tx.feeCap, decoded.FeeCap}, {&tx.value, decoded.Value}} {
		if *number.to, err = chain.AmountFromBig(number.from); err != nil {
			return nil, malformedTx(err)
		}
	}

	if len(decoded.AccessList) != 0 {
		return nil, malformedTx(nil)
	}

	return tx, nil
}

// malformedTx returns fault.Invalid (transaction_malformed).
func malformedTx(cause error) error {
	malformed := fault.New(
		fault.Invalid, "transaction_malformed",
		"the bytes are not a type-2 transaction of this driver",
	)
	malformed.Cause = cause

	return malformed
}

// signingHash returns the digest that the sender signs.
func signingHash(raw []byte) common.Hash { return crypto.Keccak256Hash(raw) }

// sign returns the transaction with a signature (r, s, recovery id).
func (tx *unsignedTx) sign(signature []byte) (*types.Transaction, error) {
	id := new(big.Int).SetUint64(tx.chainID)
	signed := types.NewTx(&types.DynamicFeeTx{
		ChainID:   id,
		Nonce:     tx.nonce,
		GasTipCap: tx.tipCap.Big(),
		GasFeeCap: tx.feeCap.Big(),
		Gas:       tx.gas,
		To:        &tx.to,
		Value:     tx.value.Big(),
		Data:      tx.data,
	})

	return signed.WithSignature(types.LatestSignerForChainID(id), signature)
}

// decodeSigned returns a signed transaction and its sender. Errors:
//
//   - fault.Invalid (transaction_malformed): not a signed type-2 transaction of this driver
//   - fault.Invalid (transaction_foreign): signed for another chain id
func (d *driver) decodeSigned(raw []byte) (*types.Transaction, common.Address, error) {
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		return nil, common.Address{}, malformedTx(err)
	}

	if tx.Type() != types.DynamicFeeTxType || tx.To() == nil {
		return nil, common.Address{}, malformedTx(nil)
	}

	id := new(big.Int).SetUint64(d.network.ChainID)
	if tx.ChainId().Cmp(id) != 0 {
		return nil, common.Address{}, fault.New(fault.Invalid, "transaction_foreign",
			"the transaction was signed for chain id %s, not for network %s", tx.ChainId(), d.network.Slug)
	}

	from, err := types.Sender(types.LatestSignerForChainID(id), tx)
	if err != nil {
		return nil, common.Address{}, malformedTx(err)
	}

	return tx, from, nil
}

package evm

import (
	"math/big"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// envelope is an unsigned type-2 transaction (EIP-1559).
type envelope struct {
	chainID  uint64
	nonce    uint64
	tip, cap chain.Amount // wei per gas
	gas      uint64
	to       common.Address
	value    chain.Amount
	data     []byte
}

// envelopeRLP is the wire form: 0x02 || rlp([chain_id, nonce, max_priority_fee_per_gas, max_fee_per_gas,
// gas_limit, destination, amount, data, access_list]). Its Keccak-256 is what is signed. Source: EIP-1559.
type envelopeRLP struct {
	ChainID    uint64
	Nonce      uint64
	Tip, Cap   *big.Int
	Gas        uint64
	To         common.Address
	Value      *big.Int
	Data       []byte
	AccessList types.AccessList
}

func (t *envelope) encode() []byte {
	body, err := rlp.EncodeToBytes(&envelopeRLP{
		ChainID: t.chainID,
		Nonce:   t.nonce,
		Tip:     t.tip.Big(),
		Cap:     t.cap.Big(),
		Gas:     t.gas,
		To:      t.to,
		Value:   t.value.Big(),
		Data:    t.data,
	})
	if err != nil {
		// no input makes RLP refuse these types
		panic("evm: a transaction of numbers and bytes does not encode: " + err.Error())
	}

	return append([]byte{types.DynamicFeeTxType}, body...)
}

// decodeEnvelope reads what encode writes.
func decodeEnvelope(raw []byte) (*envelope, error) {
	var w envelopeRLP

	if len(raw) == 0 || raw[0] != types.DynamicFeeTxType {
		return nil, malformed(nil)
	}

	if err := rlp.DecodeBytes(raw[1:], &w); err != nil {
		return nil, malformed(err)
	}

	t := &envelope{chainID: w.ChainID, nonce: w.Nonce, gas: w.Gas, to: w.To, data: w.Data}

	var err error
	for _, n := range []struct {
		to   *chain.Amount
		from *big.Int
	}{{&t.tip, w.Tip}, {&t.cap, w.Cap}, {&t.value, w.Value}} {
		if *n.to, err = chain.AmountFromBig(n.from); err != nil {
			return nil, malformed(err)
		}
	}

	if len(w.AccessList) != 0 {
		return nil, malformed(nil)
	}

	return t, nil
}

func malformed(cause error) error {
	e := fault.New(
		fault.Invalid, "transaction_malformed",
		"the bytes are not a type-2 transaction of this driver",
	)
	e.Cause = cause

	return e
}

// digest is what the sender signs.
func digest(raw []byte) common.Hash { return crypto.Keccak256Hash(raw) }

// sign puts a signature (r, s, recovery id) in and returns the transaction as it is sent.
func (t *envelope) sign(signature []byte) (*types.Transaction, error) {
	id := new(big.Int).SetUint64(t.chainID)
	tx := types.NewTx(&types.DynamicFeeTx{
		ChainID:   id,
		Nonce:     t.nonce,
		GasTipCap: t.tip.Big(),
		GasFeeCap: t.cap.Big(),
		Gas:       t.gas,
		To:        &t.to,
		Value:     t.value.Big(),
		Data:      t.data,
	})

	return tx.WithSignature(types.LatestSignerForChainID(id), signature)
}

// signedEnvelope reads the bytes of a signed transaction and its sender.
func (d *Driver) signedEnvelope(raw []byte) (*types.Transaction, common.Address, error) {
	tx := new(types.Transaction)
	if err := tx.UnmarshalBinary(raw); err != nil {
		return nil, common.Address{}, malformed(err)
	}

	if tx.Type() != types.DynamicFeeTxType || tx.To() == nil {
		return nil, common.Address{}, malformed(nil)
	}

	id := new(big.Int).SetUint64(d.network.ChainID)
	if tx.ChainId().Cmp(id) != 0 {
		return nil, common.Address{}, fault.New(fault.Invalid, "transaction_foreign",
			"the transaction was signed for chain id %s, not for network %s", tx.ChainId(), d.network.Slug)
	}

	from, err := types.Sender(types.LatestSignerForChainID(id), tx)
	if err != nil {
		return nil, common.Address{}, malformed(err)
	}

	return tx, from, nil
}

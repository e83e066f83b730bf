package evm

import (
	"encoding/json"
	"errors"
	"math/big"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rlp"
)

// decodedTx is a transaction decoded from its bytes.
type decodedTx struct {
	// encoded are the bytes under the transactions root; hash is their Keccak-256.
	encoded []byte
	hash    common.Hash
	// signed is nil for types without a signature, whose sender is from.
	signed *types.Transaction
	from   common.Address
	to     *common.Address // nil: creates a contract
	value  *big.Int        // wei
	// nonce is nil where the transaction uses no nonce of its sender's account.
	nonce *uint64
}

// errUnknownType is returned for a transaction type that cannot be encoded from JSON.
var errUnknownType = errors.New("its type is unknown")

// decodeTx returns a transaction of Ethereum's own types (0 to 4) or of the format's types.
func (f *format) decodeTx(kind uint8, raw json.RawMessage) (*decodedTx, error) {
	if kind > types.SetCodeTxType {
		decode := f.types[kind]
		if decode == nil {
			return nil, errUnknownType
		}

		return decodeForeign(kind, raw, decode)
	}

	tx := new(types.Transaction)
	if err := tx.UnmarshalJSON(raw); err != nil {
		if err = tx.UnmarshalJSON(canonicalNumbers(raw)); err != nil {
			return nil, err
		}
	}

	encoded, err := tx.MarshalBinary()
	if err != nil {
		return nil, err
	}

	nonce := tx.Nonce()

	return &decodedTx{
		encoded: encoded,
		hash:    tx.Hash(),
		signed:  tx,
		to:      tx.To(),
		value:   tx.Value(),
		nonce:   &nonce,
	}, nil
}

// canonicalNumbers returns a JSON object without the leading zeros that some providers write in signatures,
// and without fields that are null.
func canonicalNumbers(raw json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return raw
	}

	for name, value := range fields {
		if string(value) == "null" {
			delete(fields, name)
		}
	}

	for _, name := range []string{"v", "r", "s", "yParity"} {
		digits, ok := strings.CutPrefix(string(fields[name]), `"0x0`)
		if digits = strings.TrimLeft(digits, "0"); ok && digits != `"` {
			fields[name] = json.RawMessage(`"0x` + digits)
		} else if ok {
			fields[name] = json.RawMessage(`"0x0"`)
		}
	}

	out, err := json.Marshal(fields)
	if err != nil {
		return raw
	}

	return out
}

// foreignJSON holds the fields of transaction types that Ethereum does not have.
type foreignJSON struct {
	ChainID *hexutil.Big    `json:"chainId"`
	From    common.Address  `json:"from"`
	To      *common.Address `json:"to"`
	Nonce   hexutil.Uint64  `json:"nonce"`
	Value   *hexutil.Big    `json:"value"`
	Gas     hexutil.Uint64  `json:"gas"`
	Input   hexutil.Bytes   `json:"input"`
	// OP-stack deposits.
	SourceHash common.Hash  `json:"sourceHash"`
	Mint       *hexutil.Big `json:"mint"`
	IsSystemTx bool         `json:"isSystemTx"`
	// Arbitrum.
	MaxFeePerGas        *hexutil.Big    `json:"maxFeePerGas"`
	GasPrice            *hexutil.Big    `json:"gasPrice"`
	RequestID           common.Hash     `json:"requestId"`
	TicketID            common.Hash     `json:"ticketId"`
	MaxRefund           *hexutil.Big    `json:"maxRefund"`
	SubmissionFeeRefund *hexutil.Big    `json:"submissionFeeRefund"`
	RefundTo            common.Address  `json:"refundTo"`
	L1BaseFee           *hexutil.Big    `json:"l1BaseFee"`
	DepositValue        *hexutil.Big    `json:"depositValue"`
	RetryTo             *common.Address `json:"retryTo"`
	RetryValue          *hexutil.Big    `json:"retryValue"`
	RetryData           hexutil.Bytes   `json:"retryData"`
	Beneficiary         common.Address  `json:"beneficiary"`
	MaxSubmissionFee    *hexutil.Big    `json:"maxSubmissionFee"`
}

// feeCap returns the price limit; providers use one of two names for it.
func (f *foreignJSON) feeCap() *big.Int {
	if f.MaxFeePerGas != nil {
		return number(f.MaxFeePerGas)
	}

	return number(f.GasPrice)
}

// number returns a JSON number; 0 if it is absent.
func number(n *hexutil.Big) *big.Int {
	if n == nil {
		return new(big.Int)
	}

	return n.ToInt()
}

// foreignTx is a transaction of a type that Ethereum does not have.
type foreignTx struct {
	payload any // the part after the type byte, as RLP
	from    common.Address
	to      *common.Address
	value   *hexutil.Big // nil where no value goes from sender to receiver
	nonce   *hexutil.Uint64
}

// foreignType returns a transaction whose payload holds all of its fields.
type foreignType func(tx *foreignJSON) foreignTx

// decodeForeign returns a transaction of a foreign type.
func decodeForeign(kind uint8, raw json.RawMessage, decode foreignType) (*decodedTx, error) {
	var fields foreignJSON
	if err := json.Unmarshal(raw, &fields); err != nil {
		return nil, err
	}

	foreign := decode(&fields)

	body, err := rlp.EncodeToBytes(foreign.payload)
	if err != nil {
		return nil, err
	}

	encoded := append([]byte{kind}, body...)

	return &decodedTx{
		encoded: encoded,
		hash:    crypto.Keccak256Hash(encoded),
		from:    foreign.from,
		to:      foreign.to,
		value:   number(foreign.value),
		nonce:   (*uint64)(foreign.nonce),
	}, nil
}

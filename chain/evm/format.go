package evm

import (
	"fmt"
	"maps"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"

	"github.com/seed-8ee7f392/payments/chain"
)

// format describes how a network's blocks differ from Ethereum's header and transaction types, and which
// checks are known to hold on it.
type format struct {
	// types are the transaction types beyond Ethereum's own that can be encoded from JSON.
	types map[uint8]foreignType
	// opaque are known types whose JSON leaves fields out. They move no value and use no nonce. Their
	// bytes come from eth_getRawTransactionByHash.
	opaque []uint8
	// unverifiable are known types whose encoding is not known.
	unverifiable []uint8
	// stateSync is set where nodes show a transaction that no root of the header holds.
	stateSync bool
	// ownPrice is set where a receipt's gas price does not follow from the transaction and the base fee.
	ownPrice bool
	// gasPublishes is set where the cost of publishing counts as gas, so that no estimate is exact; see
	// driver.gasPublishes.
	gasPublishes bool
	// holds are the checks that hold from the start. A failure of any other check is no fault of the node
	// until a block of this process passed that check.
	holds []string
}

// The checks of a block. Each type of transaction and of receipt has its own.
const (
	checkHeader = "header hash"
	checkTxRoot = "transactions root"
	checkSender = "senders"
)

// checkTx returns the check of a transaction type's hash.
func checkTx(kind uint8) string { return fmt.Sprintf("hash of transaction type %#x", kind) }

// checkReceipt returns the check of a receipt type's encoding.
func checkReceipt(kind uint8) string { return fmt.Sprintf("receipt of type %#x", kind) }

// The transaction types of the OP stack, Arbitrum and Polygon. Sources: Optimism specification,
// "Deposits"; Arbitrum Nitro, "arbos" (0x64 to 0x6a; 0x78 is from before Nitro); Polygon PIP-74.
const (
	opDeposit             = 0x7e
	arbitrumDeposit       = 0x64
	arbitrumUnsigned      = 0x65
	arbitrumContract      = 0x66
	arbitrumRetry         = 0x68
	arbitrumSubmitRetry   = 0x69
	arbitrumInternal      = 0x6a
	arbitrumLegacy        = 0x78
	polygonStateSync      = 0x7f
	depositReceiptVersion = 1 // of receipts whose encoding holds the deposit's nonce (Canyon)
)

// ethereumChecks are the checks of Ethereum's own blocks.
var ethereumChecks = func() []string {
	checks := []string{checkHeader, checkTxRoot, checkSender}
	for kind := uint8(types.LegacyTxType); kind <= types.SetCodeTxType; kind++ {
		checks = append(checks, checkTx(kind), checkReceipt(kind))
	}

	return checks
}()

// The formats of the catalogue. The checks that hold from the start were verified on blocks of the network;
// see docs/verification.md.
var (
	ethereumFormat = format{holds: ethereumChecks}
	opFormat       = format{
		types: map[uint8]foreignType{opDeposit: decodeOPDeposit},
		holds: slices.Concat(ethereumChecks, []string{checkTx(opDeposit), checkReceipt(opDeposit)}),
	}
	arbitrumFormat = format{
		types:        arbitrumTypes,
		unverifiable: []uint8{arbitrumLegacy},
		ownPrice:     true,
		gasPublishes: true,
		holds: []string{
			checkHeader, checkTxRoot, checkSender, checkTx(arbitrumInternal), checkTx(types.DynamicFeeTxType),
		},
	}
	polygonFormat = format{opaque: []uint8{polygonStateSync}, stateSync: true}
	bnbFormat     = format{}
	// otherFormat is for networks outside the catalogue, such as development nodes and other rollups.
	otherFormat = format{
		types:        withOPDeposit(arbitrumTypes),
		unverifiable: []uint8{arbitrumLegacy},
		ownPrice:     true,
	}
)

// formats are the formats by chain id. Every network of the catalogue has its row.
var formats = map[uint64]*format{
	Ethereum.ChainID:        &ethereumFormat,
	Sepolia.ChainID:         &ethereumFormat,
	Optimism.ChainID:        &opFormat,
	OPSepolia.ChainID:       &opFormat,
	Base.ChainID:            &opFormat,
	BaseSepolia.ChainID:     &opFormat,
	Arbitrum.ChainID:        &arbitrumFormat,
	ArbitrumSepolia.ChainID: &arbitrumFormat,
	Polygon.ChainID:         &polygonFormat,
	PolygonAmoy.ChainID:     &polygonFormat,
	BNB.ChainID:             &bnbFormat,
	BNBTestnet.ChainID:      &bnbFormat,
}

// formatOf returns the format of a network's blocks.
func formatOf(network chain.Network) *format {
	if known := formats[network.ChainID]; known != nil {
		return known
	}

	return &otherFormat
}

// withOPDeposit returns a copy of types with the deposits of the OP stack.
func withOPDeposit(types map[uint8]foreignType) map[uint8]foreignType {
	all := maps.Clone(types)
	all[opDeposit] = decodeOPDeposit

	return all
}

// decodeOPDeposit returns a deposit of an OP-stack rollup. Only its receipt has its nonce. Source: Optimism
// specification, "Deposits".
func decodeOPDeposit(tx *foreignJSON) foreignTx {
	return foreignTx{
		payload: &struct {
			SourceHash          common.Hash
			From                common.Address
			To                  *common.Address `rlp:"nil"`
			Mint, Value         *big.Int
			Gas                 uint64
			IsSystemTransaction bool
			Data                []byte
		}{
			tx.SourceHash,
			tx.From,
			tx.To,
			number(tx.Mint),
			number(tx.Value),
			uint64(tx.Gas),
			tx.IsSystemTx,
			tx.Input,
		},
		from:  tx.From,
		to:    tx.To,
		value: tx.Value,
	}
}

// arbOS is the account that ArbOS itself sends from.
var arbOS = common.HexToAddress("0x00000000000000000000000000000000000A4B05")

// arbRetryableTx is the precompile that retryable tickets are submitted to.
var arbRetryableTx = common.HexToAddress("0x000000000000000000000000000000000000006E")

// arbitrumTypes are Arbitrum's transaction types. Only the unsigned type uses a nonce of its sender's
// account; a retry's nonce counts the attempts of its ticket. Source: Arbitrum Nitro.
var arbitrumTypes = map[uint8]foreignType{
	arbitrumDeposit: func(tx *foreignJSON) foreignTx {
		var to common.Address
		if tx.To != nil {
			to = *tx.To
		}

		return foreignTx{
			payload: &struct {
				ChainID   *big.Int
				RequestID common.Hash
				From, To  common.Address
				Value     *big.Int
			}{number(tx.ChainID), tx.RequestID, tx.From, to, number(tx.Value)},
			from:  tx.From,
			to:    &to,
			value: tx.Value,
		}
	},
	arbitrumUnsigned: func(tx *foreignJSON) foreignTx {
		return foreignTx{
			payload: &struct {
				ChainID *big.Int
				From    common.Address
				Nonce   uint64
				FeeCap  *big.Int
				Gas     uint64
				To      *common.Address `rlp:"nil"`
				Value   *big.Int
				Data    []byte
			}{
				number(
					tx.ChainID,
				),
				tx.From,
				uint64(tx.Nonce),
				tx.feeCap(),
				uint64(tx.Gas),
				tx.To,
				number(tx.Value),
				tx.Input,
			},
			from:  tx.From,
			to:    tx.To,
			value: tx.Value,
			nonce: &tx.Nonce,
		}
	},
	arbitrumContract: func(tx *foreignJSON) foreignTx {
		return foreignTx{
			payload: &struct {
				ChainID   *big.Int
				RequestID common.Hash
				From      common.Address
				FeeCap    *big.Int
				Gas       uint64
				To        *common.Address `rlp:"nil"`
				Value     *big.Int
				Data      []byte
			}{
				number(
					tx.ChainID,
				),
				tx.RequestID,
				tx.From,
				tx.feeCap(),
				uint64(tx.Gas),
				tx.To,
				number(tx.Value),
				tx.Input,
			},
			from:  tx.From,
			to:    tx.To,
			value: tx.Value,
		}
	},
	arbitrumRetry:       decodeArbitrumRetry,
	arbitrumSubmitRetry: decodeArbitrumSubmitRetry,
	arbitrumInternal: func(tx *foreignJSON) foreignTx {
		return foreignTx{
			payload: &struct {
				ChainID *big.Int
				Data    []byte
			}{number(tx.ChainID), tx.Input},
			from: arbOS,
			to:   &arbOS,
		}
	},
}

// decodeArbitrumRetry returns an attempt of a retryable ticket.
func decodeArbitrumRetry(tx *foreignJSON) foreignTx {
	return foreignTx{
		payload: &struct {
			ChainID                        *big.Int
			Nonce                          uint64
			From                           common.Address
			FeeCap                         *big.Int
			Gas                            uint64
			To                             *common.Address `rlp:"nil"`
			Value                          *big.Int
			Data                           []byte
			TicketID                       common.Hash
			RefundTo                       common.Address
			MaxRefund, SubmissionFeeRefund *big.Int
		}{
			number(
				tx.ChainID,
			),
			uint64(tx.Nonce),
			tx.From,
			tx.feeCap(),
			uint64(tx.Gas),
			tx.To,
			number(tx.Value),
			tx.Input,
			tx.TicketID,
			tx.RefundTo,
			number(tx.MaxRefund),
			number(tx.SubmissionFeeRefund),
		},
		from:  tx.From,
		to:    tx.To,
		value: tx.Value,
	}
}

// decodeArbitrumSubmitRetry returns the submission of a retryable ticket, which moves no value itself.
func decodeArbitrumSubmitRetry(tx *foreignJSON) foreignTx {
	return foreignTx{
		payload: &struct {
			ChainID                         *big.Int
			RequestID                       common.Hash
			From                            common.Address
			L1BaseFee, DepositValue, FeeCap *big.Int
			Gas                             uint64
			RetryTo                         *common.Address `rlp:"nil"`
			RetryValue                      *big.Int
			Beneficiary                     common.Address
			MaxSubmissionFee                *big.Int
			FeeRefundTo                     common.Address
			RetryData                       []byte
		}{
			number(
				tx.ChainID,
			),
			tx.RequestID,
			tx.From,
			number(tx.L1BaseFee),
			number(tx.DepositValue),
			tx.feeCap(),
			uint64(tx.Gas),
			tx.RetryTo,
			number(tx.RetryValue),
			tx.Beneficiary,
			number(tx.MaxSubmissionFee),
			tx.RefundTo,
			tx.RetryData,
		},
		from: tx.From,
		to:   &arbRetryableTx,
	}
}

// knows reports whether a transaction type is Ethereum's own or declared in the format.
func (f *format) knows(kind uint8) bool {
	return kind <= types.SetCodeTxType || f.types[kind] != nil ||
		slices.Contains(f.opaque, kind) || slices.Contains(f.unverifiable, kind)
}

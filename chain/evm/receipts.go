package evm

import (
	"bytes"
	"context"
	"errors"
	"math/big"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/rlp"

	"github.com/seed-8ee7f392/payments/chain/internal/failover"
)

// receiptIndex holds the receipts of blocks by transaction hash, one map per block.
type receiptIndex []map[common.Hash]*receiptJSON

// doWithReceipts makes calls for blocks by height. If one request holds both, and the last block had
// receipts, it requests their receipts in the same request, to save a round trip. It returns those receipt
// calls; none if receipts must be requested afterwards.
func (e *endpoint) doWithReceipts(ctx context.Context, blocks []*call) (beside []*call, err error) {
	if 2*len(blocks) > e.currentBatchSize() || !e.beside.Load() || e.refuses(receiptsBeside) {
		return nil, e.do(ctx, blocks...)
	}

	for _, block := range blocks {
		beside = append(beside, newCall("eth_getBlockReceipts", block.args[0]))
	}

	err = e.do(ctx, slices.Concat(blocks, beside)...)
	if failure, ok := errors.AsType[*failover.Failure](err); ok && failure.Kind == tooMuch {
		e.noteRefusal(receiptsBeside, err)

		return nil, e.do(ctx, blocks...)
	}

	return beside, err
}

// takeBeside adds the receipts that were requested by height together with their blocks to found. If the
// chain changed meanwhile, a receipt is of another block: it is left out, and read again by its block's hash.
func (e *endpoint) takeBeside(blocks []blockJSON, beside []*call, found receiptIndex) {
	for i := range min(len(blocks), len(beside)) {
		if refusal := beside[i].refusal(); refusal != nil {
			e.noteRefusal(receiptsBeside, refusal)
			continue
		}

		var receipts []receiptJSON
		if beside[i].decode(e, &receipts) != nil {
			continue
		}

		for j := range receipts {
			hash, in := receipts[j].TransactionHash, receipts[j].BlockHash
			if hash != nil && in != nil && *in == *blocks[i].Hash {
				found[i][*hash] = &receipts[j]
			}
		}
	}
}

// receipts returns the receipts of each block's transactions, in their order. It uses those requested
// together with the blocks, and requests the others by block hash. Receipts that eth_getBlockReceipts leaves
// out or refuses are read one by one: not every node has the method, and Bor nodes leave out state-sync
// transactions.
func (e *endpoint) receipts(
	ctx context.Context,
	blocks []blockJSON,
	beside []*call,
) ([][]*receiptJSON, error) {
	found := make(receiptIndex, len(blocks))
	for i := range blocks {
		found[i] = make(map[common.Hash]*receiptJSON, len(blocks[i].Transactions))
	}

	e.takeBeside(blocks, beside, found)

	refusal, err := e.blockReceipts(ctx, blocks, found)
	if err != nil {
		return nil, err
	}

	e.beside.Store(len(found[len(blocks)-1]) > 0)

	if err := e.missingReceipts(ctx, blocks, found); err != nil {
		return nil, err
	}

	if refusal != nil {
		e.noteRefusal(blockReceipts, refusal)
	}

	out := make([][]*receiptJSON, len(blocks))
	for i := range blocks {
		for j := range blocks[i].Transactions {
			hash := *blocks[i].Transactions[j].Hash

			receipt := found[i][hash]
			if err := receipt.check(e, hash, *blocks[i].Hash); err != nil {
				return nil, err
			}

			out[i] = append(out[i], receipt)
		}
	}

	return out, nil
}

// blockReceipts calls eth_getBlockReceipts by hash for the blocks without receipts in found, and adds the
// answers to found. It adds nothing for a block that the node refuses.
func (e *endpoint) blockReceipts(
	ctx context.Context,
	blocks []blockJSON,
	found receiptIndex,
) (refusal, err error) {
	var (
		calls   []*call
		blockOf []int // index of each call's block
	)

	for i := range blocks {
		if len(blocks[i].Transactions) > 0 && len(found[i]) == 0 {
			calls = append(calls, newCall("eth_getBlockReceipts", blocks[i].Hash))
			blockOf = append(blockOf, i)
		}
	}

	if len(calls) == 0 || e.refuses(blockReceipts) {
		return nil, nil
	}

	err = e.do(ctx, calls...)
	if failure, ok := errors.AsType[*failover.Failure](err); ok && failure.Kind == tooMuch {
		return nil, nil // one block's receipts together are too large: they are read one by one
	}

	if err != nil {
		return nil, err
	}

	for i, rpcCall := range calls {
		if refused := rpcCall.refusal(); refused != nil {
			refusal = refused
			continue
		}

		var receipts []receiptJSON
		if err := rpcCall.decode(e, &receipts); err != nil {
			return nil, err
		}

		for j := range receipts {
			if hash := receipts[j].TransactionHash; hash != nil {
				found[blockOf[i]][*hash] = &receipts[j]
			}
		}
	}

	return refusal, nil
}

// missingReceipts adds to found the receipts that it lacks, by eth_getTransactionReceipt.
func (e *endpoint) missingReceipts(ctx context.Context, blocks []blockJSON, found receiptIndex) error {
	var (
		calls   []*call
		blockOf []int // index of each call's block
	)

	for i := range blocks {
		for j := range blocks[i].Transactions {
			if hash := *blocks[i].Transactions[j].Hash; found[i][hash] == nil {
				calls = append(calls, newCall("eth_getTransactionReceipt", hash))
				blockOf = append(blockOf, i)
			}
		}
	}

	if len(calls) == 0 {
		return nil
	}

	if err := e.do(ctx, calls...); err != nil {
		return err
	}

	for i, rpcCall := range calls {
		if rpcCall.isNull() || rpcCall.err != nil {
			return e.missingBlock(ctx, uint64(*blocks[blockOf[i]].Number), rpcCall)
		}

		receipt := new(receiptJSON)
		if err := rpcCall.decode(e, receipt); err != nil {
			return err
		}

		found[blockOf[i]][rpcCall.args[0].(common.Hash)] = receipt
	}

	return nil
}

// receiptRLP is the wire form of a receipt after its type. Sources: EIP-658 and EIP-2718; for the fields
// of deposits the Optimism specification, "Deposit receipt".
type receiptRLP struct {
	Status                []byte
	CumulativeGasUsed     uint64
	Bloom                 types.Bloom
	Logs                  []logRLP
	DepositNonce          *uint64 `rlp:"optional"`
	DepositReceiptVersion *uint64 `rlp:"optional"`
}

// logRLP is the wire form of a log.
type logRLP struct {
	Address common.Address
	Topics  []common.Hash
	Data    []byte
}

// depositForm selects the encoding of OP-stack deposit receipts.
type depositForm int

const (
	depositAsGiven   depositForm = iota // with nonce and version if the receipt has a version
	depositPlain                        // like other receipts: before Canyon
	depositVersioned                    // version 1, for nodes that leave the version out
)

// encode returns the receipt's encoding in the receipts root.
func (r *receiptJSON) encode(kind uint8, tx *txJSON, form depositForm) []byte {
	wire := receiptRLP{CumulativeGasUsed: uint64(*r.CumulativeGasUsed), Bloom: r.bloom()}
	if *r.Status == 1 {
		wire.Status = []byte{1}
	}

	for i := range r.Logs {
		log := &r.Logs[i]
		wire.Logs = append(wire.Logs, logRLP{Address: *log.Address, Topics: log.Topics, Data: log.Data})
	}

	if kind == opDeposit && form != depositPlain {
		wire.DepositNonce = (*uint64)(r.DepositNonce)
		wire.DepositReceiptVersion = (*uint64)(r.DepositReceiptVersion)

		if form == depositVersioned {
			version := uint64(depositReceiptVersion)
			wire.DepositReceiptVersion = &version
		}

		if wire.DepositReceiptVersion == nil {
			wire.DepositNonce = nil
		}
	}

	var out bytes.Buffer
	if kind != types.LegacyTxType {
		out.WriteByte(kind)
	}

	_ = rlp.Encode(&out, &wire) // these types always encode

	return out.Bytes()
}

// bloom returns the bloom filter of the receipt's logs.
func (r *receiptJSON) bloom() types.Bloom {
	var bloom types.Bloom

	for i := range r.Logs {
		bloom.Add(r.Logs[i].Address[:])

		for _, topic := range r.Logs[i].Topics {
			bloom.Add(topic[:])
		}
	}

	return bloom
}

// checkReceipts checks the receipts root. After that, status, logs and gas are those that the header commits
// to, and the nonces of deposits are those of their receipts.
func (v *verification) checkReceipts() error {
	var (
		checks  []string
		kinds   = make([]uint8, len(v.inside))
		deposit bool
		unknown bool
	)

	for j, i := range v.inside {
		kind, err := v.block.Transactions[i].kind(v.node)
		if err != nil {
			return err
		}

		kinds[j] = kind
		checks = append(checks, checkReceipt(kind))
		deposit = deposit || kind == opDeposit
		unknown = unknown || !v.driver.format.knows(kind)

		if v.receipts[i].CumulativeGasUsed == nil {
			return v.failed(
				checks, "the receipt of transaction %s names no cumulative gas",
				v.block.Transactions[i].Hash.Hex(),
			)
		}
	}

	form, ok := depositAsGiven, false
	for ; !ok && (form == depositAsGiven || deposit && form <= depositVersioned); form++ {
		ok = v.receiptsRoot(kinds, form) == *v.block.ReceiptsRoot
	}

	switch {
	case !ok && unknown:
		v.unchecked("receipts of an unknown transaction type")
		return nil
	case !ok:
		return v.failed(checks, "its receipts are not those of its receipts root")
	}

	v.passed(checks...)

	return v.takeReceipts(kinds, form-1)
}

// receiptsRoot returns the root of the receipts.
func (v *verification) receiptsRoot(kinds []uint8, form depositForm) common.Hash {
	leaves := make([][]byte, len(v.inside))
	for j, i := range v.inside {
		leaves[j] = v.receipts[i].encode(kinds[j], &v.block.Transactions[i], form)
	}

	return listRoot(leaves)
}

// takeReceipts sets the values that verified receipts prove: the gas that each transaction used and the
// nonces of deposits.
func (v *verification) takeReceipts(kinds []uint8, form depositForm) error {
	before := uint64(0)

	for j, i := range v.inside {
		receipt := v.receipts[i]

		cumulative := uint64(*receipt.CumulativeGasUsed)
		if cumulative < before {
			return v.node.Garbled("block %d: its receipts count gas backwards", uint64(*v.block.Number))
		}

		used := hexutil.Uint64(cumulative - before)
		receipt.GasUsed, before = &used, cumulative

		if kinds[j] == opDeposit && form != depositPlain && receipt.DepositNonce != nil {
			v.block.Transactions[i].Nonce = receipt.DepositNonce
		}
	}

	return nil
}

// checkPrices sets each receipt's gas price to the one that its transaction and the base fee imply
// (EIP-1559). Where a network sets its own prices, it keeps the node's price and checks it against the
// sender's limit.
func (v *verification) checkPrices() error {
	for i := range v.block.Transactions {
		tx, receipt := v.block.Transactions[i].signed, v.receipts[i]
		if tx == nil || v.block.header == nil {
			continue
		}

		if v.driver.format.ownPrice {
			if price := receipt.EffectiveGasPrice; price != nil && price.ToInt().Cmp(tx.GasFeeCap()) > 0 {
				return v.node.Garbled(
					"block %d: transaction %s paid more for gas than it allows",
					uint64(*v.block.Number),
					tx.Hash().Hex(),
				)
			}

			continue
		}

		price := new(big.Int).Set(tx.GasFeeCap())
		if base := v.block.header.BaseFee; base != nil {
			if most := new(big.Int).Add(base, tx.GasTipCap()); most.Cmp(price) < 0 {
				price = most
			}
		}

		receipt.EffectiveGasPrice = (*hexutil.Big)(price)
	}

	return nil
}

package evm

import (
	"context"
	"slices"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/core/types"
)

// crossCheck checks a block that could not be verified. It compares the block with the header's bloom, and
// with the node's count of its transactions and its logs of enabled tokens by block hash. If a node refuses
// one of the two calls, the reasons say so.
func (v *verification) crossCheck(ctx context.Context) error {
	if err := v.checkBloom(); err != nil {
		return err
	}

	count := newCall("eth_getBlockTransactionCountByHash", v.block.Hash)
	calls := []*call{count}

	contracts := v.contractsInBloom()
	if len(contracts) > 0 {
		calls = append(calls, newCall("eth_getLogs", map[string]any{
			"blockHash": v.block.Hash,
			"address":   contracts,
			"topics":    [][]common.Hash{{transferTopic}},
		}))
	}

	if err := v.node.do(ctx, calls...); err != nil {
		return err
	}

	if err := v.compareCount(count); err != nil || len(contracts) == 0 {
		return err
	}

	return v.compareLogs(calls[1], contracts)
}

// checkBloom checks that the receipts' logs set exactly the bits of the block's bloom. A missing bit is a
// lost log; an extra bit is an invented log. State-sync logs are outside the bloom.
func (v *verification) checkBloom() error {
	var all, inside types.Bloom

	for i, receipt := range v.receipts {
		bloom := receipt.bloom()
		for j := range bloom {
			all[j] |= bloom[j]

			if slices.Contains(v.inside, i) {
				inside[j] |= bloom[j]
			}
		}
	}

	for i, bits := range v.block.LogsBloom {
		if bits&^all[i] != 0 {
			return v.node.Garbled("block %d has logs that its receipts leave out", uint64(*v.block.Number))
		}

		if inside[i]&^bits != 0 {
			return v.node.Garbled("block %d does not have all logs of its receipts", uint64(*v.block.Number))
		}
	}

	return nil
}

// contractsInBloom returns the enabled tokens whose transfers the header's bloom may contain.
func (v *verification) contractsInBloom() []common.Address {
	bloom := v.block.LogsBloom
	if len(v.inside) == len(v.block.Transactions) && !bloom.Test(transferTopic[:]) {
		return nil
	}

	var contracts []common.Address

	for contract := range v.driver.tokens {
		if bloom.Test(contract[:]) || len(v.inside) < len(v.block.Transactions) {
			contracts = append(contracts, contract)
		}
	}

	slices.SortFunc(contracts, common.Address.Cmp)

	return contracts
}

// compareCount compares the node's count of the block's transactions with the number that it gave. The count
// may include a transaction that is outside the header's roots.
func (v *verification) compareCount(rpcCall *call) error {
	if rpcCall.refusal() != nil {
		v.declared("the node does not count a block's transactions")
		return nil
	}

	var count hexutil.Uint64
	if err := rpcCall.decode(v.node, &count); err != nil {
		return err
	}

	if int(count) != len(v.inside) && int(count) != len(v.block.Transactions) {
		return v.node.Garbled(
			"block %d has %d transactions, it gave %d",
			uint64(*v.block.Number), uint64(count), len(v.block.Transactions),
		)
	}

	return nil
}

// logKey holds the fields that two answers about the same log share.
type logKey struct {
	index    hexutil.Uint64
	address  common.Address
	from, to common.Hash
	data     string
}

// compareLogs compares the node's logs of the block with those of its receipts. The node may leave out the
// logs of a state-sync transaction.
func (v *verification) compareLogs(rpcCall *call, contracts []common.Address) error {
	if rpcCall.refusal() != nil {
		v.declared("the node does not give logs by block")
		return nil
	}

	var logs []logJSON
	if err := rpcCall.decode(v.node, &logs); err != nil {
		return err
	}

	given := map[logKey]bool{} // true: inside the header's roots

	for i, receipt := range v.receipts {
		for j := range receipt.Logs {
			log := &receipt.Logs[j]
			if slices.Contains(contracts, *log.Address) && len(log.Topics) > 0 &&
				log.Topics[0] == transferTopic {
				given[keyOf(log)] = slices.Contains(v.inside, i)
			}
		}
	}

	for i := range logs {
		if logs[i].Address == nil || logs[i].LogIndex == nil {
			return v.node.Garbled("a log without address or index")
		}

		key := keyOf(&logs[i])
		if _, ok := given[key]; !ok {
			return v.node.Garbled(
				"block %d has transfers that its receipts leave out", uint64(*v.block.Number),
			)
		}

		delete(given, key)
	}

	for _, isInside := range given {
		if isInside {
			return v.node.Garbled(
				"block %d does not have all transfers of its receipts",
				uint64(*v.block.Number),
			)
		}
	}

	return nil
}

// keyOf returns the key of a log with address and index.
func keyOf(log *logJSON) logKey {
	key := logKey{index: *log.LogIndex, address: *log.Address, data: string(log.Data)}
	if len(log.Topics) > 2 {
		key.from, key.to = log.Topics[1], log.Topics[2]
	}

	return key
}

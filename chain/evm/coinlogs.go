package evm

import (
	"slices"

	"github.com/ethereum/go-ethereum/params"

	"github.com/seed-8ee7f392/payments/chain"
)

// This file decides whether a block shows every transfer of coin by a log of the system address, including
// transfers by contracts. Source: EIP-7708. The log of a transaction's own value comes first in its receipt.
// No log shows transfers of an account to itself, fees, withdrawals or the earnings of block producers.

// logsCoin reports whether coin transfers are logged in this block. It depends on the block alone, so every
// reader gets the same answer. Every plain transfer in the block must have its log. A block without plain
// transfers needs a block access list in its header, which came with the logs (EIP-7928, Amsterdam). A block
// that could not be verified never counts.
func (b *verifiedBlock) logsCoin() bool {
	if b.unverified != "" {
		return false
	}

	shown := b.json.header != nil && b.json.header.BlockAccessListHash != nil

	for i := range b.json.Transactions {
		tx, receipt := &b.json.Transactions[i], b.receipts[i]
		if tx.signed == nil || *receipt.Status == 0 || !tx.movesValue() {
			continue
		}

		if !tx.logsValue(receipt) {
			return false
		}

		shown = true
	}

	return shown
}

// movesValue reports whether the transaction itself moves coin from one account to another.
func (t *txJSON) movesValue() bool {
	return t.To != nil && *t.To != *t.From && t.Value.ToInt().Sign() > 0
}

// logsValue reports whether the first log of the receipt is that of the transaction's own value.
func (t *txJSON) logsValue(receipt *receiptJSON) bool {
	if !t.movesValue() || len(receipt.Logs) == 0 || *receipt.Logs[0].Address != params.SystemAddress {
		return false
	}

	from, to, value, ok := receipt.Logs[0].transfer()
	own, err := chain.AmountFromBig(t.Value.ToInt())

	return ok && err == nil && from == *t.From && to == *t.To && value == own
}

// hasCoinLogs reports whether the system address logged anything. Then coin that contracts moved has the
// indices of logs, and no trace may show it under another index.
func (r *receiptJSON) hasCoinLogs() bool {
	return slices.ContainsFunc(r.Logs, func(log logJSON) bool { return *log.Address == params.SystemAddress })
}

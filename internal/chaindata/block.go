package chaindata

import (
	"strconv"

	"github.com/seed-8ee7f392/payments/chain"
)

// TransfersOf returns the transfers of a transaction in the block; nil if the block does not hold it.
func TransfersOf(b chain.Block, txHash string) []chain.Transfer {
	var out []chain.Transfer

	for _, t := range b.Transfers {
		if t.TxHash == txHash {
			out = append(out, t)
		}
	}

	return out
}

// Used returns the spend without its transaction. Of two transactions with the same Used, a chain holds at
// most one. A Shared spend keeps its transaction.
func Used(s chain.Spend) chain.Spend {
	s.Failed = false
	if !s.Shared {
		s.By = ""
	}

	return s
}

// SpendKey returns the key of a spend: "<txid>:<vout>", "<sender>/<nonce>", "<account>/<value>" for a
// DurableNonce, or "<sender>/<hash>" for a Shared one. Two spends of one chain never have the same key.
func SpendKey(s chain.Spend) string {
	switch {
	case s.Outpoint.TxHash != "":
		return s.Outpoint.TxHash + ":" + strconv.FormatUint(uint64(s.Outpoint.Vout), 10)
	case s.Value != "":
		return string(s.Sender) + "/" + s.Value
	case s.Shared:
		return string(s.Sender) + "/" + s.By
	}

	return string(s.Sender) + "/" + strconv.FormatUint(s.Nonce, 10)
}

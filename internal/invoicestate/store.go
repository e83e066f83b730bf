package invoicestate

import (
	"cmp"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/invoice"
)

// KeyOf returns the key of a transfer.
func KeyOf(t chain.Transfer) invoice.TransferKey {
	return invoice.TransferKey{TxHash: t.TxHash, Index: t.Index, To: t.To, AssetID: t.AssetID}
}

// Compare orders keys by transaction, index, receiver and asset.
func Compare(k invoice.TransferKey, other invoice.TransferKey) int {
	return cmp.Or(
		cmp.Compare(k.TxHash, other.TxHash), cmp.Compare(k.Index, other.Index),
		cmp.Compare(k.To, other.To), cmp.Compare(k.AssetID, other.AssetID),
	)
}

package invoicestate

import (
	"github.com/seed-8ee7f392/payments/invoice"
)

// DustKey returns the key of the transfer on its network.
func DustKey(d invoice.DustTransfer) invoice.TransferKey {
	return invoice.TransferKey{TxHash: d.TxHash, Index: d.TxIndex, To: d.Address, AssetID: d.AssetID}
}

package invoicestate

import (
	"github.com/seed-8ee7f392/payments/invoice"
)

// Accepts reports whether a transfer of an asset pays this option.
func Accepts(o invoice.Option, network, assetID string) bool {
	return o.Network == network && o.AssetID == assetID
}

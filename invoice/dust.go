package invoice

import (
	"github.com/seed-8ee7f392/payments/chain"
)

// Dust is the sum of the transfers of an asset to an address that are below chain.Asset.Dust and are no
// payments. (Network, Address, AssetID) identifies it.
type Dust struct {
	Network string
	Address chain.Address
	AssetID string
	// Amount is their sum in base units, Count their number.
	Amount  chain.Amount
	Count   int64
	Version int64
}

// DustTransfer is one transfer of a Dust. It becomes a payment when the sum reaches chain.Asset.Dust, or when
// it completes an open or underpaid invoice.
type DustTransfer struct {
	Network string
	// TxHash, TxIndex, Address and AssetID are its TransferKey.
	TxHash  string
	TxIndex uint32
	Address chain.Address
	AssetID string
	// FromAddress may be empty.
	FromAddress chain.Address
	// Amount is in base units.
	Amount chain.Amount
	// Block is the block that holds it.
	Block chain.Ref
}

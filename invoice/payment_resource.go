package invoice

import (
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/internal/wire"
)

// PaymentResource is a payment as the API and events show it (specification 2.7). Settlement holds a
// settlement.Resource; inside an event, only its id and status.
type PaymentResource struct { // spec 2.7.1
	ID                    string        `json:"id"`
	Status                PaymentStatus `json:"status" enum:"detected,confirmed,orphaned,dropped"`
	InvoiceID             string        `json:"invoice_id,omitempty"`
	OptionID              string        `json:"option_id,omitempty"`
	DepositAddressID      string        `json:"deposit_address_id,omitempty"`
	Network               string        `json:"network"`
	Asset                 string        `json:"asset"`
	AssetID               string        `json:"asset_id"`
	Contract              chain.Address `json:"contract,omitempty"`
	Decimals              uint8         `json:"decimals"`
	Address               chain.Address `json:"address"`
	FromAddress           chain.Address `json:"from_address,omitempty"`
	TxHash                string        `json:"tx_hash,omitempty"`
	TxIndex               *uint32       `json:"tx_index,omitempty"`
	Amount                string        `json:"amount"`
	Confirmations         uint64        `json:"confirmations"`
	ConfirmationsRequired uint64        `json:"confirmations_required"`
	BlockHeight           *uint64       `json:"block_height,omitempty"`
	BlockHash             string        `json:"block_hash,omitempty"`
	USDValue              string        `json:"usd_value,omitempty"`
	Late                  bool          `json:"late"`
	Simulated             bool          `json:"simulated"`
	DetectedBy            Detection     `json:"detected_by" enum:"poll,hint,balance,simulated"`
	DetectedAt            string        `json:"detected_at" format:"date-time"`
	ConfirmedAt           string        `json:"confirmed_at,omitempty" format:"date-time"`
	InvoiceNumber         int64         `json:"invoice_number,omitempty"`
	DepositAddressName    string        `json:"deposit_address_name,omitempty"`
	Livemode              bool          `json:"livemode"`
}

// Resource returns the payment as the API shows it, without its settlement; tip is the newest block
// seen on its network.
func (p Payment) Resource(tip uint64) PaymentResource { // spec 2.7.3
	r := PaymentResource{
		ID:                    p.ID,
		Status:                p.Status,
		InvoiceID:             p.InvoiceID,
		OptionID:              p.OptionID,
		DepositAddressID:      p.DepositAddressID,
		Network:               p.Network,
		Asset:                 p.Asset,
		AssetID:               p.AssetID,
		Contract:              p.Contract,
		Decimals:              p.Decimals,
		Address:               p.Address,
		FromAddress:           p.FromAddress,
		TxHash:                p.TxHash,
		Amount:                p.Amount.String(),
		Confirmations:         p.ConfirmationsAt(tip),
		ConfirmationsRequired: p.Required,
		BlockHash:             p.Block.Hash,
		USDValue:              wire.OptionalDecimal(p.USDValue),
		Late:                  p.Late,
		Simulated:             p.Simulated,
		DetectedBy:            p.DetectedBy,
		DetectedAt:            wire.Time(p.DetectedAt),
		ConfirmedAt:           wire.Time(p.ConfirmedAt),
		InvoiceNumber:         p.InvoiceNumber,
		DepositAddressName:    p.DepositAddressName,
		Livemode:              p.Owner.Livemode,
	}
	if p.TxHash != "" {
		index := p.TxIndex
		r.TxIndex = &index
	}

	if !p.Block.IsZero() {
		height := p.Block.Height
		r.BlockHeight = &height
	}

	return r
}

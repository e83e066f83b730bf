package sqlstore

// This file holds the rows of payments.

import (
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
)

// paymentRow is a row of {payments}.
type paymentRow struct {
	ID string `db:"id"`
	ownerRow
	Status             invoice.PaymentStatus `db:"status"`
	InvoiceID          string                `db:"invoice_id"`
	OptionID           string                `db:"option_id"`
	DepositAddressID   string                `db:"deposit_address_id"`
	InvoiceNumber      int64                 `db:"invoice_number"`
	DepositAddressName string                `db:"deposit_address_name"`
	Network            string                `db:"network"`
	Asset              string                `db:"asset"`
	AssetID            string                `db:"asset_id"`
	Contract           chain.Address         `db:"contract"`
	Decimals           uint8                 `db:"decimals"`
	Address            chain.Address         `db:"address"`
	Key                keyRef                `db:"address_key"`
	FromAddress        chain.Address         `db:"from_address"`
	TxHash             string                `db:"tx_hash"`
	TxIndex            uint32                `db:"tx_index"`
	Amount             amount                `db:"amount"`
	BlockHeight        bits                  `db:"block_height"`
	BlockHash          string                `db:"block_hash"`
	BlockTime          moment                `db:"block_time"`
	Required           bits                  `db:"confirmations_required"`
	Rate               decimal.Decimal       `db:"rate"`
	Credit             decimal.Decimal       `db:"credit"`
	USDValue           decimal.NullDecimal   `db:"usd_value"`
	NativeUSD          decimal.NullDecimal   `db:"native_usd"`
	Late               bool                  `db:"late"`
	Simulated          bool                  `db:"simulated"`
	DetectedBy         invoice.Detection     `db:"detected_by"`
	DetectedAt         moment                `db:"detected_at"`
	ConfirmedAt        moment                `db:"confirmed_at"`
	LostAt             moment                `db:"lost_at"`
	DueAt              moment                `db:"due_at"`
	Sequence           int64                 `db:"sequence"`
	SearchTxHash       searched              `db:"q_tx_hash,hidden"`
	SearchAddress      searched              `db:"q_address,hidden"`
	Version            int64                 `db:"version"`
}

func paymentRowOf(from *invoice.Payment) paymentRow {
	return paymentRow{
		ID:                 from.ID,
		ownerRow:           ownerRow(from.Owner),
		Status:             from.Status,
		InvoiceID:          from.InvoiceID,
		OptionID:           from.OptionID,
		DepositAddressID:   from.DepositAddressID,
		InvoiceNumber:      from.InvoiceNumber,
		DepositAddressName: from.DepositAddressName,
		Network:            from.Network,
		Asset:              from.Asset,
		AssetID:            from.AssetID,
		Contract:           from.Contract,
		Decimals:           from.Decimals,
		Address:            from.Address,
		Key:                keyRef(from.Key),
		FromAddress:        from.FromAddress,
		TxHash:             from.TxHash,
		TxIndex:            from.TxIndex,
		Amount:             amount(from.Amount),
		BlockHeight:        bits(from.Block.Height),
		BlockHash:          from.Block.Hash,
		BlockTime:          moment(from.Block.Time),
		Required:           bits(from.Required),
		Rate:               from.Rate,
		Credit:             from.Credit,
		USDValue:           from.USDValue,
		NativeUSD:          from.NativeUSD,
		Late:               from.Late,
		Simulated:          from.Simulated,
		DetectedBy:         from.DetectedBy,
		DetectedAt:         moment(from.DetectedAt),
		ConfirmedAt:        moment(from.ConfirmedAt),
		LostAt:             moment(from.LostAt),
		DueAt:              moment(from.DueAt),
		Sequence:           from.Sequence,
		SearchTxHash:       searched(from.TxHash),
		SearchAddress:      searched(from.Address),
		Version:            from.Version,
	}
}

func (r *paymentRow) record() invoice.Payment {
	return invoice.Payment{
		ID:                 r.ID,
		Owner:              event.Owner(r.ownerRow),
		Status:             r.Status,
		InvoiceID:          r.InvoiceID,
		OptionID:           r.OptionID,
		DepositAddressID:   r.DepositAddressID,
		InvoiceNumber:      r.InvoiceNumber,
		DepositAddressName: r.DepositAddressName,
		Network:            r.Network,
		Asset:              r.Asset,
		AssetID:            r.AssetID,
		Contract:           r.Contract,
		Decimals:           r.Decimals,
		Address:            r.Address,
		Key:                chain.KeyRef(r.Key),
		FromAddress:        r.FromAddress,
		TxHash:             r.TxHash,
		TxIndex:            r.TxIndex,
		Amount:             chain.Amount(r.Amount),
		Block:              blockRef(r.BlockHeight, r.BlockHash, r.BlockTime),
		Required:           uint64(r.Required),
		Rate:               r.Rate,
		Credit:             r.Credit,
		USDValue:           r.USDValue,
		NativeUSD:          r.NativeUSD,
		Late:               r.Late,
		Simulated:          r.Simulated,
		DetectedBy:         r.DetectedBy,
		DetectedAt:         time.Time(r.DetectedAt),
		ConfirmedAt:        time.Time(r.ConfirmedAt),
		LostAt:             time.Time(r.LostAt),
		DueAt:              time.Time(r.DueAt),
		Sequence:           r.Sequence,
		Version:            r.Version,
	}
}

// addressRow is a row of {addresses}.
type addressRow struct {
	SpaceFamily   chain.Family        `db:"space_family"`
	SpaceLivemode bool                `db:"space_livemode"`
	Address       chain.Address       `db:"address"`
	Kind          invoice.AddressKind `db:"kind"`
	ownerRow
	InvoiceID        string `db:"invoice_id"`
	OptionID         string `db:"option_id"`
	DepositAddressID string `db:"deposit_address_id"`
	Network          string `db:"network"`
	Key              keyRef `db:"address_key"`
	CreatedAt        moment `db:"created_at"`
	CheckedAt        moment `db:"checked_at"`
	NextCheck        moment `db:"next_check"`
	Urgent           bool   `db:"urgent"`
	MAC              []byte `db:"mac"`
}

func addressRowOf(from *invoice.Address) addressRow {
	return addressRow{
		SpaceFamily:      from.Space.Family,
		SpaceLivemode:    from.Space.Livemode,
		Address:          from.Address,
		Kind:             from.Kind,
		ownerRow:         ownerRow(from.Owner),
		InvoiceID:        from.InvoiceID,
		OptionID:         from.OptionID,
		DepositAddressID: from.DepositAddressID,
		Network:          from.Network,
		Key:              keyRef(from.Key),
		CreatedAt:        moment(from.CreatedAt),
		CheckedAt:        moment(from.CheckedAt),
		NextCheck:        moment(from.NextCheck),
		Urgent:           from.Urgent,
		MAC:              from.MAC,
	}
}

func (r *addressRow) record() invoice.Address {
	return invoice.Address{
		Address:          r.Address,
		Kind:             r.Kind,
		Owner:            event.Owner(r.ownerRow),
		InvoiceID:        r.InvoiceID,
		OptionID:         r.OptionID,
		DepositAddressID: r.DepositAddressID,
		Network:          r.Network,
		Key:              chain.KeyRef(r.Key),
		CreatedAt:        time.Time(r.CreatedAt),
		CheckedAt:        time.Time(r.CheckedAt),
		NextCheck:        time.Time(r.NextCheck),
		Urgent:           r.Urgent,
		MAC:              r.MAC,
		Space:            chain.Space{Family: r.SpaceFamily, Livemode: r.SpaceLivemode},
	}
}

// depositRow is a row of {deposit_addresses}.
type depositRow struct {
	ID string `db:"id"`
	ownerRow
	Name          string                      `db:"name"`
	Network       string                      `db:"network"`
	Address       chain.Address               `db:"address"`
	Key           keyRef                      `db:"address_key"`
	Status        invoice.DepositStatus       `db:"status"`
	Metadata      document[map[string]string] `db:"metadata"`
	LastPaymentAt moment                      `db:"last_payment_at"`
	CreatedAt     moment                      `db:"created_at"`
	Sequence      int64                       `db:"sequence"`
	SearchName    searched                    `db:"q_name,hidden"`
	SearchAddress searched                    `db:"q_address,hidden"`
	Version       int64                       `db:"version"`
}

func depositRowOf(from *invoice.DepositAddress) depositRow {
	return depositRow{
		ID:            from.ID,
		ownerRow:      ownerRow(from.Owner),
		Name:          from.Name,
		Network:       from.Network,
		Address:       from.Address,
		Key:           keyRef(from.Key),
		Status:        from.Status,
		Metadata:      documentOf(from.Metadata),
		LastPaymentAt: moment(from.LastPaymentAt),
		CreatedAt:     moment(from.CreatedAt),
		Sequence:      from.Sequence,
		SearchName:    searched(from.Name),
		SearchAddress: searched(from.Address),
		Version:       from.Version,
	}
}

func (r *depositRow) record() invoice.DepositAddress {
	return invoice.DepositAddress{
		ID:            r.ID,
		Owner:         event.Owner(r.ownerRow),
		Name:          r.Name,
		Network:       r.Network,
		Address:       r.Address,
		Key:           chain.KeyRef(r.Key),
		Status:        r.Status,
		Metadata:      r.Metadata.value,
		LastPaymentAt: time.Time(r.LastPaymentAt),
		CreatedAt:     time.Time(r.CreatedAt),
		Sequence:      r.Sequence,
		Version:       r.Version,
	}
}

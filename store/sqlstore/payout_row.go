package sqlstore

// This file holds the rows of payouts.

import (
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/payout"
)

// payoutRow is a row of {payouts}.
type payoutRow struct {
	ID string `db:"id"`
	ownerRow
	Status            payout.Status              `db:"status"`
	Network           string                     `db:"network"`
	Asset             string                     `db:"asset"`
	AssetID           string                     `db:"asset_id"`
	Contract          chain.Address              `db:"contract"`
	Decimals          uint8                      `db:"decimals"`
	Amount            amount                     `db:"amount"`
	AmountDelivered   optionalAmount             `db:"amount_delivered"`
	Destination       chain.Address              `db:"destination"`
	Memo              string                     `db:"memo"`
	TxHash            string                     `db:"tx_hash"`
	RefundID          string                     `db:"refund_id"`
	FailureCode       string                     `db:"failure_code"`
	FailureMessage    prose                      `db:"failure_message"`
	ConflictTxHash    string                     `db:"conflict_tx_hash"`
	ConflictOwn       bool                       `db:"conflict_own"`
	RequestedBy       document[payout.Requester] `db:"requested_by"`
	NativeAsset       string                     `db:"native_asset"`
	NativeDecimals    uint8                      `db:"native_decimals"`
	MaxNetworkFee     amount                     `db:"max_network_fee"`
	NetworkFee        optionalAmount             `db:"network_fee"`
	TransactionID     string                     `db:"transaction_id"`
	CreatedAt         moment                     `db:"created_at"`
	BroadcastAt       moment                     `db:"broadcast_at"`
	ConfirmedAt       moment                     `db:"confirmed_at"`
	FailedAt          moment                     `db:"failed_at"`
	Approval          document[payout.Approval]  `db:"approval"`
	Signing           document[payout.Signing]   `db:"signing"`
	MAC               []byte                     `db:"mac"`
	Sequence          int64                      `db:"sequence"`
	SearchTxHash      searched                   `db:"q_tx_hash,hidden"`
	SearchDestination searched                   `db:"q_destination,hidden"`
	Version           int64                      `db:"version"`
}

func payoutRowOf(from *payout.Payout) payoutRow {
	return payoutRow{
		ID:                from.ID,
		ownerRow:          ownerRow(from.Owner),
		Status:            from.Status,
		Network:           from.Network,
		Asset:             from.Asset,
		AssetID:           from.AssetID,
		Contract:          from.Contract,
		Decimals:          from.Decimals,
		Amount:            amount(from.Amount),
		AmountDelivered:   optionalAmount{from.AmountDelivered},
		Destination:       from.Destination,
		Memo:              from.Memo,
		TxHash:            from.TxHash,
		RefundID:          from.RefundID,
		FailureCode:       from.FailureCode,
		FailureMessage:    prose(from.FailureMessage),
		ConflictTxHash:    from.Conflict.TxHash,
		ConflictOwn:       from.Conflict.Own,
		RequestedBy:       documentOf(from.RequestedBy),
		NativeAsset:       from.NativeAsset,
		NativeDecimals:    from.NativeDecimals,
		MaxNetworkFee:     amount(from.MaxNetworkFee),
		NetworkFee:        optionalAmount{from.NetworkFee},
		TransactionID:     from.TransactionID,
		CreatedAt:         moment(from.CreatedAt),
		BroadcastAt:       moment(from.BroadcastAt),
		ConfirmedAt:       moment(from.ConfirmedAt),
		FailedAt:          moment(from.FailedAt),
		Approval:          documentOf(from.Approval),
		Signing:           documentOf(from.Signing),
		MAC:               from.MAC,
		Sequence:          from.Sequence,
		SearchTxHash:      searched(from.TxHash),
		SearchDestination: searched(from.Destination),
		Version:           from.Version,
	}
}

func (r *payoutRow) record() payout.Payout {
	return payout.Payout{
		ID:              r.ID,
		Owner:           event.Owner(r.ownerRow),
		Status:          r.Status,
		Network:         r.Network,
		Asset:           r.Asset,
		AssetID:         r.AssetID,
		Contract:        r.Contract,
		Decimals:        r.Decimals,
		Amount:          chain.Amount(r.Amount),
		AmountDelivered: r.AmountDelivered.amount,
		Destination:     r.Destination,
		Memo:            r.Memo,
		TxHash:          r.TxHash,
		RefundID:        r.RefundID,
		FailureCode:     r.FailureCode,
		FailureMessage:  string(r.FailureMessage),
		RequestedBy:     r.RequestedBy.value,
		NativeAsset:     r.NativeAsset,
		NativeDecimals:  r.NativeDecimals,
		MaxNetworkFee:   chain.Amount(r.MaxNetworkFee),
		NetworkFee:      r.NetworkFee.amount,
		TransactionID:   r.TransactionID,
		CreatedAt:       time.Time(r.CreatedAt),
		BroadcastAt:     time.Time(r.BroadcastAt),
		ConfirmedAt:     time.Time(r.ConfirmedAt),
		FailedAt:        time.Time(r.FailedAt),
		Approval:        r.Approval.value,
		Signing:         r.Signing.value,
		MAC:             r.MAC,
		Sequence:        r.Sequence,
		Version:         r.Version,
		Conflict:        wallet.Conflict{TxHash: r.ConflictTxHash, Own: r.ConflictOwn},
	}
}

// refundRow is a row of {refunds}.
type refundRow struct {
	ID string `db:"id"`
	ownerRow
	Status      payout.RefundStatus         `db:"status"`
	InvoiceID   string                      `db:"invoice_id"`
	PaymentID   string                      `db:"payment_id"`
	PayoutID    string                      `db:"payout_id"`
	Network     string                      `db:"network"`
	Asset       string                      `db:"asset"`
	AssetID     string                      `db:"asset_id"`
	Contract    chain.Address               `db:"contract"`
	Decimals    uint8                       `db:"decimals"`
	Amount      amount                      `db:"amount"`
	Destination chain.Address               `db:"destination"`
	Reason      string                      `db:"reason"`
	Metadata    document[map[string]string] `db:"metadata"`
	RequestedBy document[payout.Requester]  `db:"requested_by"`
	Simulated   bool                        `db:"simulated"`
	FailureCode string                      `db:"failure_code"`
	CreatedAt   moment                      `db:"created_at"`
	SucceededAt moment                      `db:"succeeded_at"`
	FailedAt    moment                      `db:"failed_at"`
	Sequence    int64                       `db:"sequence"`
	Version     int64                       `db:"version"`
}

func refundRowOf(from *payout.Refund) refundRow {
	return refundRow{
		ID:          from.ID,
		ownerRow:    ownerRow(from.Owner),
		Status:      from.Status,
		InvoiceID:   from.InvoiceID,
		PaymentID:   from.PaymentID,
		PayoutID:    from.PayoutID,
		Network:     from.Network,
		Asset:       from.Asset,
		AssetID:     from.AssetID,
		Contract:    from.Contract,
		Decimals:    from.Decimals,
		Amount:      amount(from.Amount),
		Destination: from.Destination,
		Reason:      from.Reason,
		Metadata:    documentOf(from.Metadata),
		RequestedBy: documentOf(from.RequestedBy),
		Simulated:   from.Simulated,
		FailureCode: from.FailureCode,
		CreatedAt:   moment(from.CreatedAt),
		SucceededAt: moment(from.SucceededAt),
		FailedAt:    moment(from.FailedAt),
		Sequence:    from.Sequence,
		Version:     from.Version,
	}
}

func (r *refundRow) record() payout.Refund {
	return payout.Refund{
		ID:          r.ID,
		Owner:       event.Owner(r.ownerRow),
		Status:      r.Status,
		InvoiceID:   r.InvoiceID,
		PaymentID:   r.PaymentID,
		PayoutID:    r.PayoutID,
		Network:     r.Network,
		Asset:       r.Asset,
		AssetID:     r.AssetID,
		Contract:    r.Contract,
		Decimals:    r.Decimals,
		Amount:      chain.Amount(r.Amount),
		Destination: r.Destination,
		Reason:      r.Reason,
		Metadata:    r.Metadata.value,
		RequestedBy: r.RequestedBy.value,
		Simulated:   r.Simulated,
		FailureCode: r.FailureCode,
		CreatedAt:   time.Time(r.CreatedAt),
		SucceededAt: time.Time(r.SucceededAt),
		FailedAt:    time.Time(r.FailedAt),
		Sequence:    r.Sequence,
		Version:     r.Version,
	}
}

package sqlstore

// This file holds the rows of settlements.

import (
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/settlement"
)

// settlementRow is a row of {settlements}.
type settlementRow struct {
	ID string `db:"id"`
	ownerRow
	Status              settlement.Status    `db:"status"`
	PaymentID           string               `db:"payment_id"`
	InvoiceID           string               `db:"invoice_id"`
	DepositAddressID    string               `db:"deposit_address_id"`
	Network             string               `db:"network"`
	Asset               string               `db:"asset"`
	AssetID             string               `db:"asset_id"`
	NativeAsset         string               `db:"native_asset"`
	DepositAddress      chain.Address        `db:"address"`
	DepositKey          keyRef               `db:"address_key"`
	Gross               amount               `db:"gross"`
	USDValue            decimal.Decimal      `db:"usd_value"`
	FeeBPS              int                  `db:"fee_bps"`
	FeeUSD              decimal.Decimal      `db:"fee_usd"`
	NativePrice         decimal.Decimal      `db:"native_price"`
	FeeNative           amount               `db:"fee_native"`
	FeeSource           settlement.FeeSource `db:"fee_source"`
	FeePaid             amount               `db:"fee_paid"`
	FeeCarried          amount               `db:"fee_carried"`
	CarriedIn           amount               `db:"carried_in"`
	CarriedOut          amount               `db:"carried_out"`
	RequiredNative      optionalAmount       `db:"required_native"`
	MasterWalletAddress chain.Address        `db:"master_wallet_address"`
	Reason              settlement.Reason    `db:"reason"`
	FailedFor           settlement.Reason    `db:"failed_for"`
	ReasonMessage       prose                `db:"reason_message"`
	WaitingSince        moment               `db:"waiting_since"`
	FeeTx               string               `db:"fee_tx"`
	TopUpTx             string               `db:"topup_tx"`
	SweepTx             string               `db:"sweep_tx"`
	NetworkFees         amount               `db:"network_fees"`
	ResidueIn           amount               `db:"residue_in"`
	ResidueOut          amount               `db:"residue_out"`
	NetReleased         optionalAmount       `db:"net_released"`
	Simulated           bool                 `db:"simulated"`
	SweepID             string               `db:"sweep_id"`
	ConfirmedAt         moment               `db:"confirmed_at"`
	HeldSince           moment               `db:"held_since"`
	ReleasedAt          moment               `db:"released_at"`
	FailedAt            moment               `db:"failed_at"`
	CreatedAt           moment               `db:"created_at"`
	DueAt               moment               `db:"due_at"`
	Sequence            int64                `db:"sequence"`
	Version             int64                `db:"version"`
}

func settlementRowOf(from *settlement.Settlement) settlementRow {
	return settlementRow{
		ID:                  from.ID,
		ownerRow:            ownerRow(from.Owner),
		Status:              from.Status,
		PaymentID:           from.PaymentID,
		InvoiceID:           from.InvoiceID,
		DepositAddressID:    from.DepositAddressID,
		Network:             from.Network,
		Asset:               from.Asset,
		AssetID:             from.AssetID,
		NativeAsset:         from.NativeAsset,
		DepositAddress:      from.Deposit.Address,
		DepositKey:          keyRef(from.Deposit.Key),
		Gross:               amount(from.Gross),
		USDValue:            from.USDValue,
		FeeBPS:              from.FeeBPS,
		FeeUSD:              from.FeeUSD,
		NativePrice:         from.NativePrice,
		FeeNative:           amount(from.FeeNative),
		FeeSource:           from.FeeSource,
		FeePaid:             amount(from.FeePaid),
		FeeCarried:          amount(from.FeeCarried),
		CarriedIn:           amount(from.CarriedIn),
		CarriedOut:          amount(from.CarriedOut),
		RequiredNative:      optionalAmount{from.RequiredNative},
		MasterWalletAddress: from.MasterWalletAddress,
		Reason:              from.Reason,
		FailedFor:           from.FailedFor,
		ReasonMessage:       prose(from.ReasonMessage),
		WaitingSince:        moment(from.WaitingSince),
		FeeTx:               from.FeeTx,
		TopUpTx:             from.TopUpTx,
		SweepTx:             from.SweepTx,
		NetworkFees:         amount(from.NetworkFees),
		ResidueIn:           amount(from.ResidueIn),
		ResidueOut:          amount(from.ResidueOut),
		NetReleased:         optionalAmount{from.NetReleased},
		Simulated:           from.Simulated,
		SweepID:             from.SweepID,
		ConfirmedAt:         moment(from.ConfirmedAt),
		HeldSince:           moment(from.HeldSince),
		ReleasedAt:          moment(from.ReleasedAt),
		FailedAt:            moment(from.FailedAt),
		CreatedAt:           moment(from.CreatedAt),
		DueAt:               moment(from.DueAt),
		Sequence:            from.Sequence,
		Version:             from.Version,
	}
}

func (r *settlementRow) record() settlement.Settlement {
	return settlement.Settlement{
		ID:                  r.ID,
		Owner:               event.Owner(r.ownerRow),
		Status:              r.Status,
		PaymentID:           r.PaymentID,
		InvoiceID:           r.InvoiceID,
		DepositAddressID:    r.DepositAddressID,
		Network:             r.Network,
		Asset:               r.Asset,
		AssetID:             r.AssetID,
		NativeAsset:         r.NativeAsset,
		Gross:               chain.Amount(r.Gross),
		USDValue:            r.USDValue,
		FeeBPS:              r.FeeBPS,
		FeeUSD:              r.FeeUSD,
		NativePrice:         r.NativePrice,
		FeeNative:           chain.Amount(r.FeeNative),
		FeeSource:           r.FeeSource,
		FeePaid:             chain.Amount(r.FeePaid),
		FeeCarried:          chain.Amount(r.FeeCarried),
		CarriedIn:           chain.Amount(r.CarriedIn),
		CarriedOut:          chain.Amount(r.CarriedOut),
		RequiredNative:      r.RequiredNative.amount,
		MasterWalletAddress: r.MasterWalletAddress,
		Reason:              r.Reason,
		FailedFor:           r.FailedFor,
		ReasonMessage:       string(r.ReasonMessage),
		WaitingSince:        time.Time(r.WaitingSince),
		FeeTx:               r.FeeTx,
		TopUpTx:             r.TopUpTx,
		SweepTx:             r.SweepTx,
		NetworkFees:         chain.Amount(r.NetworkFees),
		ResidueIn:           chain.Amount(r.ResidueIn),
		ResidueOut:          chain.Amount(r.ResidueOut),
		NetReleased:         r.NetReleased.amount,
		Simulated:           r.Simulated,
		SweepID:             r.SweepID,
		ConfirmedAt:         time.Time(r.ConfirmedAt),
		HeldSince:           time.Time(r.HeldSince),
		ReleasedAt:          time.Time(r.ReleasedAt),
		FailedAt:            time.Time(r.FailedAt),
		CreatedAt:           time.Time(r.CreatedAt),
		DueAt:               time.Time(r.DueAt),
		Sequence:            r.Sequence,
		Version:             r.Version,
		Deposit:             chain.Party{Address: r.DepositAddress, Key: chain.KeyRef(r.DepositKey)},
	}
}

// sweepRow is a row of {sweeps}.
type sweepRow struct {
	ID string `db:"id"`
	ownerRow
	Network        string                         `db:"network"`
	AssetID        string                         `db:"asset_id"`
	DepositAddress chain.Address                  `db:"address"`
	DepositKey     keyRef                         `db:"address_key"`
	MasterAddress  chain.Address                  `db:"master_address"`
	MasterKey      keyRef                         `db:"master_key"`
	SettlementIDs  document[[]string]             `db:"settlement_ids"`
	Amount         amount                         `db:"amount"`
	Fee            amount                         `db:"fee"`
	CarryIn        amount                         `db:"carry_in"`
	FeeAddress     chain.Address                  `db:"fee_address"`
	ResidueIn      amount                         `db:"residue_in"`
	ResidueOut     amount                         `db:"residue_out"`
	Owed           amount                         `db:"owed"`
	Claims         document[[]settlement.Brought] `db:"claims"`
	LeftFees       amount                         `db:"left_fees"`
	Steps          document[[]settlement.Step]    `db:"steps"`
	Done           bool                           `db:"done"`
	DueAt          moment                         `db:"due_at"`
	CreatedAt      moment                         `db:"created_at"`
	Version        int64                          `db:"version"`
}

func sweepRowOf(from *settlement.Sweep) sweepRow {
	return sweepRow{
		ID:             from.ID,
		ownerRow:       ownerRow(from.Owner),
		Network:        from.Network,
		AssetID:        from.AssetID,
		DepositAddress: from.Deposit.Address,
		DepositKey:     keyRef(from.Deposit.Key),
		MasterAddress:  from.Master.Address,
		MasterKey:      keyRef(from.Master.Key),
		SettlementIDs:  documentOf(from.SettlementIDs),
		Amount:         amount(from.Amount),
		Fee:            amount(from.Fee),
		CarryIn:        amount(from.CarryIn),
		FeeAddress:     from.FeeAddress,
		ResidueIn:      amount(from.ResidueIn),
		ResidueOut:     amount(from.ResidueOut),
		Owed:           amount(from.Owed),
		Claims:         documentOf(from.Claims),
		LeftFees:       amount(from.LeftFees),
		Steps:          documentOf(from.Steps),
		Done:           from.Done,
		DueAt:          moment(from.DueAt),
		CreatedAt:      moment(from.CreatedAt),
		Version:        from.Version,
	}
}

func (r *sweepRow) record() settlement.Sweep {
	return settlement.Sweep{
		ID:            r.ID,
		Owner:         event.Owner(r.ownerRow),
		Network:       r.Network,
		AssetID:       r.AssetID,
		SettlementIDs: r.SettlementIDs.value,
		Amount:        chain.Amount(r.Amount),
		Fee:           chain.Amount(r.Fee),
		CarryIn:       chain.Amount(r.CarryIn),
		FeeAddress:    r.FeeAddress,
		ResidueIn:     chain.Amount(r.ResidueIn),
		ResidueOut:    chain.Amount(r.ResidueOut),
		Owed:          chain.Amount(r.Owed),
		Claims:        r.Claims.value,
		LeftFees:      chain.Amount(r.LeftFees),
		Steps:         r.Steps.value,
		Done:          r.Done,
		DueAt:         time.Time(r.DueAt),
		CreatedAt:     time.Time(r.CreatedAt),
		Version:       r.Version,
		Deposit:       chain.Party{Address: r.DepositAddress, Key: chain.KeyRef(r.DepositKey)},
		Master:        chain.Party{Address: r.MasterAddress, Key: chain.KeyRef(r.MasterKey)},
	}
}

// carryRow is a row of {carried_fees}.
type carryRow struct {
	ownerRow
	Network string `db:"network"`
	Amount  amount `db:"amount"`
	Version int64  `db:"version"`
}

func carryRowOf(from *settlement.CarriedFee) carryRow {
	return carryRow{
		ownerRow: ownerRow(from.Owner),
		Network:  from.Network,
		Amount:   amount(from.Amount),
		Version:  from.Version,
	}
}

func (r *carryRow) record() settlement.CarriedFee {
	return settlement.CarriedFee{
		Owner:   event.Owner(r.ownerRow),
		Network: r.Network,
		Amount:  chain.Amount(r.Amount),
		Version: r.Version,
	}
}

// residueRow is a row of {residues}.
type residueRow struct {
	Network   string                              `db:"network"`
	Address   chain.Address                       `db:"address"`
	Amount    amount                              `db:"amount"`
	Owed      amount                              `db:"owed"`
	Unclaimed document[[]settlement.Brought]      `db:"unclaimed"`
	Tokens    document[[]settlement.TokenResidue] `db:"tokens"`
	ClaimedBy document[[]string]                  `db:"claimed_by"`
	Version   int64                               `db:"version"`
}

func residueRowOf(from *settlement.Residue) residueRow {
	return residueRow{
		Network:   from.Network,
		Address:   from.Address,
		Amount:    amount(from.Amount),
		Owed:      amount(from.Owed),
		Unclaimed: documentOf(from.Unclaimed),
		Tokens:    documentOf(from.Tokens),
		ClaimedBy: documentOf(from.ClaimedBy),
		Version:   from.Version,
	}
}

func (r *residueRow) record() settlement.Residue {
	return settlement.Residue{
		Network:   r.Network,
		Address:   r.Address,
		Amount:    chain.Amount(r.Amount),
		Owed:      chain.Amount(r.Owed),
		Unclaimed: r.Unclaimed.value,
		Tokens:    r.Tokens.value,
		ClaimedBy: r.ClaimedBy.value,
		Version:   r.Version,
	}
}

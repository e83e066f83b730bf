package sqlstore

// This file holds the rows of wallets.

import (
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
)

// transactionRow is a row of {transactions}.
type transactionRow struct {
	ID string `db:"id"`
	ownerRow
	Network        string                     `db:"network"`
	Kind           wallet.Kind                `db:"kind"`
	ObjectID       string                     `db:"object_id"`
	Order          document[chain.Order]      `db:"instruction"`
	FromAddress    chain.Address              `db:"from_address,hidden"`
	State          wallet.State               `db:"state"`
	Attempts       document[[]wallet.Attempt] `db:"attempts"`
	BatchMembers   document[[]string]         `db:"batch_members"`
	BatchedBy      string                     `db:"batched_by"`
	Nonce          bits                       `db:"nonce"`
	TxHash         string                     `db:"tx_hash"`
	BlockHeight    bits                       `db:"block_height"`
	BlockHash      string                     `db:"block_hash"`
	BlockTime      moment                     `db:"block_time"`
	Fee            amount                     `db:"fee"`
	Transfers      document[[]chain.Transfer] `db:"transfers"`
	Failure        string                     `db:"failure"`
	ConflictTxHash string                     `db:"conflict_tx_hash"`
	ConflictOwn    bool                       `db:"conflict_own"`
	Waits          prose                      `db:"waits"`
	WaitingSince   moment                     `db:"waiting_since"`
	ReadyAt        moment                     `db:"ready_at"`
	GiveUpAt       moment                     `db:"give_up_at"`
	DueAt          moment                     `db:"due_at"`
	CreatedAt      moment                     `db:"created_at"`
	Version        int64                      `db:"version"`
}

func transactionRowOf(from *wallet.Transaction) transactionRow {
	return transactionRow{
		ID:             from.ID,
		ownerRow:       ownerRow(from.Owner),
		Network:        from.Network,
		Kind:           from.Kind,
		ObjectID:       from.ObjectID,
		Order:          documentOf(from.Order),
		FromAddress:    from.Order.From.Address,
		State:          from.State,
		Attempts:       documentOf(from.Attempts),
		BatchMembers:   documentOf(from.BatchMembers),
		BatchedBy:      from.BatchedBy,
		Nonce:          bits(from.Nonce),
		TxHash:         from.TxHash,
		BlockHeight:    bits(from.Block.Height),
		BlockHash:      from.Block.Hash,
		BlockTime:      moment(from.Block.Time),
		Fee:            amount(from.Fee),
		Transfers:      documentOf(from.Transfers),
		Failure:        from.Failure,
		ConflictTxHash: from.Conflict.TxHash,
		ConflictOwn:    from.Conflict.Own,
		Waits:          prose(from.Waits),
		WaitingSince:   moment(from.WaitingSince),
		ReadyAt:        moment(from.ReadyAt),
		GiveUpAt:       moment(from.GiveUpAt),
		DueAt:          moment(from.DueAt),
		CreatedAt:      moment(from.CreatedAt),
		Version:        from.Version,
	}
}

func (r *transactionRow) record() wallet.Transaction {
	return wallet.Transaction{
		ID:           r.ID,
		Owner:        event.Owner(r.ownerRow),
		Network:      r.Network,
		Kind:         r.Kind,
		ObjectID:     r.ObjectID,
		Order:        r.Order.value,
		State:        r.State,
		Attempts:     r.Attempts.value,
		BatchMembers: r.BatchMembers.value,
		BatchedBy:    r.BatchedBy,
		Nonce:        uint64(r.Nonce),
		TxHash:       r.TxHash,
		Block:        blockRef(r.BlockHeight, r.BlockHash, r.BlockTime),
		Fee:          chain.Amount(r.Fee),
		Transfers:    r.Transfers.value,
		Failure:      r.Failure,
		Waits:        string(r.Waits),
		WaitingSince: time.Time(r.WaitingSince),
		ReadyAt:      time.Time(r.ReadyAt),
		GiveUpAt:     time.Time(r.GiveUpAt),
		DueAt:        time.Time(r.DueAt),
		CreatedAt:    time.Time(r.CreatedAt),
		Version:      r.Version,
		Conflict:     wallet.Conflict{TxHash: r.ConflictTxHash, Own: r.ConflictOwn},
	}
}

// attemptRow is a row of {attempt_hashes}.
type attemptRow struct {
	Network       string      `db:"network"`
	Hash          string      `db:"hash"`
	TransactionID string      `db:"transaction_id"`
	Kind          wallet.Kind `db:"kind"`
}

func attemptRowOf(from *attempt) attemptRow {
	return attemptRow{
		Network:       from.network,
		Hash:          from.hash,
		TransactionID: from.transactionID,
		Kind:          from.kind,
	}
}

func (r *attemptRow) record() attempt {
	return attempt{
		network:       r.Network,
		hash:          r.Hash,
		transactionID: r.TransactionID,
		kind:          r.Kind,
	}
}

// walletRow is a row of {wallets}.
type walletRow struct {
	Network      string              `db:"network"`
	PartyAddress chain.Address       `db:"address"`
	PartyKey     keyRef              `db:"address_key"`
	NextNonce    bits                `db:"next_nonce"`
	Since        bits                `db:"since"`
	Epoch        bits                `db:"epoch"`
	Frozen       wallet.FreezeReason `db:"frozen"`
	FrozenBy     string              `db:"frozen_by"`
	FrozenAt     moment              `db:"frozen_at"`
	Version      int64               `db:"version"`
}

func walletRowOf(from *wallet.Wallet) walletRow {
	return walletRow{
		Network:      from.Network,
		PartyAddress: from.Party.Address,
		PartyKey:     keyRef(from.Party.Key),
		NextNonce:    bits(from.NextNonce),
		Since:        bits(from.Since),
		Epoch:        bits(from.Epoch),
		Frozen:       from.Frozen,
		FrozenBy:     from.FrozenBy,
		FrozenAt:     moment(from.FrozenAt),
		Version:      from.Version,
	}
}

func (r *walletRow) record() wallet.Wallet {
	return wallet.Wallet{
		Network:   r.Network,
		NextNonce: uint64(r.NextNonce),
		Since:     uint64(r.Since),
		Epoch:     uint64(r.Epoch),
		Frozen:    r.Frozen,
		FrozenBy:  r.FrozenBy,
		FrozenAt:  time.Time(r.FrozenAt),
		Version:   r.Version,
		Party:     chain.Party{Address: r.PartyAddress, Key: chain.KeyRef(r.PartyKey)},
	}
}

// balanceRow is a row of {balances}.
type balanceRow struct {
	Network string        `db:"network"`
	Address chain.Address `db:"address"`
	AssetID string        `db:"asset_id"`
	ownerRow
	OnChain      amount                         `db:"on_chain"`
	AtHeight     bits                           `db:"at_height"`
	AtHash       string                         `db:"at_hash"`
	AtTime       moment                         `db:"at_time"`
	Reserved     amount                         `db:"reserved"`
	Reservations document[[]wallet.Reservation] `db:"reservations"`
	Version      int64                          `db:"version"`
}

func balanceRowOf(from *wallet.Balance) balanceRow {
	return balanceRow{
		Network:      from.Network,
		Address:      from.Address,
		AssetID:      from.AssetID,
		ownerRow:     ownerRow(from.Owner),
		OnChain:      amount(from.OnChain),
		AtHeight:     bits(from.At.Height),
		AtHash:       from.At.Hash,
		AtTime:       moment(from.At.Time),
		Reserved:     amount(from.Reserved),
		Reservations: documentOf(from.Reservations),
		Version:      from.Version,
	}
}

func (r *balanceRow) record() wallet.Balance {
	return wallet.Balance{
		Network:      r.Network,
		Address:      r.Address,
		AssetID:      r.AssetID,
		Owner:        event.Owner(r.ownerRow),
		OnChain:      chain.Amount(r.OnChain),
		At:           blockRef(r.AtHeight, r.AtHash, r.AtTime),
		Reserved:     chain.Amount(r.Reserved),
		Reservations: r.Reservations.value,
		Version:      r.Version,
	}
}

// coinRow is a row of {coins}.
type coinRow struct {
	Network        string        `db:"network"`
	OutpointTxHash string        `db:"tx_hash"`
	OutpointVout   uint32        `db:"vout"`
	OwnerAddress   chain.Address `db:"address"`
	OwnerKey       keyRef        `db:"address_key"`
	Amount         amount        `db:"amount"`
	Height         bits          `db:"height"`
	ReservedBy     string        `db:"reserved_by"`
	SpentBy        string        `db:"spent_by"`
	SpentAt        bits          `db:"spent_at"`
	Depth          int           `db:"depth"`
	MatureAt       bits          `db:"mature_at"`
	Version        int64         `db:"version"`
}

func coinRowOf(from *wallet.Coin) coinRow {
	return coinRow{
		Network:        from.Network,
		OutpointTxHash: from.Outpoint.TxHash,
		OutpointVout:   from.Outpoint.Vout,
		OwnerAddress:   from.Owner.Address,
		OwnerKey:       keyRef(from.Owner.Key),
		Amount:         amount(from.Amount),
		Height:         bits(from.Height),
		ReservedBy:     from.ReservedBy,
		SpentBy:        from.SpentBy,
		SpentAt:        bits(from.SpentAt),
		Depth:          from.Depth,
		MatureAt:       bits(from.MatureAt),
		Version:        from.Version,
	}
}

func (r *coinRow) record() wallet.Coin {
	return wallet.Coin{
		Coin: chain.Coin{
			Outpoint: chain.Outpoint{TxHash: r.OutpointTxHash, Vout: r.OutpointVout},
			Owner:    chain.Party{Address: r.OwnerAddress, Key: chain.KeyRef(r.OwnerKey)},
			Amount:   chain.Amount(r.Amount),
			Height:   uint64(r.Height),
		},
		Network:    r.Network,
		ReservedBy: r.ReservedBy,
		SpentBy:    r.SpentBy,
		SpentAt:    uint64(r.SpentAt),
		Depth:      r.Depth,
		MatureAt:   uint64(r.MatureAt),
		Version:    r.Version,
	}
}

// outgoingRow is a row of {outgoing}.
type outgoingRow struct {
	Network        string                     `db:"network"`
	Key            string                     `db:"spend_key"`
	Address        chain.Address              `db:"address"`
	Nonce          bits                       `db:"nonce"`
	OutpointTxHash string                     `db:"coin_hash"`
	OutpointVout   uint32                     `db:"coin_vout"`
	TxHash         string                     `db:"tx_hash"`
	BlockHeight    bits                       `db:"block_height"`
	BlockHash      string                     `db:"block_hash"`
	BlockTime      moment                     `db:"block_time"`
	Failed         bool                       `db:"failed"`
	Unrecorded     bool                       `db:"unrecorded"`
	Transfers      document[[]chain.Transfer] `db:"transfers"`
	Fee            amount                     `db:"fee"`
	Acknowledged   prose                      `db:"acknowledged"`
	Version        int64                      `db:"version"`
}

func outgoingRowOf(from *wallet.Outgoing) outgoingRow {
	return outgoingRow{
		Network:        from.Network,
		Key:            from.Key,
		Address:        from.Address,
		Nonce:          bits(from.Nonce),
		OutpointTxHash: from.Outpoint.TxHash,
		OutpointVout:   from.Outpoint.Vout,
		TxHash:         from.TxHash,
		BlockHeight:    bits(from.Block.Height),
		BlockHash:      from.Block.Hash,
		BlockTime:      moment(from.Block.Time),
		Failed:         from.Failed,
		Unrecorded:     from.Unrecorded,
		Transfers:      documentOf(from.Transfers),
		Fee:            amount(from.Fee),
		Acknowledged:   prose(from.Acknowledged),
		Version:        from.Version,
	}
}

func (r *outgoingRow) record() wallet.Outgoing {
	return wallet.Outgoing{
		Network:      r.Network,
		Key:          r.Key,
		Address:      r.Address,
		Nonce:        uint64(r.Nonce),
		TxHash:       r.TxHash,
		Block:        blockRef(r.BlockHeight, r.BlockHash, r.BlockTime),
		Failed:       r.Failed,
		Unrecorded:   r.Unrecorded,
		Transfers:    r.Transfers.value,
		Fee:          chain.Amount(r.Fee),
		Acknowledged: string(r.Acknowledged),
		Version:      r.Version,
		Outpoint:     chain.Outpoint{TxHash: r.OutpointTxHash, Vout: r.OutpointVout},
	}
}

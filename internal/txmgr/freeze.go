package txmgr

import (
	"context"
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/follow"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// A wallet is frozen if its network shows a transaction of it that is not on record: the records were
// restored from a backup, or somebody else has the key. The block handler freezes it in the transaction that
// stores the block. freeze_sign.go keeps the wallet's worker from signing. freeze_fulfill.go records a
// person's acknowledgement.

// freezeTx marks the rows of a batch whose transactions are not on record, and freezes their wallets. A
// stored row keeps its mark. If its block changed, it keeps the mark only if the transaction fulfilled
// something. The transfers and the fee of a foreign transaction may differ in another block from those that a
// person acknowledged.
func (o *Manager) freezeTx(
	ctx context.Context,
	tx wallet.Tx,
	b follow.Batch,
	rows, stored map[string]wallet.Outgoing,
	parties PartyLookup,
) error {
	fresh := keepMarks(b, rows, stored)

	own, err := ownAmong(ctx, tx, b.Network.Slug, rows, fresh)
	if err != nil {
		return err
	}

	isOwn := func(key string) bool { _, ours := own[rows[key].TxHash]; return ours }
	resent := slices.DeleteFunc(slices.Clone(fresh), func(key string) bool { return !isOwn(key) })

	if err := o.freezePaidTwiceTx(ctx, tx, b, rows, own, resent, parties); err != nil {
		return err
	}

	if fresh = slices.DeleteFunc(fresh, isOwn); len(fresh) == 0 {
		return nil
	}

	addresses := map[chain.Address]bool{}
	for _, key := range fresh {
		addresses[rows[key].Address] = true
	}

	ours, err := parties(ctx, slices.Sorted(maps.Keys(addresses)))
	if err != nil {
		return err
	}

	for _, key := range fresh {
		row := rows[key]

		before, err := isBefore(ctx, tx, row, stored[key], ours[row.Address])
		if err != nil {
			return err
		}

		if before {
			continue
		}

		if err := o.freezeByTx(ctx, tx, &row, ours[row.Address], transfersOf(b, row.TxHash)); err != nil {
			return err
		}

		rows[key] = row
	}

	return nil
}

// keepMarks copies the marks of stored rows to the rows of a batch. It returns the keys of new rows, and of
// open or foreign rows whose block changed.
func keepMarks(b follow.Batch, rows, stored map[string]wallet.Outgoing) (fresh []string) {
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		row, was := rows[key], stored[key]
		moved := row.Block.Hash != was.Block.Hash && (walletstate.IsOpen(was) || walletstate.IsForeign(was))

		if row.TxHash == was.TxHash {
			row.Unrecorded = was.Unrecorded
		}

		if row.TxHash != was.TxHash || moved {
			rows[key] = row
			fresh = append(fresh, key)

			continue
		}

		row.Transfers = was.Transfers
		row.Fee, row.Acknowledged = was.Fee, was.Acknowledged

		if b.Reread() && walletstate.IsOpen(row) {
			row.Transfers = transfersOf(b, row.TxHash) // until now only one node showed them
		}

		rows[key] = row
	}

	return fresh
}

// ownAmong returns those transactions of the rows with these keys that are ours, by hash.
func ownAmong(
	ctx context.Context,
	tx wallet.Tx,
	network string,
	rows map[string]wallet.Outgoing,
	keys []string,
) (map[string]wallet.OwnTransaction, error) {
	if len(keys) == 0 {
		return nil, nil
	}

	hashes := map[string]bool{}
	for _, key := range keys {
		hashes[rows[key].TxHash] = true
	}

	return tx.OwnTransactions(ctx, network, slices.Sorted(maps.Keys(hashes)))
}

// transfersOf returns the transfers of a transaction in the blocks of a batch.
func transfersOf(b follow.Batch, txHash string) []chain.Transfer {
	var found []chain.Transfer

	for _, block := range b.Blocks {
		found = append(found, chaindata.TransfersOf(block, txHash)...)
	}

	return found
}

// freezeByTx marks the row of a transaction that is not on record, and freezes its wallet. A watch-only
// wallet belongs to its owner: its transactions are foreign, and freeze nothing. Where foreign transactions
// are tolerated, one of a master wallet that equals no waiting payout is foreign at once.
func (o *Manager) freezeByTx(
	ctx context.Context,
	tx wallet.Tx,
	row *wallet.Outgoing,
	party chain.Party,
	transfers []chain.Transfer,
) error { // spec D11.8
	if party.Key.Role != chain.RoleMaster && party.Key.Role != chain.RoleDeposit {
		return nil
	}

	if o.watchOnly(row.Network, party.Address) {
		row.Unrecorded, row.Transfers, row.Acknowledged = true, transfers, wallet.Foreign
		return nil
	}

	row.Unrecorded, row.Transfers = true, transfers

	if o.config.Foreign == wallet.Tolerate && party.Key.Role == chain.RoleMaster {
		waited, err := equalsWaiting(ctx, tx, *row)
		if err != nil {
			return err
		}

		if !waited {
			row.Acknowledged = wallet.Foreign
			return nil
		}
	}

	o.config.Log.ErrorContext(
		ctx, "a wallet is frozen: it made a transaction that is not on record; see Engine.Acknowledge",
		"network", row.Network, "wallet", string(row.Address), "tx", row.TxHash,
	)

	return o.freezeWalletTx(ctx, tx, *row, party, wallet.FrozenUnrecorded)
}

// freezeWalletTx freezes the wallet of a row because of the row's transaction.
func (o *Manager) freezeWalletTx(
	ctx context.Context,
	tx wallet.Tx,
	row wallet.Outgoing,
	party chain.Party,
	reason wallet.FreezeReason,
) error {
	w, found, err := tx.Wallet(ctx, row.Network, party.Address)
	if err != nil {
		return err
	}

	if !found { // a deposit address that never paid
		w = wallet.Wallet{Network: row.Network, Party: party, Epoch: o.madeIn(party.Key)}
	}

	walletstate.Freeze(&w, reason, row.TxHash, o.now())

	return tx.PutWallet(ctx, &w)
}

// isBefore reports whether a transaction is from before its master wallet was registered; such a transaction
// does not freeze the wallet. The height of its block may deceive, as a fork may put a transaction of lost
// records into a block that low. So it is false for a nonce above those that we signed. It is also false for
// a spend whose stored row is Unrecorded or from after the registration, and for a spend of a transaction
// that waits. Nobody else used a deposit address before, so it is false for these. was is the stored row of
// the same spend, or zero.
func isBefore(
	ctx context.Context,
	tx wallet.Tx,
	row, was wallet.Outgoing,
	party chain.Party,
) (bool, error) {
	if was.Unrecorded || party.Key.Role != chain.RoleMaster {
		return false, nil
	}

	w, found, err := tx.Wallet(ctx, row.Network, party.Address)
	if err != nil || !found || row.Block.Height > w.Since || was.Block.Height > w.Since ||
		w.NextNonce > 0 && row.Nonce >= w.NextNonce {
		return false, err
	}

	live, err := tx.LiveTransactions(ctx, row.Network, party.Address)

	return !slices.ContainsFunc(live, func(t wallet.Transaction) bool { return spendsKey(t, row.Key) }), err
}

// spendsKey reports whether bytes of a transaction make the spend of a row.
func spendsKey(t wallet.Transaction, key string) bool {
	return slices.ContainsFunc(t.Attempts, func(a wallet.Attempt) bool {
		if len(a.Signed.Inputs) == 0 {
			return chaindata.SpendKey(chain.Spend{Sender: a.Signed.From, Nonce: a.Signed.Nonce}) == key
		}

		return slices.ContainsFunc(a.Signed.Inputs, func(in chain.Outpoint) bool {
			return chaindata.SpendKey(chain.Spend{Outpoint: in}) == key
		})
	})
}

// withdrawTx deletes rows of a block that was read again if the block does not hold their transactions: one
// node had invented them. If nothing else froze a wallet, its freeze ends. Rows that a person has
// acknowledged stay.
func (o *Manager) withdrawTx(ctx context.Context, tx wallet.Tx, b follow.Batch) error {
	if !b.Reread() {
		return nil
	}

	frozen := map[chain.Address]bool{}

	for _, block := range b.Blocks {
		above, err := tx.OutgoingAbove(ctx, b.Network.Slug, block.Height-min(block.Height, 1))
		if err != nil {
			return err
		}

		for _, row := range above {
			if row.Block.Hash != block.Hash || row.Acknowledged != "" || holds(block, row.TxHash) {
				continue
			}

			o.config.Log.WarnContext(
				ctx,
				"a block that was read again does not hold a transaction of a wallet; its record is deleted",
				"network",
				row.Network,
				"wallet",
				string(row.Address),
				"tx",
				row.TxHash,
			)

			if err := tx.DeleteOutgoing(ctx, row.Network, row.Key); err != nil {
				return err
			}

			frozen[row.Address] = frozen[row.Address] || row.Unrecorded
		}
	}

	for _, address := range slices.Sorted(maps.Keys(frozen)) {
		if !frozen[address] {
			continue
		}

		if err := o.AcknowledgedTx(ctx, tx, b.Network.Slug, address); err != nil {
			return err
		}
	}

	return nil
}

// holds reports whether a block has a transaction, or lists it as unread.
func holds(block chain.Block, txHash string) bool {
	return slices.ContainsFunc(block.Spent, func(s chain.Spend) bool { return s.By == txHash }) ||
		slices.ContainsFunc(block.Unread, func(u chain.Unread) bool { return u.TxHash == txHash })
}

// watchOnly reports whether an address is a watch-only master wallet.
func (o *Manager) watchOnly(network string, address chain.Address) bool { // spec D11.23
	for _, watched := range o.config.WatchOnly[network] {
		if watched == address {
			return true
		}
	}

	return false
}

// equalsWaiting reports whether a row's transaction equals a payout of its wallet that is not final.
func equalsWaiting(ctx context.Context, tx wallet.Tx, row wallet.Outgoing) (bool, error) { // spec D11.24
	live, err := tx.LiveTransactions(ctx, row.Network, row.Address)
	if err != nil {
		return false, err
	}

	return slices.ContainsFunc(live, func(t wallet.Transaction) bool {
		return t.Kind == wallet.Payout && walletstate.Pays(row, t.Order.Outputs)
	}), nil
}

// RegisterTx stores a wallet that is used from now on. Earlier transactions of it on its network do not
// freeze it. A stored wallet is not changed, except that one that missed an epoch is frozen: lost records may
// have used it.
func (o *Manager) RegisterTx(ctx context.Context, tx wallet.Tx, network string, party chain.Party) error {
	w, stored, err := o.walletOf(ctx, tx, network, party)
	if err != nil {
		return err
	}

	missed := o.hasMissedEpoch(w)
	if stored && !missed {
		return nil
	}

	if missed {
		o.freezeForEpoch(&w)
	}

	return tx.PutWallet(ctx, &w)
}

// newWallet returns the row of a wallet that is used from now on.
func (o *Manager) newWallet(
	ctx context.Context,
	r wallet.Reader,
	network string,
	party chain.Party,
) (wallet.Wallet, error) {
	w := wallet.Wallet{Network: network, Party: party, Epoch: o.madeIn(party.Key)}
	if o.hasMissedEpoch(w) {
		return w, nil // lost records may have used it at any height
	}

	c, _, err := r.Cursor(ctx, network)
	w.Since = c.Tip.Height

	return w, err
}

// AcknowledgedTx ends the freeze of a wallet that made transactions which are not on record, once each is
// acknowledged. A wallet that is frozen for its epoch stays frozen.
func (o *Manager) AcknowledgedTx(
	ctx context.Context,
	tx wallet.Tx,
	network string,
	address chain.Address,
) error {
	w, _, err := tx.Wallet(ctx, network, address)
	if err != nil || w.Frozen == "" || w.Frozen == wallet.FrozenEpoch {
		return err
	}

	return o.thawTx(ctx, tx, &w)
}

// thawTx stores a wallet and unfreezes it, unless one of its transactions still waits for a person. Its
// queued transactions become due.
func (o *Manager) thawTx(ctx context.Context, tx wallet.Tx, w *wallet.Wallet) error {
	open, err := tx.UnrecordedOutgoing(ctx, w.Network, w.Party.Address, o.now().Add(walletstate.ForeignFor))
	if err != nil {
		return err
	}

	open = slices.DeleteFunc(open, func(row wallet.Outgoing) bool { return !walletstate.IsOpen(row) })
	if len(open) > 0 {
		w.FrozenBy = open[0].TxHash
		return tx.PutWallet(ctx, w)
	}

	walletstate.Unfreeze(w)

	if err := tx.PutWallet(ctx, w); err != nil {
		return err
	}

	live, err := tx.LiveTransactions(ctx, w.Network, w.Party.Address)
	if err != nil {
		return err
	}

	for _, t := range live {
		if t.State != wallet.Queued {
			continue
		}

		t.DueAt = o.now()
		if err := tx.PutTransaction(ctx, &t); err != nil {
			return err
		}
	}

	return nil
}

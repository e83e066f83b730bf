package engine

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// acknowledgement is one call of Acknowledge.
type acknowledgement struct {
	*Engine
	driver  chain.Driver
	network string
	txHash  string
	// foreign is set if the caller passed Foreign. ids are the named objects; payouts are the payouts of the
	// named refunds.
	foreign      bool
	ids, payouts []string
	// paid are the named payouts, named by their own ids or by their refunds'.
	paid   []string
	status chain.TxStatus
	// spent is the first thing that the transaction uses up (chaindata.SpendKey). It comes from the network,
	// not a row.
	spent string
	// masters are the master wallets of the named settlements, by settlement id.
	masters map[string]chain.Party
	// pooled are the addresses that the transaction takes from while it waits in the pool. ahead is set if it
	// is in a block that was not read yet.
	pooled []chain.Address
	ahead  bool
}

// Acknowledge records what a final transaction of a wallet was, when that transaction is not on record; see
// payments.Engine.Acknowledge.
func (e *Engine) Acknowledge(ctx context.Context, network, txHash string, as ...string) error { // spec D11.10
	driver, err := e.Networks.Driver(network)
	if err != nil {
		return err
	}

	a := &acknowledgement{Engine: e, driver: driver, network: network, txHash: txHash}
	if err := a.parse(as); err != nil {
		return err
	}

	rows, err := a.rows(ctx, e.config.Store)
	if err != nil {
		return err
	}

	switch {
	case len(rows) == 0:
		err = a.lookUp(ctx)
	case !a.isRecorded(rows):
		err = a.read(ctx, rows)
	}

	if err != nil {
		return err
	}

	if err := e.Update(ctx, a.apply); err != nil {
		return err
	}

	e.Wake()

	return nil
}

// lookUp asks the node for the state of a transaction that is in no block read so far.
func (a *acknowledgement) lookUp(ctx context.Context) (err error) {
	if a.pooled, err = a.Transactions.PooledFrom(ctx, a.network, a.txHash); err != nil {
		return err
	}

	sender, ok := a.driver.(chain.Sender)
	if !ok {
		return nil
	}

	status, err := sender.Status(ctx, chain.Signed{TxHash: a.txHash})
	a.ahead = status.State == chain.TxIncluded

	return err
}

// parse reads the ids, or Foreign, that the transaction is acknowledged as.
func (a *acknowledgement) parse(as []string) error {
	for _, name := range as {
		switch {
		case name == wallet.Foreign:
			a.foreign = true
		case name == "" || strings.Contains(name, ","):
			return fault.New(fault.Invalid, "acknowledgement_invalid", "%q is no id", name)
		case !slices.Contains(a.ids, name):
			a.ids = append(a.ids, name)
		}
	}

	if !a.foreign && len(a.ids) == 0 {
		return fault.New(
			fault.Invalid,
			"acknowledgement_invalid",
			"say what transaction %s was: ids of payouts, refunds or settlements, or %q",
			a.txHash,
			wallet.Foreign,
		)
	}

	slices.Sort(a.ids)

	return nil
}

// rows returns the unrecorded rows of the transaction that are in a block.
func (a *acknowledgement) rows(ctx context.Context, r wallet.Reader) ([]wallet.Outgoing, error) {
	rows, err := r.OutgoingByHash(ctx, a.network, []string{a.txHash})

	return slices.DeleteFunc(rows, func(row wallet.Outgoing) bool {
		return !row.Unrecorded || row.Block.IsZero() // see acknowledgePooled
	}), err
}

// isRecorded reports whether the rows already hold the caller's answer.
func (a *acknowledgement) isRecorded(rows []wallet.Outgoing) bool {
	for _, row := range rows {
		names := strings.Split(row.Acknowledged, ",")
		if walletstate.IsOpen(row) || a.foreign != (names[0] == wallet.Foreign) {
			return false
		}

		for _, id := range a.ids {
			if !slices.Contains(names, id) {
				return false
			}
		}
	}

	return true
}

// read reads what the transaction did, in its block and from its node, and which master wallets the named
// settlements belong to.
func (a *acknowledgement) read(ctx context.Context, rows []wallet.Outgoing) error {
	sender, ok := a.driver.(chain.Sender)
	if !ok {
		return fault.New(
			fault.Unsupported,
			"send_unsupported",
			"the driver of network %s cannot send",
			a.network,
		)
	}

	row := rows[0]
	signed := chain.Signed{TxHash: a.txHash, From: row.Address, Nonce: row.Nonce}

	var err error
	if a.status, err = sender.Status(ctx, signed); err != nil {
		return err
	}

	if a.status.State != chain.TxIncluded || a.status.Block.Hash != row.Block.Hash || !a.status.Final {
		return fault.New(
			fault.State, "transaction_not_final",
			"transaction %s is in block %d of %s, which is not final yet: acknowledge it when it is",
			a.txHash, row.Block.Height, a.network,
		)
	}

	if agreed, ok := a.driver.(chain.Agreed); ok {
		if _, err := agreed.AgreedBlock(ctx, row.Block, nil); err != nil {
			return err
		}
	}

	if a.status.Transfers, err = a.transfers(ctx, row); err != nil {
		return err
	}

	if err := a.findMasters(ctx); err != nil || a.foreign || len(a.masters) == 0 {
		return err
	}

	return a.measure(ctx, row)
}

// transfers returns the transfers of the transaction, read from its block if the network has readable blocks.
func (a *acknowledgement) transfers(ctx context.Context, row wallet.Outgoing) ([]chain.Transfer, error) {
	scanner, ok := a.driver.(chain.BlockScanner)
	if !ok {
		a.spent = chaindata.SpendKey(chain.Spend{Sender: row.Address, By: a.txHash, Shared: true})
		return a.status.Transfers, nil
	}

	blocks, err := scanner.Blocks(ctx, row.Block.Height, row.Block.Height)
	if err != nil {
		return nil, err
	}

	var found []chain.Transfer

	for _, block := range blocks {
		if block.Hash != row.Block.Hash {
			return nil, fault.New(
				fault.Unavailable,
				"block_moved",
				"the node of %s has another block %d than was read: call again",
				a.network,
				row.Block.Height,
			)
		}

		found = append(found, chaindata.TransfersOf(block, a.txHash)...)

		for _, s := range slices.Backward(block.Spent) {
			if s.By == a.txHash {
				a.spent = chaindata.SpendKey(s)
			}
		}
	}

	return found, nil
}

// apply stores the acknowledgement, moves the objects that the transaction fulfilled, and unfreezes its
// wallets.
func (a *acknowledgement) apply(ctx context.Context, tx Tx) error {
	rows, err := a.rows(ctx, tx)
	if err != nil {
		return err
	}

	if len(rows) == 0 {
		return a.applyGone(ctx, tx)
	}

	if a.isRecorded(rows) {
		return nil
	}

	if a.status.State != chain.TxIncluded {
		return fault.New(
			fault.Unavailable,
			"block_moved",
			"transaction %s was read only now: call again",
			a.txHash,
		)
	}

	if said := rows[0].Acknowledged; said != "" && !strings.HasPrefix(said, wallet.Foreign) {
		return fault.New(
			fault.State, "transaction_acknowledged", "transaction %s was acknowledged as %s", a.txHash, said,
		)
	}

	fulfilled, err := a.fulfill(ctx, tx, rows)
	if err != nil {
		return err
	}

	if err := a.recordSigning(ctx, tx, fulfilled); err != nil {
		return err
	}

	addresses := map[chain.Address]bool{}

	for i := range rows {
		addresses[rows[i].Address] = true
		rows[i].Acknowledged = a.saidOf(rows[i], fulfilled)
		rows[i].Transfers, rows[i].Fee = a.status.Transfers, a.status.Fee

		if err := tx.PutOutgoing(ctx, &rows[i]); err != nil {
			return err
		}
	}

	if err := a.Ingester.AcknowledgedTx(ctx, tx, a.driver.Network(), rows[0]); err != nil {
		return err
	}

	return a.thaw(ctx, tx, slices.Sorted(maps.Keys(addresses))...)
}

// recordSigning stores with the named payouts whether the transaction is theirs.
func (a *acknowledgement) recordSigning(ctx context.Context, tx Tx, fulfilled bool) error {
	if fulfilled && a.spent == "" {
		return fault.New(
			fault.Unavailable,
			"block_moved",
			"the node does not show what transaction %s uses up: call again",
			a.txHash,
		)
	}

	for _, id := range a.paid {
		spent := ""
		if fulfilled {
			spent = a.spent
		}

		if err := a.Payouts.AcknowledgeTx(ctx, tx, id, a.txHash, spent); err != nil {
			return err
		}
	}

	return nil
}

// saidOf returns the new acknowledgement of a row: the named objects, after Foreign unless the transaction
// fulfilled one of them. Names that a Foreign row had before stay.
func (a *acknowledgement) saidOf(row wallet.Outgoing, fulfilled bool) string {
	names := slices.Concat(a.ids, a.payouts)
	slices.Sort(names)

	if fulfilled {
		return strings.Join(names, ",")
	}

	for _, name := range strings.Split(row.Acknowledged, ",") {
		if name != "" && name != wallet.Foreign && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}

	slices.Sort(names)

	return strings.Join(append([]string{wallet.Foreign}, names...), ",")
}

func (a *acknowledgement) thaw(ctx context.Context, tx Tx, addresses ...chain.Address) error {
	for _, address := range addresses {
		if err := a.Transactions.AcknowledgedTx(ctx, tx, a.network, address); err != nil {
			return err
		}
	}

	return nil
}

// fulfill moves the named objects that still wait, unless the transaction is foreign, and reports whether
// there was one. Ended objects are only named.
func (a *acknowledgement) fulfill(
	ctx context.Context,
	tx Tx,
	rows []wallet.Outgoing,
) (fulfilled bool, err error) {
	f := txmgr.Fulfillment{Network: a.network, Rows: rows, Status: a.status}

	settlements, err := a.takePayouts(ctx, tx, rows[0], &f)
	if err != nil {
		return false, err
	}

	waiting, err := a.waitingSettlements(ctx, tx, settlements)
	if err != nil || a.foreign || len(f.TransactionIDs)+len(waiting) == 0 {
		return false, err
	}

	if a.status.Reverted || rows[0].Failed {
		return false, mismatch(
			"transaction %s failed and paid nothing: acknowledge it as %q",
			a.txHash,
			wallet.Foreign,
		)
	}

	switch {
	case len(waiting) == 0:
		return true, a.Transactions.FulfillTx(ctx, tx, f)
	case len(f.TransactionIDs) > 0:
		return false, mismatch("transaction %s cannot be payouts and settlements at once", a.txHash)
	default:
		return true, a.Sweeper.FulfillTx(ctx, tx, waiting, a.masters[waiting[0]], f)
	}
}

func mismatch(format string, args ...any) error {
	return fault.New(fault.State, "transaction_mismatch", format, args...)
}

package txmgr

import (
	"cmp"
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
)

// Fulfillment is a final transaction that is not on record, with the waiting transactions whose payments it
// made.
type Fulfillment struct {
	Network string
	// Rows are its spends from our addresses.
	Rows []wallet.Outgoing
	// Status is its block, its fee and its transfers.
	Status chain.TxStatus
	// TransactionIDs are the waiting transactions.
	TransactionIDs []string
}

// FulfillTx moves waiting transactions to confirmed, because a final transaction made their payments. Its
// hash becomes that of an attempt of theirs, and they make each move on the way with its event. Several
// transactions become one batch.
//
// Errors are fault.State with one of these codes. transaction_mismatch: it did not make a payment of one of
// them. not_together: one transaction cannot have paid all of them. settlement_state: it is a sweep whose own
// bytes may still be included.
func (o *Manager) FulfillTx(ctx context.Context, tx wallet.Tx, f Fulfillment) error {
	driver, err := o.registry.Driver(f.Network)
	if err != nil {
		return err
	}

	carrier, err := o.carrierTx(ctx, tx, f)
	if err != nil {
		return err
	}

	if err := f.matches(carrier); err != nil {
		return err
	}

	signed := f.signed(carrier.Order)
	if err := putHashTx(ctx, tx, carrier, signed.TxHash); err != nil {
		return err
	}

	d := &walletWorker{Manager: o, network: driver.Network(), driver: driver, party: carrier.Order.From}
	if d.hasNonces() {
		if err := d.useNonceTx(ctx, tx, signed.Nonce); err != nil {
			return err
		}
	}

	abandon := len(carrier.Attempts) > 0 && (d.hasNonces() && carrier.Nonce != signed.Nonce ||
		walletstate.LastAttempt(&carrier).Signed.DurableNonce != nil &&
			walletstate.AttemptIndex(&carrier, signed.TxHash) < 0)
	if abandon && carrier.Kind == wallet.Sweep {
		return sweepStillLive(carrier, signed.TxHash)
	}

	if abandon {
		if err := d.cancelNonceTx(ctx, tx, carrier); err != nil {
			return err
		}
	}

	at := o.now()
	_, err = d.moveTx(
		ctx, tx, carrier,
		func(t *wallet.Transaction) error {
			if abandon {
				if err := walletstate.Abandon(t); err != nil {
					return err
				}
			}

			return walletstate.Sign(t, wallet.Attempt{Signed: signed, SignedAt: at})
		},
		func(t *wallet.Transaction) error { return walletstate.RecordAccepted(t, signed.TxHash, at) },
		func(t *wallet.Transaction) error { return walletstate.Include(t, signed.TxHash, f.Status) },
		walletstate.Confirm,
	)

	return err
}

// putHashTx stores the hash of the transaction that fulfilled another one. The hash is stored already if it
// is an own transaction that had failed and was executed after a fork.
func putHashTx(ctx context.Context, tx wallet.Tx, carrier wallet.Transaction, hash string) error {
	own, err := tx.OwnTransactions(ctx, carrier.Network, []string{hash})
	if err != nil || len(own) > 0 {
		return err
	}

	return tx.PutAttemptHash(ctx, carrier.Network, hash, carrier.ID, carrier.Kind)
}

// sweepStillLive returns the error of a transaction that cannot fulfill a sweep. The sweep's own bytes are
// still live and would move later deposits. Waiting for them pays nobody twice.
func sweepStillLive(sweep wallet.Transaction, txHash string) error {
	return fault.New(
		fault.State,
		"settlement_state",
		"the release's own sweep %s is signed and may still be included: acknowledge transaction %s when that "+
			"has failed",
		sweep.Attempts[len(sweep.Attempts)-1].Signed.TxHash,
		txHash,
	)
}

// useNonceTx stores that a nonce of the wallet is used up.
func (d *walletWorker) useNonceTx(ctx context.Context, tx wallet.Tx, nonce uint64) error {
	w, _, err := d.walletOf(ctx, tx, d.network.Slug, d.party)
	if err != nil {
		return err
	}

	advanceNonce(&w, nonce)

	return tx.PutWallet(ctx, &w)
}

// cancelNonceTx queues a cancel at the nonce, or the durable nonce, of a transaction whose order other bytes
// fulfilled: its own bytes would pay once more. When the cancel is signed, its maximum fee is raised to the
// current price.
func (d *walletWorker) cancelNonceTx(ctx context.Context, tx wallet.Tx, t wallet.Transaction) error {
	cancel := cancelOf(t)
	cancel.Order = d.cancelOrder(t.Nonce)
	cancel.Order.MaxFee = t.Order.MaxFee
	cancel.Order.DurableNonce = walletstate.LastAttempt(&t).Signed.DurableNonce

	_, err := d.EnqueueTx(ctx, tx, cancel)

	return err
}

// carrierTx returns the waiting transaction that the others are merged into: the only one, the carrier of
// those that were signed together, or the oldest of several queued ones.
func (o *Manager) carrierTx(ctx context.Context, tx wallet.Tx, f Fulfillment) (wallet.Transaction, error) {
	all, err := rowsOf(ctx, tx, f.TransactionIDs)
	if err != nil {
		return wallet.Transaction{}, err
	}

	slices.SortFunc(all, func(a, b wallet.Transaction) int { return cmp.Compare(a.ID, b.ID) })

	carrier := all[0]
	for _, t := range all {
		if t.BatchedBy != "" {
			if carrier, err = tx.Transaction(ctx, t.BatchedBy); err != nil {
				return wallet.Transaction{}, err
			}
		} else if len(t.BatchMembers) > 0 {
			carrier = t
		}
	}

	others := slices.DeleteFunc(all, func(t wallet.Transaction) bool {
		return t.ID == carrier.ID || slices.Contains(carrier.BatchMembers, t.ID)
	})
	if len(others) == 0 {
		return carrier, nil
	}

	if err := walletstate.Merge(&carrier, others); err != nil {
		return wallet.Transaction{}, fault.Wrap(
			err,
			fault.State,
			"not_together",
			"these objects wait in transactions that cannot be one: acknowledge the transaction as one of them",
		)
	}

	return carrier, nil
}

// matches returns nil if the transaction spent from the carrier's wallet and made each of its payments.
func (f Fulfillment) matches(carrier wallet.Transaction) error {
	from := carrier.Order.From.Address
	if !slices.ContainsFunc(f.Rows, func(row wallet.Outgoing) bool {
		return row.Address == from || row.Outpoint.TxHash != "" && carrier.Kind == wallet.Sweep
	}) {
		return fault.New(
			fault.State, "transaction_mismatch", "transaction %s is not one of wallet %s, which pays %s",
			f.Rows[0].TxHash, from, carrier.ObjectID,
		)
	}

	if outputs := carrier.Order.Outputs; len(outputs) == 1 &&
		walletstate.Payments(f.Status.Transfers, from, outputs[0]) > 0 {
		return nil
	}

	left := slices.Clone(f.Status.Transfers)
	for _, out := range carrier.Order.Outputs {
		i := slices.IndexFunc(left, func(t chain.Transfer) bool {
			return t.To == out.To && t.AssetID == out.AssetID && t.Amount == out.Amount
		})
		if i < 0 {
			return fault.New(
				fault.State,
				"transaction_mismatch",
				"transaction %s did not pay %s base units of %s to %s, as %s or what was signed with it was to: "+
					"acknowledge it as what it did, or as %q",
				f.Rows[0].TxHash,
				out.Amount,
				out.AssetID,
				out.To,
				carrier.ObjectID,
				wallet.Foreign,
			)
		}

		left = slices.Delete(left, i, i+1)
	}

	return nil
}

// signed returns the known parts of the transaction's bytes; the bytes themselves are not known here.
func (f Fulfillment) signed(order chain.Order) chain.Signed {
	s := chain.Signed{
		TxHash:  f.Rows[0].TxHash,
		MaxFee:  f.Status.Fee,
		Outputs: order.Outputs,
		From:    order.From.Address,
	}

	for _, row := range f.Rows {
		switch {
		case row.Outpoint.TxHash != "":
			s.Inputs = append(s.Inputs, row.Outpoint)
		case row.Address == order.From.Address:
			s.Nonce = row.Nonce
		}
	}

	return s
}

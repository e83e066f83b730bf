package sweep

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/txmgr"
	"github.com/seed-8ee7f392/payments/settlement"
)

// walletWaits returns why a release would wait for one of its wallets, and settlements stay as they are; empty where it
// would not. It would take from a frozen one, or sweep to one, or from one that was not compared with the network since
// this process began.
func (p *planningRun) walletWaits(
	ctx context.Context,
	master chain.Address,
	g group,
) (why string, err error) {
	addresses := []chain.Address{master}

	for _, s := range g {
		if !slices.Contains(addresses, s.Deposit.Address) {
			addresses = append(addresses, s.Deposit.Address)
		}
	}

	for _, address := range addresses {
		w, _, err := p.db.Wallet(ctx, p.network.Slug, address)
		if err != nil {
			return "", &storeError{err}
		}

		if w.Frozen != "" {
			return txmgr.WaitsFrozen, nil
		}

		// What a release took that lost records made is missing, and nobody knows yet why.
		if read, err := p.outbox.IsRead(ctx, p.network.Slug, address); err != nil || !read {
			return txmgr.WaitsUnread, err
		}
	}

	return "", nil
}

// FulfillTx releases settlements of one address, or whose coins are spent together, by a final transaction that is
// not on record, which brought their money to the master wallet. Platform fee that it paid out of the deposit is paid,
// other fee is carried.
//
// Errors: fault.State with code transaction_mismatch when it did not bring what they hold, or with code
// settlement_state when one of them waits for nothing or for another transaction.
func (s *Sweeper) FulfillTx(
	ctx context.Context,
	tx settlement.Tx,
	settlementIDs []string,
	master chain.Party,
	f txmgr.Fulfillment,
) error {
	found, err := tx.SettlementsByID(ctx, settlementIDs)
	if err != nil {
		return err
	}

	g := group(found)
	if err := s.returnFailedTx(ctx, tx, g); err != nil {
		return err
	}

	together := true

	for _, of := range g {
		if of.Owner != g[0].Owner || of.AssetID != g[0].AssetID || of.Network != f.Network ||
			of.Deposit != g[0].Deposit && !spendsCoins(f) {
			return fault.New(
				fault.State, "settlement_state",
				"settlements %s and %s are not of one address and asset: acknowledge one of them",
				g[0].ID, of.ID,
			)
		}

		together = together && of.SweepID == g[0].SweepID
	}

	if !together {
		if g, err = s.leaveReleasesTx(ctx, tx, g); err != nil {
			return err
		}
	}

	if g[0].SweepID != "" {
		return s.fulfillSweepTx(ctx, tx, g, f)
	}

	for _, of := range g {
		if of.Status != settlement.Pending && of.Status != settlement.Held {
			return fault.New(
				fault.State,
				"settlement_state",
				"settlement %s is %s: only one that is pending or held, or the "+
					"sweep of one that is releasing, can be fulfilled",
				of.ID,
				of.Status,
			)
		}
	}

	return s.fulfillNewTx(ctx, tx, g, master, f)
}

// waitsFor is the error for a settlement whose release has a transaction under way.
func (s *Sweeper) waitsFor(of settlement.Settlement) error {
	return fault.New(
		fault.State,
		"settlement_state",
		"settlement %s waits for another transaction of its release: what is not signed is given up within %s, "+
			"then acknowledge again",
		of.ID,
		s.config.SignWithin,
	)
}

// fulfillSweepTx fulfills the sweep that a release waits for.
func (s *Sweeper) fulfillSweepTx(
	ctx context.Context,
	tx settlement.Tx,
	g group,
	f txmgr.Fulfillment,
) error {
	r, err := tx.Sweep(ctx, g[0].SweepID)
	if err != nil {
		return err
	}

	if !r.Done && !isRunning(&r) { // its next transaction is not planned, as the wallet is frozen
		if err := s.addSweepTx(ctx, tx, &r, g, f); err != nil {
			return err
		}

		if err := s.unreserveRest(ctx, tx, &r); err != nil {
			return err
		}
	}

	step := lastStep(&r)
	if step == nil || step.Kind != chain.StepSweep || step.State == wallet.Confirmed ||
		step.State == wallet.Failed {
		return s.waitsFor(g[0])
	}

	f.TransactionIDs = []string{step.TransactionID}

	return s.outbox.FulfillTx(ctx, tx, f)
}

// unreserveRest returns what the release reserved of the master wallet for transactions that are not needed now.
func (s *Sweeper) unreserveRest(ctx context.Context, tx settlement.Tx, r *settlement.Sweep) error {
	n, _ := s.registry.Network(r.Network)
	native, _ := n.Native()

	return s.outbox.UnreserveTx(ctx, tx, r.Network, r.Master.Address, native.ID, r.ID)
}

// fulfillNewTx stores a release whose only transaction is the final one, and fulfills it.
func (s *Sweeper) fulfillNewTx(
	ctx context.Context,
	tx settlement.Tx,
	g group,
	master chain.Party,
	f txmgr.Fulfillment,
) error {
	r := settlement.Sweep{
		ID:            s.config.IDs.Next(),
		Owner:         g[0].Owner,
		Network:       f.Network,
		AssetID:       g[0].AssetID,
		Deposit:       g[0].Deposit,
		Master:        master,
		SettlementIDs: g.ids(),
		Amount:        g.gross(),
		FeeAddress:    s.config.FeeAddresses[f.Network],
		CreatedAt:     s.now(),
	}
	if err := s.addSweepTx(ctx, tx, &r, g, f); err != nil {
		return err
	}

	if err := assign(ctx, tx, g, &r, chain.Amount{}); err != nil {
		return err
	}

	f.TransactionIDs = []string{lastStep(&r).TransactionID}

	return s.outbox.FulfillTx(ctx, tx, f)
}

// addSweepTx adds the final transaction to a release as its sweep, and stores both. It fails when the transaction
// did not bring what the settlements hold.
func (s *Sweeper) addSweepTx(
	ctx context.Context,
	tx settlement.Tx,
	r *settlement.Sweep,
	g group,
	f txmgr.Fulfillment,
) error {
	n, _ := s.registry.Network(f.Network)
	native, _ := n.Native()
	maxFee := chaindata.Max(g.fee(), carriedToo(r, f.Status, native.ID))
	outputs, fee := outputsOf(r, f.Status.Transfers, native.ID, maxFee)

	if !isSweepOf(r, f.Status.Transfers, native.ID, maxFee) && !spentOthersToo(r, g, f) {
		return fault.New(
			fault.State,
			"transaction_mismatch",
			"transaction %s brought %s base units to %s, the settlements hold %s: acknowledge it as those that it "+
				"released, or as %q",
			f.Rows[0].TxHash,
			sentToMaster(r, f.Status.Transfers),
			r.Master.Address,
			r.Amount,
			wallet.Foreign,
		)
	}

	t, err := s.outbox.EnqueueTx(ctx, tx, wallet.Transaction{
		Owner:    r.Owner,
		Network:  r.Network,
		Kind:     wallet.Sweep,
		ObjectID: r.ID,
		Order: chain.Order{
			From:    r.Deposit,
			Outputs: outputs,
			MaxFee:  chaindata.Max(f.Status.Fee, chain.Units(1)),
		},
	})
	if err != nil {
		return err
	}

	if len(r.Steps) == 0 {
		r.Fee, r.CarryIn = fee, fee.SubFloor(g.fee())
		if err := takeCarryTx(ctx, tx, r); err != nil {
			return err
		}
	}

	r.Steps = append(
		slices.Clip(r.Steps),
		settlement.Step{Kind: chain.StepSweep, TransactionID: t.ID, State: t.State, PaysFee: fee},
	)

	return s.putSweep(ctx, tx, r)
}

// carriedToo returns what the fee address got of a transaction that left nothing of a native release, and paid nobody
// else: what is beyond the fee of its settlements was carried by lost records; in base units of the native coin.
func carriedToo(r *settlement.Sweep, status chain.TxStatus, nativeID string) chain.Amount {
	if r.FeeAddress == "" || r.AssetID != nativeID {
		return chain.Amount{}
	}

	paid := sentTo(r.FeeAddress, nativeID, status.Transfers)
	if sentToMaster(r, status.Transfers).Add(paid).Add(status.Fee) != r.Amount {
		return chain.Amount{}
	}

	return paid
}

// outputsOf returns what a final transaction paid to the master wallet, and to the fee address up to maxFee, which is
// what the settlements owe; fee is the sum of the latter, in base units of the native coin.
func outputsOf(
	r *settlement.Sweep,
	transfers []chain.Transfer,
	nativeID string,
	maxFee chain.Amount,
) (outputs []chain.Output, fee chain.Amount) {
	for _, t := range transfers {
		switch {
		case t.To == r.Master.Address && t.AssetID == r.AssetID:
			if r.AssetID != nativeID { // ordered is what left the deposit, whatever the token takes on the way
				if !slices.ContainsFunc(
					outputs,
					func(o chain.Output) bool { return o.AssetID == r.AssetID },
				) {
					outputs = append(outputs, chain.Output{To: t.To, AssetID: t.AssetID, Amount: r.Amount})
				}

				continue
			}
		case t.To == r.FeeAddress && r.FeeAddress != "" && t.AssetID == nativeID && !maxFee.Less(fee.Add(t.Amount)):
			fee = fee.Add(t.Amount)
		default:
			continue
		}

		outputs = append(outputs, chain.Output{To: t.To, AssetID: t.AssetID, Amount: t.Amount})
	}

	return outputs, fee
}

// isSweepOf reports whether transfers may be those of the sweep of a release: of a token, all that it holds left the
// deposit address and some of it arrived; of coin, at most that arrived, and not much less. fee is the platform fee.
func isSweepOf(r *settlement.Sweep, transfers []chain.Transfer, nativeID string, fee chain.Amount) bool {
	arrived := sentToMaster(r, transfers)
	if arrived.IsZero() || r.Amount.Less(arrived) {
		return false
	}

	if r.AssetID == nativeID {
		return !isMostlyLeft(r, arrived, fee)
	}

	var sent, back chain.Amount

	for _, t := range transfers {
		fits := true

		switch {
		case t.AssetID != r.AssetID || t.From == t.To:
		case t.From == r.Deposit.Address:
			sent, fits = sent.AddOK(t.Amount)
		case t.To == r.Deposit.Address:
			back, fits = back.AddOK(t.Amount)
		}

		if !fits {
			return false // the logs are no sums
		}
	}

	return sent.SubFloor(back) == r.Amount
}

// spendsCoins reports whether a transaction spent coins of ours: those of several addresses, maybe.
func spendsCoins(f txmgr.Fulfillment) bool {
	return slices.ContainsFunc(f.Rows, func(row wallet.Outgoing) bool { return row.Outpoint.TxHash != "" })
}

// spentOthersToo reports whether a transaction spent the coins of a release and others, of addresses that are not on
// record, so that more arrived than the release holds. What it spent of ours is all named.
func spentOthersToo(r *settlement.Sweep, g group, f txmgr.Fulfillment) bool {
	spent, fits := sentToMaster(r, f.Status.Transfers).AddOK(f.Status.Fee)

	return spendsCoins(f) && len(f.Rows) == len(g) && fits && r.Amount.Less(spent)
}

// isMostlyLeft reports whether what arrived is less than half of what a release holds beside its platform fee: no
// release costs more, see group.uneconomic.
func isMostlyLeft(r *settlement.Sweep, arrived, fee chain.Amount) bool {
	return arrived.Add(arrived).Less(r.Amount.SubFloor(fee))
}

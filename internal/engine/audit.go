package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
)

// This file compares what the records say with what the networks hold. audit_ledger.go adds the records up,
// audit_records.go holds them against each other.

// maxRecords bounds the records of one difference.
const maxRecords = 100

// Audit recomputes from payments, settlements, payouts, refunds and transactions what every address
// of ours must hold, reads what it does hold at the newest block whose payments are stored, and
// reports each difference. It changes nothing and may run beside the workers. It reads every record
// and the balance of every address, so it belongs into a quiet hour, not into a request. A store or
// node without an answer is fault.Unavailable: no half of an audit is ever returned.
func (e *Engine) Audit(ctx context.Context) (audit.Report, error) {
	accounts, err := e.allAccounts(ctx)
	if err != nil {
		return audit.Report{}, err
	}

	var out audit.Report

	for _, d := range e.Networks.Drivers() {
		n := d.Network()

		a := &auditor{Engine: e, driver: d, network: n, out: audit.Network{Network: n.Slug}}
		if err := a.run(ctx, accounts); err != nil {
			return audit.Report{}, fmt.Errorf("auditing %s: %w", n.Slug, err)
		}

		out.Networks = append(out.Networks, a.out)
	}

	return out, nil
}

func (e *Engine) allAccounts(ctx context.Context) (all []account.Account, err error) {
	after := ""
	for {
		page, err := e.config.Store.Accounts(ctx, after, auditPage)
		if err != nil {
			return nil, err
		}

		all = append(all, page...)
		if len(page) < auditPage {
			return all, nil
		}

		after = page[len(page)-1].ID
	}
}

const (
	auditPage     = 500 // records per query
	auditHoldings = 200 // balances per call
)

// auditor compares one network.
type auditor struct {
	*Engine
	driver  chain.Driver
	network chain.Network
	masters map[chain.Address]event.Owner
	ledger  *ledger
	out     audit.Network
}

func (a *auditor) run(ctx context.Context, accounts []account.Account) error {
	if err := a.prepare(ctx, accounts); err != nil {
		return err
	}

	if err := a.transactions(ctx); err != nil {
		return err
	}

	for _, acc := range accounts {
		if err := a.records(ctx, event.Owner{AccountID: acc.ID, Livemode: a.network.Livemode}); err != nil {
			return err
		}
	}

	a.out.Differences = append(a.out.Differences, a.ledger.duplicates...)
	if err := a.nonces(ctx); err != nil {
		return err
	}

	reserved, err := a.reservations(ctx)
	if err != nil {
		return err
	}

	return a.balances(ctx, reserved)
}

// begin chooses the block and finds the master wallets. Everything at or below the block is stored:
// what is read afterwards may know of more, which is left out by its height.
func (a *auditor) prepare(ctx context.Context, accounts []account.Account) error {
	cursor, followed, err := a.config.Store.Cursor(ctx, a.network.Slug)
	if err != nil {
		return err
	}

	if a.out.At = cursor.At; !followed || cursor.At.IsZero() {
		head, err := a.driver.Head(ctx) // nothing was ever read from this network, so there are no payments
		if err != nil {
			return err
		}

		a.out.At = head.Tip
	}

	a.masters = map[chain.Address]event.Owner{}
	addresses := map[chain.Address]bool{}

	for _, acc := range accounts {
		p, err := a.Transactions.Master(ctx, a.network.Slug, acc.Index)
		if errors.Is(err, fault.Unsupported) || errors.Is(err, fault.Forbidden) {
			continue // this network only receives, or the signer has no such key
		}

		if err != nil {
			return err
		}

		a.masters[p.Address], addresses[p.Address] = event.Owner{
			AccountID: acc.ID,
			Livemode:  a.network.Livemode,
		}, true
	}

	a.ledger = newLedger(a.network, addresses)

	return nil
}

// transactions adds up our own transactions.
func (a *auditor) transactions(ctx context.Context) error {
	after := ""
	for {
		page, err := a.config.Store.Transactions(ctx, a.network.Slug, after, auditPage)
		if err != nil {
			return err
		}

		spent, err := a.spentBy(ctx, page)
		if err != nil {
			return err
		}

		for _, t := range page {
			if t, err = a.onNetwork(ctx, t); err != nil {
				return err
			}

			a.ledger.transaction(t, spent, a.out.At.Height)
		}

		a.out.Transactions += len(page)
		if len(page) < auditPage {
			return nil
		}

		after = page[len(page)-1].ID
	}
}

// asTheNetworkSees looks up a transaction that is not final: the network may have included it, or
// taken it out of its block, before the outbox knows.
func (a *auditor) onNetwork(ctx context.Context, t wallet.Transaction) (wallet.Transaction, error) {
	sender, ok := a.driver.(chain.Sender)
	if !ok || (t.State != wallet.Signed && t.State != wallet.Broadcast && t.State != wallet.Included) {
		return t, nil
	}

	for _, attempt := range slices.Backward(t.Attempts) {
		status, err := sender.Status(ctx, attempt.Signed)
		if err != nil {
			return t, err
		}

		if status.State == chain.TxIncluded {
			t.TxHash, t.Block, t.Fee, t.Transfers = attempt.Signed.TxHash, status.Block, status.Fee, status.Transfers
			if status.Reverted {
				t.Failure = wallet.FailReverted
			}

			return t, nil
		}
	}

	t.Block = chain.Ref{}

	return t, nil
}

// nonces finds transactions that somebody else made with a key of ours: every number that the
// network counted, from our first on, must be one of our own.
func (a *auditor) nonces(ctx context.Context) error {
	reader, ok := a.driver.(chain.Nonces)
	if !ok {
		return nil
	}

	for _, from := range a.ledger.senders() {
		counted, err := reader.Nonce(ctx, from)
		if err != nil {
			return err
		}
		// Read after the count: what was signed since the rows were read is below it.
		w, _, err := a.config.Store.Wallet(ctx, a.network.Slug, from)
		if err != nil {
			return err
		}

		for _, nonce := range a.ledger.foreignNonces(from, counted, w.NextNonce) {
			a.report(audit.Difference{
				Kind:    audit.ForeignTransaction,
				Address: from,
				Message: fmt.Sprintf(
					"nonce %d of %s was used by a transaction that is not on record: somebody else has its key",
					nonce,
					from,
				),
				Records: a.ledger.recordsOf(from),
			})
		}
	}

	return nil
}

// reservations finds promises to what is over, and returns what is promised in all.
func (a *auditor) reservations(ctx context.Context) (map[chain.Holding]chain.Amount, error) {
	rows, err := a.config.Store.BalancesOf(ctx, a.network.Slug)
	if err != nil {
		return nil, err
	}

	reserved := map[chain.Holding]chain.Amount{}
	for _, b := range rows {
		reserved[chain.Holding{Address: b.Address, AssetID: b.AssetID}] = b.Reserved
		for _, r := range b.Reservations {
			if r.Released || r.SpentAt != 0 {
				continue // ends with the next balance that is read
			}

			object, over, err := a.ended(ctx, r.ObjectID)
			if err == nil && over {
				over, err = a.stillReserved(ctx, b, r)
			}

			if err != nil {
				return nil, err
			}

			if over {
				a.report(audit.Difference{
					Kind:    audit.ReservationLeft,
					Address: b.Address,
					AssetID: b.AssetID,
					Found:   r.Amount,
					Message: fmt.Sprintf(
						"%s base units are still reserved for %s %s, which is over",
						r.Amount, object, r.ObjectID,
					),
					Records: []audit.Record{{Object: object, ID: r.ObjectID}},
				})
			}
		}
	}

	return reserved, nil
}

// stillReserved reads a balance again after what it is promised to was seen to be over: both ended
// in one transaction.
func (a *auditor) stillReserved(ctx context.Context, b wallet.Balance, r wallet.Reservation) (bool, error) {
	now, _, err := a.config.Store.Balance(ctx, b.Network, b.Address, b.AssetID)
	return err == nil && slices.Contains(now.Reservations, r), err
}

// over reports whether what a reservation was made for has ended, and what it is.
func (a *auditor) ended(ctx context.Context, objectID string) (object string, over bool, err error) {
	if t, err := a.config.Store.Transaction(ctx, objectID); err == nil {
		return "transaction", !t.Live(), nil
	} else if !errors.Is(err, fault.NotFound) {
		return "", false, err
	}

	if p, err := a.config.Store.PayoutByID(ctx, objectID); err == nil {
		t, err := a.config.Store.Transaction(ctx, p.TransactionID)
		return "payout", err == nil && !t.Live(), err
	} else if !errors.Is(err, fault.NotFound) {
		return "", false, err
	}

	r, err := a.config.Store.Release(ctx, objectID)
	if errors.Is(err, fault.NotFound) {
		return "object", true, nil
	}

	return "release", r.Done, err
}

// balances compares every address with the network.
func (a *auditor) balances(ctx context.Context, reserved map[chain.Holding]chain.Amount) error {
	if reader, ok := a.driver.(chain.CoinReader); ok {
		return a.coins(ctx, reader, reserved)
	}

	balancer, ok := a.driver.(chain.Balancer)
	if !ok {
		a.out.Unchecked = "the driver of this network cannot read balances"
		return nil
	}

	for holdings := range slices.Chunk(a.ledger.close(), auditHoldings) {
		amounts, err := balancer.Balances(ctx, a.out.At, holdings)
		if err != nil {
			return err
		}

		if len(amounts) != len(holdings) {
			return fault.New(
				fault.Unavailable, "balances_incomplete", "the driver answered %d of %d balances",
				len(amounts), len(holdings),
			)
		}

		for i, h := range holdings {
			a.compare(h, amounts[i], reserved[h])
		}

		a.out.Holdings += len(holdings)
	}

	return nil
}

// compare holds one balance against the ledger. A master wallet may have money from elsewhere, a
// deposit address may not.
func (a *auditor) compare(h chain.Holding, found, reserved chain.Amount) {
	recorded := a.ledger.balanceOf(h.Address, h.AssetID)
	asset, _ := a.network.AssetByID(h.AssetID)

	has := found.Add(recorded.out)
	if has.Less(recorded.in) {
		a.report(audit.Difference{
			Kind:     audit.MoneyMissing,
			Address:  h.Address,
			AssetID:  h.AssetID,
			Expected: recorded.in.SubFloor(recorded.out),
			Found:    found,
			Message: fmt.Sprintf(
				"%s base units of %s are missing at %s: the records bring %s and take %s",
				recorded.in.Sub(has), asset.Symbol, h.Address, recorded.in, recorded.out,
			),
			Records: recorded.newest(),
		})
		has = recorded.in
	}

	outside := has.Sub(recorded.in)
	if owner, isMaster := a.masters[h.Address]; isMaster {
		a.out.Wallets = append(a.out.Wallets, audit.Wallet{
			Owner:    owner,
			Address:  h.Address,
			Asset:    asset.Symbol,
			AssetID:  h.AssetID,
			OnChain:  found,
			In:       recorded.in,
			Out:      recorded.out,
			Outside:  outside,
			Reserved: reserved,
		})

		return
	}

	if !outside.IsZero() {
		a.report(audit.Difference{
			Kind:     audit.MoneyUnexplained,
			Address:  h.Address,
			AssetID:  h.AssetID,
			Expected: recorded.in.SubFloor(recorded.out),
			Found:    found,
			Message: fmt.Sprintf(
				"%s base units of %s at %s are not explained by any record",
				outside, asset.Symbol, h.Address,
			),
			Records: recorded.newest(),
		})
	}
}

func (a *auditor) report(d audit.Difference) {
	d.Network = a.network.Slug
	a.out.Differences = append(a.out.Differences, d)
}

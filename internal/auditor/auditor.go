// Package auditor compares the records with the networks: the balances of all our addresses, and the
// transactions of all our wallets. payments.Engine.Audit runs it; package audit has the report.
//
// ledger.go adds the records up. balances.go and coins.go compare the sums with the network; addresses.go
// does so for addresses without a record. records.go and payouts.go compare the records with each other.
// strays.go lists money that no balance shows.
package auditor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/audit"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

const (
	// maxRecords bounds the records that one difference lists.
	maxRecords = 100
	// pageSize is the number of records per query.
	pageSize = 500
	// maxRanges is the largest number of unread parts of histories that are considered.
	maxRanges = 10_000
	// maxHoldings is the number of balances per call.
	maxHoldings = 200
)

// Store reads every record.
type Store interface {
	invoice.Reader
	wallet.Reader
	settlement.Reader
	payout.Reader
	scan.Reader
}

// Config configures an audit. All fields are required.
type Config struct {
	Store    Store
	Networks *chain.Registry
	Accounts []account.Account
	// MasterWallet returns the master wallet of the account with an index, on a network.
	MasterWallet func(ctx context.Context, network string, accountIndex uint32) (chain.Party, error)
	Now          func() time.Time
}

// Audit compares the records with the network for every address of ours. It reports each difference between
// the recorded balance and the balance at the newest block whose payments are stored.
//
// It changes nothing and may run beside the workers. It reads every record, and the balance of every address
// that was ever shown, in pages: it belongs in a quiet hour, not in a request. It never returns a partial
// report.
//
// Errors: fault.Unavailable when the store or a node does not answer.
func Audit(ctx context.Context, c Config) (audit.Report, error) {
	var out audit.Report

	for _, d := range c.Networks.Drivers() {
		n := d.Network()

		a := &auditor{
			config:  c,
			store:   c.Store,
			now:     c.Now,
			driver:  d,
			network: n,
			out:     audit.Network{Network: n.Slug},
		}
		if err := a.run(ctx, c.Accounts); err != nil {
			return audit.Report{}, fmt.Errorf("auditing %s: %w", n.Slug, err)
		}

		out.Networks = append(out.Networks, a.out)
	}

	return out, nil
}

// auditor audits one network.
type auditor struct {
	config  Config
	store   Store
	now     func() time.Time
	driver  chain.Driver
	network chain.Network
	masters map[chain.Address]event.Owner
	ledger  *ledger
	// releaseFees are the costs by owner of the transactions of releases, and of those that displaced some,
	// in native base units. releasing holds the owners of whom such a transaction is in flight.
	releaseFees map[event.Owner]chain.Amount
	releasing   map[event.Owner]bool
	// unread are the parts of addresses' histories that are still to be read.
	unread map[chain.Address]scan.Range
	// dustAbove is dust in blocks above the compared one, in base units.
	dustAbove map[chain.Holding]chain.Amount
	out       audit.Network
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
	if err := a.addresses(ctx); err != nil {
		return err
	}

	if err := a.nonces(ctx); err != nil {
		return err
	}

	if err := a.unrecorded(ctx); err != nil {
		return err
	}

	reserved, err := a.reservations(ctx)
	if err != nil {
		return err
	}

	if err := a.balances(ctx, reserved); err != nil {
		return err
	}

	return a.strays(ctx)
}

// prepare chooses the block to compare at and finds the master wallets. Every payment at or below that block
// is stored; records above it are left out by their height.
func (a *auditor) prepare(ctx context.Context, accounts []account.Account) error {
	cursor, followed, err := a.store.Cursor(ctx, a.network.Slug)
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
		p, err := a.config.MasterWallet(ctx, a.network.Slug, acc.Index)
		if errors.Is(err, fault.Unsupported) || errors.Is(err, fault.Forbidden) {
			continue // this network only receives, or the signer has no such key
		}

		if err != nil {
			return err
		}

		a.masters[p.Address] = event.Owner{AccountID: acc.ID, Livemode: a.network.Livemode}
		addresses[p.Address] = true
	}

	a.ledger = newLedger(a.network, addresses)
	a.dustAbove = map[chain.Holding]chain.Amount{}
	a.releaseFees, a.releasing = map[event.Owner]chain.Amount{}, map[event.Owner]bool{}

	ranges, err := a.store.Ranges(ctx, a.network.Slug, maxRanges)
	if err != nil {
		return err
	}

	a.unread = map[chain.Address]scan.Range{}

	for _, r := range ranges {
		if scanstate.IsGap(r) && r.Next <= a.out.At.Height {
			a.out.Unread = append(a.out.Unread, audit.Blocks{From: r.Next, To: r.To})
		}

		for _, address := range r.Addresses {
			a.unread[address] = r
		}
	}

	above, err := a.store.DustAbove(ctx, a.network.Slug, a.out.At.Height)
	for _, d := range above {
		h := chain.Holding{Address: d.Address, AssetID: d.AssetID}
		a.dustAbove[h] = a.dustAbove[h].Add(d.Amount)
	}

	return err
}

// transactions adds our own transactions to the ledger.
func (a *auditor) transactions(ctx context.Context) error {
	after := ""
	for {
		page, err := a.store.Transactions(ctx, a.network.Slug, after, pageSize)
		if err != nil {
			return err
		}

		spent, err := a.spentBy(ctx, page)
		if err != nil {
			return err
		}

		for _, t := range page {
			a.releaseFee(t)
			a.recovery(t)

			if t, err = a.onNetwork(ctx, t); err != nil {
				return err
			}

			a.ledger.transaction(t, spent, a.out.At.Height)
		}

		a.out.Transactions += len(page)
		if len(page) < pageSize {
			return nil
		}

		after = page[len(page)-1].ID
	}
}

// releaseFee adds the cost of a transaction to the fees of releases. Cancels count, even those of payouts:
// the sum bounds the fees that settlements may show.
func (a *auditor) releaseFee(t wallet.Transaction) {
	switch t.Kind {
	case wallet.Payout, wallet.Bump, wallet.Recovery:
		return
	case wallet.TopUp, wallet.Delegate, wallet.Undelegate, wallet.Fee, wallet.Sweep, wallet.Cancel:
	}

	a.releaseFees[t.Owner] = a.releaseFees[t.Owner].Add(t.Fee)
	if t.Kind == wallet.Delegate && t.State == wallet.Confirmed {
		a.releaseFees[t.Owner] = a.releaseFees[t.Owner].Add(chaindata.EnergyPrice(t.Order))
	}

	if t.State != wallet.Confirmed && t.State != wallet.Failed {
		a.releasing[t.Owner] = true
	}
}

// onNetwork returns a transaction with the network's status if it is not final. The network may have included
// it, or dropped it from its block, before txmgr learns of it.
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

// nonces reports transactions that somebody else signed with a key of ours. Every nonce that the network
// counted, from our first on, must be one of ours.
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

		// Read this after the count: the nonces signed since the transactions were read are below NextNonce.
		w, _, err := a.store.Wallet(ctx, a.network.Slug, from)
		if err != nil {
			return err
		}

		for _, nonce := range a.ledger.foreignNonces(from, counted, w.NextNonce) {
			known, err := a.isRecorded(ctx, w, from, nonce)
			if err != nil {
				return err
			}

			if known {
				continue
			}

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

func (a *auditor) report(d audit.Difference) {
	d.Network = a.network.Slug
	a.out.Differences = append(a.out.Differences, d)
}

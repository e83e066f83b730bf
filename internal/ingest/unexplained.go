package ingest

// This file turns balances that no record explains into payments, and follows those until they confirm.

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/settlement"
)

// maxPrepared is how often something is prepared because what it needed was missing.
const maxPrepared = 4

// compare compares the balances of an address, one per asset of its network, with the records.
func (c *balanceCheck) compare(
	ctx context.Context,
	address invoice.Address,
	found []chain.Amount,
) (outcome, error) {
	wanted := prices{} // read only where there is an excess, and the value decides on confirmations

	for try := 1; ; try++ {
		var result outcome

		err := c.s.db.Update(ctx, func(ctx context.Context, tx Tx) (err error) {
			result, err = c.compareTx(ctx, tx, address, found, wanted)
			return err
		})
		if !errors.Is(err, invoice.ErrUnprepared) || try == maxPrepared {
			return result, err
		}

		c.s.recall(c.network.Slug, wanted)

		if err := c.s.fill(ctx, wanted); err != nil {
			return stale, err
		}
	}
}

// comparison is a compare in one transaction.
type comparison struct {
	*ledger
	check   *balanceCheck
	address invoice.Address
	// cursor is the network's, as of the block of the balances.
	cursor scan.Cursor
	// entry is what the address belongs to, once something of it changed.
	entry *entry
	// provisional is set while an asset is compared of whose balance one node's word is all there is.
	provisional bool
	// ripe are payments whose balance was read again and is still there.
	ripe []*invoice.Payment
	// waits is set when an excess, or a balance that a payment waits for, is to be read again; unclear where nothing
	// is concluded of an asset.
	waits, unclear bool
}

// compareTx is compare in tx; invoice.ErrUnprepared when a price is missing from wanted.
func (c *balanceCheck) compareTx(
	ctx context.Context,
	tx Tx,
	address invoice.Address,
	found []chain.Amount,
	wanted prices,
) (outcome, error) {
	cursor, _, err := tx.Cursor(ctx, c.network.Slug)
	if err != nil || !canonical(cursor, c.at) {
		return stale, err
	}

	payments, err := c.paymentsOf(ctx, tx, address)
	if err != nil {
		return stale, err
	}

	left, known, err := leftoversAt(ctx, tx, c.network, address.Address, payments, c.at)
	if err != nil || !known {
		return unknown(ctx, tx, payments, err)
	}

	dust, err := c.dustOf(ctx, tx, address)
	if err != nil {
		return stale, err
	}

	cursor.At = c.at
	m := &comparison{
		ledger:  c.s.newLedger(tx, c.network.Slug, wanted),
		check:   c,
		address: address,
		cursor:  cursor,
	}

	if err := left.addUnrecorded(ctx, tx, c.network, address.Address, payments, c.at); err != nil {
		return stale, err
	}

	all := c.explainAll(payments, left, dust)

	for i, asset := range c.network.Assets {
		holding := chain.Holding{Address: address.Address, AssetID: asset.ID}
		if c.unreadable[holding] {
			m.waits = m.waits || len(all[i].waiting) > 0
			m.unclear = m.unclear || asset.Kind == chain.Native // nothing else shows what contracts sent

			continue
		}

		m.provisional = c.provisional[holding]

		if err := m.apply(ctx, asset, all[i], found[i]); err != nil {
			return stale, err
		}
	}

	return m.finish(ctx)
}

// unknown is what a comparison means for the next one that concludes nothing: while a release is under way, or a
// payment waits for its balance to be read again, it is soon. In no case does it count as a comparison.
func unknown(ctx context.Context, tx Tx, payments []invoice.Payment, err error) (outcome, error) {
	if err != nil {
		return stale, err
	}

	if slices.ContainsFunc(payments, func(p invoice.Payment) bool {
		return p.TxHash == "" && p.Status == invoice.Detected
	}) {
		return unclear, nil
	}

	settlements, err := settlementsOf(ctx, tx, payments)
	if slices.ContainsFunc(settlements, func(s settlement.Settlement) bool {
		return s.Status == settlement.Releasing
	}) {
		return unclear, err
	}

	return unclearAtRest, err
}

// canonical reports whether a block is in the chain as a cursor knows it.
func canonical(cursor scan.Cursor, at chain.Ref) bool {
	return cursor.At.Hash == at.Hash ||
		slices.ContainsFunc(cursor.Recent, func(ref chain.Ref) bool { return ref.Hash == at.Hash })
}

// paymentsOf returns the payments to an address in every asset, oldest first, but those that were dropped.
func (c *balanceCheck) paymentsOf(
	ctx context.Context,
	r invoice.Reader,
	address invoice.Address,
) ([]invoice.Payment, error) {
	all, err := r.BalancePayments(ctx, c.network.Slug, []chain.Address{address.Address})
	if err != nil {
		return nil, err
	}

	slices.SortFunc(all, func(a, b invoice.Payment) int { return cmp.Compare(a.ID, b.ID) })

	return slices.DeleteFunc(all, func(p invoice.Payment) bool {
		_, enabled := c.network.AssetByID(p.AssetID)
		return !enabled
	}), nil
}

// explanation is what the records say of an asset at an address.
type explanation struct {
	// sum is what payments, dust and our own transactions brought there, taken what ours took of it, in base
	// units.
	sum, taken chain.Amount
	// waiting are the unconfirmed payments without a transaction, oldest first, takenBack is one that a fork took back.
	// None is in sum; confirmed ones are.
	waiting   []invoice.Payment
	takenBack *invoice.Payment
}

// explainAll returns what the records say of each asset of the network, as of the block.
func (c *balanceCheck) explainAll(
	payments []invoice.Payment,
	left leftovers,
	dust map[string]chain.Amount,
) []explanation {
	all := make([]explanation, len(c.network.Assets))

	for i, asset := range c.network.Assets {
		all[i] = c.explain(asset, payments, left)
		all[i].sum = all[i].sum.Add(dust[asset.ID])
	}

	return all
}

// explain returns what the records say of an asset, as of the block.
func (c *balanceCheck) explain(
	asset chain.Asset,
	payments []invoice.Payment,
	left leftovers,
) explanation {
	var x explanation

	for i, p := range payments {
		if p.AssetID != asset.ID || p.Simulated || left.moved[p.ID] {
			continue
		}

		switch {
		case p.TxHash == "" && p.Status == invoice.Orphaned:
			x.takenBack = &payments[i]
		case p.TxHash == "" && p.Status == invoice.Detected:
			x.waiting = append(x.waiting, p)
		case p.Block.IsZero():
			// No block shows an internal transfer: it may be in one by now, until it is looked up again.
			if p.TxIndex >= chaindata.InternalIndex {
				x.sum = x.sum.Add(p.Amount)
			}
		case p.Block.Height <= c.at.Height:
			x.sum = x.sum.Add(p.Amount)
		}
	}

	x.sum = x.sum.Add(left.brought[asset.ID]).Add(left.returned[asset.ID])
	x.taken = left.taken[asset.ID]

	return x
}

// apply records what a balance of an asset means.
func (m *comparison) apply(ctx context.Context, asset chain.Asset, x explanation, found chain.Amount) error {
	// spec D3.9
	if chain.MaxTransfer.Less(found) {
		return nil
	}

	excess := found.Add(x.taken).SubFloor(x.sum)

	switch {
	case len(x.waiting) > 0 && m.provisional:
		m.waits = true
		return nil
	case len(x.waiting) > 0:
		return m.follow(ctx, asset, x.waiting, excess)
	case excess.IsZero():
		return nil
	case x.takenBack != nil:
		return m.revive(ctx, *x.takenBack, excess)
	}

	return m.add(ctx, asset, excess)
}

// follow brings the unconfirmed payments without a transaction, oldest first, in line with the excess: what is gone
// is taken off the newest, and what came later is a payment of its own. So a rise never restarts the depth of what
// was there before.
func (m *comparison) follow(
	ctx context.Context,
	asset chain.Asset,
	waiting []invoice.Payment,
	excess chain.Amount,
) error {
	for _, stored := range waiting {
		a, p, err := m.payment(ctx, stored)
		if err != nil {
			return err
		}

		m.entry = a

		held := p.Amount
		if excess.Less(held) {
			held = excess
		}

		excess = excess.Sub(held)
		m.waits = m.waits || !held.IsZero()

		switch held {
		case p.Amount:
			m.ripe = append(m.ripe, p)
			continue
		case chain.Amount{}:
			err = m.move(
				a,
				p,
				func(p *invoice.Payment) ([]event.Type, error) { return invoicestate.Displace(p, m.now) },
			)
		default:
			err = m.move(a, p, func(p *invoice.Payment) ([]event.Type, error) {
				return invoicestate.Correct(p, chain.Transfer{Amount: held})
			})
		}

		if err != nil {
			return err
		}
	}

	if excess.IsZero() {
		return nil
	}

	return m.add(ctx, asset, excess)
}

// revive detects the payment without a transaction again that a fork took back.
func (m *comparison) revive(ctx context.Context, stored invoice.Payment, excess chain.Amount) error {
	a, p, err := m.payment(ctx, stored)
	if err != nil {
		return err
	}

	m.entry, m.waits = a, true

	return m.move(a, p, func(p *invoice.Payment) ([]event.Type, error) {
		if _, err := invoicestate.Correct(p, chain.Transfer{Amount: excess}); err != nil {
			return nil, err
		}

		return invoicestate.Observe(p, m.check.at)
	})
}

// add adds an excess as a payment without a transaction, unless it is dust.
func (m *comparison) add(ctx context.Context, asset chain.Asset, excess chain.Amount) error {
	if excess.Less(asset.Dust) {
		return nil // the audit names it
	}

	m.s.log.LogAttrs(
		ctx, slog.LevelInfo,
		"an address holds more than its transfers explain; it is recorded as a payment",
		slog.String("address", string(m.address.Address)), slog.String("network", m.check.network.Slug),
		slog.String("asset", asset.Symbol), slog.String("amount", excess.String()),
	)

	p := invoice.Payment{
		ID:               m.s.ids.Next(),
		Owner:            m.address.Owner,
		Status:           invoice.Detected,
		InvoiceID:        m.address.InvoiceID,
		DepositAddressID: m.address.DepositAddressID,
		Network:          m.check.network.Slug,
		Asset:            asset.Symbol,
		AssetID:          asset.ID,
		Contract:         asset.Contract,
		Decimals:         asset.Decimals,
		Address:          m.address.Address,
		Key:              m.address.Key,
		Amount:           excess,
		Block:            m.check.at,
		Required:         m.check.network.Confirmations,
		DetectedBy:       invoice.ByBalance,
		DetectedAt:       m.now,
	}

	a, _, err := m.enter(ctx, p, m.address.OptionID, asset)
	m.entry, m.waits = a, true

	return err
}

// finish confirms what is deep enough and writes what changed.
func (m *comparison) finish(ctx context.Context) (outcome, error) {
	result := compared

	switch {
	case m.unclear:
		result = unclear
	case m.waits:
		result = waits
	}

	if m.entry == nil {
		return result, nil
	}

	if err := m.setRequired(m.entry); err != nil {
		return stale, err
	}

	in := &intake{ledger: m.ledger, n: m.check.network, cursor: m.cursor}

	for _, p := range m.ripe {
		if !in.final(p.Required, p.Block) {
			continue
		}

		if err := m.confirm(m.entry, p); err != nil {
			return stale, err
		}
	}

	m.notifyNew(m.entry)

	return result, m.flush(ctx)
}

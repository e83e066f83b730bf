package engine

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/settlement"
)

// This file holds reads that a transaction makes once, even if many of its events need them. A batch of
// blocks has the events of many payments: their reads are made together, and not repeated. A record that is
// changed afterwards has a version, which the commit compares.

// reads are the records that a transaction has read, as it leaves them.
type reads struct {
	// settlements are by the id of their payment; nil for a payment that has none.
	settlements map[string][]settlement.Settlement
	// before are settlements by id, as they were before the transaction.
	before map[string]settlement.Settlement
	// settings are the settings of accounts that settlements open with.
	settings map[string]settlement.Settings
	// tips are the heights of the newest blocks seen, by network. Events show them.
	tips map[string]uint64
}

// SettlementsOfPayments returns the settlements of payments. It reads those of each payment only once.
func (t *transaction) SettlementsOfPayments(
	ctx context.Context,
	paymentIDs []string,
) ([]settlement.Settlement, error) {
	ids := slices.Compact(slices.Sorted(slices.Values(paymentIDs)))

	unread := slices.DeleteFunc(slices.Clone(ids), func(id string) bool {
		_, read := t.reads.settlements[id]
		return read
	})

	if len(unread) > 0 {
		found, err := t.Tx.SettlementsOfPayments(ctx, unread)
		if err != nil {
			return nil, err
		}

		if t.reads.settlements == nil {
			t.reads.settlements = make(map[string][]settlement.Settlement, len(unread))
		}

		for _, id := range unread {
			t.reads.settlements[id] = nil
		}

		t.reads.noteBefore(found)

		for _, s := range found {
			t.reads.settlements[s.PaymentID] = append(t.reads.settlements[s.PaymentID], s)
		}
	}

	var all []settlement.Settlement
	for _, id := range ids {
		all = append(all, t.reads.settlements[id]...)
	}

	return all, nil
}

// SettlementsByID returns settlements.
func (t *transaction) SettlementsByID(ctx context.Context, ids []string) ([]settlement.Settlement, error) {
	found, err := t.Tx.SettlementsByID(ctx, ids)
	if err == nil {
		t.reads.noteBefore(found)
	}

	return found, err
}

// settlementBefore returns the settlement as it was before the transaction, for a write of it; the zero
// settlement for a new one. It reads it only if the transaction has not read it by payment or id.
func (t *transaction) settlementBefore(
	ctx context.Context,
	s settlement.Settlement,
) (settlement.Settlement, error) {
	if _, read := t.reads.before[s.ID]; !read && s.Version > 0 {
		if _, err := t.SettlementsByID(ctx, []string{s.ID}); err != nil {
			return settlement.Settlement{}, err
		}
	}

	return t.reads.before[s.ID], nil
}

// noteBefore remembers settlements as they were first read.
func (r *reads) noteBefore(found []settlement.Settlement) {
	if r.before == nil {
		r.before = make(map[string]settlement.Settlement, len(found))
	}

	for _, s := range found {
		if _, read := r.before[s.ID]; !read {
			r.before[s.ID] = s
		}
	}
}

// noteSettlement remembers a written settlement, if the settlements of its payment were read.
func (r *reads) noteSettlement(s settlement.Settlement) {
	known, read := r.settlements[s.PaymentID]
	if !read {
		return
	}

	i := slices.IndexFunc(known, func(other settlement.Settlement) bool { return other.ID == s.ID })
	if i < 0 {
		r.settlements[s.PaymentID] = append(known, s)
		return
	}

	known[i] = s
}

// readSettlements reads the settlements of the payments of selected events in one query.
func (t *transaction) readSettlements(
	ctx context.Context,
	events []event.Event,
	asks func(ev event.Event, p invoice.Payment) bool,
) error {
	var ids []string

	for _, ev := range events {
		if p, ok := ev.Payload.(invoice.Payment); ok && asks(ev, p) {
			ids = append(ids, p.ID)
		}
	}

	if len(ids) < 2 {
		return nil // its own read follows
	}

	_, err := t.SettlementsOfPayments(ctx, ids)

	return err
}

// hasSettlement reports whether the reaction to an event of a payment reads its settlement.
func hasSettlement(ev event.Event, _ invoice.Payment) bool {
	return ev.Type == event.PaymentValued || ev.Type == event.PaymentLost
}

// showsSettlement reports whether an event shows the settlement of its payment.
func showsSettlement(_ event.Event, p invoice.Payment) bool { return !p.ConfirmedAt.IsZero() }

// noteAccount forgets the settings of a written account.
func (r *reads) noteAccount(a account.Account) { delete(r.settings, a.ID) }

// tip returns the height of the newest block seen on a network, for the events of the transaction.
func (t *transaction) tip(ctx context.Context, network string) (uint64, error) {
	if tip, read := t.reads.tips[network]; read {
		return tip, nil
	}

	cursor, _, err := t.Cursor(ctx, network)
	if err != nil {
		return 0, err
	}

	if t.reads.tips == nil {
		t.reads.tips = map[string]uint64{}
	}

	t.reads.tips[network] = cursor.Tip.Height

	return cursor.Tip.Height, nil
}

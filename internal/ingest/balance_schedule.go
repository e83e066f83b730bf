package ingest

import (
	"context"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/invoice"
)

// How often addresses are compared. An address that waits for money is urgent; one that does not any more
// is compared hourly for a week, then daily for 90 days, then monthly.
const (
	urgentEvery = 30 * time.Second
	freshFor    = 7 * 24 * time.Hour
	freshEvery  = time.Hour
	recentFor   = freshFor + 90*24*time.Hour
	recentEvery = 24 * time.Hour
	oldEvery    = 30 * 24 * time.Hour
)

// schedule stores when the addresses were compared, and sets when they are next.
func (c *balanceCheck) schedule(ctx context.Context, due []invoice.Address, outcomes []outcome) error {
	invoices, err := c.invoicesOf(ctx, due)
	if err != nil {
		return err
	}

	rows := make([]invoice.Address, len(due))

	for i, address := range due {
		var (
			since  time.Time
			urgent bool
		)

		if inv, known := invoices[address.InvoiceID]; known {
			since, urgent = lastActive(inv), waitsForMoney(inv)
		} else if since, err = c.lastDeposit(ctx, address); err != nil {
			return err
		}

		// Only what concluded something counts: an invoice may expire up to there.
		if outcomes[i] == compared || outcomes[i] == waits {
			address.CheckedAt = c.at.Time
		}

		address.Urgent = urgent || outcomes[i] != compared && outcomes[i] != unclearAtRest
		address.NextCheck = nextCheck(c.s.now(), since, address.Urgent)
		rows[i] = address
	}

	return c.s.db.Update(ctx, func(ctx context.Context, tx Tx) error {
		return tx.UpdateAddresses(ctx, rows...)
	})
}

// FirstCheck returns when the balances of an address that is new on a network are compared first. Blocks show what it
// is paid once the network is read. Before, a payment may be in a block that the first one read is above, so that the
// comparison alone finds it: then it is made at once.
func (s *Ingester) FirstCheck(ctx context.Context, r scan.CursorReader, network string) (time.Time, error) {
	now := s.now()

	last, _ := s.firstReads.Load(network)
	seen, _ := last.(firstRead)

	if !seen.read && now.Sub(seen.at) >= urgentEvery {
		cursor, ok, err := r.Cursor(ctx, network)
		if err != nil {
			return time.Time{}, err
		}

		seen = firstRead{read: ok && !cursor.At.IsZero(), at: now}
		s.firstReads.Store(network, seen)
	}

	if !seen.read {
		return now, nil
	}

	return now.Add(urgentEvery), nil
}

// firstRead is whether a block of a network was read, as this process saw at a time. While none was it is asked for
// every urgentEvery: until then addresses are compared at once.
type firstRead struct {
	read bool
	at   time.Time
}

// nextCheck returns when an address is compared again whose last activity was at since.
func nextCheck(now, since time.Time, urgent bool) time.Time { // spec D11.6
	switch age := now.Sub(since); {
	case urgent:
		return now.Add(urgentEvery)
	case age < freshFor:
		return now.Add(freshEvery)
	case age < recentFor:
		return now.Add(recentEvery)
	}

	return now.Add(oldEvery)
}

// lastActive returns when an invoice last changed as far as payers are concerned.
func lastActive(inv invoice.Invoice) time.Time {
	return slices.MaxFunc(
		[]time.Time{inv.CreatedAt, inv.PaidAt, inv.ExpiredAt, inv.CanceledAt, inv.RefundedAt},
		time.Time.Compare,
	)
}

// lastDeposit returns when a deposit address was made or last received a payment. Within the first pace the
// difference does not matter and is not read.
func (c *balanceCheck) lastDeposit(ctx context.Context, address invoice.Address) (time.Time, error) {
	if address.DepositAddressID == "" || c.s.now().Sub(address.CreatedAt) < freshFor {
		return address.CreatedAt, nil
	}

	d, err := c.s.db.DepositAddress(ctx, address.Owner, address.DepositAddressID)
	if err != nil {
		return time.Time{}, err
	}

	return slices.MaxFunc([]time.Time{d.CreatedAt, d.LastPaymentAt}, time.Time.Compare), nil
}

// waitsForMoney reports whether an invoice is one that money is looked for within a minute. A pending one
// may be open again at any moment.
func waitsForMoney(inv invoice.Invoice) bool {
	return inv.Status == invoice.Open || inv.Status == invoice.Underpaid || inv.Status == invoice.Pending
}

// invoicesOf returns the invoices of the addresses, by id.
func (c *balanceCheck) invoicesOf(
	ctx context.Context,
	due []invoice.Address,
) (map[string]invoice.Invoice, error) {
	var ids []string

	for _, address := range due {
		if address.InvoiceID != "" {
			ids = append(ids, address.InvoiceID)
		}
	}

	out := make(map[string]invoice.Invoice, len(ids))
	if len(ids) == 0 {
		return out, nil
	}

	list, err := c.s.db.InvoicesByID(ctx, ids)
	for _, inv := range list {
		out[inv.ID] = inv
	}

	return out, err
}

// compareNow makes the next comparison of addresses due: an invoice waits for it to expire.
func compareNow(ctx context.Context, tx invoice.Tx, now time.Time, all []invoice.Address) error {
	var rows []invoice.Address

	for _, address := range all {
		if address.NextCheck.After(now) {
			address.NextCheck, address.Urgent = now, true
			rows = append(rows, address)
		}
	}

	if len(rows) == 0 {
		return nil
	}

	return tx.UpdateAddresses(ctx, rows...)
}

// checkSoon brings the next comparison of addresses forward: an urgent one within a minute, others within
// the hour. It writes only those that are scheduled later.
func checkSoon(ctx context.Context, tx invoice.Tx, now time.Time, urgent bool, all ...invoice.Address) error {
	var rows []invoice.Address

	next := nextCheck(now, now, urgent)

	for _, address := range all {
		if address.NextCheck.IsZero() || !address.NextCheck.After(next) {
			continue
		}

		address.NextCheck, address.Urgent = next, urgent
		rows = append(rows, address)
	}

	if len(rows) == 0 {
		return nil
	}

	return tx.UpdateAddresses(ctx, rows...)
}

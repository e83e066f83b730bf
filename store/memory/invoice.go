package memory

// This file keeps invoices, payments and the addresses they arrive at.

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
)

var (
	invoices = newKind(
		"invoice", func(i *invoice.Invoice) string { return i.ID },
		func(i *invoice.Invoice) *int64 { return &i.Version },
	)
	invoicesByOwner = invoices.ordered(
		func(i *invoice.Invoice) (string, string, bool) { return ownerKey(i.Owner), i.ID, true },
	)
	invoicesByDue = invoices.ordered(func(i *invoice.Invoice) (string, string, bool) {
		return "", join(moment(i.DueAt), i.ID), !i.DueAt.IsZero()
	})

	payments = newKind(
		"payment", func(p *invoice.Payment) string { return p.ID },
		func(p *invoice.Payment) *int64 { return &p.Version },
	)
	paymentsByOwner = payments.ordered(
		func(p *invoice.Payment) (string, string, bool) { return ownerKey(p.Owner), p.ID, true },
	)
	paymentsByInvoice = payments.ordered(
		func(p *invoice.Payment) (string, string, bool) { return p.InvoiceID, p.ID, p.InvoiceID != "" },
	)
	paymentsByDeposit = payments.ordered(func(p *invoice.Payment) (string, string, bool) {
		return p.DepositAddressID, p.ID, p.DepositAddressID != ""
	})
	// No query uses a payment's identity, but it is unique.
	_ = payments.only(func(p *invoice.Payment) (string, bool) {
		return join(
			p.Network, p.TxHash, strconv.FormatUint(uint64(p.TxIndex), 10), string(p.Address), p.AssetID,
		), p.TxHash != ""
	})
	paymentsByHash = payments.ordered(func(p *invoice.Payment) (string, string, bool) {
		return join(p.Network, p.TxHash), p.ID, p.TxHash != ""
	})
	// paymentsUnconfirmed has those detected in a block, paymentsUnmined those detected or orphaned in none, and
	// paymentsInBlocks all that a reorganisation may take.
	paymentsUnconfirmed = payments.ordered(func(p *invoice.Payment) (string, string, bool) {
		return p.Network, byHeight(p), p.Status == invoice.Detected && !p.Block.IsZero()
	})
	paymentsUnmined = payments.ordered(func(p *invoice.Payment) (string, string, bool) {
		waits := p.Status == invoice.Detected || p.Status == invoice.Orphaned

		return p.Network, p.ID, waits && p.Block.IsZero()
	})
	paymentsInBlocks = payments.ordered(func(p *invoice.Payment) (string, string, bool) {
		return p.Network, byHeight(
				p,
			), (p.Status == invoice.Detected || p.Status == invoice.Confirmed) &&
				!p.Block.IsZero()
	})
	paymentsByAddress = payments.ordered(func(p *invoice.Payment) (string, string, bool) {
		return join(p.Network, string(p.Address), p.AssetID), p.ID, p.Status != invoice.Dropped
	})
	paymentsByDue = payments.ordered(func(p *invoice.Payment) (string, string, bool) {
		return "", join(moment(p.DueAt), p.ID), !p.DueAt.IsZero()
	})

	addresses = newKind(
		"address", func(a *invoice.Address) string { return addressKey(a.Space, a.Address) }, nil,
	)
	addressesBySpace = addresses.ordered(func(a *invoice.Address) (string, string, bool) {
		return a.Space.String(), string(a.Address), true
	})
	addressesByDue = addresses.ordered(func(a *invoice.Address) (string, string, bool) {
		return join(a.Network, strconv.FormatBool(a.Urgent)),
			join(moment(a.NextCheck), string(a.Address)), !a.NextCheck.IsZero()
	})
	addressesMade = addresses.ordered(func(a *invoice.Address) (string, string, bool) {
		return join(a.Network, string(a.Kind)), join(moment(a.CreatedAt), string(a.Address)), true
	})

	deposits = newKind(
		"deposit address", func(d *invoice.DepositAddress) string { return d.ID },
		func(d *invoice.DepositAddress) *int64 { return &d.Version },
	)
	depositsByOwner = deposits.ordered(
		func(d *invoice.DepositAddress) (string, string, bool) { return ownerKey(d.Owner), d.ID, true },
	)
)

func byHeight(p *invoice.Payment) string { return join(number(p.Block.Height), p.ID) }

func addressKey(s chain.Space, a chain.Address) string { return join(s.String(), string(a)) }

func (r *reader) Invoice(ctx context.Context, owner event.Owner, id string) (invoice.Invoice, error) {
	return get(ctx, r, invoices, id, func(i *invoice.Invoice) bool { return i.Owner == owner })
}

func (r *reader) InvoiceByID(ctx context.Context, id string) (invoice.Invoice, error) {
	return get(ctx, r, invoices, id, nil)
}

func (r *reader) InvoicesByID(ctx context.Context, ids []string) ([]invoice.Invoice, error) {
	return several(ctx, r, invoices, ids)
}

func (r *reader) Invoices(ctx context.Context, f invoice.Filter) ([]invoice.Invoice, error) {
	onNetwork := func(o invoice.Option) bool { return slices.Contains(f.Networks, o.Network) }
	match := func(i *invoice.Invoice) bool {
		return passes(f.Statuses, i.Status) && (f.OrderID == "" || i.OrderID == f.OrderID) &&
			(len(f.Networks) == 0 || slices.ContainsFunc(i.Options, onNetwork)) &&
			starts(f.Q, i.ID, i.OrderID, i.CustomerEmail) &&
			within(i.CreatedAt, f.CreatedAfter, f.CreatedBefore)
	}

	return scanRows(ctx, r, invoicesByOwner, ownerKey(f.Owner), page(f.After, f.Limit, match))
}

func (r *reader) DueInvoices(ctx context.Context, now time.Time, limit int) ([]invoice.Invoice, error) {
	return scanRows(ctx, r, invoicesByDue, "", window[invoice.Invoice]{to: until(now), limit: limit})
}

func (r *reader) Payment(ctx context.Context, owner event.Owner, id string) (invoice.Payment, error) {
	return get(ctx, r, payments, id, func(p *invoice.Payment) bool { return p.Owner == owner })
}

func (r *reader) PaymentByID(ctx context.Context, id string) (invoice.Payment, error) {
	return get(ctx, r, payments, id, nil)
}

func (r *reader) Payments(ctx context.Context, f invoice.PaymentFilter) ([]invoice.Payment, error) {
	ix, bucket := paymentsByOwner, ownerKey(f.Owner)
	switch {
	case f.InvoiceID != "":
		ix, bucket = paymentsByInvoice, f.InvoiceID
	case f.DepositAddressID != "":
		ix, bucket = paymentsByDeposit, f.DepositAddressID
	}

	return scanRows(ctx, r, ix, bucket, page(f.After, f.Limit, func(p *invoice.Payment) bool {
		return p.Owner == f.Owner && passes(f.Statuses, p.Status) && passes(f.Networks, p.Network) &&
			(f.InvoiceID == "" || p.InvoiceID == f.InvoiceID) &&
			(f.DepositAddressID == "" || p.DepositAddressID == f.DepositAddressID) &&
			starts(
				f.Q, p.TxHash, string(p.Address), p.ID,
			) && within(p.DetectedAt, f.DetectedAfter, f.DetectedBefore)
	}))
}

func (r *reader) PaymentsOfInvoice(ctx context.Context, invoiceID string) ([]invoice.Payment, error) {
	return scanRows(ctx, r, paymentsByInvoice, invoiceID, window[invoice.Payment]{})
}

func (r *reader) PaymentsByHash(
	ctx context.Context,
	network string,
	hashes []string,
) ([]invoice.Payment, error) {
	var out []invoice.Payment

	for _, hash := range slices.Compact(slices.Sorted(slices.Values(hashes))) {
		found, err := scanRows(ctx, r, paymentsByHash, join(network, hash), window[invoice.Payment]{})
		if err != nil {
			return nil, err
		}

		out = append(out, found...)
	}

	return out, nil
}

func (r *reader) UnconfirmedPayments(
	ctx context.Context,
	network string,
	height uint64,
	limit int,
) ([]invoice.Payment, error) {
	upTo := window[invoice.Payment]{to: join(number(height), "\xff"), limit: limit}

	return scanRows(ctx, r, paymentsUnconfirmed, network, upTo)
}

func (r *reader) UnminedPayments(ctx context.Context, network string) ([]invoice.Payment, error) {
	return scanRows(ctx, r, paymentsUnmined, network, window[invoice.Payment]{})
}

func (r *reader) PaymentsAbove(
	ctx context.Context,
	network string,
	height uint64,
) ([]invoice.Payment, error) {
	found, err := scanRows(
		ctx, r, paymentsInBlocks, network,
		window[invoice.Payment]{downward: true, above: join(number(height), "\xff")},
	)
	slices.Reverse(found)

	return found, err
}

func (r *reader) BalancePayments(
	ctx context.Context,
	network string,
	address chain.Address,
	assetID string,
) ([]invoice.Payment, error) {
	balance := join(network, string(address), assetID)

	return scanRows(ctx, r, paymentsByAddress, balance, window[invoice.Payment]{})
}

func (r *reader) DuePayments(ctx context.Context, now time.Time, limit int) ([]invoice.Payment, error) {
	return scanRows(ctx, r, paymentsByDue, "", window[invoice.Payment]{to: until(now), limit: limit})
}

func (r *reader) MatchAddresses(
	ctx context.Context,
	space chain.Space,
	wanted []chain.Address,
) ([]invoice.Address, error) {
	ids := make([]string, len(wanted))
	for i, a := range wanted {
		ids[i] = addressKey(space, a)
	}

	return several(ctx, r, addresses, ids)
}

func (r *reader) AddressesSince(
	ctx context.Context,
	network string,
	kind invoice.AddressKind,
	since time.Time,
) ([]invoice.Address, error) {
	newest := window[invoice.Address]{downward: true, above: moment(since)}

	return scanRows(ctx, r, addressesMade, join(network, string(kind)), newest)
}

func (r *reader) AddressesAfter(
	ctx context.Context,
	space chain.Space,
	after chain.Address,
	limit int,
) ([]invoice.Address, error) {
	return scanRows(ctx, r, addressesBySpace, space.String(), window[invoice.Address]{
		limit: limit,
		match: func(a *invoice.Address) bool { return a.Address > after },
	})
}

func (r *reader) DueAddresses(
	ctx context.Context,
	network string,
	urgent bool,
	now time.Time,
	limit int,
) ([]invoice.Address, error) {
	return scanRows(
		ctx, r, addressesByDue, join(network, strconv.FormatBool(urgent)),
		window[invoice.Address]{to: until(now), limit: limit},
	)
}

func (r *reader) DepositAddress(
	ctx context.Context,
	owner event.Owner,
	id string,
) (invoice.DepositAddress, error) {
	return get(ctx, r, deposits, id, func(d *invoice.DepositAddress) bool { return d.Owner == owner })
}

func (r *reader) DepositAddresses(
	ctx context.Context,
	f invoice.DepositFilter,
) ([]invoice.DepositAddress, error) {
	match := func(d *invoice.DepositAddress) bool {
		return passes(f.Statuses, d.Status) && passes(f.Networks, d.Network) &&
			starts(f.Q, d.Name, string(d.Address), d.ID)
	}

	return scanRows(ctx, r, depositsByOwner, ownerKey(f.Owner), page(f.After, f.Limit, match))
}

func (tx *transaction) PutInvoice(ctx context.Context, inv *invoice.Invoice) error {
	return put(ctx, tx, invoices, inv)
}

func (tx *transaction) PutPayments(ctx context.Context, all ...*invoice.Payment) error {
	return putAll(ctx, tx, payments, all)
}

func (tx *transaction) PutDepositAddress(ctx context.Context, d *invoice.DepositAddress) error {
	return put(ctx, tx, deposits, d)
}

func (tx *transaction) PutAddress(ctx context.Context, a invoice.Address) error {
	return add(ctx, tx, addresses, &a)
}

func (tx *transaction) UpdateAddresses(ctx context.Context, all ...invoice.Address) error {
	for i := range all {
		if err := put(ctx, tx, addresses, &all[i]); err != nil {
			return err
		}
	}

	return nil
}

func putAll[T any](ctx context.Context, tx *transaction, k *kind[T], records []*T) error {
	for _, record := range records {
		if err := put(ctx, tx, k, record); err != nil {
			return err
		}
	}

	return nil
}

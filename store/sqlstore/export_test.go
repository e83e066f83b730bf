package sqlstore

// This file reads the same rows for benchmarks, with column lists written by hand and as the store does; and it shows
// the statements of a store whose tables are spread.

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store"
)

// Scan reads one page or one row by hand, and as the store does.
type Scan struct {
	Name          string
	ByHand, Store func(ctx context.Context) (rows int, err error)
}

// Scans are the readings that are compared, over a database with numbered parameters or not: a page of 50 payments, and
// one by its id.
func Scans(db *sql.DB, driver string, numbered bool, account, paymentID string) []Scan {
	st := &sqlStore{dialect: &Dialect{Prefix: "payments_", Numbered: numbered}}
	st.fits.Store(true)

	r := &reader{store: st, on: sqlx.NewDb(db, driver)}
	page := st.dialect.text(
		"SELECT " + payments.columns +
			" FROM {payments} WHERE account_id = ? AND livemode = ? ORDER BY id DESC LIMIT 50",
	)
	byID := st.dialect.text(payments.getOfAccount)

	return []Scan{
		{
			Name:   "page of payments",
			ByHand: func(ctx context.Context) (int, error) { return paymentsByHand(ctx, r, page, account, true) },
			Store: func(ctx context.Context) (int, error) {
				found, err := rows(ctx, r, payments, page, []any{account, true})
				return len(found), err
			},
		},
		{
			Name:   "payment by id",
			ByHand: func(ctx context.Context) (int, error) { return paymentsByHand(ctx, r, byID, paymentID, account) },
			Store: func(ctx context.Context) (int, error) {
				_, ok, err := row(ctx, r, payments, byID, []any{paymentID, account})
				return map[bool]int{true: 1}[ok], err
			},
		},
	}
}

func paymentsByHand(ctx context.Context, r *reader, text string, args ...any) (int, error) {
	found, err := r.query(ctx, text, args)
	if err != nil {
		return 0, err
	}
	defer found.Close()

	var out []invoice.Payment

	for found.Next() {
		var p invoice.Payment

		err := found.Scan(
			&p.ID,
			&p.Owner.AccountID,
			&p.Owner.Livemode,
			&p.Status,
			&p.InvoiceID,
			&p.OptionID,
			&p.DepositAddressID,
			&p.InvoiceNumber,
			&p.DepositAddressName,
			&p.Network,
			&p.Asset,
			&p.AssetID,
			&p.Contract,
			&p.Decimals,
			&p.Address,
			(*keyRef)(&p.Key),
			&p.FromAddress,
			&p.TxHash,
			&p.TxIndex,
			(*amount)(&p.Amount),
			(*bits)(&p.Block.Height),
			&p.Block.Hash,
			(*moment)(&p.Block.Time),
			(*bits)(&p.Required),
			&p.Rate,
			&p.Credit,
			&p.USDValue,
			&p.NativeUSD,
			&p.Late,
			&p.Simulated,
			&p.DetectedBy,
			(*moment)(&p.DetectedAt),
			(*moment)(&p.ConfirmedAt),
			(*moment)(&p.LostAt),
			(*moment)(&p.DueAt),
			&p.Sequence,
			&p.Version,
		)
		if err != nil {
			return 0, err
		}

		out = append(out, p)
	}

	return len(out), found.Err()
}

// readTexts records the statements of reads.
type readTexts struct {
	*sqlx.DB
	all []string
}

func (d *readTexts) QueryRowxContext(ctx context.Context, text string, args ...any) *sqlx.Row {
	d.all = append(d.all, text)
	return d.DB.QueryRowxContext(ctx, text, args...)
}

func (d *readTexts) QueryxContext(ctx context.Context, text string, args ...any) (*sqlx.Rows, error) {
	d.all = append(d.all, text)
	return d.DB.QueryxContext(ctx, text, args...)
}

// Spread returns a reader as on tables that are spread by account, and a function that returns the statements since it
// was called last.
func Spread(db *sql.DB, driver string) (r store.Reader, texts func() []string) {
	st := &sqlStore{dialect: &Dialect{Prefix: "payments_"}, homes: newHomes()}
	st.fits.Store(true)

	st.dialect.Among = func(columns, table, condition, column string) string {
		return "SELECT " + columns + " FROM {" + table + "} WHERE " + column +
			" IN (SELECT value FROM json_each(?)) AND " + condition
	}
	st.dialect.Arg = func(v any) any {
		if list, ok := v.([]string); ok {
			text, _ := json.Marshal(list)
			return string(text)
		}

		return v
	}

	on := &readTexts{DB: sqlx.NewDb(db, driver)}
	on.Mapper = mapper

	return &reader{store: st, on: on}, func() []string {
		all := on.all
		on.all = nil

		return all
	}
}

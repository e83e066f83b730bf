package sqlstore

// This file reads the same rows for benchmarks: by sqlx's mapping, with column lists written by hand, and as the store
// does; and it shows the statements of a store whose tables are spread.

import (
	"context"
	"database/sql"
	"encoding/json"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8ee7f392/payments/store"
)

// Scan reads one page or one row by sqlx's mapping, by hand, and as the store does.
type Scan struct {
	Name                  string
	Mapped, ByHand, Store func(ctx context.Context) (rows int, err error)
}

// Scans are the readings that are compared, over a database with numbered parameters or not: pages of 50, and rows by
// the ids of an invoice and a payment.
func Scans(db *sql.DB, driver string, numbered bool, account, invoiceID, paymentID string) []Scan {
	st := &sqlStore{dialect: &Dialect{Prefix: "payments_", Numbered: numbered}}
	st.fits.Store(true)

	r := &reader{store: st, on: sqlx.NewDb(db, driver)}
	r.on.(*sqlx.DB).Mapper = mapper

	page := " WHERE account_id = ? AND livemode = ? ORDER BY id DESC LIMIT 50"

	return []Scan{
		pageScan("page of invoices", r, invoices, page, invoiceTargets, account, true),
		pageScan("page of payments", r, payments, page, paymentTargets, account, true),
		rowScan("invoice by id", db, r, invoices, invoiceTargets, invoiceID, account),
		rowScan("payment by id", db, r, payments, paymentTargets, paymentID, account),
	}
}

func pageScan[T, R any](
	name string,
	r *reader,
	t *table[T, R],
	condition string,
	targets func(*R) []any,
	args ...any,
) Scan {
	text := r.store.dialect.text("SELECT " + t.columns + " FROM {" + t.name + "}" + condition)

	return Scan{
		Name: name,
		Store: func(ctx context.Context) (int, error) {
			found, err := rows(ctx, r, t, text, args)
			return len(found), err
		},
		Mapped: func(ctx context.Context) (int, error) {
			found, err := r.on.QueryxContext(ctx, text, args...)
			if err != nil {
				return 0, err
			}
			defer found.Close()

			var (
				out []T
				row R
			)

			for found.Next() {
				if err := found.StructScan(&row); err != nil {
					return 0, err
				}

				out = append(out, t.record(&row))
			}

			return len(out), found.Err()
		},
		ByHand: func(ctx context.Context) (int, error) {
			found, err := r.query(ctx, text, args)
			if err != nil {
				return 0, err
			}
			defer found.Close()

			var (
				out []T
				row R
			)

			for found.Next() {
				if err := found.Scan(targets(&row)...); err != nil {
					return 0, err
				}

				out = append(out, t.record(&row))
			}

			return len(out), found.Err()
		},
	}
}

func rowScan[T, R any](
	name string,
	db *sql.DB,
	r *reader,
	t *table[T, R],
	targets func(*R) []any,
	args ...any,
) Scan {
	text := r.store.dialect.text(t.getOfAccount)

	return Scan{
		Name: name,
		Store: func(ctx context.Context) (int, error) {
			_, ok, err := row(ctx, r, t, text, args)
			return map[bool]int{true: 1}[ok], err
		},
		Mapped: func(ctx context.Context) (int, error) {
			var found R
			if err := sqlx.GetContext(ctx, r.on, &found, text, args...); err != nil {
				return 0, err
			}

			t.record(&found)

			return 1, nil
		},
		ByHand: func(ctx context.Context) (int, error) {
			if err := r.ready(ctx); err != nil {
				return 0, err
			}

			var found R
			if err := db.QueryRowContext(ctx, text, args...).Scan(targets(&found)...); err != nil {
				return 0, err
			}

			t.record(&found)

			return 1, nil
		},
	}
}

func invoiceTargets(r *invoiceRow) []any {
	return []any{
		&r.ID,
		&r.AccountID,
		&r.Livemode,
		&r.Number,
		&r.Kind,
		&r.Status,
		&r.Flags,
		&r.Currency,
		&r.Price,
		&r.Options,
		&r.SelectedOptionID,
		&r.PaidOptionID,
		&r.ToleranceBPS,
		&r.AcceptLate,
		&r.OrderID,
		&r.CustomerEmail,
		&r.Description,
		&r.Metadata,
		&r.SuccessURL,
		&r.CancelURL,
		&r.CheckoutToken,
		&r.ExpiresAt,
		&r.PreSelectionExpiresAt,
		&r.CreatedAt,
		&r.PaidAt,
		&r.ExpiredAt,
		&r.CanceledAt,
		&r.RefundedAt,
		&r.ClosedAs,
		&r.Accepted,
		&r.Refunds,
		&r.Simulated,
		&r.DueAt,
		&r.Sequence,
		&r.Version,
	}
}

func paymentTargets(r *paymentRow) []any {
	return []any{
		&r.ID,
		&r.AccountID,
		&r.Livemode,
		&r.Status,
		&r.InvoiceID,
		&r.OptionID,
		&r.DepositAddressID,
		&r.InvoiceNumber,
		&r.DepositAddressName,
		&r.Network,
		&r.Asset,
		&r.AssetID,
		&r.Contract,
		&r.Decimals,
		&r.Address,
		&r.Key,
		&r.FromAddress,
		&r.TxHash,
		&r.TxIndex,
		&r.Amount,
		&r.BlockHeight,
		&r.BlockHash,
		&r.BlockTime,
		&r.Required,
		&r.Rate,
		&r.Credit,
		&r.USDValue,
		&r.NativeUSD,
		&r.Late,
		&r.Simulated,
		&r.DetectedBy,
		&r.DetectedAt,
		&r.ConfirmedAt,
		&r.LostAt,
		&r.DueAt,
		&r.Sequence,
		&r.Version,
	}
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

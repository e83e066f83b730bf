package postgres_test

import (
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/store/postgres"
)

// What is written in a host's transaction is sent in one batch: one round trip, or two beside a tracer, which sees each
// statement and no error. A row that exists is reported, and the transaction is the host's to end.
func TestJoinedWritesAreSentTogether(t *testing.T) {
	for name, want := range map[string]int{"plain": 1, "traced": 2} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{}
			db := database(t, 1, func(c *pgx.ConnConfig) {
				c.DialFunc = r.dial(c.DialFunc)
				if name == "traced" {
					c.Tracer = r
				}
			})
			st := open(t, db, "")

			write := func(first int) (trips int, err error) {
				sqlTx, err := db.BeginTx(t.Context(), nil)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = sqlTx.Rollback() }()

				tx, flush, err := postgres.Join(sqlTx, postgres.Options{})
				if err != nil {
					t.Fatal(err)
				}

				for n := first; n < first+10; n++ {
					inv := invoice.Invoice{ID: fmt.Sprintf("inv_%03d", n), Number: int64(n)}
					if err := tx.PutInvoice(t.Context(), &inv); err != nil {
						t.Fatal(err)
					}
				}

				r.reset()

				if err := flush(t.Context()); err != nil {
					return r.trips(), err
				}

				return r.trips(), sqlTx.Commit()
			}

			if _, err := write(0); err != nil { // prepares the statements
				t.Fatal(err)
			}

			trips, err := write(10)
			if err != nil || trips != want {
				t.Errorf("10 rows took %d round trips: %v", trips, err)
			}

			for n := range 20 {
				if _, err := st.InvoiceByID(t.Context(), fmt.Sprintf("inv_%03d", n)); err != nil {
					t.Error(err)
				}
			}

			if _, err := write(19); fault.Code(err) != "duplicate" {
				t.Errorf("a row that exists: %v", err)
			}

			if _, err := st.InvoiceByID(t.Context(), "inv_025"); err == nil {
				t.Error("a row remains of a transaction that the host rolled back")
			}
		})
	}
}

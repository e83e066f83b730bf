package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/invoice"
	"github.com/seed-8ee7f392/payments/webhook"
)

// ledger is the exchange's own: what each user has. It could be any database on any machine.
type ledger struct {
	db      *sql.DB
	handled atomic.Int64 // deliveries
}

// schema has a credit per payment, not a balance per user: a payment that is credited is not credited again.
const schema = `CREATE TABLE credits (
	payment_id TEXT PRIMARY KEY,
	user       TEXT NOT NULL,
	asset      TEXT NOT NULL,
	amount     TEXT NOT NULL
)`

func openLedger(ctx context.Context, path string) (*ledger, error) {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return nil, err
	}

	db.SetMaxOpenConns(1)

	_, err = db.ExecContext(ctx, schema)

	return &ledger{db: db}, err
}

// handle credits a confirmed deposit. It is stored when handle returns nil, and only then is the webhook answered
// with success: whatever fails before that, the webhook comes again.
func (l *ledger) handle(ctx context.Context, n webhook.Notification) error {
	if n.Type != event.DepositPaymentConfirmed {
		return nil
	}

	var object struct {
		Payment        invoice.PaymentResource `json:"payment"`
		DepositAddress invoice.DepositResource `json:"deposit_address"`
	}
	if err := json.Unmarshal(n.Data.Object, &object); err != nil {
		return err
	}

	_, err := l.db.ExecContext(
		ctx, "INSERT INTO credits VALUES (?, ?, ?, ?) ON CONFLICT (payment_id) DO NOTHING",
		object.Payment.ID, object.DepositAddress.Name, object.Payment.Asset, object.Payment.Amount,
	)
	if err == nil {
		l.handled.Add(1)
	}

	return err
}

// waitFor waits until so many deliveries were handled.
func (l *ledger) waitFor(ctx context.Context, deliveries int64) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()

	for l.handled.Load() < deliveries {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d webhooks came: %w", l.handled.Load(), deliveries, ctx.Err())
		case <-tick.C:
		}
	}

	return nil
}

// show prints every user's credits.
func (l *ledger) show(ctx context.Context, when string) error {
	rows, err := l.db.QueryContext(ctx, "SELECT user, asset, amount FROM credits ORDER BY user")
	if err != nil {
		return err
	}
	defer rows.Close()

	fmt.Println(when + ":")

	for rows.Next() {
		var user, asset, digits string
		if err := rows.Scan(&user, &asset, &digits); err != nil {
			return err
		}

		amount, err := chain.ParseAmount(digits)
		if err != nil {
			return err
		}

		fmt.Printf("  %s has %s base units of %s\n", user, amount, asset)
	}

	return rows.Err()
}

package postgres

// This file holds wake-ups by LISTEN and NOTIFY. A notification is sent on its own after the
// commit, never inside the transaction: there, every commit that notifies would wait for a lock
// that all databases of the server share.

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8ee7f392/payments/internal/sqlstore"
)

// silence is how long a listener hears nothing before it asks whether the connection still stands,
// and answer how long the database may take to say so.
const silence, answer = 20 * time.Second, 10 * time.Second

// channel is where a schema's notifications go; a database's channels are common to its schemas.
func (o Options) channel() string {
	if o.Schema == "" {
		return "payments_wake"
	}

	return "payments_wake_" + o.Schema
}

// Wake tells all processes that there is work; see store.Waker. Without Options.ListenConn nobody is told.
func (s *Store) Wake(ctx context.Context, from string) error {
	if s.options.ListenConn == nil {
		return nil
	}

	if _, err := s.db.ExecContext(ctx, "SELECT pg_notify($1, $2)", s.options.channel(), from); err != nil {
		return errors.Join(ctx.Err(), sqlstore.Explain(explain, err, "tell other processes of work"))
	}

	return nil
}

// Wakes listens; see store.Waker. Without Options.ListenConn it hears nothing until ctx ends.
func (s *Store) Wakes(ctx context.Context, f func(from string)) error {
	if s.options.ListenConn == nil {
		<-ctx.Done()
		return nil
	}

	err := s.hear(ctx, f)
	if ctx.Err() != nil {
		return nil
	}

	return sqlstore.Explain(explain, err, "listen for work that other processes make")
}

func (s *Store) hear(ctx context.Context, f func(from string)) error {
	conn, err := s.options.ListenConn(ctx)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answer)
		defer cancel()

		_ = conn.Close(ctx)
	}()

	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{s.options.channel()}.Sanitize()); err != nil {
		return err
	}

	f("")

	for {
		quiet, cancel := context.WithTimeout(ctx, silence)
		n, err := conn.WaitForNotification(quiet)

		cancel()

		switch {
		case err == nil:
			f(n.Payload)
		case quiet.Err() != nil && ctx.Err() == nil:
			if err := stands(ctx, conn); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// stands asks whether the connection still stands.
func stands(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, answer)
	defer cancel()

	return conn.Ping(ctx)
}

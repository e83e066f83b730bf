package postgres

// This file holds wake-ups by LISTEN and NOTIFY. A notification is sent separately after the commit, never
// inside the transaction: every commit with a notification waits for a lock that all databases of the server
// share.

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed-8ee7f392/payments/store/sqlstore"
)

const (
	// idleLimit is how long a listener receives nothing before it pings the connection.
	idleLimit = 20 * time.Second
	// pingTimeout bounds a ping and the closing of the connection.
	pingTimeout = 10 * time.Second
)

// channel returns the schema's NOTIFY channel. Channels are per database, so the schema is in the name.
func (o Options) channel() string {
	if o.Schema == "" {
		return "payments_wake"
	}

	return "payments_wake_" + o.Schema
}

// Wake notifies all processes of new work; see store.Waker. It does nothing without Options.ListenConn.
func (s *Store) Wake(ctx context.Context, note string) error {
	if s.options.ListenConn == nil {
		return nil
	}

	if _, err := s.db.ExecContext(ctx, "SELECT pg_notify($1, $2)", s.options.channel(), note); err != nil {
		return errors.Join(ctx.Err(), sqlstore.Explain(explain, err, "tell other processes of work"))
	}

	return nil
}

// Wakes listens; see store.Waker. Without Options.ListenConn it only waits until ctx ends.
func (s *Store) Wakes(ctx context.Context, f func(note string)) error {
	if s.options.ListenConn == nil {
		<-ctx.Done()
		return nil
	}

	err := s.listen(ctx, f)
	if ctx.Err() != nil {
		return nil
	}

	return sqlstore.Explain(explain, err, "listen for work that other processes make")
}

// listen calls f for every notification until ctx ends or the connection is lost.
func (s *Store) listen(ctx context.Context, f func(note string)) error {
	conn, err := s.options.ListenConn(ctx)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), pingTimeout)
		defer cancel()

		_ = conn.Close(ctx)
	}()

	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{s.options.channel()}.Sanitize()); err != nil {
		return err
	}

	f("")

	for {
		quiet, cancel := context.WithTimeout(ctx, idleLimit)
		notification, err := conn.WaitForNotification(quiet)

		cancel()

		switch {
		case err == nil:
			f(notification.Payload)
		case quiet.Err() != nil && ctx.Err() == nil:
			if err := ping(ctx, conn); err != nil {
				return err
			}
		default:
			return err
		}
	}
}

// ping checks that the connection is alive.
func ping(ctx context.Context, conn *pgx.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, pingTimeout)
	defer cancel()

	return conn.Ping(ctx)
}

package sqlstore

// This file holds migrations, and the lock by which processes migrate one after the other.

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/lock"

	"github.com/seed-8ee7f392/payments/fault"
)

// upTries is how often a migration is run if it conflicts with another transaction and no version is applied.
const upTries = 3

// Migrate waits lockTries times lockRetry for another process that migrates. It tries to release the lock for
// unlockTries times unlockRetry; a lock that stays ends with its lease, of 30 s.
const (
	lockRetry   = 2 * time.Second
	lockTries   = 150
	unlockRetry = 100 * time.Millisecond
	unlockTries = 5
)

// Migrate brings the tables in db up to date. If there is something to do, prepare runs first; it may be nil.
// Processes that migrate at the same time wait for each other for up to 5 minutes, if the dialect has a
// Locker.
//
// Errors: fault.Unavailable. The code is schema_new for a schema of a newer release, which is left alone. It
// is migration_busy when another process holds the lock for too long.
func Migrate(ctx context.Context, db *sql.DB, d Dialect, prepare func(ctx context.Context) error) error {
	have, err := d.schemaVersion(ctx, db)
	if err != nil {
		return Explain(d.Explain, err, "read the version of the schema")
	}

	if have == wantVersion {
		return nil
	}

	if have > wantVersion {
		return d.fits(have)
	}

	if prepare != nil {
		if err := prepare(ctx); err != nil {
			return err
		}
	}

	provider, err := goose.NewProvider(
		d.Goose, db, d.Migrations(),
		goose.WithTableName(d.versionTable()),
		goose.WithDisableGlobalRegistry(true),
	)
	if err != nil {
		return fmt.Errorf("prepare the migration of the schema: %w", err)
	}

	unlock, err := d.lockMigrations(ctx, db)
	if err != nil {
		return err
	}
	defer unlock()

	// A process whose lease ran out may still be migrating, in a transaction that conflicts. As long as it
	// applies versions, the loop goes on.
	had := int64(-1)

	for try := 1; ; {
		if _, err = provider.Up(ctx); err == nil {
			return nil
		}

		have, readErr := d.schemaVersion(ctx, db)

		switch {
		case readErr == nil && have == wantVersion:
			return nil
		case readErr == nil && have > had:
			had = have
		case try < upTries && errors.Is(d.Explain(err).Word, fault.Conflict):
			try++
		default:
			return Explain(d.Explain, err, "bring the schema up to date")
		}
	}
}

// lockMigrations waits until no other process migrates. The lock is a row with a lease, so that any
// connection keeps and releases it. It is not given to goose: goose would take it while it holds a
// connection, and a pool of one would wait for itself. If the lease ends during a migration, the unique index
// of the table of versions still makes sure that each version is applied once.
func (d *Dialect) lockMigrations(ctx context.Context, db *sql.DB) (unlock func(), err error) {
	if d.Locker == nil {
		return func() {}, nil
	}

	locker, err := d.Locker(
		lock.WithTableName(d.Prefix+"schema_lock"),
		lock.WithTableLockTimeout(lockRetry, lockTries),
		lock.WithTableUnlockTimeout(unlockRetry, unlockTries),
		lock.WithTableRetryPolicy(func(err error) bool { return d.migrationHeld(err) }),
	)
	if err != nil {
		return nil, fmt.Errorf("prepare the lock of migrations: %w", err)
	}

	err = locker.Lock(ctx, db)

	switch {
	case err == nil:
		return func() { _ = locker.Unlock(ctx, db) }, nil
	case ctx.Err() == nil && d.migrationHeld(err):
		return nil, fault.Wrap(
			err,
			fault.Unavailable,
			"migration_busy",
			"another process has been migrating this database for %s; look whether it stands still, and try again",
			lockTries*lockRetry,
		)
	}

	return nil, Explain(d.Explain, err, "lock the migrations of the schema")
}

// migrationHeld reports whether an error of the lock means that another process holds it. Errors of the
// database itself do not go away by waiting.
func (d *Dialect) migrationHeld(err error) bool {
	word := d.Explain(err).Word
	return word == nil || errors.Is(word, fault.Conflict)
}

package sqlstore

// This file holds migrations, and the lock that processes take to migrate one after the other.

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

// upTries is how often a migration is run that conflicts with another transaction while no version is applied.
const upTries = 3

// How long Migrate waits for another process that migrates: lockTries times lockRetry. Releasing the lock is tried
// for unlockTries times unlockRetry; a lock that stays behind ends with its lease, of 30 s.
const (
	lockRetry   = 2 * time.Second
	lockTries   = 150
	unlockRetry = 100 * time.Millisecond
	unlockTries = 5
)

// Migrate brings the tables in db up to date. prepare runs before, where there is something to do; it may be nil.
// Processes that migrate at once wait for each other for up to 5 minutes, where the dialect has a Locker.
//
// Errors: fault.Unavailable with code schema_new for a schema of a newer release, which is left alone, and with code
// migration_busy when another process holds the lock for too long.
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

	// Whoever holds a lease that ran out may be in the way, as another transaction, and applies versions meanwhile:
	// as many as there are.
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

// lockMigrations waits until no other process migrates. The lock is a row with a lease, so that any connection keeps
// and releases it. It is not given to goose, which would take it while it holds a connection: a pool of one would
// wait for itself. Should the lease run out under a migration, the unique index of the table of versions has each
// version applied once.
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

// migrationHeld reports whether an error of the lock is that another process holds it, and none of the database's,
// which waiting does not cure.
func (d *Dialect) migrationHeld(err error) bool {
	word := d.Explain(err).Word
	return word == nil || errors.Is(word, fault.Conflict)
}

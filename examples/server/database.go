package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // the database/sql driver that store/postgres works on

	"github.com/seed-8ee7f392/payments/store/postgres"
)

// answerTimeout is how long the database may take to answer at the start of a command.
const answerTimeout = 10 * time.Second

// openDatabase returns the database of the settings once it has answered. Later it may be away for a while: what
// needs it is tried again.
func openDatabase(ctx context.Context, s settings) (*sql.DB, error) {
	const form = "it has the form postgres://user@host/database"

	if s.databaseURL == "" {
		return nil, errors.New("DATABASE_URL is empty: set it; " + form)
	}

	if _, err := pgx.ParseConfig(s.databaseURL); err != nil {
		return nil, errors.New("DATABASE_URL cannot be read: " + form)
	}

	db, err := sql.Open("pgx", s.databaseURL)
	if err != nil {
		return nil, err
	}

	db.SetMaxOpenConns(20)
	db.SetMaxIdleConns(20)
	db.SetConnMaxIdleTime(5 * time.Minute)
	db.SetConnMaxLifetime(30 * time.Minute) // the name may stand for another server by then

	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()

	if err := db.PingContext(ctx); err != nil {
		return nil, errors.Join(
			fmt.Errorf("%s does not take this process: %w; start or create it, or correct DATABASE_URL",
				databaseName(s), err),
			db.Close(),
		)
	}

	return db, nil
}

// databaseName returns which database the settings name, without user and password.
func databaseName(s settings) string {
	config, err := pgx.ParseConfig(s.databaseURL)
	if err != nil {
		return "the database"
	}

	return fmt.Sprintf("the database %q at %s, port %d", config.Database, config.Host, config.Port)
}

// migrate makes the tables, or brings them up to date.
func migrate(ctx context.Context, s settings) error {
	db, err := openDatabase(ctx, s)
	if err != nil {
		return err
	}
	defer db.Close()

	return postgres.Migrate(ctx, db, postgres.Options{})
}

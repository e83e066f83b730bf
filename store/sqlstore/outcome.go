package sqlstore

// This file finds out whether a transaction has committed when the answer to its COMMIT is lost.

import (
	"context"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/seed-8ee7f392/payments/fault"
)

const (
	// outcomeTimeout bounds the search for a lost outcome.
	outcomeTimeout = 5 * time.Second
	// outcomeTries is how often the row is looked up: the commit may still be under way.
	outcomeTries = 5
	// outcomePause is the wait after the first look-up; it doubles.
	outcomePause = 10 * time.Millisecond
)

// proof is a query that counts a row which only this transaction can have written: a row with an id that it
// generated, or with the answer that it sealed for an idempotency key. The zero proof is none.
type proof struct {
	template string
	args     []any
}

// answered counts the row of an idempotency key with a sealed answer. No two sealed answers are equal.
const answered = "SELECT count(*) FROM {idempotency_keys} WHERE account_id = ? AND livemode = ? AND " +
	"idempotency_key = ? AND sealed_body = ?"

// hasCommitted reports whether the transaction is known to have committed although its commit failed with
// err. False means that it has not, or that this cannot be known: the caller gets err.
func (s *sqlStore) hasCommitted(life context.Context, tx *transaction, err error) bool {
	lost := errors.Is(err, fault.Unavailable) || life.Err() != nil
	if !lost || tx.proof.template == "" {
		return false
	}

	// The pool may have only this connection.
	tx.rollBack()

	if tx.session != nil {
		tx.session.retire(tx.broken)
		s.releaseSession(tx.session)
		tx.session = nil
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(life), outcomeTimeout)
	defer cancel()

	text, args := s.text(tx.proof.template), s.dialect.args(tx.proof.args)

	for try := range outcomeTries {
		var found int

		readErr := sqlx.GetContext(ctx, s.read, &found, text, args...)
		if readErr == nil && found > 0 {
			return true
		}

		if s.options.Wait(ctx, outcomePause<<try) != nil {
			break
		}
	}

	return false
}

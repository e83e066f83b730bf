package sqlstore

// This file claims idempotency keys: at once, or with the first statements of the transaction.

import (
	"context"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/fault"
)

// dropStale deletes the old record before a key is claimed that was claimed long ago and never answered.
const dropStale = "DELETE FROM {idempotency_keys} WHERE account_id = ? AND livemode = ? AND " +
	"idempotency_key = ? AND created_at <= ?"

// ClaimIdempotencyKey takes a key that nobody holds, or a stale one. A fresh claim of another transaction is
// never taken over. If there is no stale claim to replace, the claim is the first write of the buffer.
func (tx *transaction) ClaimIdempotencyKey(
	ctx context.Context,
	r idempotency.Record,
	stale time.Time,
	wait time.Duration,
) error {
	wait = max(wait, time.Millisecond) // 0 would wait for ever

	if stale.IsZero() && tx.store.dialect.Bound != nil && !tx.begun && tx.joined == nil &&
		len(tx.writes) == 0 {
		return tx.bufferClaim(ctx, r, wait)
	}

	return tx.claimNow(ctx, r, stale, wait)
}

// rowLocked is the code of a statement that waited too long for a lock.
const rowLocked = "row_locked"

// claimError explains why a claim failed.
func claimError(err error) error {
	if fault.Code(err) == rowLocked {
		return fault.Wrap(err, fault.Unavailable, "claim_busy", "another request holds the idempotency key")
	}

	return err
}

// claimWait returns how long the buffered claim may wait for another one; 0 without a claim.
func (tx *transaction) claimWait() time.Duration {
	if len(tx.writes) == 0 {
		return 0
	}

	return tx.writes[0].wait
}

// bufferClaim buffers a claim. It is sent before the next statement or lock.
func (tx *transaction) bufferClaim(ctx context.Context, r idempotency.Record, wait time.Duration) error {
	if err := add(ctx, tx, claims, &r); err != nil {
		return err
	}

	tx.writes[0].wait = wait

	return nil
}

// claimNow claims at once. Both statements go in one round trip.
func (tx *transaction) claimNow(
	ctx context.Context,
	r idempotency.Record,
	stale time.Time,
	wait time.Duration,
) error {
	if err := tx.flush(ctx); err != nil {
		return err
	}

	values, err := claims.values(&r)
	if err != nil {
		return err
	}

	s := tx.store
	key := values[:claims.keys]

	b := Batch{}
	b.add(s.text(dropStale), s.dialect.args(append(slices.Clone(key), stale)))
	b.add(s.text(claims.insertNew(s.dialect)), s.dialect.args(values))
	first := s.bound(&b, 0, wait)

	changed, err := tx.send(ctx, b)
	if err != nil {
		tx.broken = claimError(tx.explain(ctx, err, "claim the idempotency key "+r.Key.Key))
		return tx.broken
	}

	if changed[first+1] == 0 {
		return duplicate(claims.object, r.Key.Key)
	}

	tx.hasClaimed(claims.slot(key))

	return nil
}

// hasClaimed records that the transaction has the row of a claim.
func (tx *transaction) hasClaimed(slot string) {
	if tx.claimed == nil {
		tx.claimed = map[string]bool{}
	}

	tx.claimed[slot] = true
}

// bound limits how long the statements of a batch from an index on wait for locks; 0: without a limit. first
// is how many statements were inserted before them.
func (s *sqlStore) bound(b *Batch, from int, wait time.Duration) (first int) {
	if wait == 0 || s.dialect.Bound == nil {
		return 0
	}

	bounded, first := s.dialect.Bound(Batch{Texts: b.Texts[from:], Args: b.Args[from:]}, wait)
	b.Texts, b.Args = append(b.Texts[:from], bounded.Texts...), append(b.Args[:from], bounded.Args...)

	return first
}

func (tx *transaction) PutIdempotencyAnswer(ctx context.Context, r idempotency.Record) error {
	if err := tx.usable(ctx); err != nil {
		return err
	}

	k := []any{r.Owner.AccountID, r.Owner.Livemode, r.Key.Key}
	body := append([]byte(nil), r.SealedBody...)
	tx.proof = proof{answered, append(slices.Clone(k), body)}

	if w := tx.rows[claims.slot(k)]; w != nil {
		return claims.replace(w, &r, "status", "sealed_body")
	}

	args := append([]any{int64(r.Status), body}, k...)
	claimed := tx.claimed[claims.slot(k)]
	// This write is not under the row's slot: the buffer does not hold the whole record, so reads of it must
	// ask the database. If this transaction claimed the key, the row exists. Databases that count only
	// changed rows may then count none.
	tx.buffer(&write{
		table:   claims.name,
		object:  claims.object,
		key:     []any{r.Key.Key},
		values:  args,
		one:     !claimed,
		certain: claimed,
		text: func(*write) (string, []any) {
			return "UPDATE {idempotency_keys} SET status = ?, sealed_body = ? WHERE account_id = ? AND " +
				"livemode = ? AND idempotency_key = ?", args
		},
	})
	tx.partial = claims.name

	return nil
}

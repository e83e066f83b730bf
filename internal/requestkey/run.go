package requestkey

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/fault"
)

// claimTries is how often a claim is tried while other requests take the key and roll back.
const claimTries = 3

// Sealer encrypts and authenticates answers, bound to a context. *seal.Sealer implements it.
type Sealer interface {
	Seal(plaintext, context []byte) []byte
	Open(sealed, context []byte) ([]byte, error)
}

// Config is the store, the sealer and the clock of Run and Prune. T is the store's transaction,
// such as store.Tx.
type Config[T idempotency.Tx] struct {
	Reader idempotency.Reader
	// Update runs a closure in one transaction, as store.Store does.
	Update func(context.Context, func(context.Context, T) error) error
	Seal   Sealer
	Now    func() time.Time

	// Status returns the HTTP status of an error. A refusal is stored only with 422.
	Status func(error) int

	// Running is shared by all requests of a process. Defaults to none: then only the store makes competing
	// requests wait.
	Running *Running
}

// Request identifies a request and its caller.
type Request struct {
	idempotency.Key
	// KeyID is the API key's id. Permissions are its scopes and destinations (account.Key), which decide
	// whether it may read a stored answer.
	KeyID       string
	Permissions []string
	// Fingerprint is SHA-256 over method, path and body (canonical JSON).
	Fingerprint [32]byte
	// ClaimFirst means that the key is most likely new, and that a useless preparation has no lasting cost.
	// The key is then claimed without a look-up, unless Config.Running has seen it before.
	ClaimFirst bool
}

// Answer is the HTTP status and body for the caller.
type Answer struct {
	Status int
	Body   []byte
	// Replayed is set if the answer, or the error returned with it, is that of an earlier request.
	Replayed bool
}

// Commit does the work inside the transaction and returns the answer. It may run twice: it must assign, never
// append.
type Commit[T idempotency.Tx] func(ctx context.Context, tx T) (status int, body []byte, err error)

// Run carries out a request once per key. It returns the stored answer, or prepares (reads, rates,
// derivation: no effect) and commits one transaction. Its first write claims the key, and its last one stores
// the answer. A store may send both with the work's own writes: the work's result is an answer only once the
// claim has succeeded.
//
// An error of kind fault.Invalid with status 422 is stored like an answer and returned to later requests with
// Replayed set, unless it is transient. Other errors decided nothing, or depend on changing state.
//
// Errors of its own:
//
//   - fault.Forbidden, idempotency_key_not_yours: the key was used by an API key with other permissions.
//   - fault.Invalid, idempotency_key_reused: the key was used for another request.
//   - fault.Conflict, idempotency_request_in_progress: the first request is still running; has a RetryAfter.
func Run[T idempotency.Tx](
	ctx context.Context,
	c Config[T],
	r Request,
	prepare func(context.Context) (Commit[T], error),
) (Answer, error) { // spec D9.3
	var record idempotency.Record

	blind := r.ClaimFirst && !c.Running.saw(r.Key)
	if !blind {
		found, ok, err := c.lookup(ctx, r)
		if err != nil || ok {
			return c.replayFound(found, r, err)
		}

		record = found
	}

	leave, err := c.Running.enter(ctx, r.Key)
	if err != nil {
		return Answer{}, err
	}
	defer leave()

	wait := &storeWait{left: Wait}

	commit, err := prepare(context.WithValue(ctx, waitKey{}, wait))
	if err != nil && blind {
		// The stored answer takes precedence over the result of this preparation.
		if found, ok, lookupErr := c.lookup(ctx, r); lookupErr != nil || ok {
			return c.replayFound(found, r, lookupErr)
		}
	}

	if err != nil && wait.over() {
		return Answer{}, inProgress()
	}

	if err != nil {
		return c.refuse(ctx, r, err, false)
	}

	return c.claim(ctx, r, record, wait, commit)
}

// claim commits the prepared work under the request's key, or returns the answer of the request that had the
// key first.
func (c Config[T]) claim(
	ctx context.Context,
	r Request,
	record idempotency.Record,
	wait *storeWait,
	commit Commit[T],
) (Answer, error) {
	for range claimTries {
		answer, claimed, err := c.claimAnswer(ctx, r, c.stale(record), wait, commit)
		if claimed && err != nil {
			return c.refuse(ctx, r, err, true)
		}

		if claimed {
			return answer, nil
		}

		if !errors.Is(err, fault.Duplicate) {
			return Answer{}, err
		}

		// Another request claimed the key first. If it rolled back, there is no record.
		var ok bool
		if record, ok, err = c.lookup(ctx, r); err != nil || ok {
			return c.replayFound(record, r, err)
		}
	}

	return Answer{}, inProgress()
}

// replayFound is replay, or the error of the lookup.
func (c Config[T]) replayFound(found idempotency.Record, r Request, err error) (Answer, error) {
	if err != nil {
		return Answer{}, err
	}

	return c.replay(found, r)
}

// lookup returns the record of the request's key; ok is false if there is none, or it is older than TTL.
func (c Config[T]) lookup(ctx context.Context, r Request) (idempotency.Record, bool, error) {
	record, ok, err := c.Reader.IdempotencyRecord(ctx, r.Key)
	return record, ok && err == nil && !c.expired(record), err
}

// stale returns the argument of ClaimIdempotencyKey after a look-up that found no record, or an expired one.
func (c Config[T]) stale(found idempotency.Record) time.Time {
	if found.CreatedAt.IsZero() {
		return time.Time{}
	}

	return c.Now().Add(-TTL)
}

// expired reports whether a record is TTL old.
func (c Config[T]) expired(r idempotency.Record) bool { return !c.Now().Before(r.CreatedAt.Add(TTL)) }

// claimAnswer claims the key, does the work and stores its answer, in one transaction. claimed is false if
// the claim itself failed: with fault.Duplicate if the key has a record, else with the caller's error. With a
// zero stale, claimed is true for an error of the work before the claim was tried.
func (c Config[T]) claimAnswer(
	ctx context.Context,
	r Request,
	stale time.Time,
	wait *storeWait,
	work Commit[T],
) (a Answer, claimed bool, err error) {
	ctx, end := wait.begin(ctx)
	defer end()

	err = c.Update(ctx, func(ctx context.Context, tx T) error {
		claimed = false

		record := idempotency.Record{
			Key:         r.Key,
			KeyID:       r.KeyID,
			Scopes:      r.Permissions,
			Fingerprint: r.Fingerprint,
			CreatedAt:   c.Now().UTC().Truncate(time.Millisecond),
		}
		if err := tx.ClaimIdempotencyKey(ctx, record, stale, Wait); err != nil {
			return err
		}

		claimed = true

		end()

		status, body, err := work(ctx, tx)
		a = Answer{Status: status, Body: body}

		if err != nil {
			return err
		}

		record.Status = status

		context, err := sealContext(record)
		if err != nil {
			return err
		}

		record.SealedBody = c.Seal.Seal(body, context)

		return tx.PutIdempotencyAnswer(ctx, record)
	})

	code := fault.Code(err)
	claimed = claimed && code != "claim_taken" && code != "claim_busy"

	if err != nil && !claimed && (code == "claim_busy" || wait.over()) {
		err = inProgress()
	}

	return a, claimed, err
}

// sealContext returns the context that binds a sealed answer to its row, to its request, and to the
// permissions to read it. So whoever can write the database cannot give it to another key or request, or
// prolong it.
func sealContext(r idempotency.Record) ([]byte, error) {
	asked, err := json.Marshal(struct {
		KeyID       string
		Scopes      []string `json:",omitempty"`
		Fingerprint []byte
		Status      int
		CreatedAt   int64 // Unix milliseconds
	}{r.KeyID, r.Scopes, r.Fingerprint[:], r.Status, r.CreatedAt.UnixMilli()})

	return fmt.Appendf(
		nil, "idempotency_keys/%s/%t/%s/%s", r.Owner.AccountID, r.Owner.Livemode, r.Key.Key, asked,
	), err
}

package idempotency

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

// Wait is how long a request waits for a rival with the same key before it is told to come back.
const Wait = 2 * time.Second

// tries bounds how often a claim that a rival took, and lost again, is tried anew.
const tries = 3

// Sealer encrypts what is stored; *seal.Box is one.
type Sealer interface {
	Seal(plaintext, context []byte) []byte
	Open(sealed, context []byte) ([]byte, error)
}

// Config is what Run works with. T is the transaction of the work, such as store.Tx.
type Config[T Tx] struct {
	Reader Reader
	// Update runs a closure in one transaction, as store.Store does.
	Update func(context.Context, func(context.Context, T) error) error
	Seal   Sealer
	Now    func() time.Time
}

// Request is who asks for what.
type Request struct {
	Key
	// KeyID and Scopes are the API key's id and permissions: they decide to whom a stored answer is given.
	KeyID  string
	Scopes []string
	// Fingerprint is SHA-256 over method, path and body.
	Fingerprint [32]byte
}

// Answer is what the caller is answered.
type Answer struct {
	Status int
	Body   []byte
	// Replayed says that the answer, or the error beside it, is that of an earlier request.
	Replayed bool
}

// Commit does the work inside the transaction and returns the answer. It may run again: it assigns.
type Commit[T Tx] func(ctx context.Context, tx T) (status int, body []byte, err error)

// Run carries out a request once: it looks the stored answer up, prepares (reads, rates,
// derivation: no effect), and commits one transaction whose first write claims the key and whose
// last stores the answer. A crash in between leaves neither.
//
// An earlier request's refusal comes back as the same error, with Replayed set. Refusals of the
// request itself (fault.Invalid) are remembered like answers, in a transaction of their own. What
// depends on a state that will change is not: every other word, and the codes insufficient_balance
// and price_unavailable.
//
// Errors of its own: fault.Forbidden with code idempotency_key_not_yours, fault.Invalid with code
// idempotency_key_reused, and fault.Conflict with code idempotency_request_in_progress, which says
// when to come back.
func Run[T Tx](
	ctx context.Context,
	c Config[T],
	r Request,
	prepare func(context.Context) (Commit[T], error),
) (Answer, error) {
	record, ok, err := c.lookup(ctx, r)
	if err != nil {
		return Answer{}, err
	}

	if ok {
		return c.replay(record, r)
	}

	commit, err := prepare(ctx)
	if err != nil {
		return c.refuse(ctx, r, err)
	}

	for range tries {
		var a Answer

		claimed, err := c.claimAnd(ctx, r, func(ctx context.Context, tx T) (int, []byte, error) {
			status, body, err := commit(ctx, tx)
			a = Answer{Status: status, Body: body}

			return status, body, err
		})
		if claimed {
			if err != nil {
				return c.refuse(ctx, r, err)
			}

			return a, nil
		}

		if !errors.Is(err, fault.Duplicate) {
			return Answer{}, err
		}
		// A rival was faster. Usually it left an answer.
		if record, ok, err = c.lookup(ctx, r); err != nil {
			return Answer{}, err
		}

		if ok {
			return c.replay(record, r)
		}
	}

	return Answer{}, inProgress()
}

// lookup returns the record of the request's key, unless there is none or it is too old to count.
func (c Config[T]) lookup(ctx context.Context, r Request) (Record, bool, error) {
	record, ok, err := c.Reader.IdempotencyRecord(ctx, r.Key)
	return record, ok && err == nil && !c.expired(record), err
}

func (c Config[T]) expired(r Record) bool { return !c.Now().Before(r.CreatedAt.Add(TTL)) }

// replay answers from a record. Whose it is comes before what it was for, so that a stranger learns nothing.
func (c Config[T]) replay(record Record, r Request) (Answer, error) {
	if record.KeyID != r.KeyID && !holdsAll(r.Scopes, record.Scopes) {
		return Answer{}, fault.New(
			fault.Forbidden, "idempotency_key_not_yours",
			"this Idempotency-Key was used by another API key: use one of your own",
		)
	}

	if record.Fingerprint != r.Fingerprint {
		return Answer{}, fault.New(
			fault.Invalid,
			"idempotency_key_reused",
			"this Idempotency-Key was used for another request: use a new key for a new request, or send "+
				"the same request again",
		)
	}

	if record.Status == 0 {
		return Answer{}, inProgress()
	}

	body, err := c.Seal.Open(record.SealedBody, sealContext(r.Key))
	if err != nil {
		return Answer{}, fmt.Errorf("opening the stored answer: %w", err)
	}

	if record.Status < 400 {
		return Answer{Status: record.Status, Body: body, Replayed: true}, nil
	}

	var said refusal
	if err := json.Unmarshal(body, &said); err != nil {
		return Answer{}, fault.Wrap(
			err, fault.Unavailable, "sealed_data_damaged", "the stored answer cannot be read",
		)
	}

	refused := &fault.Error{
		Word:    fault.Invalid,
		Code:    said.Code,
		Message: said.Message,
		Param:   said.Param,
	}

	return Answer{Replayed: true}, refused
}

func holdsAll(have, want []string) bool {
	for _, s := range want {
		if !slices.Contains(have, s) {
			return false
		}
	}

	return true
}

// claimAnd claims the key, does the work and stores its answer, in one transaction. claimed is false when the
// claim itself failed: with fault.Duplicate when a rival holds it for good, else with what to answer.
func (c Config[T]) claimAnd(ctx context.Context, r Request, work Commit[T]) (claimed bool, err error) {
	err = c.Update(ctx, func(ctx context.Context, tx T) error {
		claimed = false
		now := c.Now()

		record := Record{
			Key:         r.Key,
			KeyID:       r.KeyID,
			Scopes:      r.Scopes,
			Fingerprint: r.Fingerprint,
			CreatedAt:   now.UTC().Truncate(time.Millisecond),
		}
		if err := tx.ClaimIdempotencyKey(ctx, record, now.Add(-TTL), Wait); err != nil {
			return err
		}

		claimed = true

		status, body, err := work(ctx, tx)
		if err != nil {
			return err
		}

		record.Status, record.SealedBody = status, c.Seal.Seal(body, sealContext(r.Key))

		return tx.PutIdempotencyAnswer(ctx, record)
	})
	if err != nil && !claimed && fault.Code(err) == "claim_busy" {
		err = inProgress()
	}

	return claimed, err
}

// refusal is how a refused request is remembered.
type refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Param   string `json:"param,omitempty"`
}

// refusedStatus marks a stored refusal; which status a caller is shown follows from the error.
const refusedStatus = 422

// refuse remembers an error that is about the request itself, and returns it. When it cannot be
// remembered it is returned all the same: the request had no effect, and the next one is judged
// anew.
func (c Config[T]) refuse(ctx context.Context, r Request, err error) (Answer, error) {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || !errors.Is(f.Word, fault.Invalid) || f.Code == "insufficient_balance" ||
		f.Code == "price_unavailable" {
		return Answer{}, err
	}

	body, jsonErr := json.Marshal(refusal{Code: f.Code, Message: f.Message, Param: f.Param})
	if jsonErr != nil {
		return Answer{}, err
	}

	claimed, storeErr := c.claimAnd(
		ctx, r, func(context.Context, T) (int, []byte, error) { return refusedStatus, body, nil },
	)
	if storeErr != nil && !claimed && errors.Is(storeErr, fault.Duplicate) {
		// A rival answered meanwhile, and perhaps otherwise: what is stored holds for everybody.
		if record, ok, lookupErr := c.lookup(ctx, r); lookupErr == nil && ok {
			return c.replay(record, r)
		}
	}

	return Answer{}, err
}

func inProgress() error {
	e := fault.New(
		fault.Conflict, "idempotency_request_in_progress",
		"the first request with this Idempotency-Key is still running: send it again in a moment",
	)
	e.RetryAfter = Wait

	return e
}

// sealContext binds a sealed answer to its row.
func sealContext(k Key) []byte {
	return fmt.Appendf(nil, "idempotency_keys/%s/%t/%s", k.Owner.AccountID, k.Owner.Livemode, k.Key)
}

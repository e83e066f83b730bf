package idempotency_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/requestkey"
	"github.com/seed-8ee7f392/payments/internal/seal"
)

// rows is a database of claims and of the things that requests made. A claim is held until its transaction
// ends, and rivals wait for it; what a failed transaction wrote is dropped.
type rows struct {
	mu      sync.Mutex
	ended   *sync.Cond
	records map[idempotency.Key]idempotency.Record
	held    map[idempotency.Key]bool
	made    []string
	failPut error // of the next PutIdempotencyAnswer
	// late lets a claim wait for the end of its transaction, as a store may.
	late bool
	// taken is how many claims at the end meet one that is rolled back afterwards.
	taken int
}

type rowsTx struct {
	*rows
	records map[idempotency.Key]*idempotency.Record // nil: deleted
	claims  []idempotency.Key
	made    []string
	late    func() error // the claim to try at the end
}

func newRows() *rows {
	r := &rows{records: map[idempotency.Key]idempotency.Record{}, held: map[idempotency.Key]bool{}}
	r.ended = sync.NewCond(&r.mu)

	return r
}

func (r *rows) Update(ctx context.Context, f func(context.Context, *rowsTx) error) error {
	tx := &rowsTx{rows: r, records: map[idempotency.Key]*idempotency.Record{}}
	err := f(ctx, tx)

	if err == nil && tx.late != nil && r.taken > 0 {
		r.taken--
		err = fault.New(fault.Duplicate, "claim_taken", "taken")
	} else if err == nil && tx.late != nil {
		if err = tx.late(); errors.Is(err, fault.Duplicate) {
			err = fault.Wrap(err, fault.Duplicate, "claim_taken", "taken")
		}
	}

	r.mu.Lock()
	defer r.mu.Unlock()

	for _, k := range tx.claims {
		delete(r.held, k)
	}

	r.ended.Broadcast()

	if err != nil {
		return err
	}

	for k, record := range tx.records {
		if delete(r.records, k); record != nil {
			r.records[k] = *record
		}
	}

	r.made = append(r.made, tx.made...)

	return nil
}

func (r *rows) IdempotencyRecord(_ context.Context, k idempotency.Key) (idempotency.Record, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()

	record, ok := r.records[k]

	return record, ok, nil
}

func (tx *rowsTx) ClaimIdempotencyKey(
	_ context.Context,
	record idempotency.Record,
	stale time.Time,
	wait time.Duration,
) error {
	if tx.rows.late && stale.IsZero() {
		tx.late = func() error { return tx.claim(record, stale, wait) }
		return nil
	}

	return tx.claim(record, stale, wait)
}

func (tx *rowsTx) claim(record idempotency.Record, stale time.Time, wait time.Duration) error {
	late := false

	timer := time.AfterFunc(wait, func() {
		tx.mu.Lock()
		defer tx.mu.Unlock()

		late = true

		tx.ended.Broadcast()
	})
	defer timer.Stop()

	tx.mu.Lock()
	defer tx.mu.Unlock()

	for tx.held[record.Key] {
		if late {
			return fault.New(fault.Unavailable, "claim_busy", "claimed")
		}

		tx.ended.Wait()
	}

	if old, exists := tx.rows.records[record.Key]; exists && old.CreatedAt.After(stale) {
		return fault.New(fault.Duplicate, "", "claimed")
	}

	tx.held[record.Key] = true

	tx.claims = append(tx.claims, record.Key)
	if tx.records[record.Key] == nil { // not answered yet
		tx.records[record.Key] = &record
	}

	return nil
}

func (tx *rowsTx) PutIdempotencyAnswer(_ context.Context, record idempotency.Record) error {
	if err := tx.failPut; err != nil {
		tx.failPut = nil
		return err
	}

	tx.records[record.Key] = &record

	return nil
}

func (tx *rowsTx) PruneIdempotencyKeys(context.Context, time.Time, int) (int, error) {
	return 0, fault.Unsupported
}

type bench struct {
	*rows
	config requestkey.Config[*rowsTx]
	now    time.Time
}

func newBench(t *testing.T) *bench {
	t.Helper()

	sealer, err := seal.New(bytes.Repeat([]byte{7}, seal.KeySize))
	if err != nil {
		t.Fatal(err)
	}

	b := &bench{rows: newRows(), now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	b.config = requestkey.Config[*rowsTx]{
		Reader: b.rows,
		Update: b.Update,
		Seal:   sealer,
		Now:    func() time.Time { return b.now },
		Status: status,
	}

	return b
}

// status is the HTTP status of an error, as the API has it.
func status(err error) int {
	switch code := fault.Code(err); {
	case strings.HasPrefix(code, "parameter_"):
		return 400
	case errors.Is(err, fault.Invalid):
		return 422
	}

	return 409
}

func request(body string) requestkey.Request {
	return requestkey.Request{
		Key:         idempotency.Key{Owner: event.Owner{AccountID: "a1"}, Key: "order-1"},
		KeyID:       "k1",
		Permissions: []string{"invoices:write"},
		Fingerprint: [32]byte([]byte(body + strings.Repeat(" ", 32))[:32]),
	}
}

// create makes one thing, and answers with its name.
func (b *bench) create(t *testing.T, r requestkey.Request) (requestkey.Answer, error) {
	return requestkey.Run(t.Context(), b.config, r, prepareObject)
}

func prepareObject(context.Context) (requestkey.Commit[*rowsTx], error) {
	return func(_ context.Context, tx *rowsTx) (int, []byte, error) {
		tx.made = []string{"thing"}
		return 200, []byte(`{"id":"thing"}`), nil
	}, nil
}

func refuseInPrepare(err error) func(context.Context) (requestkey.Commit[*rowsTx], error) {
	return func(context.Context) (requestkey.Commit[*rowsTx], error) { return nil, err }
}

func refuseInCommit(err error) func(context.Context) (requestkey.Commit[*rowsTx], error) {
	return func(context.Context) (requestkey.Commit[*rowsTx], error) {
		return func(_ context.Context, tx *rowsTx) (int, []byte, error) {
			tx.made = []string{"half a thing"}
			return 0, nil, err
		}, nil
	}
}

func TestARepeatedRequestGetsTheStoredAnswer(t *testing.T) {
	b := newBench(t)
	for i := range 3 {
		a, err := b.create(t, request("body"))
		if err != nil || a.Status != 200 || string(a.Body) != `{"id":"thing"}` || a.Replayed != (i > 0) {
			t.Fatalf("request %d: %+v, %v", i, a, err)
		}
	}

	if len(b.made) != 1 {
		t.Fatalf("%d things were made", len(b.made))
	}

	if record := b.records[request("").Key]; bytes.Contains(record.SealedBody, []byte("thing")) {
		t.Error("the stored answer is not encrypted")
	}
}

func TestAnswersExpireAfterADay(t *testing.T) {
	b := newBench(t)
	if _, err := b.create(t, request("body")); err != nil {
		t.Fatal(err)
	}

	b.now = b.now.Add(requestkey.TTL - time.Millisecond)
	if a, err := b.create(t, request("body")); err != nil || !a.Replayed {
		t.Fatalf("just before the end: %+v, %v", a, err)
	}

	b.now = b.now.Add(time.Millisecond)
	for i := range 2 {
		if a, err := b.create(t, request("another body")); err != nil || a.Replayed != (i > 0) {
			t.Fatalf("after the end, request %d: %+v, %v", i, a, err)
		}
	}

	if len(b.made) != 2 {
		t.Fatalf("%d things were made", len(b.made))
	}
}

func TestTheAPIKeyIsCheckedBeforeTheFingerprint(t *testing.T) {
	b := newBench(t)
	if _, err := b.create(t, request("body")); err != nil {
		t.Fatal(err)
	}

	for _, test := range []struct {
		name, body, keyID string
		scopes            []string
		code              string // "" when it is answered
	}{
		{"itself", "body", "k1", []string{"invoices:write"}, ""},
		{"itself with fewer scopes now", "body", "k1", nil, ""},
		{"its successor", "body", "k2", []string{"events:read", "invoices:write"}, ""},
		{"a weaker key", "body", "k2", []string{"events:read"}, "idempotency_key_not_yours"},
		{"a weaker key with another request", "other", "k2", nil, "idempotency_key_not_yours"},
		{"a key that may pay one of two", "body", "k2", []string{"invoices:write", "to:a"}, ""},
		{"another request", "other", "k1", []string{"invoices:write"}, "idempotency_key_reused"},
	} {
		r := request(test.body)
		r.KeyID, r.Permissions = test.keyID, test.scopes

		a, err := b.create(t, r)
		if fault.Code(err) != test.code || a.Replayed != (err == nil) {
			t.Errorf("%s: %+v, error %v, want code %q", test.name, a, err, test.code)
		}
	}

	other := request("body")

	other.Owner.Livemode = true
	if a, err := b.create(t, other); err != nil || a.Replayed {
		t.Errorf("the other mode is answered from the memory of this one: %+v, %v", a, err)
	}
}

func TestWhichErrorsAreStored(t *testing.T) {
	for _, test := range []struct {
		err        error
		remembered bool
	}{
		{fault.Param("options[0].amount", "amount_too_small", "too small"), true},
		{fmt.Errorf("creating: %w", fault.New(fault.Invalid, "asset_not_enabled", "no such asset")), true},
		{fault.Param("price.currency", "parameter_invalid", "not understood"), false},
		{fault.Param("amount", "amount_too_small", "too small at this price").AsTransient(), false},
		{fmt.Errorf("creating: %w", fault.Param("x", "asset_not_enabled", "not now").AsTransient()), false},
		{fault.New(fault.State, "insufficient_balance", "poor"), false},
		{fault.New(fault.Unavailable, "price_unavailable", "no price"), false},
		{fault.New(fault.State, "invoice_payment_pending", "pending"), false},
		{fault.New(fault.Conflict, "", "rival"), false},
		{fault.New(fault.Limited, "payout_limit_exceeded", "slow"), false},
		{fault.New(fault.Forbidden, "destination_not_allowed", "no"), false},
		{fault.Wrap(fault.New(fault.Invalid, "x", "below"), fault.Unavailable, "node_down", "node"), false},
		{errors.New("a bug"), false},
	} {
		for where, refuse := range map[string]func(error) func(context.Context) (requestkey.Commit[*rowsTx], error){
			"prepare": refuseInPrepare,
			"commit":  refuseInCommit,
		} {
			b := newBench(t)

			a, err := requestkey.Run(t.Context(), b.config, request("body"), refuse(test.err))
			if !errors.Is(err, test.err) || a.Replayed {
				t.Errorf("%v in %s: the first request got %+v, %v", test.err, where, a, err)
			}

			a, err = b.create(t, request("body"))
			switch {
			case !test.remembered && (err != nil || len(b.made) != 1):
				t.Errorf("%v in %s: remembered: %v", test.err, where, err)
			case test.remembered:
				want, _ := errors.AsType[*fault.Error](test.err)

				got, ok := errors.AsType[*fault.Error](err)
				if !ok || !a.Replayed || !errors.Is(got.Kind, want.Kind) || got.Code != want.Code ||
					got.Message != want.Message ||
					got.Param != want.Param ||
					len(b.made) != 0 {
					t.Errorf(
						"%v in %s: the second request got %+v, %v, and %q was made",
						test.err, where, a, err, b.made,
					)
				}
			}
		}
	}
}

func TestAFailedCommitLeavesNeitherObjectNorClaim(t *testing.T) {
	b := newBench(t)

	b.failPut = fault.New(fault.Unavailable, "", "the disk is full")
	if _, err := b.create(t, request("body")); !errors.Is(err, fault.Unavailable) {
		t.Fatal(err)
	}

	if len(b.made) != 0 || len(b.records) != 0 {
		t.Fatalf("%q and %d records stayed", b.made, len(b.records))
	}

	if a, err := b.create(t, request("body")); err != nil || a.Replayed {
		t.Fatalf("the next request: %+v, %v", a, err)
	}
}

func TestADuplicateInTheWorkIsNotAConcurrentClaim(t *testing.T) {
	b := newBench(t)
	runs := 0

	_, err := requestkey.Run(
		t.Context(),
		b.config,
		request("body"),
		func(context.Context) (requestkey.Commit[*rowsTx], error) {
			return func(context.Context, *rowsTx) (int, []byte, error) {
				runs++
				return 0, nil, fault.New(fault.Duplicate, "address_taken", "taken")
			}, nil
		},
	)
	if fault.Code(err) != "address_taken" || runs != 1 {
		t.Fatalf("%d runs, error %v", runs, err)
	}
}

func TestConcurrentRequestsCreateOneObject(t *testing.T) {
	b := newBench(t)

	var (
		wg sync.WaitGroup
		mu sync.Mutex
	)

	fresh := 0

	for range 64 {
		wg.Go(func() {
			a, err := b.create(t, request("body"))
			if err != nil || string(a.Body) != `{"id":"thing"}` {
				t.Errorf("%+v, %v", a, err)
			}

			mu.Lock()
			defer mu.Unlock()

			if !a.Replayed {
				fresh++
			}
		})
	}

	wg.Wait()

	if fresh != 1 || len(b.made) != 1 {
		t.Fatalf("%d fresh answers, %d things", fresh, len(b.made))
	}
}

func TestAConcurrentRequestWaitsTwoSecondsThenIsInProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		release, first := make(chan struct{}), make(chan error)

		go func() {
			_, err := requestkey.Run(
				t.Context(),
				b.config,
				request("body"),
				func(context.Context) (requestkey.Commit[*rowsTx], error) {
					return func(_ context.Context, tx *rowsTx) (int, []byte, error) {
						<-release

						tx.made = []string{"thing"}

						return 200, nil, nil
					}, nil
				},
			)
			first <- err
		}()

		synctest.Wait() // the first holds the claim

		start := time.Now()

		_, err := b.create(t, request("body"))
		if fault.Code(err) != "idempotency_request_in_progress" || fault.RetryAfter(err) <= 0 ||
			!errors.Is(err, fault.Conflict) {
			t.Errorf("got error %v, retry after %v", err, fault.RetryAfter(err))
		}

		if waited := time.Since(start); waited != requestkey.Wait {
			t.Errorf("waited %v", waited)
		}

		close(release)

		if err := <-first; err != nil {
			t.Error(err)
		}

		if a, err := b.create(t, request("body")); err != nil || !a.Replayed || len(b.made) != 1 {
			t.Errorf("afterwards: %+v, %v", a, err)
		}
	})
}

func TestKeysOfAccountsAndModesAreSeparate(t *testing.T) {
	b := newBench(t)
	keys := map[string]bool{}

	for _, account := range []string{"a1", "a2"} {
		for _, key := range []string{"order-1", "order-2"} {
			r := request("body")

			r.Owner.AccountID, r.Key.Key = account, key
			if a, err := b.create(t, r); err != nil || a.Replayed {
				t.Errorf("%s %s: %+v, %v", account, key, a, err)
			}

			keys[account+key] = true
		}
	}

	if len(maps.Clone(b.records)) != len(keys) {
		t.Errorf("%d records for %d keys", len(b.records), len(keys))
	}
}

// Where the store has one writer, a rival would wait for its turn however long that takes.
func TestARivalDoesNotWaitForTheOnlyWriter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.config.Running = &requestkey.Running{}

		var writer sync.Mutex

		b.config.Update = func(ctx context.Context, f func(context.Context, *rowsTx) error) error {
			writer.Lock()
			defer writer.Unlock()

			return b.Update(ctx, f)
		}

		first := make(chan error)

		go func() {
			_, err := requestkey.Run(
				t.Context(), b.config, request("body"),
				func(context.Context) (requestkey.Commit[*rowsTx], error) {
					return func(_ context.Context, tx *rowsTx) (int, []byte, error) {
						time.Sleep(10 * time.Second) // in fake time

						return 200, nil, nil
					}, nil
				},
			)
			first <- err
		}()

		synctest.Wait()

		start := time.Now()

		_, err := b.create(t, request("body"))
		if fault.Code(err) != "idempotency_request_in_progress" || time.Since(start) != requestkey.Wait {
			t.Errorf("after %v: %v", time.Since(start), err)
		}

		if err := <-first; err != nil {
			t.Error(err)
		}

		if a, err := b.create(t, request("body")); err != nil || !a.Replayed {
			t.Errorf("afterwards: %+v, %v", a, err)
		}
	})
}

// TestAnAnswerIsBoundToItsRow changes a stored row so that another request would be given its answer.
func TestAnAnswerIsBoundToItsRow(t *testing.T) {
	other := request("another body")
	other.KeyID, other.Permissions = "k2", []string{"invoices:read"}

	for name, c := range map[string]struct {
		change  func(record *idempotency.Record)
		request func(r *requestkey.Request)
		later   time.Duration
	}{
		"another key": {
			change:  func(record *idempotency.Record) { record.KeyID = other.KeyID },
			request: func(r *requestkey.Request) { r.KeyID, r.Permissions = other.KeyID, other.Permissions },
		},
		"fewer scopes": {
			change:  func(record *idempotency.Record) { record.Scopes = nil },
			request: func(r *requestkey.Request) { r.KeyID, r.Permissions = other.KeyID, other.Permissions },
		},
		"another request": {
			change:  func(record *idempotency.Record) { record.Fingerprint = other.Fingerprint },
			request: func(r *requestkey.Request) { r.Fingerprint = other.Fingerprint },
		},
		"another status": {
			change:  func(record *idempotency.Record) { record.Status = 202 },
			request: func(*requestkey.Request) {},
		},
		"a later end": {
			change:  func(record *idempotency.Record) { record.CreatedAt = record.CreatedAt.Add(time.Hour) },
			request: func(*requestkey.Request) {},
			later:   requestkey.TTL,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			if _, err := b.create(t, request("body")); err != nil {
				t.Fatal(err)
			}

			record := b.records[request("").Key]
			c.change(&record)
			b.records[request("").Key] = record
			b.now = b.now.Add(c.later)

			r := request("body")
			c.request(&r)

			if a, err := b.create(t, r); fault.Code(err) != "sealed_data_damaged" || len(a.Body) > 0 {
				t.Errorf("%+v, %v", a, err)
			}

			if len(b.made) != 1 {
				t.Errorf("%d things were made", len(b.made))
			}
		})
	}
}

// TestWhatTheWorkSaysBeforeItsClaim: where a claim is tried only at the end of the transaction, the work of a rival
// may have been refused for what the first request did. The rival gets the first one's answer all the same.
func TestWhatTheWorkSaysBeforeItsClaim(t *testing.T) {
	for _, refusal := range []error{
		nil,
		fault.New(fault.Invalid, "amount_too_small", "too small"),
		fault.New(fault.Invalid, "insufficient_balance", "poor"),
		fault.New(fault.State, "invoice_not_open", "it is canceled"),
	} {
		b := newBench(t)
		b.late = true

		a, err := requestkey.Run(
			t.Context(), b.config, request("body"),
			func(context.Context) (requestkey.Commit[*rowsTx], error) {
				return func(_ context.Context, tx *rowsTx) (int, []byte, error) {
					if _, err := b.create(t, request("body")); err != nil {
						t.Error(err)
					}

					tx.made = []string{"a second thing"}

					return 200, []byte("second"), refusal
				}, nil
			},
		)
		if err != nil || !a.Replayed || string(a.Body) != `{"id":"thing"}` {
			t.Errorf("with %v the rival was answered %+v, %v", refusal, a, err)
		}

		if !slices.Equal(b.made, []string{"thing"}) {
			t.Errorf("with %v, %q were made", refusal, b.made)
		}
	}
}

// TestWhatTheWorkSaysWhileAnotherRuns: a refusal does not count while the first request may still succeed.
func TestWhatTheWorkSaysWhileAnotherRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		release, first := make(chan struct{}), make(chan error)

		go func() {
			_, err := requestkey.Run(
				t.Context(), b.config, request("body"),
				func(context.Context) (requestkey.Commit[*rowsTx], error) {
					return func(_ context.Context, tx *rowsTx) (int, []byte, error) {
						<-release

						return 200, nil, nil
					}, nil
				},
			)
			first <- err
		}()

		synctest.Wait() // the first holds the claim

		b.late = true

		poor := fault.New(fault.State, "insufficient_balance", "poor")

		_, err := requestkey.Run(t.Context(), b.config, request("body"), refuseInCommit(poor))
		if fault.Code(err) != "idempotency_request_in_progress" {
			t.Errorf("the rival was answered %v", err)
		}

		close(release)

		if err := <-first; err != nil {
			t.Error(err)
		}
	})
}

// TestARivalThatRollsBack: a claim that was taken, by a request that then failed, is tried again.
func TestARivalThatRollsBack(t *testing.T) {
	b := newBench(t)
	b.late, b.taken = true, 1

	a, err := b.create(t, request("body"))
	if err != nil || a.Replayed || !slices.Equal(b.made, []string{"thing"}) {
		t.Errorf("answered %+v, %v; %q were made", a, err, b.made)
	}
}

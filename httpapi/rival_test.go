package httpapi_test

import (
	"bytes"
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/httpapi"
	"github.com/seed-8ee7f392/payments/internal/requestkey"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/store/memory"
	"github.com/seed-8ee7f392/payments/store/sqlstore"
)

// TestRivalOfAnotherProcess sends one request to two services over one database. While the first one works, the
// rival is answered 409 within the time that the specification allows; afterwards it gets the stored answer.
func TestRivalOfAnotherProcess(t *testing.T) {
	for _, kind := range storeKinds {
		if kind.create == nil {
			continue // one process has it alone
		}

		t.Run(kind.name, func(t *testing.T) { testRivalOfAnotherProcess(t, kind) })
		t.Run(kind.name+" overtakes", func(t *testing.T) { testRivalOvertakes(t, kind) })
	}
}

func testRivalOfAnotherProcess(t *testing.T, kind storeKind) {
	name := kind.create(t)
	slow := &slowStore{
		Store:   kind.open(t, name),
		sends:   true,
		claimed: make(chan struct{}),
		goOn:    make(chan struct{}),
	}

	first := openOn(t, slow, nil, time.Now)
	rival := boot(t, kind.open(t, name), nil, time.Now)
	rival.account, rival.key = first.account, first.key

	q := request{
		method: "POST",
		path:   "/v1/invoices",
		body:   invoiceBody,
		header: header("Idempotency-Key", "rivals"),
	}

	var (
		working sync.WaitGroup
		made    reply
	)

	working.Go(func() { made = first.do(t, q) })
	<-slow.claimed

	began := time.Now()
	refused := rival.do(t, q)
	waited := time.Since(began)

	close(slow.goOn)
	working.Wait()

	if f := refused.refused(t, 409); f.Code != "idempotency_request_in_progress" ||
		refused.header.Get("Retry-After") == "" {
		t.Errorf("the rival was answered %+v with %v", f, refused.header)
	}

	if waited > requestkey.Wait+time.Second {
		t.Errorf("the rival waited %s, want at most %s", waited, requestkey.Wait)
	}

	first.ok(t, made)

	again := rival.do(t, q)
	if again.status != 200 || !bytes.Equal(again.body, made.body) ||
		again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("afterwards it was answered %d: %s, want %s", again.status, again.body, made.body)
	}
}

// TestTheHostsHookRunsOnceForAnIdempotencyKey sends one request to two services over one database while the hook of the
// first one works: the rival waits for the claim, not for its own hook, and is answered 409 in time.
func TestTheHostsHookRunsOnceForAnIdempotencyKey(t *testing.T) {
	for _, kind := range storeKinds {
		t.Run(kind.name, func(t *testing.T) { testHookRunsOnce(t, kind) })
	}
}

func testHookRunsOnce(t *testing.T, kind storeKind) {
	var (
		calls         atomic.Int32
		working       sync.WaitGroup
		made          reply
		claimed, goOn = make(chan struct{}), make(chan struct{})
	)

	hooked := func(db payments.Store, hook func()) *shop {
		return bootWith(t, db, nil, time.Now, func(c *payments.Config) {
			c.OnEvent = func(context.Context, payments.Tx, event.Event) error {
				calls.Add(1)
				hook()

				return nil
			}
		})
	}

	name := ""
	if kind.create != nil {
		name = kind.create(t)
	}

	db := kind.open(t, name)
	first := hooked(db, func() {
		close(claimed)
		<-goOn
	})
	first.enter(t)

	if kind.create != nil {
		db = kind.open(t, name) // as another process
	}

	rival := hooked(db, func() {})
	rival.account, rival.key = first.account, first.key

	q := request{
		method: "POST",
		path:   "/v1/invoices",
		body:   invoiceBody,
		header: header("Idempotency-Key", "rivals"),
	}

	working.Go(func() { made = first.do(t, q) })
	<-claimed

	began := time.Now()
	answer := rival.do(t, q)
	waited := time.Since(began)

	close(goOn)
	working.Wait()

	if f := answer.refused(t, 409); f.Code != "idempotency_request_in_progress" {
		t.Errorf("the rival was answered %+v", f)
	}

	if waited > requestkey.Wait+time.Second {
		t.Errorf("the rival waited %s, want at most %s", waited, requestkey.Wait)
	}

	first.ok(t, made)

	again := rival.do(t, q)
	if !bytes.Equal(again.body, made.body) || again.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("afterwards it was answered %d: %s, want %s", again.status, again.body, made.body)
	}

	if calls.Load() != 1 {
		t.Errorf("the host's hook ran %d times", calls.Load())
	}
}

// deafStore has one writer, for which a transaction waits whatever its context says, as a kv.Backend may.
type deafStore struct {
	payments.Store
	writer sync.Mutex
}

// Update runs a transaction.
func (d *deafStore) Update(ctx context.Context, f func(context.Context, store.Tx) error) error {
	d.writer.Lock()
	defer d.writer.Unlock()

	return d.Store.Update(context.WithoutCancel(ctx), f)
}

// TestARivalAtAnotherHandlerWaitsTwoSeconds mounts one service twice, over a store that makes transactions wait.
func TestARivalAtAnotherHandlerWaitsTwoSeconds(t *testing.T) {
	var (
		calls         atomic.Int32
		working       sync.WaitGroup
		claimed, goOn = make(chan struct{}), make(chan struct{})
	)

	s := bootWith(t, &deafStore{Store: memory.New()}, nil, time.Now, func(c *payments.Config) {
		c.OnEvent = func(context.Context, payments.Tx, event.Event) error {
			calls.Add(1)
			close(claimed)

			select {
			case <-goOn:
			case <-time.After(5 * requestkey.Wait): // the rival waits for this one
			}

			return nil
		}
	})
	s.enter(t)

	other := *s
	other.handler = httpapi.Handler(s.engine, nil)

	q := request{
		method: "POST",
		path:   "/v1/invoices",
		body:   invoiceBody,
		header: header("Idempotency-Key", "rivals"),
	}

	working.Go(func() { s.do(t, q) })
	<-claimed

	began := time.Now()
	answer := other.do(t, q)
	waited := time.Since(began)

	close(goOn)
	working.Wait()

	if f := answer.refused(t, 409); f.Code != "idempotency_request_in_progress" ||
		waited > requestkey.Wait+time.Second || calls.Load() != 1 {
		t.Errorf("after %s the rival was answered %+v; the hook ran %d times", waited, f, calls.Load())
	}
}

// testRivalOvertakes: the rival comes while the first one works and has not claimed the key in the database yet.
// Whoever claims it first makes the invoice, and both get its answer; or the rival is refused, and asks again.
func testRivalOvertakes(t *testing.T, kind storeKind) {
	name := kind.create(t)
	slow := &slowStore{Store: kind.open(t, name), claimed: make(chan struct{}), goOn: make(chan struct{})}

	first := openOn(t, slow, nil, time.Now)
	rival := boot(t, kind.open(t, name), nil, time.Now)
	rival.account, rival.key = first.account, first.key

	q := request{
		method: "POST",
		path:   "/v1/invoices",
		body:   invoiceBody,
		header: header("Idempotency-Key", "rivals"),
	}

	var (
		working sync.WaitGroup
		made    reply
	)

	working.Go(func() { made = first.do(t, q) })
	<-slow.claimed

	second := rival.do(t, q)

	close(slow.goOn)
	working.Wait()

	if second.status == 409 {
		second = rival.do(t, q)
	}

	first.ok(t, made)
	rival.ok(t, second)

	if !bytes.Equal(made.body, second.body) {
		t.Errorf("one request made %s and %s", made.body, second.body)
	}

	replays := made.header.Get("Idempotent-Replayed") + second.header.Get("Idempotent-Replayed")
	if replays != "true" {
		t.Errorf("of two answers, replayed are %q", replays)
	}
}

// slowStore is a store whose first transaction that claims an Idempotency-Key waits before its commit.
type slowStore struct {
	payments.Store
	sends         bool // the claim is in the database while it waits
	once          sync.Once
	claimed, goOn chan struct{}
}

// Update runs a transaction.
func (s *slowStore) Update(ctx context.Context, f func(context.Context, store.Tx) error) error {
	return s.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		claims := &claimingTx{Tx: tx}
		if err := f(ctx, claims); err != nil {
			return err
		}

		if claims.claimed {
			s.once.Do(func() {
				if s.sends {
					_, _ = sqlstore.SQL(tx) // it is the call that counts
				}

				close(s.claimed)
				<-s.goOn
			})
		}

		return nil
	})
}

// claimingTx is a transaction that notes that it claimed a key.
type claimingTx struct {
	store.Tx
	claimed bool
}

// ClaimIdempotencyKey claims a key.
func (c *claimingTx) ClaimIdempotencyKey(
	ctx context.Context,
	r idempotency.Record,
	stale time.Time,
	wait time.Duration,
) error {
	err := c.Tx.ClaimIdempotencyKey(ctx, r, stale, wait)
	c.claimed = c.claimed || err == nil

	return err
}

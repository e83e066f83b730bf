package httpapi_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/internal/requestkey"
	"github.com/seed-8ee7f392/payments/store"
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
					sqlstore.SQL(tx)
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

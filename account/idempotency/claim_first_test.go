package idempotency_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/requestkey"
)

// counted counts the look-ups of records.
type counted struct {
	idempotency.Reader
	lookups int
}

func (c *counted) IdempotencyRecord(
	ctx context.Context,
	key idempotency.Key,
) (idempotency.Record, bool, error) {
	c.lookups++

	return c.Reader.IdempotencyRecord(ctx, key)
}

// claimFirst is a process that claims keys before it looks them up.
type claimFirst struct {
	*bench
	config   requestkey.Config[*rowsTx]
	reads    *counted
	prepared int
}

// process returns one of several processes over the same rows.
func (b *bench) process() *claimFirst {
	p := &claimFirst{bench: b, config: b.config, reads: &counted{Reader: b.rows}}
	p.config.Reader, p.config.Running = p.reads, &requestkey.Running{}

	return p
}

func (p *claimFirst) run(
	t *testing.T,
	body string,
	prepare func(context.Context) (requestkey.Commit[*rowsTx], error),
) (requestkey.Answer, error) {
	t.Helper()

	r := request(body)
	r.ClaimFirst = true

	return requestkey.Run(
		t.Context(),
		p.config,
		r,
		func(ctx context.Context) (requestkey.Commit[*rowsTx], error) {
			p.prepared++
			return prepare(ctx)
		},
	)
}

func TestANewKeyIsClaimedBeforeItIsLookedUp(t *testing.T) {
	p := newBench(t).process()

	for i := range 3 {
		a, err := p.run(t, "body", prepareObject)
		if err != nil || string(a.Body) != `{"id":"thing"}` || a.Replayed != (i > 0) {
			t.Fatalf("request %d: %+v, %v", i, a, err)
		}

		// The process saw the later ones before.
		if p.reads.lookups != i || p.prepared != 1 || len(p.made) != 1 {
			t.Fatalf(
				"request %d: %d look-ups, %d prepared, %d made",
				i,
				p.reads.lookups,
				p.prepared,
				len(p.made),
			)
		}
	}
}

func TestAKeyOfAnotherProcessIsAnsweredAsItWas(t *testing.T) {
	for name, prepare := range map[string]func(context.Context) (requestkey.Commit[*rowsTx], error){
		"made":                prepareObject,
		"refused":             refuseInPrepare(fault.New(fault.Invalid, "amount_too_small", "too small")),
		"refused for now":     refuseInPrepare(fault.New(fault.Unavailable, "price_unavailable", "no price")),
		"refused by state":    refuseInPrepare(fault.New(fault.State, "invoice_not_open", "it is canceled")),
		"refused by the work": refuseInCommit(fault.New(fault.State, "invoice_not_open", "it is canceled")),
	} {
		b := newBench(t)
		if _, err := b.process().run(t, "body", prepareObject); err != nil {
			t.Fatal(err)
		}

		a, err := b.process().run(t, "body", prepare)
		if err != nil || !a.Replayed || string(a.Body) != `{"id":"thing"}` || len(b.made) != 1 {
			t.Errorf("%s: answered %+v, %v; %d made", name, a, err, len(b.made))
		}

		_, err = b.process().run(t, "another body", prepare)
		if !errors.Is(err, fault.Invalid) || fault.Code(err) != "idempotency_key_reused" {
			t.Errorf("%s: with another body: %v", name, err)
		}
	}
}

func TestAnExpiredKeyIsClaimedAnew(t *testing.T) {
	b := newBench(t)
	for i := range 2 {
		a, err := b.process().run(t, "body", prepareObject)
		if err != nil || a.Replayed {
			t.Fatalf("request %d: %+v, %v", i, a, err)
		}

		b.now = b.now.Add(24*time.Hour + time.Second)
	}
}

func TestARefusalBeforeTheClaimIsStored(t *testing.T) {
	b := newBench(t)
	small := fault.New(fault.Invalid, "amount_too_small", "too small")

	for i, prepare := range []func(context.Context) (requestkey.Commit[*rowsTx], error){
		refuseInPrepare(small), prepareObject,
	} {
		a, err := b.process().run(t, "body", prepare)
		if fault.Code(err) != "amount_too_small" || a.Replayed != (i > 0) || len(b.made) != 0 {
			t.Errorf("request %d: %+v, %v; %d made", i, a, err, len(b.made))
		}
	}
}

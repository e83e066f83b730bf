package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/eventctx"
	"github.com/seed-8ee7f392/payments/internal/hostcall"
	"github.com/seed-8ee7f392/payments/internal/id"
	"github.com/seed-8ee7f392/payments/internal/requestkey"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/internal/wire"
	"github.com/seed-8ee7f392/payments/store"
)

// Update runs f in one transaction. Before it commits, and inside it, the domains react to the events that f
// appended. Also inside it, the events are stored with their webhook deliveries, and Config.OnEvent is
// called.
//
// f may run more than once: it assigns and never appends to captured variables, and does no network call.
func (e *Engine) Update(ctx context.Context, f func(ctx context.Context, tx Tx) error) error {
	if err := e.beginEpoch(ctx); err != nil {
		return err
	}

	return e.update(ctx, f)
}

// update is Update without beginning the epoch.
func (e *Engine) update(ctx context.Context, f func(ctx context.Context, tx Tx) error) error {
	ctx, end := requestkey.Bound(ctx)
	defer end()

	var committed *transaction

	err := e.config.Store.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		t := &transaction{Tx: tx, engine: e}
		committed = t

		if err := f(ctx, t); err != nil {
			return err
		}

		return t.finish(ctx)
	})
	if err != nil {
		return err
	}

	made := committed.made
	if len(committed.events) == 0 {
		made = nil // a transaction without events is a worker's own bookkeeping
	}

	for _, ev := range committed.events {
		if t, ok := ev.Payload.(wallet.Transaction); ok && isSignedPayout(t) {
			var signed chain.Signed
			if len(t.Attempts) > 0 { // members of a batch have none; batches never expire
				signed = walletstate.LastAttempt(&t).Signed
			}

			e.gate.Stored(t.ObjectID, signed)
		}
	}

	for _, b := range committed.funded() {
		e.queueFunded(ctx, b)
		made.add(b.Network, settling)
	}

	e.wake(made)

	return nil
}

// UpdateIn runs f as Update does, inside a transaction of the host that Join of a SQL store made. f runs
// once. The host commits, and then calls Wake. After an error it rolls back: the joined transaction, and the
// flush that Join returned with it, fail with fault.State (transaction_broken).
//
// Errors:
//   - fault.Conflict: a record was changed meanwhile
//   - fault.Unavailable (epoch_not_begun): a new Config.Epoch begins in a transaction of its own, which comes first
func (e *Engine) UpdateIn(
	ctx context.Context,
	joined store.Tx,
	f func(ctx context.Context, tx Tx) error,
) error {
	if !e.epoch.hasBegun() && e.config.Epoch > 0 {
		return fault.New(
			fault.Unavailable,
			"epoch_not_begun",
			"epoch %d has not begun in this process: it does with Run, with Step, and with any change outside of a "+
				"joined transaction",
			e.config.Epoch,
		)
	}

	t, done := &transaction{Tx: joined, engine: e}, false

	defer func() { // also while a panic of f passes through
		if b, ok := joined.(store.Breaker); ok && !done {
			b.Break(fault.New(
				fault.State,
				"transaction_broken",
				"UpdateIn failed in this transaction, which is to be rolled back",
			))
		}
	}()

	if err := f(ctx, t); err != nil {
		return err
	}

	err := t.finish(ctx)
	done = err == nil

	return err
}

// transaction is a store's transaction that collects events instead of storing them as they are.
type transaction struct {
	store.Tx
	engine *Engine
	events []event.Event
	// claimed is set once an Idempotency-Key was claimed.
	claimed bool
	// reacted counts the events whose reactions ran.
	reacted int
	// left are the written records by id, as they are now.
	left map[string]event.Payload
	// made is the work that the transaction made.
	made wakeUp
	// balances are the balances that were locked or written, as they were and as they are now.
	balances map[balanceKey]balanceChange
	reads    reads
}

// Unwrap returns the store's own transaction. sqlite.SQLTx and postgres.SQLTx find the *sql.Tx through it.
func (t *transaction) Unwrap() store.Tx { return t.Tx }

// maxEvents bounds the events of one transaction. Reaching it means that two reactions trigger each other.
const maxEvents = 100_000

// AppendEvents collects events; finish stores them.
func (t *transaction) AppendEvents(ctx context.Context, events ...event.Event) error {
	request := eventctx.RequestOf(ctx)

	for _, ev := range events {
		ev.Request = request
		t.events = append(t.events, ev)
	}

	if len(t.events) > maxEvents {
		return fmt.Errorf(
			"more than %d events in one transaction, the last a %s: two reactions answer each other",
			maxEvents, t.events[len(t.events)-1].Type,
		)
	}

	return nil
}

// React runs the reactions to the events that were appended so far in a transaction of Update. A caller that
// reads their results in the same transaction calls it first; Update runs the remaining ones.
func (e *Engine) React(ctx context.Context, tx Tx) error {
	if t, ok := tx.(*transaction); ok {
		return t.react(ctx)
	}

	return nil
}

// react runs the reactions, which may append more events.
func (t *transaction) react(ctx context.Context) error {
	if err := t.readSettlements(ctx, t.events[t.reacted:], hasSettlement); err != nil {
		return err
	}

	for t.reacted < len(t.events) {
		ev := t.events[t.reacted]

		t.reacted++
		if err := t.engine.react(ctx, t, ev); err != nil {
			return fmt.Errorf("reacting to %s of %s: %w", ev.Type, ev.ObjectID, err)
		}
	}

	return nil
}

// finish runs the reactions, then stores, renders and delivers the public events and calls Config.OnEvent.
func (t *transaction) finish(ctx context.Context) error {
	if err := t.react(ctx); err != nil {
		return err
	}

	var public []event.Event

	for _, ev := range t.events {
		if !ev.Type.Internal() {
			public = append(public, ev)
		}
	}

	if len(public) == 0 {
		return nil
	}

	if err := t.readSettlements(ctx, public, showsSettlement); err != nil {
		return err
	}

	epoch := t.engine.epoch.now().Number

	for i := range public {
		if public[i].ID == "" { // a ping has one already, because its delivery refers to it
			public[i].ID = t.engine.ids.Event()
		}

		// The sum exceeds the numbers of events that were published after a backup and are lost, even if the
		// object does not know of them.
		public[i].Sequence += int64(epoch) * epochSkip

		// Lists find the events of a period by their ids.
		public[i].CreatedAt = id.CreatedAt(public[i].ID)

		t.showLeft(&public[i])

		envelope, err := t.engine.envelope(ctx, t, public[i])
		if err != nil {
			return fmt.Errorf("rendering %s of %s: %w", public[i].Type, public[i].ObjectID, err)
		}

		public[i].Envelope = envelope
	}

	if err := t.PutEvents(ctx, public...); err != nil {
		return err
	}

	if err := t.engine.Deliverer.FanOutTx(ctx, t, public); err != nil {
		return fmt.Errorf("making webhook deliveries: %w", err)
	}

	return t.callHook(ctx, public)
}

// ClaimIdempotencyKey claims a key, and records that there is a claim.
func (t *transaction) ClaimIdempotencyKey(
	ctx context.Context,
	r idempotency.Record,
	stale time.Time,
	wait time.Duration,
) error {
	t.claimed = true

	return t.Tx.ClaimIdempotencyKey(ctx, r, stale, wait)
}

// sendClaim sends a claim that the store has buffered, with all other writes. So a competing request in
// another process waits for it, or is refused before it calls the host's code.
func (t *transaction) sendClaim(ctx context.Context) error {
	if !t.claimed {
		return nil
	}

	for tx := t.Tx; tx != nil; {
		if f, ok := tx.(store.Flusher); ok {
			return f.Flush(ctx)
		}

		wrapper, ok := tx.(interface{ Unwrap() store.Tx })
		if !ok {
			return nil
		}

		tx = wrapper.Unwrap()
	}

	return nil
}

// callHook calls Config.OnEvent for each event. A panic counts as an error: it concerns one object, and ends
// neither the work of its network nor the process.
func (t *transaction) callHook(ctx context.Context, events []event.Event) error {
	hook := t.engine.config.OnEvent
	if hook == nil {
		return nil
	}

	if err := t.sendClaim(ctx); err != nil {
		return err
	}

	for _, ev := range events {
		err := hostcall.Catch(
			ctx, t.engine.config.Log, "Config.OnEvent", func() error { return hook(ctx, t, ev) },
		)
		if err != nil {
			return fmt.Errorf("the host's OnEvent for %s of %s: %w", ev.Type, ev.ObjectID, err)
		}
	}

	return nil
}

// envelope is the body of a webhook delivery and of GET /v1/events/{id} (decisions part 8).
type envelope struct { // spec 6.2
	ID         string        `json:"id"`
	Type       event.Type    `json:"type"`
	APIVersion string        `json:"api_version"`
	CreatedAt  string        `json:"created_at"`
	Livemode   bool          `json:"livemode"`
	Sequence   int64         `json:"sequence"`
	Data       envelopeData  `json:"data"`
	Request    event.Request `json:"request"`
}

type envelopeData struct {
	Object   any            `json:"object"`
	Previous map[string]any `json:"previous_attributes,omitempty"`
}

func (e *Engine) envelope(ctx context.Context, tx *transaction, ev event.Event) (json.RawMessage, error) {
	object, err := e.eventObject(ctx, tx, ev)
	if err != nil {
		return nil, err
	}

	return json.Marshal(envelope{
		ID:         ev.ID,
		Type:       ev.Type,
		APIVersion: "v1",
		CreatedAt:  wire.Time(ev.CreatedAt),
		Livemode:   ev.Owner.Livemode,
		Sequence:   ev.Sequence,
		Data:       envelopeData{Object: object, Previous: ev.Previous},
		Request:    ev.Request,
	})
}

// view is one domain's view of the store: all reads, and transactions of the domain's own type T.
type view[T any] struct {
	store.Reader
	engine *Engine
	domain func(tx Tx) T
}

// Update runs f in an engine transaction narrowed to T, so that events have their reactions.
func (v view[T]) Update(ctx context.Context, f func(ctx context.Context, tx T) error) error {
	return v.engine.Update(ctx, func(ctx context.Context, tx Tx) error { return f(ctx, v.domain(tx)) })
}

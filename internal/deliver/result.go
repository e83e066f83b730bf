package deliver

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/hostcall"
	"github.com/seed-8ee7f392/payments/webhook"
)

// This file holds the result of one claimed delivery, and how it is stored.

// resultKind is how the delivery of a claim ended.
type resultKind int

const (
	// tried: the request was sent, or sending failed; the result has an attempt.
	tried resultKind = iota
	// unsendable: its endpoint is disabled or gone, or its event was pruned.
	unsendable
	// givenBack: it was not sent; it stays due.
	givenBack
	// cutShort: we canceled the attempt, so it is unknown whether it arrived; it stays due.
	cutShort
	// putOff: it was not sent, for lack of a slot or because of our own failure; it is due again a little
	// later, after the other deliveries.
	putOff
)

// result is how one claimed delivery ended.
type result struct {
	claimed webhook.Delivery
	kind    resultKind
	// url is the endpoint's URL at the time of the attempt.
	url string
	answer
	jitter uint64
	// dueAt is when a postponed delivery is due again.
	dueAt time.Time
	// err is why the delivery could not be sent. The failure is ours, so no attempt is logged and the
	// delivery is put off.
	err error
}

// loaded is a claimed delivery with the records that are needed to send it.
type loaded struct {
	webhook.Delivery
	endpoint webhook.Endpoint
	event    event.Event
	// gone reports that the endpoint was deleted or the event pruned.
	gone bool
	err  error
}

// load returns claimed deliveries with their endpoints and events, read by two queries. When that
// fails, it reads them one by one, so that one bad row fails alone.
func (s *Deliverer) load(ctx context.Context, ds []webhook.Delivery) []loaded {
	out := make([]loaded, len(ds))

	var endpointIDs, eventIDs []string

	for i, d := range ds {
		out[i].Delivery = d
		endpointIDs, eventIDs = append(endpointIDs, d.EndpointID), append(eventIDs, d.EventID)
	}

	endpoints, err := s.db.EndpointsByID(ctx, endpointIDs)

	var events []event.Event
	if err == nil {
		events, err = s.db.EventsByID(ctx, eventIDs)
	}

	if err != nil && len(ds) > 1 && !isTransient(err) && ctx.Err() == nil {
		for i, d := range ds {
			out[i] = s.load(ctx, []webhook.Delivery{d})[0]
		}

		return out
	}

	if err != nil {
		err = fmt.Errorf(
			"read endpoint and event of webhook delivery %s and %d more: %w",
			ds[0].ID, len(ds)-1, err,
		)
	}

	endpointOf := byID(endpoints, func(e webhook.Endpoint) string { return e.ID })

	eventOf := byID(events, func(e event.Event) string { return e.ID })
	for i, d := range ds {
		e, hasEndpoint := endpointOf[d.EndpointID]
		ev, hasEvent := eventOf[d.EventID]
		out[i].endpoint, out[i].event, out[i].err = e, ev, err
		out[i].gone = !hasEndpoint || !hasEvent
	}

	return out
}

func byID[T any](records []T, id func(T) string) map[string]T {
	out := make(map[string]T, len(records))
	for _, r := range records {
		out[id(r)] = r
	}

	return out
}

// deliver sends one claimed delivery and returns its result.
func (s *Deliverer) deliver(ctx context.Context, d loaded) result {
	r := result{claimed: d.Delivery, url: d.endpoint.URL, err: d.err}
	if r.err == nil && (d.gone || d.endpoint.Status == webhook.Disabled) {
		r.kind = unsendable
		return r
	}

	var secrets []string
	if r.err == nil {
		secrets, r.err = d.endpoint.OpenSecrets(s.seal, s.now())
	}

	if r.err == nil {
		r.jitter, r.err = s.jitter()
	}

	switch {
	case r.err == nil:
	case ctx.Err() != nil:
		r.kind, r.err = givenBack, nil
		return r
	default:
		r.kind, r.dueAt = putOff, s.stamp().Add(claimFor)
		return r
	}

	var whole bool
	if r.answer, whole = s.post(ctx, d.Delivery, d.endpoint, d.event, secrets); !whole {
		r.kind = cutShort
	}

	return r
}

// jitter returns 64 random bits. It is called before the transaction that uses them, which may run twice.
func (s *Deliverer) jitter() (uint64, error) {
	var raw [8]byte
	if _, err := io.ReadFull(s.entropy, raw[:]); err != nil {
		return 0, fault.Wrap(
			err, fault.Unavailable, "entropy_unavailable", "no randomness for the time of a retry",
		)
	}

	return binary.BigEndian.Uint64(raw[:]), nil
}

// record stores results in one transaction, and applies them to their endpoints. It drops results whose claim
// another process took over meanwhile. A panic, such as one in the host's store, is returned as an error.
func (s *Deliverer) record(ctx context.Context, batch []result) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeLimit)
	defer cancel()

	return hostcall.Catch(
		ctx, s.log, "storing webhook deliveries", func() error { return s.recordTx(ctx, batch) },
	)
}

// recordTx is record without its time limit.
func (s *Deliverer) recordTx(ctx context.Context, batch []result) error {
	// Sorted by id to avoid deadlock.
	batch = slices.SortedFunc(slices.Values(batch), func(a, b result) int {
		return cmp.Compare(a.claimed.ID, b.claimed.ID)
	})

	// Others rarely change a claimed delivery. It is re-read only when the closure runs a second time.
	stored, retried := make(map[string]webhook.Delivery, len(batch)), false
	for _, r := range batch {
		stored[r.claimed.ID] = r.claimed
	}

	ids := slices.Sorted(maps.Keys(stored))

	return s.db.Update(ctx, func(ctx context.Context, tx webhook.Tx) error {
		if retried {
			found, err := tx.DeliveriesByID(ctx, ids)
			if err != nil {
				return fmt.Errorf("read %d webhook deliveries: %w", len(ids), err)
			}

			stored = byID(found, func(d webhook.Delivery) string { return d.ID })
		}

		retried = true

		endpoints, err := triedEndpoints(ctx, tx, batch)
		if err != nil {
			return err
		}

		ds, outcomes := s.applyBatch(ctx, batch, stored, endpoints)
		if len(ds) == 0 {
			return nil
		}

		if err := putDeliveries(ctx, tx, ds...); err != nil {
			return err
		}

		return s.applyResults(ctx, tx, endpoints, outcomes)
	})
}

// triedEndpoints returns by id the endpoints of the attempts, as they are now, except deleted ones.
func triedEndpoints(ctx context.Context, tx webhook.Tx, batch []result) (map[string]webhook.Endpoint, error) {
	ids := make(map[string]bool)

	for _, r := range batch {
		if r.kind == tried {
			ids[r.claimed.EndpointID] = true
		}
	}

	found, err := tx.EndpointsByID(ctx, slices.Sorted(maps.Keys(ids)))
	if err != nil {
		return nil, fmt.Errorf("read %d webhook endpoints: %w", len(ids), err)
	}

	return byID(found, func(e webhook.Endpoint) string { return e.ID }), nil
}

// applyBatch returns the deliveries with the results applied, and the outcomes that count for each endpoint.
// It skips deliveries that are gone and those whose fence has risen.
func (s *Deliverer) applyBatch(
	ctx context.Context,
	batch []result,
	stored map[string]webhook.Delivery,
	endpoints map[string]webhook.Endpoint,
) (ds []*webhook.Delivery, outcomes map[string][]outcome) {
	outcomes = make(map[string][]outcome)

	for _, r := range batch {
		before, exists := stored[r.claimed.ID]
		if !exists {
			continue
		}

		if before.Fence != r.claimed.Fence {
			s.log.WarnContext(
				ctx, "another process took over a webhook delivery; its result here was thrown away",
				"delivery", r.claimed.ID,
			)

			continue
		}

		outdated := r.isOutdated(before, endpoints)
		after := r.apply(before, outdated)
		ds = append(ds, &after)

		if r.kind == tried && (!outdated || AttemptSucceeded(r.attempt)) {
			ranOut := before.Status == webhook.DeliveryPending && after.Status == webhook.DeliveryFailed
			outcomes[after.EndpointID] = append(
				outcomes[after.EndpointID], outcome{answer: r.answer, ranOut: ranOut},
			)
		}
	}

	return ds, outcomes
}

// isOutdated reports whether a failure does not count against the endpoint. Since the attempt began, its URL
// was changed, or it was disabled, which ended the delivery d; it may be enabled again.
func (r result) isOutdated(d webhook.Delivery, endpoints map[string]webhook.Endpoint) bool {
	e, exists := endpoints[d.EndpointID]
	return d.Status != webhook.DeliveryPending || exists && e.URL != r.url
}

// apply returns a delivery with the result applied. 410 Gone ends it unless the result is outdated.
func (r result) apply(d webhook.Delivery, outdated bool) webhook.Delivery {
	switch r.kind {
	case putOff:
		return DeliveryPostponed(d, r.dueAt)
	case tried:
		gone := AttemptGone(r.attempt) && !outdated
		return WithAttempt(d, r.attempt, r.ended, gone, r.retryAfter, r.jitter)
	case unsendable:
		return DeliveryFailed(d)
	case cutShort:
		return Unclaimed(DeliveryInterrupted(d, r.attempt))
	default:
		return Unclaimed(d)
	}
}

// outcome is the effect of an attempt on its endpoint. ranOut reports that it was the delivery's last.
type outcome struct {
	answer
	ranOut bool
}

// applyResults updates endpoints by the outcomes of their attempts, in the order in which they ended.
func (s *Deliverer) applyResults(
	ctx context.Context,
	tx webhook.Tx,
	endpoints map[string]webhook.Endpoint,
	outcomes map[string][]outcome,
) error {
	// Sorted by id to avoid deadlock.
	for _, id := range slices.Sorted(maps.Keys(outcomes)) {
		before, exists := endpoints[id]
		if !exists {
			continue // deleted meanwhile
		}

		tries := outcomes[id]
		slices.SortStableFunc(tries, func(a, b outcome) int { return a.ended.Compare(b.ended) })

		e := Pruned(before, s.now())

		for _, o := range tries {
			if AttemptSucceeded(o.attempt) {
				e = e.Succeeded(o.ended)
			} else {
				e = e.Failed(o.ended, o.ranOut && !AttemptGone(o.attempt), AttemptGone(o.attempt))
			}
		}

		if isUnchanged(before, e) {
			continue
		}

		if err := webhook.PutChanged(ctx, tx, &e, before.Status); err != nil {
			return fmt.Errorf("store webhook endpoint %s: %w", e.ID, err)
		}
	}

	return nil
}

// successResolution is the resolution of an endpoint's last success: after several deliveries in quick
// succession its row is written once.
const successResolution = time.Second

// isUnchanged reports whether an endpoint's row need not be written.
func isUnchanged(a, b webhook.Endpoint) bool {
	same := func(x, y time.Time) bool { return x.Equal(y) }

	return a.Status == b.Status && b.LastSuccessAt.Sub(a.LastSuccessAt) < successResolution &&
		same(a.FirstFailureAt, b.FirstFailureAt) &&
		same(a.FailingSince, b.FailingSince) &&
		len(a.SealedPrevious) == len(b.SealedPrevious)
}

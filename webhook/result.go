package webhook

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

// This file holds what becomes of one claimed delivery, and how it is stored.

type resultKind int

const (
	// tried: the request was sent, or could not be; there is an attempt.
	tried resultKind = iota
	// unsendable: its endpoint is disabled or gone, or its event was pruned.
	unsendable
	// givenBack: it was not tried, or the try was cut short by us; it stays due.
	givenBack
	// putOff: there was no room for it; it is due again a little later, behind what others have due.
	putOff
)

type result struct {
	claimed Delivery
	kind    resultKind
	answer
	jitter uint64
	// dueAt is when a delivery that was put off is due again.
	dueAt time.Time
	// err says why the delivery could not even be read; nothing is stored, and it is due again when its claim lapses.
	err error
}

// deliver tries one claimed delivery.
func (s *Service) deliver(ctx context.Context, d Delivery) result {
	r := result{claimed: d}
	e, err := s.db.WebhookEndpoint(ctx, d.Owner, d.EndpointID)
	if errors.Is(err, fault.NotFound) || err == nil && e.Status == Disabled {
		r.kind = unsendable
		return r
	}
	if err != nil {
		r.err = fmt.Errorf("read webhook endpoint %s: %w", d.EndpointID, err)
		return r
	}
	ev, err := s.db.EventByID(ctx, d.EventID)
	if errors.Is(err, fault.NotFound) {
		r.kind = unsendable
		return r
	}
	if err != nil {
		r.err = fmt.Errorf("read event %s: %w", d.EventID, err)
		return r
	}
	secrets, err := s.secrets(e, s.now())
	if err != nil {
		r.err = err
		return r
	}
	if r.jitter, err = s.jitter(); err != nil {
		r.err = err
		return r
	}
	var whole bool
	if r.answer, whole = s.post(ctx, d, e, ev, secrets); !whole {
		r.kind = givenBack
	}
	return r
}

// jitter is drawn before the transaction that uses it, which may run twice.
func (s *Service) jitter() (uint64, error) {
	var raw [8]byte
	if _, err := io.ReadFull(s.entropy, raw[:]); err != nil {
		return 0, fault.Wrap(err, fault.Unavailable, "entropy_unavailable", "no randomness for the time of a retry")
	}
	return binary.BigEndian.Uint64(raw[:]), nil
}

// record stores results in one transaction, with what they mean for their endpoints. Results whose claim was taken
// over meanwhile are thrown away.
func (s *Service) record(ctx context.Context, batch []result) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeLimit)
	defer cancel()
	// In the order of their ids, so that two processes never wait for each other crosswise.
	slices.SortFunc(batch, func(a, b result) int { return cmp.Compare(a.claimed.ID, b.claimed.ID) })
	return s.db.Update(ctx, func(ctx context.Context, tx Tx) error {
		var ds []*Delivery
		outcomes := make(map[string][]outcome)
		for _, r := range batch {
			before, err := tx.Delivery(ctx, r.claimed.Owner, r.claimed.ID)
			if errors.Is(err, fault.NotFound) {
				continue
			}
			if err != nil {
				return fmt.Errorf("read webhook delivery %s: %w", r.claimed.ID, err)
			}
			if before.Fence != r.claimed.Fence {
				s.log.WarnContext(ctx, "another process took over a webhook delivery; its result here was thrown away", "delivery", r.claimed.ID)
				continue
			}
			after := r.apply(before)
			ds = append(ds, &after)
			if r.kind == tried {
				o := outcome{answer: r.answer, ranOut: before.Status == DeliveryPending && after.Status == DeliveryFailed}
				outcomes[after.EndpointID] = append(outcomes[after.EndpointID], o)
			}
		}
		if len(ds) == 0 {
			return nil
		}
		if err := putDeliveries(ctx, tx, ds...); err != nil {
			return err
		}
		for _, d := range ds { // each endpoint once, in the order of the deliveries
			if o := outcomes[d.EndpointID]; len(o) > 0 {
				delete(outcomes, d.EndpointID)
				if err := s.judge(ctx, tx, *d, o); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (r result) apply(d Delivery) Delivery {
	switch r.kind {
	case putOff:
		return d.putOff(r.dueAt)
	case tried:
		return d.tried(r.attempt, r.ended, r.retryAfter, r.jitter)
	case unsendable:
		return d.failed()
	default:
		return d.unclaimed()
	}
}

// outcome is a try as its endpoint sees it.
type outcome struct {
	answer
	ranOut bool
}

// judge moves the endpoint of a delivery by the tries that were made of it, in the order they ended.
func (s *Service) judge(ctx context.Context, tx Tx, d Delivery, outcomes []outcome) error {
	before, err := tx.WebhookEndpoint(ctx, d.Owner, d.EndpointID)
	if errors.Is(err, fault.NotFound) {
		return nil // deleted meanwhile
	}
	if err != nil {
		return fmt.Errorf("read webhook endpoint %s: %w", d.EndpointID, err)
	}
	slices.SortStableFunc(outcomes, func(a, b outcome) int { return a.ended.Compare(b.ended) })
	e := before.pruned(s.now())
	for _, o := range outcomes {
		if o.attempt.succeeded() {
			e = e.succeeded(o.ended)
		} else {
			e = e.failed(o.ended, o.ranOut && !o.attempt.gone(), o.attempt.gone())
		}
	}
	if unmoved(before, e) {
		return nil
	}
	if err := putMoved(ctx, tx, &e, before.Status); err != nil {
		return fmt.Errorf("store webhook endpoint %s: %w", e.ID, err)
	}
	return nil
}

// unmoved reports whether tries left an endpoint as it was, so that its row need not be written.
func unmoved(a, b Endpoint) bool {
	same := func(x, y time.Time) bool { return x.Equal(y) }
	return a.Status == b.Status && same(a.LastSuccessAt, b.LastSuccessAt) && same(a.FirstFailureAt, b.FirstFailureAt) &&
		same(a.FailingSince, b.FailingSince) && len(a.SealedPrevious) == len(b.SealedPrevious)
}

package deliver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/hostcall"
	"github.com/seed-8ee7f392/payments/webhook"
)

// This file holds the worker: it claims due deliveries in batches, sends them concurrently, and stores their
// results in batches. pool.go holds its slots.
//
// A claim lasts claimFor. If a process crashes between sending and storing, its claims lapse and another
// process sends again: a delivery arrives at least once, and the receiver recognises it by its event id. The
// next claimant logs the attempt that may have been made, so that the log has every request that the endpoint
// saw. A result is stored only under the fence of its claim, so a process whose claim lapsed overwrites
// nothing.

const (
	claimFor = time.Minute
	// claimMargin is the least remaining time of a claim when an attempt starts, beyond the time limit of the
	// attempt.
	claimMargin = 10 * time.Second
	// drainLimit is how long attempts in flight may go on once Run's context ended.
	drainLimit = 5 * time.Second
	// storeLimit ends one transaction that stores results.
	storeLimit = 10 * time.Second
	// storeBatch is the most results that one transaction stores.
	storeBatch = 128
	// waitingShare is how many claimed deliveries, as a multiple of the slots, may wait here for a slot.
	// busyPutOff is how long further ones are postponed.
	waitingShare = 4
	busyPutOff   = 2 * time.Second
	// claimPause is how long a claim waits for more slots while there is a backlog, so that it
	// takes many at once.
	claimPause = 10 * time.Millisecond
	// maxPause is the longest back-off after failed claims.
	maxPause = 30 * time.Second
)

// Run delivers until ctx ends, and returns nil when nothing of it runs any more. Attempts in flight then get
// 5 s to end; the others are released, to be sent again. Several processes may run it over one database, and
// one process several times. It logs errors.
func (s *Deliverer) Run(ctx context.Context) error {
	p := newPool(ctx, s)
	defer p.close()

	timer := time.NewTimer(0)
	defer timer.Stop()

	var pause time.Duration

	for ctx.Err() == nil {
		began := time.Now()

		claimed, full, err := p.fill(ctx)
		wait, rest := s.poll, time.Duration(0)

		if claimed == 0 {
			rest, wait = Rest(time.Since(began), s.poll)
		}

		p.publish()

		if ctx.Err() == nil {
			s.claimed(err)
		}

		if err == nil {
			pause = 0
		} else {
			pause = min(max(2*pause, time.Second), maxPause)
			wait = pause
			s.log.ErrorContext(
				ctx, "webhook deliveries cannot be claimed",
				"error", err, "claimed", claimed, "retry_in", wait,
			)
		}

		if full {
			wait = 0 // there may be more, for other endpoints
		}

		timer.Reset(wait)

		p.wait(ctx, timer, rest, full, err == nil)
	}

	return nil
}

// wait frees the slots of results that the storer took, until it is time to claim again, and at least for
// rest. full reports that the last claim found work for every free slot, claimed that it did not fail.
func (p *pool) wait(ctx context.Context, timer *time.Timer, rest time.Duration, full, claimed bool) {
	var (
		wake   <-chan struct{} // once rested
		rested <-chan time.Time
		due    bool
	)

	if rest > 0 {
		rested = time.After(rest)
	} else {
		wake = p.s.wake
	}

	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			return
		case <-rested:
			if wake = p.s.wake; due {
				return
			}
		case <-wake:
			return
		case taken := <-p.taken:
			switch hasFree := p.free(taken) && claimed; {
			case hasFree && full && p.active > p.s.concurrency/2:
				timer.Reset(claimPause)
			case hasFree && wake != nil:
				return
			case hasFree:
				due = true
			}
		}
	}
}

// Wake makes Run claim due deliveries at once. It is a hint: without it, the next poll finds them.
func (s *Deliverer) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Step claims one batch of due deliveries, returns when their results are stored, and reports whether there
// were any. A process that delivers all the time should call Run instead, in which no delivery waits for the
// slowest one.
func (s *Deliverer) Step(ctx context.Context) (did bool, err error) {
	p := newPool(ctx, s)

	claimed, _, err := p.fill(ctx)
	s.claimed(err)

	for p.active > 0 && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case taken := <-p.taken:
			p.free(taken)
		}
	}

	p.close()

	return claimed > 0, errors.Join(err, p.failed)
}

// fill claims due deliveries for the free slots and starts those that may have one. The others wait here.
// While some of an endpoint wait, no more of that endpoint are claimed, so that its backlog never hides the
// backlog of others. full reports that as many were claimed as there were free slots.
func (p *pool) fill(ctx context.Context) (claimed int, full bool, err error) {
	free := p.s.concurrency - p.active
	if free == 0 {
		return 0, false, nil
	}

	due, err := p.claimMeanwhile(ctx, free)
	if err != nil {
		if ctx.Err() != nil {
			return 0, false, nil // stopped, not failed
		}

		return 0, false, fmt.Errorf("claim webhook deliveries: %w", err)
	}

	p.dispatch(due)

	full = len(due) == free
	if len(p.unsent) == 0 {
		return len(due), full, nil
	}

	unsent := p.unsent
	p.unsent = nil

	if err := p.s.record(p.sending, unsent); err != nil { // then they are due again when their claims lapse
		return len(due), false, fmt.Errorf("put webhook deliveries off: %w", err)
	}

	return len(due), full, nil
}

// claimMeanwhile claims at most free due deliveries, and gives slots that become free meanwhile to waiting
// ones.
func (p *pool) claimMeanwhile(ctx context.Context, free int) (due []webhook.Delivery, err error) {
	claimed := make(chan struct{})
	claim := webhook.Claim{
		Limit:       free,
		PerEndpoint: p.s.perEndpoint,
		Except:      slices.Clone(p.turns),
		Live:        p.testsFull(),
	}

	go func() {
		defer close(claimed)

		err = hostcall.Catch(ctx, p.s.log, "claiming webhook deliveries", func() (err error) {
			due, err = p.s.claim(ctx, claim)
			return err
		})
	}()

	for {
		select {
		case <-claimed:
			return due, err
		case taken := <-p.taken:
			p.free(taken)
		}
	}
}

// claim claims due deliveries in one transaction.
func (s *Deliverer) claim(ctx context.Context, c webhook.Claim) (due []webhook.Delivery, err error) {
	err = s.db.Update(ctx, func(ctx context.Context, tx webhook.Tx) (err error) {
		// A new claimant for every claim: deliveries in flight in this process count as claimed by another.
		c.By = s.process + "/" + s.ids.Next()
		c.Now = s.stamp()
		c.Until = c.Now.Add(claimFor)

		due, err = tx.ClaimDeliveries(ctx, c)
		if err != nil {
			return err
		}

		return logLapsed(ctx, tx, due)
	})

	return due, err
}

// dispatch starts claimed deliveries, queues them for a slot, or postpones them.
func (p *pool) dispatch(due []webhook.Delivery) {
	var starting []webhook.Delivery

	queued := 0
	for _, n := range p.queued {
		queued += n
	}

	for _, d := range due {
		switch {
		case p.mayStart(d):
			p.take(d)
			starting = append(starting, d)
		case queued < waitingShare*p.s.concurrency:
			p.enqueue(d)

			queued++
		default:
			p.unsent = append(p.unsent, result{claimed: d, kind: putOff, dueAt: p.s.stamp().Add(busyPutOff)})
		}
	}

	p.start(starting)
}

// logLapsed adds to the logs of claimed deliveries the attempts that lapsed claims may have made.
func logLapsed(ctx context.Context, tx webhook.Tx, claimed []webhook.Delivery) error {
	var ds []*webhook.Delivery

	for i, d := range claimed {
		if !d.LapsedAt.IsZero() {
			claimed[i] = DeliveryInterrupted(d,
				webhook.Attempt{
					At:      d.LapsedAt.Add(-claimFor),
					Request: webhook.AttemptRequest{Headers: map[string]string{}},
				},
			)
			ds = append(ds, &claimed[i])
		}
	}

	if len(ds) == 0 {
		return nil
	}

	return putDeliveries(ctx, tx, ds...)
}

// storeAll stores results as they arrive: all that are ready, up to storeBatch, in one transaction. Other
// deliveries are sent meanwhile.
func (p *pool) storeAll() {
	for r := range p.results {
		batch := []result{r}
		for len(batch) < storeBatch {
			select {
			case r, more := <-p.results:
				if more {
					batch = append(batch, r)
					continue
				}
			default:
			}

			break
		}

		p.taken <- batch

		for _, r := range batch {
			if r.err != nil {
				p.failed = errors.Join(p.failed, r.err)
				p.s.log.ErrorContext(
					p.sending, "a webhook delivery cannot be sent; it is tried again later",
					"delivery", r.claimed.ID, "retry_at", r.dueAt, "error", r.err,
				)
			}
		}

		if err := p.store(batch); err != nil {
			p.failed = errors.Join(p.failed, err)
			p.s.log.ErrorContext(
				p.sending, "results of webhook deliveries were not stored; they will be sent again",
				"error", err,
			)
		}
	}
}

// store stores results. It retries for a few seconds while the store is unavailable or contended.
// After any other error it stores each result alone, so that one bad row fails alone.
func (p *pool) store(batch []result) error {
	err := p.s.record(p.sending, batch)
	for wait := 100 * time.Millisecond; isTransient(err) && wait < storeLimit && p.sleep(wait); wait *= 2 {
		err = p.s.record(p.sending, batch)
	}

	if err != nil && len(batch) > 1 && !isTransient(err) {
		err = nil
		for _, r := range batch {
			err = errors.Join(err, p.s.record(p.sending, []result{r}))
		}
	}

	return err
}

// isTransient reports whether a retry may succeed after an error.
func isTransient(err error) bool {
	return errors.Is(err, fault.Unavailable) || errors.Is(err, fault.Conflict)
}

// sleep waits, and reports false if the pool's attempts are canceled meanwhile.
func (p *pool) sleep(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()

	select {
	case <-timer.C:
		return true
	case <-p.sending.Done():
		return false
	}
}

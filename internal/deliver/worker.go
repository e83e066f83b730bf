package deliver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/webhook"
)

// This file holds the worker: it claims due deliveries, sends them side by side, and stores what
// came of them, each of these for many deliveries at once.
//
// A claim lasts claimFor. A process that dies between sending and storing leaves its claims to
// lapse, and another sends again: a delivery arrives at least once, and the receiver knows it by
// its event id. Whoever claims it then notes the try that may have been made, so that the log has
// every request that the endpoint saw. A result is stored only under the fence of its claim, so a
// process that was taken for dead overwrites nothing.
//
// A slot is taken from the claim until the result is stored: that bounds goroutines, connections
// and results that wait for the store alike. One endpoint has a few of them, so that the others
// never wait for it.

const (
	claimFor = time.Minute
	// claimMargin is what must be left of a claim, beyond the time limit of a try, when the try begins.
	claimMargin = 10 * time.Second
	// drainLimit is how long tries that are under way may go on once Run's context ended.
	drainLimit = 5 * time.Second
	// storeLimit ends one transaction that stores results.
	storeLimit = 10 * time.Second
	storeBatch = 128
	// parked is how many claimed deliveries of an endpoint, as a multiple of PerEndpoint, may wait
	// here for a slot.
	waitingShare = 4
	// busyPutOff and strugglingPutOff are for how long deliveries beyond those leave the front of the queue.
	busyPutOff       = 2 * time.Second
	strugglingPutOff = time.Minute
	// claimPause is how long a claim waits for more slots while there is a backlog, so that it
	// takes many at once.
	claimPause = 10 * time.Millisecond
	// maxPause is the longest wait after claims that failed.
	maxPause = 30 * time.Second
)

// Run delivers until ctx ends, and returns nil when nothing of it runs any more: tries that are
// under way then get 5 s to end, and are given back to be sent again if they do not. Several
// processes may run it over one database, and one process several times. What goes wrong is logged.
func (s *Deliverer) Run(ctx context.Context) error {
	p := newPool(ctx, s)
	defer p.close()

	timer := time.NewTimer(0)
	defer timer.Stop()

	var pause time.Duration

	for ctx.Err() == nil {
		claimed, full, err := p.fill(ctx)
		wait := s.poll

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
			wait = 0 // there may be more, of other endpoints
		}

		timer.Reset(wait)

		for again := false; !again; {
			select {
			case <-ctx.Done():
				again = true
			case <-timer.C:
				again = true
			case <-s.wake:
				again = true
			case stored := <-p.stored:
				switch left := p.free(stored) && err == nil; {
				case left && full && p.active > s.concurrency/2:
					timer.Reset(claimPause)
				case left:
					again = true
				}
			}
		}
	}

	return nil
}

// Wake makes Run look for due deliveries at once. It is a hint: without it, they are found at the next poll.
func (s *Deliverer) Wake() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Step claims one batch of due deliveries and returns when all of them were tried and the results
// stored. did says that there were any. A process that delivers all the time calls Run instead,
// where nothing waits for the slowest.
func (s *Deliverer) Step(ctx context.Context) (did bool, err error) {
	p := newPool(ctx, s)

	claimed, _, err := p.fill(ctx)
	for p.active > 0 && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case stored := <-p.stored:
			p.free(stored)
		}
	}

	p.close()

	return claimed > 0, errors.Join(err, p.failed)
}

// pool is what is under way. Its fields belong to the goroutine that called Run or Step, but for
// the channels.
type pool struct {
	s *Deliverer
	// sending is the context of tries; it outlives that of Run by drainLimit.
	sending context.Context
	cut     context.CancelFunc
	results chan result   // from tries to the storer
	stored  chan []result // from the storer back
	running sync.WaitGroup

	active int            // slots taken
	busy   map[string]int // slots taken, by endpoint
	// waiting are claimed deliveries, by endpoint, that found its slots taken.
	waiting map[string][]webhook.Delivery
	// back are claimed deliveries that will not be sent under their claims: to be stored with the next claim.
	back []result
	// struggling are endpoints whose last try failed: they get one slot, so that many dead endpoints together
	// do not take them all.
	struggling map[string]bool

	failed error // belongs to the storer until close
}

func newPool(ctx context.Context, s *Deliverer) *pool {
	p := &pool{
		s:          s,
		results:    make(chan result, s.concurrency),
		stored:     make(chan []result, s.concurrency),
		busy:       make(map[string]int),
		waiting:    make(map[string][]webhook.Delivery),
		struggling: make(map[string]bool),
	}
	p.sending, p.cut = context.WithCancel(context.WithoutCancel(ctx))
	p.running.Go(p.storeAll)

	return p
}

// fill claims due deliveries for the free slots and starts those that may start. The others wait
// here, a few of each endpoint; more than that are put off, so that what one endpoint has due never
// hides what others have. full says that as many were claimed as there were free slots.
func (p *pool) fill(ctx context.Context) (claimed int, full bool, err error) {
	free := p.s.concurrency - p.active
	if free == 0 {
		return 0, false, nil
	}

	var due []webhook.Delivery

	err = p.s.db.Update(ctx, func(ctx context.Context, tx webhook.Tx) (err error) {
		now := p.s.stamp()
		// A claimant of its own for every claim: what this process has in flight counts as claimed
		// by somebody else.
		claimant := p.s.process + "/" + p.s.ids.Next()
		if due, err = tx.ClaimDeliveries(
			ctx, claimant, now, now.Add(claimFor), free, p.s.perEndpoint,
		); err != nil {
			return err
		}

		return noteLapsed(ctx, tx, due)
	})
	if err != nil {
		if ctx.Err() != nil {
			return 0, false, nil // stopped, not failed
		}

		return 0, false, fmt.Errorf("claim webhook deliveries: %w", err)
	}

	var starting []webhook.Delivery

	for _, d := range due {
		switch {
		case p.mayStart(d.EndpointID):
			p.take(d.EndpointID)
			starting = append(starting, d)
		case len(p.waiting[d.EndpointID]) < waitingShare*p.s.perEndpoint:
			p.waiting[d.EndpointID] = append(p.waiting[d.EndpointID], d)
		default:
			wait := busyPutOff
			if p.struggling[d.EndpointID] {
				wait = strugglingPutOff
			}

			p.back = append(p.back, result{claimed: d, kind: putOff, dueAt: p.s.stamp().Add(wait)})
		}
	}

	p.start(starting)

	full = len(due) == free
	if len(p.back) == 0 {
		return len(due), full, nil
	}

	back := p.back

	p.back = nil
	if err := p.s.record(p.sending, back); err != nil { // then they are due again when their claims lapse
		return len(due), false, fmt.Errorf("put webhook deliveries off: %w", err)
	}

	return len(due), full, nil
}

// noteLapsed writes into the logs of claimed deliveries the tries that were made under claims that
// lapsed, or may have been.
func noteLapsed(ctx context.Context, tx webhook.Tx, claimed []webhook.Delivery) error {
	var ds []*webhook.Delivery

	for i, d := range claimed {
		if !d.LapsedAt.IsZero() {
			claimed[i] = d.Interrupted(
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

func (p *pool) mayStart(endpointID string) bool {
	if p.struggling[endpointID] {
		return p.busy[endpointID] == 0
	}

	return p.busy[endpointID] < p.s.perEndpoint
}

// take takes a slot for a delivery to an endpoint.
func (p *pool) take(endpointID string) {
	p.active++
	p.busy[endpointID]++
}

// start sends deliveries that have their slots.
func (p *pool) start(ds []webhook.Delivery) {
	if len(ds) == 0 {
		return
	}

	p.running.Go(func() {
		for _, l := range p.s.load(p.sending, ds) {
			p.running.Go(func() { p.results <- p.s.deliver(p.sending, l) })
		}
	})
}

// free gives the slots of stored results to those who wait for them, and reports whether any is left over.
func (p *pool) free(stored []result) (left bool) {
	var starting []webhook.Delivery

	for _, r := range stored {
		endpointID := r.claimed.EndpointID

		p.active--
		if p.busy[endpointID]--; p.busy[endpointID] == 0 {
			delete(p.busy, endpointID)
		}

		if r.kind == tried {
			if r.attempt.Succeeded() {
				delete(p.struggling, endpointID)
			} else {
				p.struggling[endpointID] = true
			}
		}

		for p.active < p.s.concurrency && len(p.waiting[endpointID]) > 0 && p.mayStart(endpointID) {
			next := p.waiting[endpointID][0]
			if p.waiting[endpointID] = p.waiting[endpointID][1:]; len(p.waiting[endpointID]) == 0 {
				delete(p.waiting, endpointID)
			}

			if next.ClaimedUntil.Sub(p.s.now()) < p.s.timeout+claimMargin {
				p.back = append(p.back, result{claimed: next, kind: givenBack})
				continue
			}

			p.take(endpointID)

			starting = append(starting, next)
		}
	}

	p.start(starting)

	return len(starting) < len(stored)
}

// close ends all that is under way: tries get drainLimit to end by themselves and are cut short then.
// Deliveries that only waited are given back.
func (p *pool) close() {
	for _, waiting := range p.waiting {
		for _, d := range waiting {
			p.back = append(p.back, result{claimed: d, kind: givenBack})
		}
	}

	clear(p.waiting)

	for len(p.back) > 0 {
		select { // the storer may be waiting for us
		case p.results <- p.back[0]:
			p.take(p.back[0].claimed.EndpointID)
			p.back = p.back[1:]
		case stored := <-p.stored:
			p.free(stored)
		}
	}

	limit := time.AfterFunc(drainLimit, p.cut)
	for p.active > 0 {
		p.free(<-p.stored)
	}

	limit.Stop()
	close(p.results)
	p.running.Wait()
	p.cut()
	p.s.client.CloseIdleConnections()
}

// storeAll stores results as they come, all that are there in one transaction.
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

		p.stored <- batch
	}
}

// store stores results, again and again for a few seconds while the store is unavailable or
// contended; what refuses to be stored with the others is stored alone, so that one bad row takes
// none with it.
func (p *pool) store(batch []result) error {
	err := p.s.record(p.sending, batch)
	for wait := 100 * time.Millisecond; passing(err) && wait < storeLimit && p.rest(wait); wait *= 2 {
		err = p.s.record(p.sending, batch)
	}

	if err != nil && len(batch) > 1 && !passing(err) {
		err = nil
		for _, r := range batch {
			err = errors.Join(err, p.s.record(p.sending, []result{r}))
		}
	}

	return err
}

// passing reports whether an error may be gone after a while.
func passing(err error) bool {
	return errors.Is(err, fault.Unavailable) || errors.Is(err, fault.Conflict)
}

// rest waits, and reports false when the pool is cut short meanwhile.
func (p *pool) rest(wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()

	select {
	case <-timer.C:
		return true
	case <-p.sending.Done():
		return false
	}
}

package deliver

import (
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/webhook"
)

// This file shares the slots: by mode, then by account, then by endpoint.
//
// Test mode gets half of the slots. While a quarter of a mode's slots is free, an account may have a quarter
// of them. Beyond that it gets an equal share: the slots divided by the accounts that have or want slots,
// plus one. An endpoint's limit rises while it answers in time and more waits, and falls when it is slow.

// slowAnswer is how long an attempt may take before its endpoint gets fewer slots.
const slowAnswer = 4 * time.Second

// mayStart reports whether a delivery may take a slot.
func (p *pool) mayStart(d webhook.Delivery) bool { // spec D8.19
	if p.active >= p.s.concurrency || p.busy[d.EndpointID] >= p.limitOf(d.EndpointID) {
		return false
	}

	slots, taken := p.s.concurrency, p.active-p.tests
	if !d.Owner.Livemode {
		if p.testsFull() {
			return false
		}

		slots, taken = p.testSlots(), p.tests
	}

	// While many slots are free, nobody has to share.
	return taken < slots*3/4 && p.active < p.s.concurrency*3/4 &&
		p.owners[d.Owner] < max(slots/4, 1) ||
		p.owners[d.Owner] < max(slots/(p.accounts(d.Owner)+1), 1)
}

// testSlots returns how many slots test mode may have; testsFull reports that all of them are taken.
func (p *pool) testSlots() int  { return max(p.s.concurrency/2, 1) }
func (p *pool) testsFull() bool { return p.tests >= p.testSlots() }

// accounts counts the accounts of an owner's mode that have or want slots, the owner included.
func (p *pool) accounts(of event.Owner) int {
	n := 0

	for owner := range p.owners {
		if owner.Livemode == of.Livemode && owner != of {
			n++
		}
	}

	for owner := range p.queued {
		if owner.Livemode == of.Livemode && owner != of && p.owners[owner] == 0 {
			n++
		}
	}

	return n + 1
}

// limitOf returns how many slots an endpoint may have.
func (p *pool) limitOf(endpointID string) int {
	if p.backingOff[endpointID] {
		return 1
	}

	if limit, ok := p.limits[endpointID]; ok {
		return limit
	}

	return p.s.perEndpoint
}

// adapt changes an endpoint's limit after an attempt.
func (p *pool) adapt(r result) {
	endpointID := r.claimed.EndpointID
	limit := p.limitOf(endpointID)

	switch took := time.Duration(r.attempt.DurationMS) * time.Millisecond; {
	case !AttemptSucceeded(r.attempt):
		p.backingOff[endpointID] = true
		delete(p.limits, endpointID)

		return
	case took > slowAnswer:
		limit = max(limit/2, p.s.perEndpoint)
	case p.busy[endpointID]+1 >= limit:
		limit = min(limit+1, p.s.maxEndpoint)
	}

	delete(p.backingOff, endpointID)

	if p.limits[endpointID] = limit; limit == p.s.perEndpoint {
		delete(p.limits, endpointID)
	}
}

// take takes a slot for a delivery.
func (p *pool) take(d webhook.Delivery) {
	p.active++
	p.busy[d.EndpointID]++
	p.owners[d.Owner]++

	if !d.Owner.Livemode {
		p.tests++
	}
}

// giveBack gives a delivery's slot back.
func (p *pool) giveBack(d webhook.Delivery) {
	p.active--
	decrement(p.busy, d.EndpointID)
	decrement(p.owners, d.Owner)

	if !d.Owner.Livemode {
		p.tests--
	}
}

func decrement[K comparable](counts map[K]int, key K) {
	if counts[key]--; counts[key] == 0 {
		delete(counts, key)
	}
}

// enqueue makes a claimed delivery wait for a slot.
func (p *pool) enqueue(d webhook.Delivery) {
	if len(p.waiting[d.EndpointID]) == 0 {
		p.turns = append(p.turns, d.EndpointID)
	}

	p.waiting[d.EndpointID] = append(p.waiting[d.EndpointID], d)
	p.queued[d.Owner]++
}

// refill takes free slots for waiting deliveries: live ones first, and one of each endpoint in turn.
func (p *pool) refill() (starting []webhook.Delivery) {
	for _, live := range []bool{true, false} {
		for began := true; began && p.active < p.s.concurrency; {
			began = false

			for range len(p.turns) {
				endpointID := p.turns[0]
				p.turns = p.turns[1:]
				next := p.waiting[endpointID][0]

				if next.Owner.Livemode == live && p.mayStart(next) {
					began = true

					p.dequeue(endpointID)

					if next.ClaimedUntil.Sub(p.s.now()) < p.s.timeout+claimMargin {
						p.unsent = append(p.unsent, result{claimed: next, kind: givenBack})
					} else {
						p.take(next)
						starting = append(starting, next)
					}
				}

				if len(p.waiting[endpointID]) > 0 {
					p.turns = append(p.turns, endpointID)
				}
			}
		}
	}

	return starting
}

// dequeue removes the first waiting delivery of an endpoint.
func (p *pool) dequeue(endpointID string) {
	decrement(p.queued, p.waiting[endpointID][0].Owner)

	if p.waiting[endpointID] = p.waiting[endpointID][1:]; len(p.waiting[endpointID]) == 0 {
		delete(p.waiting, endpointID)
	}
}

package deliver

import (
	"cmp"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/webhook"
)

// This file holds the backlog of this process: what it claimed and did not send yet.

const (
	// backlogPace is how often a pool publishes its backlog.
	backlogPace = time.Second
	// backlogLimit is the most accounts that Backlogs lists.
	backlogLimit = 100
	// putOffShown is how long Backlogs shows that deliveries were put off.
	putOffShown = 10 * time.Second
)

// backlog is what a pool published last.
type backlog struct {
	at       time.Time
	accounts []accountBacklog
}

type accountBacklog struct {
	health.Backlog
	dueAt time.Time // of the oldest that waits; zero when none does
}

// Backlogs returns the backlog of each account, oldest first, up to 100, and the sum of all. It is at most
// about a second old while Run works; without Run there is none.
func (s *Deliverer) Backlogs() (accounts []health.Backlog, all health.Backlog) {
	now := s.now()
	published := s.backlog.Load()

	if published == nil {
		return nil, health.Backlog{}
	}

	for _, a := range published.accounts {
		if !a.dueAt.IsZero() {
			a.Age = max(now.Sub(a.dueAt), 0)
		}

		all.Waiting += a.Waiting
		all.InFlight += a.InFlight
		all.More = all.More || a.More
		all.Age = max(all.Age, a.Age)

		accounts = append(accounts, a.Backlog)
	}

	slices.SortFunc(accounts, func(a, b health.Backlog) int {
		return cmp.Or(cmp.Compare(b.Age, a.Age), cmp.Compare(a.AccountID, b.AccountID))
	})

	return accounts[:min(len(accounts), backlogLimit)], all
}

// publish publishes the pool's backlog, at most every backlogPace.
func (p *pool) publish() {
	now := p.s.now()

	last := p.s.backlog.Load()
	if last != nil && !now.Before(last.at) && now.Sub(last.at) < backlogPace {
		return
	}

	of := map[event.Owner]*accountBacklog{}
	entry := func(owner event.Owner) *accountBacklog {
		if of[owner] == nil {
			of[owner] = &accountBacklog{
				Backlog: health.Backlog{AccountID: owner.AccountID, Livemode: owner.Livemode},
			}
		}

		return of[owner]
	}

	for owner, n := range p.owners {
		entry(owner).InFlight = n
	}

	for _, waiting := range p.waiting {
		for _, d := range waiting {
			a := entry(d.Owner)
			a.Waiting++

			if dueAt := firstDue(d); a.dueAt.IsZero() || dueAt.Before(a.dueAt) {
				a.dueAt = dueAt
			}
		}
	}

	for owner, at := range p.putOff {
		if now.Sub(at) > putOffShown {
			delete(p.putOff, owner)
			continue
		}

		entry(owner).More = true
	}

	fresh := &backlog{at: now}
	for _, a := range of {
		fresh.accounts = append(fresh.accounts, *a)
	}

	p.s.backlog.Store(fresh)
}

// firstDue returns since when a delivery is due. One that was never tried is due since it was made, however often
// it was put off.
func firstDue(d webhook.Delivery) time.Time {
	if d.Attempts == 0 {
		return d.CreatedAt
	}

	return d.NextAttemptAt
}

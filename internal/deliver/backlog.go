package deliver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/webhook"
)

// This file holds the backlog: the due deliveries in the store, and those that this process claimed but did
// not send.

const (
	// backlogPace is how often a pool publishes its backlog.
	backlogPace = time.Second
	// backlogLimit is the most accounts that Backlogs lists.
	backlogLimit = 100
	// countPace is how often due deliveries are counted. countShare is the largest share of a connection's
	// time that counting takes, and countLimit the longest time of one count.
	countPace  = 15 * time.Second
	countShare = 20
	countLimit = 30 * time.Second
)

// counted holds the number of due deliveries in the store.
type counted struct {
	at   time.Time
	next time.Time
	of   []webhook.Backlog
}

// Count counts the due deliveries in the store, for Backlogs, if it is time. Without Config.Backlog it does
// nothing.
func (s *Deliverer) Count(ctx context.Context) error {
	now := s.now()
	if last := s.due.Load(); s.count == nil || last != nil && !now.Before(last.at) && now.Before(last.next) {
		return nil
	}

	ctx, cancel := context.WithTimeout(ctx, countLimit)
	defer cancel()

	of, err := s.count.Backlogs(ctx, s.stamp())
	if err != nil {
		return fmt.Errorf("counting the webhooks that are due: %w", err)
	}

	took := s.now().Sub(now)
	s.due.Store(&counted{at: now, next: now.Add(max(countPace, countShare*took)), of: of})

	return nil
}

// backlog is the state that a pool published last.
type backlog struct {
	at       time.Time
	accounts []accountBacklog
}

type accountBacklog struct {
	health.Backlog
	dueAt time.Time // since when the oldest waiting delivery is due; zero if none waits
}

// Backlogs returns the backlog of each account, oldest first, up to 100, and the sum of all. The part that
// this process claimed is at most about a second old while Run works; without Run there is none. dueAt is
// when the due deliveries were last counted.
func (s *Deliverer) Backlogs() (accounts []health.Backlog, all health.Backlog, dueAt time.Time) {
	of := map[event.Owner]accountBacklog{}

	if published := s.backlog.Load(); published != nil {
		for _, a := range published.accounts {
			of[event.Owner{AccountID: a.AccountID, Livemode: a.Livemode}] = a
		}
	}

	if due := s.due.Load(); due != nil {
		dueAt = due.at
		for _, b := range due.of {
			of[b.Owner] = of[b.Owner].with(b)
		}
	}

	now := s.now()

	for _, a := range of {
		if !a.dueAt.IsZero() {
			a.Age = max(now.Sub(a.dueAt), 0)
		}

		all.Due += a.Due
		all.Waiting += a.Waiting
		all.InFlight += a.InFlight
		all.Age = max(all.Age, a.Age)

		accounts = append(accounts, a.Backlog)
	}

	slices.SortFunc(accounts, func(a, b health.Backlog) int {
		return cmp.Or(
			cmp.Compare(b.Age, a.Age),
			cmp.Compare(a.AccountID, b.AccountID),
			cmp.Compare(fmt.Sprint(b.Livemode), fmt.Sprint(a.Livemode)),
		)
	})

	return accounts[:min(len(accounts), backlogLimit)], all, dueAt
}

// with returns the backlog with the due deliveries that the store counted for it.
func (a accountBacklog) with(b webhook.Backlog) accountBacklog {
	a.AccountID, a.Livemode, a.Due = b.Owner.AccountID, b.Owner.Livemode, b.Due

	if a.dueAt.IsZero() || b.Since.Before(a.dueAt) {
		a.dueAt = b.Since
	}

	return a
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

			if dueAt, _ := d.DueSince(now); a.dueAt.IsZero() || dueAt.Before(a.dueAt) {
				a.dueAt = dueAt
			}
		}
	}

	fresh := &backlog{at: now}
	for _, a := range of {
		fresh.accounts = append(fresh.accounts, *a)
	}

	p.s.backlog.Store(fresh)
}

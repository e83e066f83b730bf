package deliver

import (
	"context"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/hostcall"
	"github.com/seed-8ee7f392/payments/webhook"
)

// This file holds the slots of deliveries in flight.
//
// A slot is taken from the claim until the storer takes the result. That bounds goroutines and connections.
// It also bounds the results that wait for the store: one per slot, and one batch. One endpoint has a few
// slots, so that the others never wait for it.

// pool is the set of deliveries in flight. Its fields, except the channels, belong to the goroutine that
// called Run or Step.
type pool struct {
	s *Deliverer
	// sending is the context of attempts. It outlives the context of Run by drainLimit.
	sending context.Context
	cut     context.CancelFunc
	results chan result   // from attempts to the storer
	storing bool          // the storer runs
	taken   chan []result // from the storer back, before it stores them
	running sync.WaitGroup

	active int                 // slots taken
	busy   map[string]int      // slots taken, by endpoint
	owners map[event.Owner]int // slots taken, by account and mode
	tests  int                 // slots taken in test mode
	// limits are the slots of endpoints that have answered, if they differ from Policy.PerEndpoint.
	limits map[string]int
	// turns are the endpoints of waiting, in the order in which they get slots.
	turns []string
	// queued counts waiting deliveries by account and mode.
	queued map[event.Owner]int
	// waiting are the claimed deliveries, by endpoint, that may not start yet.
	waiting map[string][]webhook.Delivery
	// unsent are claimed deliveries that are not sent under their claims. They are stored with the next
	// claim.
	unsent []result
	// backingOff are the endpoints whose last attempt failed. They get one slot each, so that many
	// dead endpoints together do not take them all.
	backingOff map[string]bool

	failed error // belongs to the storer until close
}

func newPool(ctx context.Context, s *Deliverer) *pool {
	p := &pool{
		s:          s,
		results:    make(chan result, s.concurrency),
		taken:      make(chan []result, s.concurrency),
		busy:       make(map[string]int),
		owners:     make(map[event.Owner]int),
		limits:     make(map[string]int),
		queued:     make(map[event.Owner]int),
		waiting:    make(map[string][]webhook.Delivery),
		backingOff: make(map[string]bool),
	}
	p.sending, p.cut = context.WithCancel(context.WithoutCancel(ctx))

	return p
}

// startStorer starts the storer with the first delivery: mostly there are none.
func (p *pool) startStorer() {
	if !p.storing {
		p.storing = true
		p.running.Go(p.storeAll)
	}
}

// start sends deliveries that have taken their slots.
func (p *pool) start(ds []webhook.Delivery) {
	if len(ds) == 0 {
		return
	}

	p.startStorer()
	p.running.Go(func() {
		for _, l := range p.load(ds) {
			p.running.Go(func() { p.results <- p.deliver(l) })
		}
	})
}

// load is Deliverer.load on a goroutine: a panic, such as one in the host's store, is the error of each
// delivery.
func (p *pool) load(ds []webhook.Delivery) (all []loaded) {
	err := hostcall.Catch(p.sending, p.s.log, "loading webhook deliveries", func() error {
		all = p.s.load(p.sending, ds)
		return nil
	})
	if err != nil {
		for _, d := range ds {
			all = append(all, loaded{Delivery: d, err: err})
		}
	}

	return all
}

// deliver is Deliverer.deliver on a goroutine: a panic, such as one in the host's entropy, is the delivery's
// error.
func (p *pool) deliver(l loaded) (r result) {
	err := hostcall.Catch(p.sending, p.s.log, "sending a webhook delivery", func() error {
		r = p.s.deliver(p.sending, l)
		return nil
	})
	if err != nil {
		l.err = err
		r = p.s.deliver(p.sending, l) // a delivery with an error is not sent
	}

	return r
}

// free gives the slots of results that the storer took to waiting deliveries, and reports whether slots
// remain free.
func (p *pool) free(taken []result) (left bool) {
	for _, r := range taken {
		p.giveBack(r.claimed)

		if r.kind == tried {
			p.adapt(r)
		}
	}

	starting := p.refill()
	p.start(starting)

	return len(starting) < len(taken)
}

// close stops all deliveries in flight: attempts get drainLimit to end, and are then canceled. Deliveries
// that only waited are released.
func (p *pool) close() {
	for _, waiting := range p.waiting {
		for _, d := range waiting {
			p.unsent = append(p.unsent, result{claimed: d, kind: givenBack})
		}
	}

	clear(p.waiting)
	p.turns = nil

	if len(p.unsent) > 0 {
		p.startStorer()
	}

	for len(p.unsent) > 0 {
		select { // the storer may be waiting for us
		case p.results <- p.unsent[0]:
			p.take(p.unsent[0].claimed)
			p.unsent = p.unsent[1:]
		case taken := <-p.taken:
			p.free(taken)
		}
	}

	limit := time.AfterFunc(drainLimit, p.cut)
	for p.active > 0 {
		p.free(<-p.taken)
	}

	limit.Stop()
	close(p.results)
	p.running.Wait()
	p.cut()
	p.s.backlog.Store(nil)
	p.s.client.CloseIdleConnections()
}

package engine

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/invoice"
)

// pollStreams is how often watched invoices are read without a wake-up. It is the longest delay until a
// change by another process is seen.
const pollStreams = time.Second

// Watch yields an invoice now and after every change of it, until ctx ends or the caller stops. A pending
// invoice is also yielded at every new block of its network, so that confirmations can be counted.
// One poller per process feeds all streams with one query.
func (e *Engine) Watch(ctx context.Context, invoiceID string) iter.Seq2[invoice.Invoice, error] {
	return func(yield func(invoice.Invoice, error) bool) {
		s := e.streams.open(invoiceID)
		defer e.streams.close(s)

		if !e.begin(ctx, s, yield) {
			return
		}

		for {
			select {
			case <-ctx.Done():
				return
			case inv := <-s.news:
				if !pass(yield, inv) {
					return
				}
			}
		}
	}
}

// begin yields a stream's first invoice and reports whether the stream goes on. It is a separate function so
// that a waiting stream keeps no invoice on its stack.
func (e *Engine) begin(ctx context.Context, s *stream, yield func(invoice.Invoice, error) bool) bool {
	inv, err := e.Invoices.GetByID(ctx, s.invoiceID)
	if !yield(inv, err) || err != nil {
		return false
	}

	s.mark(&inv, 0)

	return true
}

// pass yields an invoice, in a function of its own for the same reason.
//
//go:noinline
func pass(yield func(invoice.Invoice, error) bool, inv *invoice.Invoice) bool {
	return yield(*inv, nil)
}

// streams is the set of open streams and their poller, which runs while at least one is open.
type streams struct {
	engine *Engine
	nudge  chan struct{}

	mu      sync.Mutex
	readers map[*stream]struct{}
	stop    context.CancelFunc
	stopped chan struct{}
}

// stream is one open Watch.
type stream struct {
	invoiceID string
	news      chan *invoice.Invoice // holds the newest state only; shared, so only read

	mu      sync.Mutex
	version int64
	tip     uint64
}

// isNews reports whether the reader has not received this version of an invoice, or this tip (height) of a
// pending one. The first tip is not news.
func (s *stream) isNews(inv *invoice.Invoice, tip uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.tip == 0 {
		s.tip = tip
	}

	return inv.Version > s.version || inv.Status == invoice.Pending && tip > s.tip
}

// mark stores the version and the tip (height) that the reader receives.
func (s *stream) mark(inv *invoice.Invoice, tip uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.version, s.tip = max(s.version, inv.Version), max(s.tip, tip)
}

// offer replaces a state that the reader has not received yet.
func (s *stream) offer(inv *invoice.Invoice) {
	for {
		select {
		case s.news <- inv:
			return
		default:
		}

		select {
		case <-s.news:
		default:
		}
	}
}

func (s *streams) open(invoiceID string) *stream {
	s.mu.Lock()
	defer s.mu.Unlock()

	st := &stream{invoiceID: invoiceID, news: make(chan *invoice.Invoice, 1)}

	if len(s.readers) == 0 {
		s.readers = map[*stream]struct{}{}
		s.nudge, s.stopped = make(chan struct{}, 1), make(chan struct{})
		ctx, cancel := context.WithCancel(context.Background())

		s.stop = cancel
		go s.poll(ctx, s.nudge, s.stopped)
	}

	s.readers[st] = struct{}{}

	return st
}

// close ends a stream. With the last one it stops the poller and waits until it has ended.
func (s *streams) close(st *stream) {
	s.mu.Lock()
	delete(s.readers, st)

	if len(s.readers) > 0 {
		s.mu.Unlock()
		return
	}

	stop, stopped := s.stop, s.stopped
	s.nudge = nil
	s.mu.Unlock()
	stop()
	<-stopped
}

func (s *streams) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()

	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

func (s *streams) poll(ctx context.Context, nudge <-chan struct{}, stopped chan<- struct{}) {
	defer close(stopped)

	tick := time.NewTicker(pollStreams)
	defer tick.Stop()

	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-nudge:
		}

		s.feed(ctx)
	}
}

// feed reads every watched invoice once and offers the changed ones.
func (s *streams) feed(ctx context.Context) {
	s.mu.Lock()

	byID := make(map[string][]*stream, len(s.readers))
	for st := range s.readers {
		byID[st.invoiceID] = append(byID[st.invoiceID], st)
	}
	s.mu.Unlock()

	ids := make([]string, 0, len(byID))
	for id := range byID {
		ids = append(ids, id)
	}

	e := s.engine

	invoices, err := e.config.Store.InvoicesByID(ctx, ids)
	if err != nil {
		if ctx.Err() == nil {
			e.config.Log.WarnContext(ctx, "live invoices could not be read; trying again", "error", err)
		}

		return
	}

	tips := map[string]uint64{}

	for i := range invoices {
		inv := &invoices[i]

		var tip uint64

		if o := inv.Option(inv.SelectedOptionID); inv.Status == invoice.Pending && o != nil {
			if _, known := tips[o.Network]; !known {
				tips[o.Network], _ = e.Tip(ctx, o.Network)
			}

			tip = tips[o.Network]
		}

		e.offer(ctx, *inv, tip, byID[inv.ID])
	}
}

// offer gives an invoice to the streams for which it is news, once its addresses are verified.
func (e *Engine) offer(ctx context.Context, inv invoice.Invoice, tip uint64, all []*stream) {
	news := slices.DeleteFunc(all, func(st *stream) bool { return !st.isNews(&inv, tip) })
	if len(news) == 0 {
		return
	}

	inv, err := e.Invoices.Shown(ctx, inv)
	if err != nil {
		if ctx.Err() == nil {
			e.config.Log.WarnContext(
				ctx, "a live invoice is not shown; trying again", "invoice", inv.ID, "error", err,
			)
		}

		return
	}

	for _, st := range news {
		st.mark(&inv, tip)
		st.offer(&inv)
	}
}

package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/seed-8ee7f392/payments/internal/hostcall"
)

// This file holds wake-ups: hints about new work of some kinds. They go to the workers of this process that
// do it, and to other processes. If a hint is lost, polling finds the work.

// kinds are kinds of work, as a set of bits.
type kinds uint8

const (
	reading    kinds = 1 << iota // networks: a stopped one was resumed, or a range waits to be read
	retrying                     // transactions that a hint named, or that could not be read
	settling                     // settlements to release
	sending                      // transactions of our own
	delivering                   // webhooks
	showing                      // invoices that are watched

	everything = reading | retrying | settling | sending | delivering | showing
)

// wakeUp holds the kinds of work that a commit made, by network; "" stands for all networks.
type wakeUp map[string]kinds

// add adds kinds on a network.
func (w *wakeUp) add(network string, k kinds) {
	if *w == nil {
		*w = wakeUp{}
	}

	(*w)[network] |= k
}

// all returns the kinds without their networks.
func (w wakeUp) all() (k kinds) {
	for _, some := range w {
		k |= some
	}

	return k
}

// on returns the kinds on a network. A worker without a network has the name "".
func (w wakeUp) on(network string) kinds {
	if network == "" {
		return w.all()
	}

	return w[network] | w[""]
}

const (
	// maxProcess is the longest process name in bytes: with the kinds before it, it fits into a wake-up.
	maxProcess = 190
	// wakeGap is the least time between two wake-ups that this process publishes, and between two that it
	// handles. A burst of commits makes one hint; a single hint is handled at once.
	wakeGap = 50 * time.Millisecond
	// wakeTimeout bounds the publishing of one wake-up.
	wakeTimeout = 5 * time.Second
)

// wakes holds the workers to wake in this process and the publishing of wake-ups to other processes.
type wakes struct {
	// delivering and showing wake the workers that deliver webhooks and show invoices.
	delivering, showing func()

	mu      sync.Mutex
	workers []*sleeper
	// stopPublishing stops the publishing goroutine; published is closed when it has ended. Both are nil if
	// there is none. pending are the kinds that wait to be published.
	stopPublishing context.CancelFunc
	published      chan struct{}
	pending        kinds
}

// sleeper is a worker that is woken when there is work of its kinds on its network.
type sleeper struct {
	kinds   kinds
	network string
	wake    chan struct{}
}

// Wake wakes every worker of this process that does work which others create, and publishes a wake-up to
// other processes through Config.Waker. It does not wait for either. A host calls it after it has committed a
// transaction in which it used UpdateIn.
func (e *Engine) Wake() {
	e.wake(wakeUp{"": everything})
}

// wake wakes the workers for the work that a commit made, here and in other processes.
func (e *Engine) wake(w wakeUp) {
	if len(w) == 0 {
		return
	}

	e.wakeHere(w)
	e.publishWake(e.wakes.forOthers(w))
}

// forOthers returns the kinds for which other processes are woken. They help with this process's own work at
// their next poll: if each commit woke all processes, they would look for the same work and race for it.
func (w *wakes) forOthers(made wakeUp) (k kinds) {
	w.mu.Lock()
	defer w.mu.Unlock()

	for network, some := range made {
		for _, worker := range w.workers {
			if network != "" && worker.network == network {
				some &^= worker.kinds & (sending | settling)
			}
		}

		if len(w.workers) > 0 { // the deliverer runs in this process as well
			some &^= delivering
		}

		k |= some
	}

	return k
}

// wakeHere wakes workers of this process only.
func (e *Engine) wakeHere(w wakeUp) {
	if w.all()&showing != 0 {
		e.wakes.showing()
	}

	if w.all()&delivering != 0 {
		e.wakes.delivering()
	}

	e.wakes.mu.Lock()
	defer e.wakes.mu.Unlock()

	for _, worker := range e.wakes.workers {
		if w.on(worker.network)&worker.kinds == 0 {
			continue
		}

		select {
		case worker.wake <- struct{}{}:
		default:
		}
	}
}

func (w *wakes) subscribe(k kinds, network string) *sleeper {
	w.mu.Lock()
	defer w.mu.Unlock()

	s := &sleeper{k, network, make(chan struct{}, 1)}
	w.workers = append(w.workers, s)

	return s
}

func (w *wakes) unsubscribe(s *sleeper) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.workers = slices.DeleteFunc(w.workers, func(other *sleeper) bool { return other == s })
}

// publishWake schedules a wake-up of the other processes for some kinds of work, on any network. Its
// goroutine runs only while a wake-up is pending, so that a process that serves requests without Run also
// publishes.
func (e *Engine) publishWake(k kinds) {
	if e.config.Waker == nil {
		return
	}

	e.wakes.mu.Lock()
	defer e.wakes.mu.Unlock()

	e.wakes.pending |= k
	if e.wakes.published == nil {
		ctx, cancel := context.WithCancel(context.Background())

		e.wakes.stopPublishing, e.wakes.published = cancel, make(chan struct{})
		go e.publishWakes(ctx)
	}
}

func (e *Engine) publishWakes(ctx context.Context) {
	for {
		k, more := e.wakes.more(ctx)
		if !more {
			return
		}

		limited, cancel := context.WithTimeout(ctx, wakeTimeout)
		err := hostcall.Catch(limited, e.config.Log, "Waker.Wake", func() error {
			return e.config.Waker.Wake(limited, note(k, e.config.Process))
		})

		cancel()

		pause := wakeGap

		if err != nil && ctx.Err() == nil {
			e.config.Log.WarnContext(
				ctx, "other processes were not told of work; they find it when they poll",
				"error", err,
			)

			pause = wakeTimeout
		}

		sleep(ctx, pause)
	}
}

// more returns the kinds that wait to be published. If there are none, or ctx has ended, it marks publishing
// as stopped.
func (w *wakes) more(ctx context.Context) (pending kinds, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()

	pending, w.pending = w.pending, 0
	if pending != 0 && ctx.Err() == nil {
		return pending, true
	}

	w.stopPublishing()
	close(w.published)
	w.stopPublishing, w.published = nil, nil

	return 0, false
}

// note returns the text of a wake-up for other processes: the kinds in hexadecimal, and the process that made
// the work.
func note(k kinds, process string) string { return fmt.Sprintf("%02x:%s", uint8(k), process) }

// readNote parses the text of a wake-up. An unreadable one, such as one of another version, stands for all
// kinds.
func readNote(text string) (k kinds, process string) {
	digits, process, _ := strings.Cut(text, ":")

	read, err := strconv.ParseUint(digits, 16, 8)
	if err != nil {
		return everything, ""
	}

	return kinds(read), process
}

// stop stops publishing and waits until its goroutine has ended.
func (w *wakes) stop() {
	w.mu.Lock()

	published := w.published
	if published != nil {
		w.stopPublishing()
	}
	w.mu.Unlock()

	if published != nil {
		<-published
	}
}

// listen handles the wake-ups of other processes until ctx ends, and reconnects when the connection is lost.
func (e *Engine) listen(ctx context.Context) {
	received := make(chan struct{}, 1)

	var (
		followed sync.WaitGroup
		of       atomic.Uint32 // the kinds that were received and not yet handled
	)

	followed.Go(func() {
		for range received {
			e.wakeHere(wakeUp{"": kinds(of.Swap(0))})
			sleep(ctx, wakeGap)
		}
	})
	defer followed.Wait()
	defer close(received)

	pause := backoff.NewExponentialBackOff()
	pause.InitialInterval, pause.MaxInterval = minPace, maxPace

	for {
		err := hostcall.Catch(ctx, e.config.Log, "Waker.Wakes", func() error {
			return e.config.Waker.Wakes(ctx, func(text string) {
				k, from := readNote(text)
				if from == e.config.Process {
					return
				}

				pause.Reset()
				of.Or(uint32(k))

				select {
				case received <- struct{}{}:
				default:
				}
			})
		})
		if ctx.Err() != nil {
			return
		}

		retryIn := pause.NextBackOff()
		e.config.Log.WarnContext(
			ctx, "wake-ups of other processes are not heard; polling goes on",
			"again_in", retryIn.Round(time.Millisecond), "error", err,
		)

		if !sleep(ctx, retryIn) {
			return
		}
	}
}

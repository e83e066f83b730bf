package simulation

import (
	"bytes"
	"log/slog"
	"time"

	"github.com/seed-8ee7f392/payments"
	internal "github.com/seed-8ee7f392/payments/internal/engine"
	"github.com/seed-8ee7f392/payments/internal/testing/crashtest"
	"github.com/seed-8ee7f392/payments/store"
)

// process is one process of the service: an engine with a clock, connections and nodes of its own.
type process struct {
	harness *harness
	index   int
	engine  *payments.Engine
	crash   crashtest.Process
	nodes   []*node // by network

	// without is the network that it does not serve; "" for none.
	without string

	// offset is how far its clock is from the true time.
	offset time.Duration

	// stoppedUntil is until when it does not run (SIGSTOP); zero when it runs.
	stoppedUntil time.Time

	// storeFaults are what happens to its next updates.
	storeFaults []storeFault

	// failingReads is the number of its next reads of the store that fail, storeDelay how long its updates take.
	failingReads int
	storeDelay   time.Duration

	// signer is how the signer answers it.
	signer signerState
}

func (p *process) now() time.Time { return p.harness.clock.now().Add(p.offset) }

func (p *process) nextStoreFault() storeFault {
	if len(p.storeFaults) == 0 {
		return noStoreFault
	}

	next := p.storeFaults[0]
	p.storeFaults = p.storeFaults[1:]

	return next
}

// reading returns a store whose reads by this process fail as the plan has it.
func (p *process) reading(s store.Store) store.Store {
	intercepting := s.(interface {
		Intercept(before func() error) store.Store
	})

	return intercepting.Intercept(func() error {
		if p.failingReads == 0 {
			return nil
		}

		p.failingReads--

		return storeDown()
	})
}

// boot starts the process over what is stored, in place of the one that was killed.
func (p *process) boot() {
	w := p.harness
	p.crash.Next()
	p.crash.Arm(0, false)

	var drivers []payments.ChainDriver

	fees := map[string]string{}

	for i, n := range w.networks {
		if n.slug() != p.without {
			drivers, fees[n.slug()] = append(drivers, p.nodes[i].driver()), string(n.feeAddress())
		}
	}

	engine, err := payments.New(payments.Config{
		Store:        connection{p.reading(w.store), p},
		Drivers:      drivers,
		Signer:       signerOf{w.signer, p},
		Rates:        w.feed,
		BaseURL:      "https://pay.example.com",
		SecretKey:    bytes.Repeat([]byte{7}, 32),
		FeeAddresses: fees,
		Log:          w.log,
		Now:          p.now,
		Entropy:      w.entropy,
		Epoch:        w.epoch,
	})
	if err != nil {
		panic("simulation: " + err.Error())
	}

	internal.Of(engine).Deliverer.Simulate(w.receivers, 1)
	p.engine = engine
}

// alive returns the process's engine, of a new process when the last one was killed.
func (p *process) alive() *payments.Engine {
	if p.crash.Dead() {
		p.harness.account.count("process restarted")
		p.boot()
	}

	p.harness.running = p

	return p.engine
}

// runs reports whether the process is not stopped.
func (p *process) runs() bool { return !p.harness.clock.now().Before(p.stoppedUntil) }

// healthy reports whether nothing is wrong with the process, its clock, its store and its nodes.
func (p *process) healthy() bool {
	for _, n := range p.nodes {
		if n.troubled() {
			return false
		}
	}

	return p.runs() && !p.crash.Dead() && p.offset == 0 && len(p.storeFaults) == 0 &&
		p.failingReads == 0 && p.storeDelay == 0 && p.signer == signs
}

// step has the engine do one batch of each kind of work. What fails is tried again by later steps.
func (p *process) run() {
	if !p.runs() {
		return
	}

	defer func(before *process) { p.harness.running = before }(p.harness.running)

	e, asked := p.alive(), p.harness.receivers.asked
	_, err := e.Step(p.harness.ctx)
	p.harness.account.failed(err)

	if p.harness.receivers.asked > asked {
		p.deliver(e)
	}

	p.harness.oracle.stepped(p)
}

// deliver sends the webhooks that are due, up to maxDeliveries.
func (p *process) deliver(e *payments.Engine) {
	for range maxDeliveries {
		if did, err := internal.Of(e).Deliverer.Step(p.harness.ctx); err != nil || !did {
			break
		}
	}
}

// maxDeliveries is the number of webhooks that one step sends at most, beyond the engine's one.
const maxDeliveries = 20

// discard is the log of a quiet run.
var discard = slog.New(slog.DiscardHandler)

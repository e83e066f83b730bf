package evm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/fault"
)

// failureKind says why an endpoint gave no usable answer.
type failureKind string

const (
	unreachable failureKind = "unreachable"
	throttled   failureKind = "throttled"
	tooMuch     failureKind = "too much"
	garbled     failureKind = "garbled"
)

// failure is an endpoint without a usable answer: another endpoint, or a later time, may have one.
type failure struct {
	host       string
	kind       failureKind
	what       string
	retryAfter time.Duration
}

func (f *failure) Error() string { return fmt.Sprintf("node %s: %s (%s)", f.host, f.what, f.kind) }

// refusal is a node's JSON-RPC error in answer to one call.
type refusal struct {
	host, method string
	code         int
	message      string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("node %s refused %s: %s (code %d)", r.host, r.method, r.message, r.code)
}

// The JSON-RPC codes that are acted on. Sources: JSON-RPC 2.0, section 5.1; EIP-1474; EIP-4444 as
// go-ethereum answers it.
const (
	codeReverted    = 3
	codePruned      = 4444
	codeNoMethod    = -32601
	codeUnsupported = -32004
	codeLimit       = -32005
)

func (r *refusal) throttles() bool { return r.code == codeLimit || r.code == 429 }
func (r *refusal) noMethod() bool  { return r.code == codeNoMethod || r.code == codeUnsupported }

var (
	// errLagging: the endpoint has not reached the height asked for.
	errLagging = errors.New("the node has not reached that height")
	// errPruned: the endpoint has thrown the height away.
	errPruned = errors.New("the node no longer has that height")
)

// mismatch is an endpoint of another network.
type mismatch struct {
	host      string
	want, got uint64
}

func (m *mismatch) Error() string {
	return fmt.Sprintf("node %s serves chain id %d, not %d", m.host, m.got, m.want)
}

// ask runs f against one endpoint after another, the fittest first, until one answers; then again after a
// pause, as often as configured. An endpoint is only asked once its chain id is known to be right, and
// not for a height above its tip (need; 0 asks for none). An error of f that carries a fault word other
// than Unavailable is an answer and is returned as it is; errors.Is finds errLagging when every endpoint
// that answers is behind.
func (d *Driver) ask(ctx context.Context, need uint64, f func(context.Context, *endpoint) error) error {
	return d.askRounds(ctx, d.attempts, need, f)
}

func (d *Driver) askRounds(ctx context.Context, rounds int, need uint64, f func(context.Context, *endpoint) error) error {
	pause := backoff.ExponentialBackOff{
		InitialInterval: 250 * time.Millisecond, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: 5 * time.Second,
	}
	for round := 1; ; round++ {
		var t tally
		for _, e := range d.ranked(need) {
			err := d.askOne(ctx, e, need, f)
			if err == nil || decided(err) {
				return err
			}
			if ctx.Err() != nil {
				return d.asFault(ctx.Err())
			}
			t.add(err)
		}
		wait := max(pause.NextBackOff(), t.retryAfter)
		if t.settled() || round >= rounds || wait > 10*time.Second {
			return d.asFault(t.verdict())
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return d.asFault(ctx.Err())
		}
	}
}

// Doubt lets the endpoint that is preferred now rest like one that failed.
func (d *Driver) Doubt(why string) {
	e := d.ranked(0)[0]
	e.failed()
	d.log.Warn("node contradicts itself", "network", d.network.Slug, "host", e.host, "error", why)
}

// askOthers is ask for a second opinion: the endpoint that would be asked first is asked last, and the others take turns.
func (d *Driver) askOthers(ctx context.Context, need uint64, f func(context.Context, *endpoint) error) error {
	ranked := d.ranked(need)
	others := slices.Clone(ranked[1:])
	if n := uint64(len(others)); n > 0 {
		turn := d.rereads.Add(1) % n
		others = append(others[turn:], others[:turn]...)
	}
	var t tally
	for _, e := range append(others, ranked[0]) {
		err := d.askOne(ctx, e, need, f)
		if err == nil || decided(err) {
			return err
		}
		if ctx.Err() != nil {
			return d.asFault(ctx.Err())
		}
		t.add(err)
	}
	return d.asFault(t.verdict())
}

func (d *Driver) askOne(ctx context.Context, e *endpoint, need uint64, f func(context.Context, *endpoint) error) error {
	if wait := e.barred(); wait > 0 {
		return &failure{host: e.host, kind: throttled, what: "it asked to be left alone for a while", retryAfter: wait}
	}
	err := d.verify(ctx, e)
	if err == nil && need > e.knownTip() {
		err = e.refreshTip(ctx, need)
	}
	if err == nil {
		err = f(ctx, e)
	}
	if failed, ok := errors.AsType[*failure](err); ok {
		failed.retryAfter = e.barred()
		e.failed()
		d.log.WarnContext(ctx, "node failed", "network", d.network.Slug, "host", e.host, "error", err)
	} else if err == nil {
		e.worked()
	}
	return err
}

// ranked orders the endpoints: those that neither rest after a failure nor lag come first, then as configured.
func (d *Driver) ranked(need uint64) []*endpoint {
	if len(d.endpoints) == 1 {
		return d.endpoints
	}
	need = max(need, d.seen.Load())
	penalty := func(e *endpoint) int {
		p := 0
		if e.resting() {
			p += 2
		}
		if tip := e.knownTip(); tip != 0 && tip < need {
			p++
		}
		return p
	}
	type ranking struct {
		e       *endpoint
		penalty int
	}
	rankings := make([]ranking, len(d.endpoints))
	for i, e := range d.endpoints {
		rankings[i] = ranking{e, penalty(e)}
	}
	slices.SortStableFunc(rankings, func(a, b ranking) int { return cmp.Compare(a.penalty, b.penalty) })
	out := make([]*endpoint, len(rankings))
	for i, r := range rankings {
		out[i] = r.e
	}
	return out
}

// verify compares the endpoint's chain id with the network's, once.
func (d *Driver) verify(ctx context.Context, e *endpoint) error {
	e.mu.Lock()
	known := e.verified
	e.mu.Unlock()
	if known {
		return nil
	}
	c := newCall("eth_chainId")
	if err := e.do(ctx, c); err != nil {
		return err
	}
	var id hexutil.Uint64
	if err := c.decode(e, &id); err != nil {
		return err
	}
	if uint64(id) != d.network.ChainID {
		err := &mismatch{host: e.host, want: d.network.ChainID, got: uint64(id)}
		d.log.ErrorContext(ctx, "node of another network", "network", d.network.Slug, "host", e.host, "error", err)
		return err
	}
	e.mu.Lock()
	e.verified = true
	e.mu.Unlock()
	return nil
}

// refreshTip asks for the endpoint's newest height; below need it is errLagging.
func (e *endpoint) refreshTip(ctx context.Context, need uint64) error {
	c := newCall("eth_blockNumber")
	if err := e.do(ctx, c); err != nil {
		return err
	}
	var tip hexutil.Uint64
	if err := c.decode(e, &tip); err != nil {
		return err
	}
	e.sawTip(uint64(tip))
	if uint64(tip) < need {
		return errLagging
	}
	return nil
}

// tally counts how the endpoints of one round failed.
type tally struct {
	lagging, pruned int
	mismatched      *mismatch
	failed          error
	retryAfter      time.Duration // the shortest that a failed endpoint asked for
}

func (t *tally) add(err error) {
	switch m, other := errors.AsType[*mismatch](err); {
	case other:
		t.mismatched = m
	case errors.Is(err, errLagging):
		t.lagging++
	case errors.Is(err, errPruned):
		t.pruned++
	default:
		var after time.Duration
		if f, ok := errors.AsType[*failure](err); ok {
			after = f.retryAfter
		}
		if t.failed == nil || after < t.retryAfter {
			t.retryAfter = after
		}
		t.failed = err
	}
}

// settled says that asking again soon would not change the verdict.
func (t *tally) settled() bool { return t.failed == nil && t.pruned == 0 }

// verdict is what the round amounts to. A failed endpoint might have known better than a lagging, pruned
// or foreign one, so it comes first.
func (t *tally) verdict() error {
	switch {
	case t.failed != nil:
		return t.failed
	case t.pruned > 0:
		return errPruned
	case t.lagging > 0:
		return errLagging
	default:
		return t.mismatched
	}
}

// decided says that err is an answer rather than the lack of one.
func decided(err error) bool {
	e, ok := errors.AsType[*fault.Error](err)
	return ok && !errors.Is(e.Word, fault.Unavailable)
}

// asFault puts the public word on an error of this file.
func (d *Driver) asFault(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if m, ok := errors.AsType[*mismatch](err); ok {
		return fault.New(fault.Stopped, "chain_id_mismatch",
			"node %s of network %s serves chain id %d, not %d: correct the RPC URL", m.host, d.network.Slug, m.got, m.want)
	}
	if errors.Is(err, errLagging) {
		return fault.Wrap(err, fault.Unavailable, "node_behind", "network %s has no node that is far enough", d.network.Slug)
	}
	if errors.Is(err, errPruned) {
		return fault.New(fault.Stopped, "node_pruned",
			"no node of network %s has that height any more: configure one that keeps older blocks", d.network.Slug)
	}
	f := fault.Wrap(err, fault.Unavailable, "node_unavailable", "network %s gave no usable answer", d.network.Slug)
	if failed, ok := errors.AsType[*failure](err); ok {
		f.RetryAfter = failed.retryAfter
	}
	return f
}

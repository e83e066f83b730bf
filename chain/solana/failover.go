package solana

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/seed-8ee7f392/payments/fault"
)

// failure is a node without a usable answer: another node, or a later time, may have one.
type failure struct {
	host, what string
	retryAfter time.Duration
}

func (f *failure) Error() string { return fmt.Sprintf("node %s: %s", f.host, f.what) }

// refusal is a node's JSON-RPC error in answer to one call.
type refusal struct {
	host, method string
	code         int
	message      string
	data         json.RawMessage
}

func (r *refusal) Error() string {
	return fmt.Sprintf("node %s refused %s: %s (code %d)", r.host, r.method, r.message, r.code)
}

// The JSON-RPC codes that are acted on. Sources: JSON-RPC 2.0, section 5.1; Agave, rpc-client-api/src/custom_error.rs.
const (
	codeBlockCleanedUp    = -32001 // the block is older than the node's ledger
	codePreflightFailed   = -32002
	codeBadSignature      = -32003
	codeBlockNotYet       = -32004 // the node has not got it
	codeNodeUnhealthy     = -32005
	codeSlotSkipped       = -32007
	codeLongTermSkipped   = -32009 // skipped, or missing in long-term storage
	codeNoHistory         = -32011
	codeBlockStatusNotYet = -32014
	codeMinContextSlot    = -32016 // the node is behind the slot asked for
	codeInvalidParams     = -32602
	codeTooManyRequests   = 429
)

// unfit says that a refusal is the node's own trouble.
func (r *refusal) unfit() bool {
	switch r.code {
	case codeNodeUnhealthy, codeNoHistory, codeMinContextSlot, codeTooManyRequests:
		return true
	}
	return false
}

func refusedWith(err error, codes ...int) bool {
	r, ok := errors.AsType[*refusal](err)
	for _, code := range codes {
		if ok && r.code == code {
			return true
		}
	}
	return false
}

var (
	// errLagging: the node has not reached the height asked for.
	errLagging = errors.New("the node has not reached that height")
	// errPruned: the node has thrown the height away.
	errPruned = errors.New("the node no longer has that height")
	// errMissing: the node does not know the transaction.
	errMissing = errors.New("the node does not know the transaction")
)

// mismatch is a node of another network.
type mismatch struct{ host, want, got string }

func (m *mismatch) Error() string {
	return fmt.Sprintf("node %s serves the network with genesis hash %s, not %s", m.host, m.got, m.want)
}

// ask runs f against one node after another, the one that answered last first, until one answers; then again after a pause,
// as often as configured. A node is only asked once it is known to serve the network. An error of f that carries a fault word
// other than Unavailable is an answer and is returned as it is.
func (d *Driver) ask(ctx context.Context, f func(context.Context, *endpoint) error) error {
	pause := backoff.ExponentialBackOff{
		InitialInterval: 250 * time.Millisecond, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: 5 * time.Second,
	}
	for attempt := 1; ; attempt++ {
		var verdict error // the best excuse of this round
		var wait time.Duration
		first := int(d.preferred.Load())
		for i := range d.endpoints {
			at := (first + i) % len(d.endpoints)
			e := d.endpoints[at]
			err := d.verify(ctx, e)
			if err == nil {
				err = f(ctx, e)
			}
			if err == nil || decided(err) {
				d.preferred.Store(int32(at))
				return err
			}
			if ctx.Err() != nil {
				return d.asFault(ctx.Err())
			}
			d.log.WarnContext(ctx, "node failed", "network", d.network.Slug, "host", e.host, "error", err)
			if verdict == nil || hope(err) > hope(verdict) {
				verdict = err
			}
			if failed, ok := errors.AsType[*failure](err); ok && (wait == 0 || failed.retryAfter < wait) {
				wait = failed.retryAfter
			}
		}
		wait = max(wait, pause.NextBackOff())
		if hope(verdict) < mayRecover || attempt >= d.config.Attempts || wait > 10*time.Second {
			return d.asFault(verdict)
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

// mayRecover is the hope in a node that failed: it might have known better than the others, and may answer soon.
const mayRecover = 4

// hope ranks why a node gave no usable answer: it is of another network, has not got so far, has thrown the height away, does
// not know the transaction, or failed.
func hope(err error) int {
	if _, other := errors.AsType[*mismatch](err); other {
		return 0
	}
	for i, known := range []error{errLagging, errPruned, errMissing} {
		if errors.Is(err, known) {
			return 1 + i
		}
	}
	return mayRecover
}

// verify makes sure, once per node, that it serves the network.
func (d *Driver) verify(ctx context.Context, e *endpoint) error {
	if e.verified.Load() {
		return nil
	}
	return d.inspect(ctx, e)
}

func (d *Driver) inspect(ctx context.Context, e *endpoint) error {
	var genesis string
	if err := e.call(ctx, &genesis, "getGenesisHash"); err != nil {
		return err
	}
	if want := strings.TrimPrefix(d.network.CAIP2, "solana:"); reference(genesis) != want {
		return &mismatch{host: e.host, want: want, got: e.clean(genesis)}
	}
	e.verified.Store(true)
	return nil
}

// decided says that err is an answer rather than the lack of one.
func decided(err error) bool {
	e, ok := errors.AsType[*fault.Error](err)
	return ok && !errors.Is(e.Word, fault.Unavailable)
}

// asFault puts the public word on an error of this package.
func (d *Driver) asFault(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fault.Error](err); ok {
		return err
	}
	if m, ok := errors.AsType[*mismatch](err); ok {
		return fault.New(fault.Stopped, "chain_id_mismatch",
			"node %s of network %s has genesis hash %s, not %s: correct the RPC URL", m.host, d.network.Slug, m.got, m.want)
	}
	if errors.Is(err, errLagging) {
		return fault.Wrap(err, fault.Unavailable, "node_behind", "network %s has no node that is far enough", d.network.Slug)
	}
	if errors.Is(err, errPruned) {
		return fault.New(fault.Stopped, "node_pruned",
			"no node of network %s has that height any more: configure one that keeps older blocks", d.network.Slug)
	}
	if errors.Is(err, errMissing) {
		return fault.New(fault.NotFound, "transaction_unknown", "network %s has no such transaction in a confirmed block", d.network.Slug)
	}
	f := fault.Wrap(err, fault.Unavailable, "node_unavailable", "network %s gave no usable answer", d.network.Slug)
	if failed, ok := errors.AsType[*failure](err); ok {
		f.RetryAfter = failed.retryAfter
	}
	return f
}

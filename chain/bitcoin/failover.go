package bitcoin

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"

	"github.com/seed-8ee7f392/payments/fault"
)

// failure is a node without a usable answer: another node, or a later time, may have one.
type failure struct {
	host  string
	code  string // of the fault that it becomes
	what  string
	cause error
}

func (f *failure) Error() string { return fmt.Sprintf("node %s: %s", f.host, f.what) }
func (f *failure) Unwrap() error { return f.cause }

// refusal is a node's JSON-RPC error in answer to one call.
type refusal struct {
	host, method string
	code         int
	message      string
}

func (r *refusal) Error() string {
	return fmt.Sprintf("node %s refused %s: %s (code %d)", r.host, r.method, r.message, r.code)
}

// The JSON-RPC codes that are acted on. Source: Bitcoin Core, src/rpc/protocol.h.
const (
	codeMisc          = -1  // such as: the block is pruned
	codeNotFound      = -5  // no such transaction or block
	codeOutOfRange    = -8  // no such height
	codeUndecodable   = -22 // bytes that are no transaction
	codeRefused       = -25 // such as: inputs are missing or spent
	codeRejected      = -26 // by the rules of the network or of the pool
	codeAlreadyInUTXO = -27
	codeWarmup        = -28
	codeNoMethod      = -32601
	codeInternal      = -32603
)

func refusedWith(err error, code int) bool {
	r, ok := errors.AsType[*refusal](err)
	return ok && r.code == code
}

// mismatch is a node of another network.
type mismatch struct{ host, want, got string }

func (m *mismatch) Error() string {
	return fmt.Sprintf("node %s serves the network with genesis block %s, not %s", m.host, m.got, m.want)
}

// ask runs f against one node after another, the one that answered last first, until one answers; then
// again after a pause, as often as configured. A node is only asked once it is known to serve the network
// and to have caught up with it. An error of f that carries a fault word other than Unavailable or Stopped
// is an answer and is returned as it is.
func (d *Driver) ask(ctx context.Context, f func(context.Context, *endpoint) error) error {
	pause := backoff.ExponentialBackOff{
		InitialInterval: 250 * time.Millisecond, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: 5 * time.Second,
	}
	for attempt := 1; ; attempt++ {
		var verdict error // the best excuse of this round
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
		}
		if hope(verdict) < mayRecover || attempt >= d.config.Attempts {
			return d.asFault(verdict)
		}
		timer := time.NewTimer(pause.NextBackOff())
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return d.asFault(ctx.Err())
		}
	}
}

// mayRecover is the hope in a node that failed: it might have known better than the others, and may answer soon.
const mayRecover = 2

// hope ranks why a node gave no usable answer: it is of another network, it has pruned what was asked for, or it failed.
func hope(err error) int {
	if _, other := errors.AsType[*mismatch](err); other {
		return 0
	}
	if errors.Is(err, fault.Stopped) {
		return 1
	}
	return mayRecover
}

// verify makes sure, once per node, that it serves the network and has caught up with it.
func (d *Driver) verify(ctx context.Context, e *endpoint) error {
	if e.verified.Load() {
		return nil
	}
	return d.inspect(ctx, e)
}

func (d *Driver) inspect(ctx context.Context, e *endpoint) error {
	genesis, info := newCall("getblockhash", 0), newCall("getblockchaininfo")
	if err := e.do(ctx, genesis, info); err != nil {
		return err
	}
	var hash string
	if err := genesis.decode(e, &hash); err != nil {
		return err
	}
	if want := d.params.GenesisHash.String(); hash != want {
		return &mismatch{host: e.host, want: want, got: e.clean(hash)}
	}
	var state struct {
		Syncing bool `json:"initialblockdownload"`
		Pruned  bool `json:"pruned"`
	}
	if err := info.decode(e, &state); err != nil {
		return err
	}
	if state.Syncing {
		return &failure{host: e.host, code: "node_syncing", what: "it has not caught up with the network yet"}
	}
	e.pruned.Store(state.Pruned)
	e.verified.Store(true)
	return nil
}

// decided says that err is an answer rather than the lack of one. A pruned block is none: another node may have it.
func decided(err error) bool {
	e, ok := errors.AsType[*fault.Error](err)
	return ok && !errors.Is(e.Word, fault.Unavailable) && !errors.Is(e.Word, fault.Stopped)
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
			"node %s of network %s has genesis block %s, not %s: correct the RPC URL", m.host, d.network.Slug, m.got, m.want)
	}
	code := "node_unavailable"
	if f, ok := errors.AsType[*failure](err); ok {
		code = f.code
	}
	return fault.Wrap(err, fault.Unavailable, code, "network %s gave no usable answer", d.network.Slug)
}

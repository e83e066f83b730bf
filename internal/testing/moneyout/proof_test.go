package moneyout_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/testing/sim"
	"github.com/seed-8ee7f392/payments/payout"
	"github.com/seed-8ee7f392/payments/settlement"
)

// liar is the simulated network with a node that lies about hashes while its blocks are right.
type liar struct {
	*sim.Chain
	status func(chain.TxStatus) chain.TxStatus // nil: the truth
	deaf   bool                                // broadcasts are lost
}

func (l *liar) Status(ctx context.Context, signed chain.Signed) (chain.TxStatus, error) {
	status, err := l.Chain.Status(ctx, signed)
	if l.status != nil {
		status = l.status(status)
	}

	return status, err
}

func (l *liar) Broadcast(ctx context.Context, signed chain.Signed) error {
	if l.deaf {
		return sim.Unavailable()
	}

	return l.Chain.Broadcast(ctx, signed)
}

func denied(chain.TxStatus) chain.TxStatus { return chain.TxStatus{State: chain.TxUnknown} }

func withoutLogs(s chain.TxStatus) chain.TxStatus {
	s.Transfers = nil
	return s
}

// withLiar runs a scenario whose node can be made to lie.
func withLiar(t *testing.T, config sim.Config, scenario func(t *testing.T, w *harness, node *liar)) {
	t.Helper()
	inTime(t, account.Settings{}, config, func(t *testing.T, w *harness) {
		node := &liar{Chain: w.chain}
		w.change = func(c *payments.Config) { c.Drivers = []payments.ChainDriver{node} }
		w.engine = w.boot()

		// The first process's heartbeat stands still for as long as its leases last.
		for range 12 {
			time.Sleep(5 * time.Second)
			w.work()
		}

		scenario(t, w, node)
	})
}

// Pitfall 38. One node denied a hash for 13 s while blocks held it: the payout was published as failed.
func TestHashDeniedWhileBlocksHoldIt(t *testing.T) {
	withLiar(t, sim.Config{}, func(t *testing.T, w *harness, node *liar) {
		w.fund(1, 0)
		p := w.pay("SIM", milli(1))
		w.work()
		w.chain.Mine(8) // included, and final

		node.status = denied

		for range 13 {
			time.Sleep(time.Second)
			w.work()

			if got := w.get(p.ID); got.Status != payout.Processing {
				t.Fatalf("denied, it is %s %s", got.Status, got.FailureCode)
			}
		}

		node.status = nil
		p = w.becomes(p.ID, payout.Confirmed)
		w.arrived(p)
		w.once(p)

		if p.Conflict.TxHash != "" || w.countEvents(event.PayoutFailed, p.ID) != 0 {
			t.Errorf("confirmed as %+v", p)
		}

		w.clean(1, 0)
	})
}

// Pitfall 38. Likewise while it is in a block already.
func TestHashDeniedAfterInclusion(t *testing.T) {
	withLiar(t, sim.Config{}, func(t *testing.T, w *harness, node *liar) {
		w.fund(1, 0)
		p := w.becomes(w.pay("SIM", milli(1)).ID, payout.Included)

		node.status = denied
		p = w.becomes(p.ID, payout.Confirmed)
		w.arrived(p)
		w.once(p)
		w.clean(1, 0)
	})
}

// Pitfall 39. A sweep was recorded as failed because a receipt by hash lacked its logs.
func TestReceiptsWithoutLogs(t *testing.T) {
	withLiar(t, sim.Config{}, func(t *testing.T, w *harness, node *liar) {
		w.fund(1, 0)
		w.deposited("USDX", dollars(400))

		node.status = withoutLogs

		w.live("the settlement ended", func() bool {
			s := w.settlements()[0]
			return s.Status == settlement.Released || s.Status == settlement.Failed
		})

		if s := w.settlements()[0]; s.Status != settlement.Released || s.NetReleased == nil ||
			*s.NetReleased != dollars(400) {
			t.Errorf("it is %s %s, %s arrived", s.Status, s.Reason, s.NetReleased)
		}
	})
}

// A conflict names the transaction that won, and whether it was one of ours.
func TestConflictIsShown(t *testing.T) {
	t.Run("somebody else has the key", func(t *testing.T) {
		inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
			w.fund(1, 0)
			p := w.pay("SIM", milli(1))
			w.work()
			thief := w.chain.Replace(w.get(p.ID).TxHash)

			p = w.becomes(p.ID, payout.Failed)
			shown := p.Resource().Conflict

			if p.FailureCode != "conflict" || shown == nil || *shown != (payout.Conflict{TxHash: thief}) {
				t.Errorf("failed as %+v, shown as %+v", p, shown)
			}
		})
	})
	t.Run("a transfer to oneself", func(t *testing.T) {
		inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
			w.fund(1, 0)
			p := w.pay("SIM", milli(1))
			w.work()
			w.chain.SetFee(100*sim.DefaultBaseFee, sim.DefaultPriority)

			for range 6 * 60 {
				w.pass(time.Minute)
				w.work()
			}

			p = w.becomes(p.ID, payout.Failed)
			if shown := p.Resource().Conflict; shown == nil || !shown.Own || shown.TxHash == p.TxHash {
				t.Errorf("failed as %+v, shown as %+v", p, shown)
			}
		})
	})
	t.Run("none without a conflict", func(t *testing.T) {
		inTime(t, account.Settings{}, sim.Config{}, func(t *testing.T, w *harness) {
			w.fund(1, 0)

			p := w.becomes(w.pay("SIM", milli(1)).ID, payout.Confirmed)
			if p.Resource().Conflict != nil {
				t.Errorf("confirmed as %+v", p)
			}
		})
	})
}

// Pitfall 61. Bytes that are valid for less than the replacement time expire, the nonce is unused: it is
// filled at once, and the next payout goes through.
func TestWalletGoesOnAfterAnExpiry(t *testing.T) {
	withLiar(t, sim.Config{ValidBlocks: 5}, func(t *testing.T, w *harness, node *liar) {
		w.fund(1, 0)

		node.deaf = true
		p := w.becomes(w.pay("SIM", milli(1)).ID, payout.Failed)

		if p.FailureCode != "expired" || p.Conflict.TxHash != "" {
			t.Fatalf("failed as %+v", p)
		}

		w.until("the wallet is named", func() bool {
			h, err := w.engine.Health(t.Context())
			w.must(err)

			return len(h.Wallets) == 1 && h.Wallets[0].Address == string(w.master()) &&
				h.Wallets[0].AccountID == w.account.ID
		})

		node.deaf = false
		began := time.Now()
		next := w.becomes(w.pay("SIM", milli(2)).ID, payout.Confirmed)
		w.arrived(next)
		w.once(next)

		if took := time.Since(began); took > 10*time.Minute {
			t.Errorf("the next payout took %s", took)
		}

		w.arrived(p)
		w.clean(1, 0)

		h, err := w.engine.Health(t.Context())
		w.must(err)

		if len(h.Wallets) != 0 {
			t.Errorf("the wallet moves, and is named: %+v", h.Wallets)
		}
	})
}

// A release that waits for a process which cannot read its network on says so, and names no frozen wallet.
func TestReleaseOfANetworkThatIsNotReadSaysSo(t *testing.T) {
	inTime(t, account.Settings{ManualRelease: true}, sim.Config{}, func(t *testing.T, w *harness) {
		w.fund(1, 100)

		s := w.deposited("USDX", dollars(5))
		w.engine = w.boot()
		w.chain.Mine(20)
		w.chain.SetIntercept(func(_ context.Context, m sim.Method) error {
			if m == sim.MethodBlocks {
				return sim.Unavailable()
			}

			return nil
		})
		w.must(w.engine.Settlements.ReleaseNow(t.Context(), w.owner, s.ID))

		until := time.Now().Add(5 * time.Minute)

		w.live("minutes go by", func() bool { return time.Now().After(until) })

		if got := w.settlements()[0]; !strings.HasPrefix(got.ReasonMessage, "wallet_unread: ") {
			t.Errorf("the release is %s and says %q", got.Status, got.ReasonMessage)
		}
	})
}

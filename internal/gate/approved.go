package gate

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/payout"
)

// approvedSpends are the spends of the last signatures that this process approved, by payout.
type approvedSpends struct {
	mu   sync.Mutex
	last map[string]approvedSpend
}

type approvedSpend struct {
	spends []string // as chaindata.SpendKey; none for a transaction that only expires
	at     time.Time
	stored bool // with the bytes
	signed chain.Signed
}

// Approvals older than approvedFor are dropped once there are maxApproved.
const (
	approvedFor = payout.GiveUpAfter
	maxApproved = 4096
)

// add remembers the spends of a signature for a payout.
func (a *approvedSpends) add(payoutID string, spends []string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()

	if a.last == nil {
		a.last = map[string]approvedSpend{}
	}

	if len(a.last) >= maxApproved {
		for id, approved := range a.last {
			if now.Sub(approved.at) > approvedFor {
				delete(a.last, id)
			}
		}
	}

	a.last[payoutID] = approvedSpend{spends: spends, at: now}
}

// isOlder reports whether a row lacks the spends that this process stored with it. The network may not show
// them yet.
func (a *approvedSpends) isOlder(p payout.Payout) bool {
	a.mu.Lock()
	defer a.mu.Unlock()

	approved, known := a.last[p.ID]
	if !known || !approved.stored {
		return false
	}

	if len(approved.spends) == 0 {
		return len(p.Signing.Spent) == 0
	}

	return !slices.ContainsFunc(p.Signing.Spent, func(spent string) bool {
		return slices.Contains(approved.spends, spent)
	})
}

// hasAnotherNonce reports whether this process had bytes for a payout stored with another nonce. On networks
// with nonces, only a replacement may be signed once bytes are stored, and the network may not show these
// yet. Other coins are legitimate: a payout whose coin a fork removed is built again.
func (a *approvedSpends) hasAnotherNonce(p payout.Payout, decoded []chain.Spend, spends []string) bool {
	if len(decoded) == 0 || decoded[0].Outpoint.TxHash != "" {
		return false
	}

	a.mu.Lock()
	defer a.mu.Unlock()

	approved, known := a.last[p.ID]

	return known && approved.stored && !slices.Contains(approved.spends, spends[0])
}

// Approved returns the spends of the last signature that this process approved for a payout, as keys
// (chaindata.SpendKey); none for a transaction that only expires. Only its hash identifies such a
// transaction, and only rows hold the hash. So known is false once it is stored, because somebody may have
// changed the rows since.
func (g *Gate) Approved(payoutID string) (spends []string, known bool) {
	g.approved.mu.Lock()
	defer g.approved.mu.Unlock()

	approved, known := g.approved.last[payoutID]
	if approved.stored && len(approved.spends) == 0 {
		return nil, false
	}

	return approved.spends, known
}

// Stored must be called once the bytes with the last signature for a payout are stored together with their
// spends. Only the first call for a signature counts, because later calls depend on rows.
func (g *Gate) Stored(payoutID string, signed chain.Signed) {
	g.approved.mu.Lock()
	defer g.approved.mu.Unlock()

	if approved, known := g.approved.last[payoutID]; known && !approved.stored {
		approved.stored, approved.signed = true, signed
		g.approved.last[payoutID] = approved
	}
}

// checkExpired returns fault.Unavailable while bytes that this process had stored for a payout may still be
// included, if they make no exclusive spend. New bytes could then be included in addition to them.
func (g *Gate) checkExpired(ctx context.Context, p payout.Payout) error {
	g.approved.mu.Lock()
	approved := g.approved.last[p.ID]
	g.approved.mu.Unlock()

	if signed := approved.signed; !approved.stored || len(approved.spends) > 0 ||
		signed.ValidToHeight == 0 && signed.ValidTo.IsZero() {
		return nil
	}

	expired, err := g.isTooOld(ctx, p.Network, approved.signed)
	if err != nil || expired {
		return err
	}

	return fault.New(
		fault.Unavailable,
		"payout_unchecked",
		"transaction %s of payout %s may still be included",
		approved.signed.TxHash,
		p.ID,
	)
}

// isTooOld reports whether bytes are too old for the next block, by the newest block or by the driver's
// proof.
func (g *Gate) isTooOld(ctx context.Context, network string, signed chain.Signed) (bool, error) {
	driver, err := g.config.Networks.Driver(network)
	if err != nil {
		return false, err
	}

	if sender, ok := driver.(chain.Sender); ok && !isScanner(driver) {
		status, err := sender.Status(ctx, signed)
		return status.State == chain.TxDead, err
	}

	head, err := driver.Head(ctx)

	return signed.ValidToHeight > 0 && head.Tip.Height > signed.ValidToHeight ||
		!signed.ValidTo.IsZero() && head.Tip.Time.After(signed.ValidTo), err
}

func isScanner(driver chain.Driver) bool {
	_, ok := driver.(chain.BlockScanner)
	return ok
}

package ingest

// This file compares the balances of every address that was ever shown with the records (decisions 11,
// "Balance rises"). unexplained.go turns what nothing explains into payments.

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/chaindata"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// What balance watching may cost a network: 2,000 balances per second.
const (
	balancesPerCall       = 1000
	balanceCallsPerSecond = 2
)

// How far a network may be behind its tip for balances to be compared: few nodes know balances of more than 128 blocks
// ago, and until then transfers may still explain them.
const (
	caughtUpBlocks = 16
	caughtUpTime   = 10 * time.Second
)

// errBalances is the error of a node that answered for another number of holdings than asked.
var errBalances = fault.New(
	fault.Unavailable, "balance_unreadable", "the node answered for another number of balances than asked",
)

// balanceBudget counts the calls in one second.
type balanceBudget struct {
	second time.Time
	calls  int
}

// balanceCheck is one comparison: of some addresses, at one block of their network.
type balanceCheck struct {
	s       *Ingester
	network chain.Network
	at      chain.Ref
	// unreadable are holdings that their token's contract does not answer for: they are not compared.
	unreadable map[chain.Holding]bool
	// provisional are those of which one node's word is all there is: what they show is detected, and neither confirmed
	// nor corrected.
	provisional map[chain.Holding]bool
	// toppedUp are the addresses that a top-up of ours is on its way to, read after the balances: until it has
	// ended, nothing is concluded from what they hold.
	toppedUp map[chain.Address]bool
}

// CheckBalances compares the balances of addresses of a network that are due, urgent ones first, with one call of its
// node. They are compared at the last block that was read and that is agreed on. An excess over payments, dust and
// what our own transactions left becomes a payment without a transaction.
//
// did reports whether more addresses may be due. It does nothing while the budget of the second is spent,
// the network is far behind its tip, or its driver cannot read balances.
func (s *Ingester) CheckBalances(ctx context.Context, network string) (did bool, err error) {
	driver, err := s.registry.Driver(network)
	if err != nil {
		return false, err
	}

	balancer, can := driver.(chain.Balancer)
	n := driver.Network()

	if !can || len(n.Assets) == 0 {
		return false, nil
	}

	cursor, err := s.cursor(ctx, network)
	if err != nil || cursor.At.IsZero() || scanstate.Lags(cursor, caughtUpBlocks, caughtUpTime) {
		return false, err
	}

	limit := max(1, balancesPerCall/len(n.Assets))

	due, err := s.dueAddresses(ctx, network, limit)
	if err != nil || len(due) == 0 || !s.spendBalanceCall(network) {
		return false, err
	}

	at := agreedBlock(ctx, driver, cursor)
	check := &balanceCheck{
		s:           s,
		network:     n,
		at:          at,
		unreadable:  map[chain.Holding]bool{},
		provisional: map[chain.Holding]bool{},
	}

	return len(due) == limit, check.run(ctx, balancer, due)
}

// agreedBlock returns the newest trusted block that is agreed on: of a later one, what one node says of balances would
// be believed. Where none of the newest is, as nodes are missing, it is the last.
func agreedBlock(ctx context.Context, driver chain.Driver, cursor scan.Cursor) chain.Ref {
	agreed, can := driver.(chain.Agreed)
	if !can {
		return cursor.At
	}

	head, err := agreed.AgreedHead(ctx)
	if err != nil {
		return cursor.At
	}

	for _, at := range append([]chain.Ref{cursor.At}, cursor.Recent...) {
		if at.Height < head.Tip.Height || at.Hash == head.Tip.Hash {
			return at
		}
	}

	return cursor.At
}

// dueAddresses returns the addresses to compare next, urgent ones first.
func (s *Ingester) dueAddresses(ctx context.Context, network string, limit int) ([]invoice.Address, error) {
	now := s.now()

	due, err := s.db.DueAddresses(ctx, network, true, now, limit)
	if err != nil || len(due) == limit {
		return due, err
	}

	others, err := s.db.DueAddresses(ctx, network, false, now, limit-len(due))

	return append(due, others...), err
}

// spendBalanceCall takes one call from the budget of this second, and reports whether there was one.
func (s *Ingester) spendBalanceCall(network string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	budget := s.budgets[network]
	if second := s.now().Truncate(time.Second); !second.Equal(budget.second) {
		budget = balanceBudget{second: second}
	}

	if budget.calls >= balanceCallsPerSecond {
		return false
	}

	budget.calls++
	s.budgets[network] = budget

	return true
}

// run reads the balances of the addresses, compares them and schedules the next comparison. Holdings whose
// contract does not answer, or of which nodes say different balances, are left out of it and named by Unreadable.
func (c *balanceCheck) run(ctx context.Context, balancer chain.Balancer, due []invoice.Address) error {
	balances, err := c.read(ctx, balancer, due)

	unreadable, _ := errors.AsType[*chain.UnreadableError](err)
	if err != nil && unreadable == nil {
		return err
	}

	if unreadable != nil {
		for _, holding := range unreadable.Holdings {
			if holding.Provisional {
				c.provisional[holding.Holding] = true
			} else {
				c.unreadable[holding.Holding] = true
			}
		}

		unreadable, _ = errors.AsType[*chain.UnreadableError](chaindata.WithoutProvisional(err))
	}

	suspects, err := c.suspects(ctx)
	if err != nil {
		return err
	}

	width := len(c.network.Assets)
	outcomes := make([]outcome, len(due))

	for i, address := range due {
		found := balances[i*width : (i+1)*width]

		// Most addresses were swept and hold nothing: they cost no query.
		if !slices.ContainsFunc(found, notZero) && !suspects[address.Address] {
			outcomes[i] = compared
			if c.isUnreadable(address) {
				outcomes[i] = unclear
			}

			continue
		}

		if c.toppedUp[address.Address] {
			outcomes[i] = unclear
			continue
		}

		if outcomes[i], err = c.compare(ctx, address, found); err != nil {
			return err
		}
	}

	c.s.setUnreadable(c.network.Slug, unreadable)

	return c.schedule(ctx, due, outcomes)
}

// isUnreadable reports whether the coin of an address could not be read: nothing else shows what contracts sent there.
func (c *balanceCheck) isUnreadable(address invoice.Address) bool {
	native, ok := c.network.Native()

	return ok && c.unreadable[chain.Holding{Address: address.Address, AssetID: native.ID}]
}

// Unreadable names what of a network could not be read when its balances were last compared in this process;
// empty when everything was.
func (s *Ingester) Unreadable(network string) string {
	s.mu.Lock()
	defer s.mu.Unlock()

	return s.unreadable[network]
}

func (s *Ingester) setUnreadable(network string, unreadable *chain.UnreadableError) {
	s.mu.Lock()
	defer s.mu.Unlock()

	delete(s.unreadable, network)

	if unreadable != nil {
		s.unreadable[network] = unreadable.Error()
	}
}

func notZero(a chain.Amount) bool { return !a.IsZero() }

// read returns the balances of every address in base units: for each one per asset, in order. With a
// chain.UnreadableError those that it does not name are right.
func (c *balanceCheck) read(
	ctx context.Context,
	balancer chain.Balancer,
	due []invoice.Address,
) ([]chain.Amount, error) {
	holdings := make([]chain.Holding, 0, len(due)*len(c.network.Assets))

	for _, address := range due {
		for _, asset := range c.network.Assets {
			holdings = append(holdings, chain.Holding{Address: address.Address, AssetID: asset.ID})
		}
	}

	balances, err := balancer.Balances(ctx, c.at, holdings)

	unreadable, _ := errors.AsType[*chain.UnreadableError](err)
	if err != nil && unreadable == nil {
		return nil, fault.Wrap(
			err, fault.Unavailable, "balance_unreadable", "balances of %s at block %d could not be read",
			c.network.Slug, c.at.Height,
		)
	}

	if len(balances) != len(holdings) {
		return nil, errBalances
	}

	return balances, err
}

// suspects returns the addresses that are compared even when they hold nothing: with an unconfirmed payment that
// only a balance shows, with one that a fork took back, or left by a transaction that is not on record. It also reads
// toppedUp: a top-up that ended before is in the residue that the comparison reads, one that began later is not in
// the balances.
func (c *balanceCheck) suspects(ctx context.Context) (map[chain.Address]bool, error) {
	waiting, err := c.s.unconfirmed(ctx, c.s.db, c.network.Slug, c.at.Height)
	if err != nil {
		return nil, err
	}

	unmined, err := c.s.db.UnminedPayments(ctx, c.network.Slug)
	if err != nil {
		return nil, err
	}

	out := map[chain.Address]bool{}

	for _, p := range append(waiting, unmined...) {
		if p.TxHash == "" && !p.Simulated {
			out[p.Address] = true
		}
	}

	return out, c.s.db.Update(ctx, func(ctx context.Context, tx Tx) error {
		rows, err := tx.UnrecordedOutgoing(ctx, c.network.Slug, "", time.Time{})
		if err != nil {
			return err
		}

		for _, row := range rows {
			out[row.Address] = true
		}

		c.toppedUp, err = toppedUp(ctx, tx, c.network.Slug)

		return err
	})
}

// toppedUp returns the addresses that a live top-up pays. No record of a payment may name it: a fork may have dropped
// the payments that its release is of.
func toppedUp(
	ctx context.Context,
	r wallet.TransactionReader,
	network string,
) (map[chain.Address]bool, error) {
	live, err := r.LiveTopUps(ctx, network)
	out := make(map[chain.Address]bool, len(live))

	for _, t := range live {
		for _, output := range t.Order.Outputs {
			out[output.To] = true
		}
	}

	return out, err
}

// outcome is what a comparison means for the next one.
type outcome int

const (
	// stale: the block left the chain, so nothing was compared.
	stale outcome = iota
	// compared: nothing is left to do.
	compared
	// waits: an excess is to be read again.
	waits
	// unclear: nothing was concluded, as a release or a top-up is on its way, or the balance of the coin could not be
	// read. It is compared again soon.
	unclear
	// unclearAtRest: nothing was concluded, and nothing waits for it.
	unclearAtRest
)

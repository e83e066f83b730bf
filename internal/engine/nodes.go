package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/health"
	"github.com/seed-8ee7f392/payments/internal/walletstate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// paceNodes is how often the nodes of a network are compared, and nodesWithin the limit of one comparison. So
// Health names a node's trouble within 30 seconds.
const (
	paceNodes   = 10 * time.Second
	nodesWithin = 15 * time.Second
)

// lateBy is how far, in time, the newest agreed block may be behind the last block that was read, before
// Health says that payments wait for it.
const lateBy = time.Minute

// maxWaiting bounds the counts of payments and transactions that wait while nodes do not agree.
const maxWaiting = 1000

// nodeWatch remembers the networks that have no two nodes that agree. It is safe for concurrent use.
type nodeWatch struct {
	mu       sync.Mutex
	unagreed map[string]unagreed
	deep     map[string]map[string]bool // by network, the ids of payments that were deep enough and waited
}

// unagreed holds why and since when no two nodes of a network agree, and how many objects wait meanwhile.
type unagreed struct {
	why                    string
	since                  time.Time
	payments, transactions int
	// partly is set where that is so of some old blocks alone.
	partly bool
}

// stillDeep returns those of the payments that are deep enough which were so the last time: others may be about to
// confirm.
func (w *nodeWatch) stillDeep(network string, payments []invoice.Payment) (still []invoice.Payment) {
	w.mu.Lock()
	defer w.mu.Unlock()

	now := map[string]bool{}

	for _, p := range payments {
		if now[p.ID] = true; w.deep[network][p.ID] {
			still = append(still, p)
		}
	}

	if w.deep == nil {
		w.deep = map[string]map[string]bool{}
	}

	w.deep[network] = now

	return still
}

// of returns the state of a network; the zero value while its nodes agree.
func (w *nodeWatch) of(network string) unagreed {
	w.mu.Lock()
	defer w.mu.Unlock()

	return w.unagreed[network]
}

// set stores the state of a network. It keeps since when its nodes do not agree.
func (w *nodeWatch) set(network string, now unagreed) {
	w.mu.Lock()
	defer w.mu.Unlock()

	if w.unagreed == nil {
		w.unagreed = map[string]unagreed{}
	}

	if was, known := w.unagreed[network]; known {
		now.since = was.since
	}

	if w.unagreed[network] = now; now.why == "" {
		delete(w.unagreed, network)
	}
}

// compareNodes compares the newest blocks of a network's nodes, and counts the objects that wait while no two
// agree.
func (e *Engine) compareNodes(ctx context.Context, driver chain.Driver) (did bool, err error) {
	agreed, ok := driver.(chain.Agreed)
	if !ok || len(agreed.Nodes()) < 2 {
		return false, nil // nothing to compare
	}

	limited, stop := context.WithTimeout(ctx, nodesWithin)
	defer stop()

	network := driver.Network().Slug

	head, err := agreed.AgreedHead(limited)
	if err != nil && !errors.Is(err, chain.ErrNotAgreed) {
		e.nodes.set(network, unagreed{})
		return false, nil // the follower reports that no node answers
	}

	cursor, _, storeErr := e.config.Store.Cursor(ctx, network)
	if storeErr != nil {
		return false, storeErr
	}

	if err == nil && cursor.At.Time.Sub(head.Tip.Time) < lateBy {
		now := unagreed{since: e.config.Now(), partly: true}

		now.payments, now.why, err = e.waitingDeep(limited, driver, agreed, cursor)
		if err == nil {
			e.nodes.set(network, now)
		}

		if limited.Err() != nil && ctx.Err() == nil {
			err = nil // what was known stands
		}

		return false, err
	}

	now := unagreed{why: troubles(agreed.Nodes(), err), since: e.config.Now()}
	if now.payments, now.transactions, err = e.waitingFor(ctx, network, cursor.At.Height); err != nil {
		return false, err
	}

	e.nodes.set(network, now)

	return false, nil
}

// waitingFor returns how many payments of a network in blocks up to a height, and how many transactions, are
// not confirmed, at most maxWaiting each.
func (e *Engine) waitingFor(
	ctx context.Context,
	network string,
	height uint64,
) (payments, transactions int, err error) {
	waiting, err := e.config.Store.UnconfirmedPayments(ctx, network, height, maxWaiting)
	if err != nil {
		return 0, 0, err
	}

	due, err := e.config.Store.DueTransactions(ctx, network, e.config.Now().AddDate(100, 0, 0), maxWaiting)
	if err != nil {
		return 0, 0, err
	}

	for _, t := range due {
		if walletstate.Live(t) {
			transactions++
		}
	}

	return len(waiting), transactions, nil
}

// troubles describes the troubles of nodes, or returns the error that explains why they do not agree.
func troubles(nodes []chain.NodeState, cause error) string {
	var named []string

	for _, n := range nodes {
		if n.Trouble != "" {
			named = append(named, fmt.Sprintf(
				"node %s %s since %s", n.Name, predicates[n.Trouble], n.Since.UTC().Format(time.RFC3339),
			))
		}
	}

	switch {
	case len(named) > 0:
		return strings.Join(named, "; ")
	case cause != nil:
		return cause.Error()
	}

	return "a node is behind"
}

// predicates describe troubles in sentences.
var predicates = map[chain.NodeTrouble]string{
	chain.NodeSilent:    "gives no answer",
	chain.NodeForeign:   "serves another network",
	chain.NodeForked:    "follows another chain",
	chain.NodeBehind:    "is behind",
	chain.NodeDisagrees: "disagrees with another one",
	chain.NodeUncertain: "calls its newest block final",
	chain.NodeRefuses:   "refuses calls",
}

// addNodes adds the nodes of a network to its report.
func (e *Engine) addNodes(driver chain.Driver, n *health.Network) {
	agreed, ok := driver.(chain.Agreed)
	if !ok {
		return
	}

	for _, node := range agreed.Nodes() {
		n.Nodes = append(n.Nodes, health.Node{
			Name:     node.Name,
			Tip:      node.Tip,
			Trouble:  string(node.Trouble),
			Since:    node.Since,
			Why:      node.Why,
			Alone:    node.Alone,
			Version:  node.Version,
			Warnings: node.Warnings,
		})
	}

	now := e.nodes.of(n.Network)
	if now.why == "" {
		return
	}

	n.UnagreedSince, n.WaitingPayments, n.WaitingTransactions = now.since, now.payments, now.transactions
	if now.partly {
		n.Unagreed = fmt.Sprintf(
			"%s: %d payments that are deep enough wait until a second node shows their blocks; others are confirmed",
			now.why,
			now.payments,
		)

		return
	}

	n.Unagreed = fmt.Sprintf(
		"%s: nothing that needs two nodes is confirmed; %d payments and %d transactions wait",
		now.why, now.payments, now.transactions,
	)
}

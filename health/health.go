// Package health holds the report of Engine.Health: the state of every network. It imports nothing
// of this module, so that handlers and hosts can use its types alone.
package health

import (
	"slices"
	"time"
)

// Network is the state of one network.
type Network struct {
	Network string
	// Height is the height of the last block whose payments are stored, Tip that of the newest
	// block on the node.
	Height, Tip uint64
	// Behind is Tip − Height, in blocks; 0 when Height is above Tip.
	Behind uint64
	// Stopped is why the network is not read any more; empty while it runs. See Resume.
	Stopped string
	// ReadAt is when the cursor last moved.
	ReadAt time.Time
	// Stale is set while a live network's newest block is older than 18 block times, and an hour at least:
	// the nodes may be cut off from their network.
	Stale bool
	// TipAhead is how far the newest block's time is ahead of the clock, where that is more than blocks may
	// be: the clock may be slow. It only warns.
	TipAhead time.Duration
	// Unconfirmed is what one node says and nothing confirms, such as a new wallet's first nonce where one endpoint is
	// configured; empty otherwise. It only warns.
	Unconfirmed string
	// Nodes are the configured nodes, in the order of configuration, as this process last saw them. They only warn:
	// without a node that is not believed, payments wait for another one that agrees.
	Nodes []Node
	// Unagreed is why no two nodes agree, where two or more are configured: which is missing or says something else,
	// since when. While it is set, nothing confirms that needs two nodes, and WaitingPayments and
	// WaitingTransactions say how many wait, up to 1,000 each. Everything else goes on. Where they agree on the newest
	// blocks it names an old block that they do not, and WaitingPayments are those that are deep enough all the same.
	Unagreed                             string
	UnagreedSince                        time.Time
	WaitingPayments, WaitingTransactions int
	// Follower is this process's state; other processes may follow the network instead.
	Follower Follower
}

// Wallet is a wallet that needs a person, or does not send.
type Wallet struct {
	Network, Address string
	// AccountID is the account that it belongs to.
	AccountID string
	// Frozen is set while nothing new is signed for the wallet.
	Frozen bool
	// FrozenBy is the transaction that is not on record, or that paid twice; empty after a new epoch.
	FrozenBy string
	FrozenAt time.Time
	// StuckSince is when the transaction was signed that no block holds and all later ones wait for; zero
	// while there is none.
	StuckSince time.Time
	// Reason is why it is here: "unrecorded_transaction", "paid_twice" or "epoch" for a frozen one (see
	// Engine.Acknowledge and Engine.Unfreeze), else a sentence for people.
	Reason string
}

// Report is the state of every network, with the wallets that need a person: up to 1,000 of each network.
type Report struct {
	Networks []Network
	// Wallets are those that are frozen or do not send; empty when all is well.
	Wallets []Wallet
	// Attention are the settlements and payouts that a person should know of, by object, network, status and reason:
	// settlements that are held or have failed and do not return by themselves, payouts that failed in the last 24
	// hours, and both where they have waited for more than a minute. AttentionAt is when they were last counted, about
	// every 15 s; zero where the store does not count them (see store.AttentionReader).
	Attention   []Attention
	AttentionAt time.Time
	// Checks are the kinds of work of this process, by name.
	Checks []Check
	// Processes are the other processes, by name.
	Processes []Process
	// ClockSkew is how far this process's clock is ahead of the store's; 0 where that is not measured.
	ClockSkew time.Duration
	// Backlogs are the accounts with webhooks that are due or being sent: those that wait longest first, up to 100.
	// Backlog is the sum of all of them.
	Backlogs []Backlog
	Backlog  Backlog
	// DueAt is when what is due was last counted: about every 15 s, and less often where counting takes long. It is
	// zero where the store does not count it (see webhook.BacklogReader).
	DueAt time.Time
}

// NeedsPerson reports whether a wallet, a settlement or a stopped network waits for a person. Where it is no network
// everybody else's work goes on, so OK may still be true. A payout that failed is not counted: it is over, and its
// merchant was told.
func (h Report) NeedsPerson() bool {
	return len(h.Wallets) > 0 || slices.ContainsFunc(h.Attention, Attention.NeedsPerson) ||
		slices.ContainsFunc(h.Networks, Network.NeedsPerson)
}

// NeedsPerson reports whether the network is stopped: nothing but Engine.Resume has it read again.
func (n Network) NeedsPerson() bool { return n.Stopped != "" }

// OK reports whether all of the service works: every network is read and has blocks, there are prices, all work
// succeeds in time, and no process is lost. A wallet that is frozen does not count: see NeedsPerson.
func (h Report) OK() bool {
	for _, p := range h.Processes {
		if p.Lost {
			return false
		}
	}

	for _, c := range h.Checks {
		if c.Error != "" {
			return false
		}
	}

	for _, n := range h.Networks {
		if !n.Ready() {
			return false
		}
	}

	return true
}

// Ready reports whether this process can answer the API: its store is read and written. Prices and networks have a
// readiness of their own (PricesReady, Network.Ready), and other processes that are lost do not count, so that a load
// balancer does not take all processes out for what concerns a part of the service.
func (h Report) Ready() bool { return !h.fails(Store) && !h.fails(Heartbeat) }

// PricesReady reports whether the prices in USD of all enabled assets were had lately.
func (h Report) PricesReady() bool { return !h.fails(Rates) }

// fails reports whether a check fails.
func (h Report) fails(check string) bool {
	for _, c := range h.Checks {
		if c.Name == check && c.Error != "" {
			return true
		}
	}

	return false
}

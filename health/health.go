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
	// Height is the height of the last block whose payments are stored, Tip the height of the newest block on
	// the node.
	Height, Tip uint64
	// Behind is Tip − Height, in blocks; 0 when Height is above Tip.
	Behind uint64
	// Stopped is why the network is no longer read; empty while it runs. See Resume.
	Stopped string
	// ReadAt is when the cursor last moved.
	ReadAt time.Time
	// Stale is set while a live network's newest block is older than 18 block times, and an hour at least:
	// the nodes may be cut off from their network.
	Stale bool
	// TipAhead is how far the newest block's time is ahead of the clock, if that exceeds the tolerance for
	// blocks: the clock may be slow. It only warns.
	TipAhead time.Duration
	// Unconfirmed is an answer of one node that no other node confirms, such as a new wallet's first nonce if
	// only one endpoint is configured. It is empty otherwise. It only warns.
	Unconfirmed string
	// Nodes are the configured nodes, in the order of configuration, as this process last saw them. They only
	// warn: if a node is not trusted, payments wait until another one agrees.
	Nodes []Node
	// Unagreed explains why no two nodes agree, if two or more are configured: which node is missing or
	// differs, and since when. While it is set, nothing confirms that needs two nodes. WaitingPayments and
	// WaitingTransactions count those that wait, up to 1,000 each. Everything else goes on. If the nodes agree
	// about the newest blocks, Unagreed names an old block about which they do not, and WaitingPayments counts
	// the payments that are deep enough and wait for it.
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
	// Frozen is set while the wallet signs nothing new.
	Frozen bool
	// FrozenBy is the transaction that is not on record, or that paid twice; empty after a new epoch.
	FrozenBy string
	FrozenAt time.Time
	// StuckSince is when the transaction was signed that is in no block and that all later ones wait for;
	// zero if there is none.
	StuckSince time.Time
	// Reason is why it is listed: "unrecorded_transaction", "paid_twice" or "epoch" for a frozen one (see
	// Engine.Acknowledge and Engine.Unfreeze), else a sentence for people.
	Reason string
}

// Report is the state of every network, with the wallets that need a person: up to 1,000 of each network.
type Report struct {
	Networks []Network
	// Wallets are the wallets that are frozen or do not send; empty when all is well.
	Wallets []Wallet
	// Attention are the settlements and payouts that a person should know of, by object, network, status and
	// reason. It includes settlements that are held, or have failed and do not return by themselves, and
	// payouts that failed in the last 24 hours. It also includes both kinds if they have waited for more than
	// a minute. AttentionAt is when they were last counted, about every 15 s; zero if the store does not
	// count them (see store.AttentionReader).
	Attention   []Attention
	AttentionAt time.Time
	// Checks are the kinds of work of this process, by name.
	Checks []Check
	// Processes are the other processes, by name.
	Processes []Process
	// ClockSkew is how far this process's clock is ahead of the store's; 0 if it is not measured.
	ClockSkew time.Duration
	// Backlogs are the accounts whose webhooks are due or being sent: the longest waiting first, up to 100.
	// Backlog is the sum of all accounts.
	Backlogs []Backlog
	Backlog  Backlog
	// DueAt is when the due deliveries were last counted: about every 15 s, and less often if counting takes
	// long. It is zero if the store does not count them (see webhook.BacklogReader).
	DueAt time.Time
}

// NeedsPerson reports whether a wallet, a settlement or a stopped network waits for a person. Unless it is a
// network, all other work goes on, so OK may still be true. A failed payout is not counted: it is over, and
// its merchant was notified.
func (h Report) NeedsPerson() bool {
	return len(h.Wallets) > 0 || slices.ContainsFunc(h.Attention, Attention.NeedsPerson) ||
		slices.ContainsFunc(h.Networks, Network.NeedsPerson)
}

// NeedsPerson reports whether the network is stopped: only Engine.Resume restarts it.
func (n Network) NeedsPerson() bool { return n.Stopped != "" }

// OK reports whether all of the service works: every network is read and has blocks, there are prices, all
// work succeeds in time, and no process is lost. A frozen wallet does not count: see NeedsPerson.
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

// Ready reports whether this process can answer the API: it can read and write its store. Prices and networks
// have a readiness of their own (PricesReady, Network.Ready), and other processes that are lost do not count.
// So a problem of one part of the service does not make a load balancer take out all processes.
func (h Report) Ready() bool { return !h.fails(Store) && !h.fails(Heartbeat) }

// PricesReady reports whether the prices in USD of all enabled assets were read recently.
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

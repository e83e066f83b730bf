package simulation

import (
	"slices"
	"time"
)

// Kind is a kind of operation or fault.
type Kind string

// What merchants, payers, the network and time do.
const (
	Step           Kind = "step"
	Wait           Kind = "wait"
	Mine           Kind = "mine"
	CreateInvoice  Kind = "create invoice"
	SelectOption   Kind = "select option"
	CancelInvoice  Kind = "cancel invoice"
	AcceptInvoice  Kind = "accept invoice"
	CreateDeposit  Kind = "create deposit address"
	CreatePayout   Kind = "create payout"
	CancelPayout   Kind = "cancel payout"
	CreateRefund   Kind = "create refund"
	CancelRefund   Kind = "cancel refund"
	ChangeSettings Kind = "change settings"
	RetrySettle    Kind = "retry settlement"
	PayInvoice     Kind = "pay invoice"
	PayDeposit     Kind = "pay deposit address"
	Hint           Kind = "hint"
	WorkOn         Kind = "minutes of work"
	AuditNow       Kind = "audit"
	ReadLists      Kind = "read lists"
)

// The faults.
const (
	PayHidden      Kind = "pay through a contract"
	PayFailing     Kind = "pay and revert"
	PayVariable    Kind = "pay another amount than the pool shows"
	ReplacePayment Kind = "replace payment"
	DropPayment    Kind = "drop payment from the pool"
	PayBadToken    Kind = "pay a token that takes a fee"
	ForkChain      Kind = "fork"
	ForkDeep       Kind = "fork below the confirmations"
	FeeSpike       Kind = "fee spike"
	NoBlocks       Kind = "hour without blocks"
	FailCalls      Kind = "node fails some calls"
	DeadNode       Kind = "node is dead"
	LagNode        Kind = "node lags"
	LagFar         Kind = "node lags below every block that was read"
	LoseAnswers    Kind = "broadcast is not answered"
	DenyHashes     Kind = "node denies hashes"
	SilentReceipts Kind = "node leaves logs out of receipts"
	LiePrices      Kind = "node lies about prices and gas"
	PauseInCall    Kind = "process is stopped inside a call"
	StopProcess    Kind = "process is stopped"
	KillProcess    Kind = "process is killed"
	StepClock      Kind = "clock step"
	StoreDown      Kind = "store does not answer"
	StoreUnknown   Kind = "commit is not answered"
	StoreConflict  Kind = "serialization failure"
	RestoreBackup  Kind = "backup is restored"
	FeedState      Kind = "price feed fails or is stale"
	FeedPrice      Kind = "price moves"
	ReceiverState  Kind = "receiver refuses, hangs, lies or drips"
	StoreReads     Kind = "reads of the store fail"
	StoreSlow      Kind = "store is slow"
	SignerState    Kind = "signer refuses, fails, loses or is slow"
	RepeatAnswers  Kind = "answers come late, calls twice"
	Steal          Kind = "thief signs with a copy of the key"
	CloseNonces    Kind = "nonce accounts cannot be used"
	PayDust        Kind = "pay dust"
	MineReward     Kind = "block reward to one of our addresses"
	HoldBack       Kind = "miners leave out what pays little"
	FloodReceivers Kind = "receivers of many accounts hang"
	Heal           Kind = "faults end"
)

// kindOrder is every kind, in a fixed order, so that a seed always draws the same.
var kindOrder = []Kind{
	Step,
	Wait,
	Mine,
	CreateInvoice,
	SelectOption,
	CancelInvoice,
	AcceptInvoice,
	CreateDeposit,
	CreatePayout,
	CancelPayout,
	CreateRefund,
	CancelRefund,
	ChangeSettings,
	RetrySettle,
	PayInvoice,
	PayDeposit,
	Hint,
	WorkOn,
	AuditNow,
	ReadLists,
	PayHidden,
	PayFailing,
	PayVariable,
	ReplacePayment,
	DropPayment,
	PayBadToken,
	ForkChain,
	ForkDeep,
	FeeSpike,
	NoBlocks,
	FailCalls,
	DeadNode,
	LagNode,
	LagFar,
	LoseAnswers,
	DenyHashes,
	SilentReceipts,
	LiePrices,
	PauseInCall,
	StopProcess,
	KillProcess,
	StepClock,
	StoreDown,
	StoreUnknown,
	StoreConflict,
	RestoreBackup,
	FeedState,
	FeedPrice,
	ReceiverState,
	StoreReads,
	StoreSlow,
	SignerState,
	RepeatAnswers,
	Steal,
	CloseNonces,
	PayDust,
	MineReward,
	HoldBack,
	FloodReceivers,
	Heal,
}

// weights are how often kinds are drawn, relative to each other.
var weights = map[Kind]int{
	Step:           60,
	Wait:           40,
	Mine:           20,
	CreateInvoice:  12,
	SelectOption:   8,
	CancelInvoice:  2,
	AcceptInvoice:  2,
	CreateDeposit:  4,
	CreatePayout:   8,
	CancelPayout:   2,
	CreateRefund:   3,
	CancelRefund:   1,
	ChangeSettings: 1,
	RetrySettle:    1,
	PayInvoice:     16,
	PayDeposit:     10,
	Hint:           3,
	WorkOn:         1,
	AuditNow:       3,
	ReadLists:      2,
	PayHidden:      2,
	PayFailing:     1,
	PayVariable:    2,
	ReplacePayment: 2,
	DropPayment:    1,
	PayBadToken:    1,
	ForkChain:      4,
	ForkDeep:       3,
	FeeSpike:       1,
	NoBlocks:       1,
	FailCalls:      4,
	DeadNode:       1,
	LagNode:        2,
	LagFar:         1,
	LoseAnswers:    2,
	DenyHashes:     1,
	SilentReceipts: 1,
	LiePrices:      0, // in place of others; see drawNodes
	PauseInCall:    3,
	StopProcess:    2,
	KillProcess:    5,
	StepClock:      1,
	StoreDown:      3,
	StoreUnknown:   3,
	StoreConflict:  3,
	RestoreBackup:  1,
	FeedState:      2,
	FeedPrice:      2,
	ReceiverState:  3,
	StoreReads:     3,
	StoreSlow:      2,
	SignerState:    2,
	RepeatAnswers:  2,
	Steal:          1,
	CloseNonces:    0, // only where a bias has networks with nonce accounts
	PayDust:        0, // these only where a bias has networks of outputs
	MineReward:     0,
	HoldBack:       0,
	FloodReceivers: 0, // it plays a service of its own
	Heal:           8,
}

// play plays one operation. What its arguments select may not exist; then nothing happens.
func (w *harness) play(op Op) {
	w.account.Operations[op.Kind]++
	w.countCells(op.Kind)

	switch op.Kind {
	case Step:
		w.clock.advance(time.Duration(1+op.B%3000) * time.Millisecond)
		w.run(int(op.A % 3))
	case Wait:
		w.wait(op)
	case WorkOn:
		w.workOn()
	case AuditNow:
		w.auditNow(op)
	case Mine:
		w.network(op.A).mine(1 + int(op.B%4))
	default:
		w.playMerchant(op)
	}

	w.oracle.look()
}

// wait lets some seconds or, rarely, minutes pass.
func (w *harness) wait(op Op) {
	w.pass(time.Duration(1+op.A%10) * time.Second)

	if op.B%16 == 0 {
		for range 10 {
			w.pass(time.Minute)
		}
	}
}

func (w *harness) network(n uint64) network { return w.networks[n%uint64(len(w.networks))] }

func (w *harness) process(n uint64) *process { return w.processes[n%uint64(len(w.processes))] }

func (w *harness) merchant(n uint64) *merchant { return w.merchants[n%uint64(len(w.merchants))] }

func (w *harness) node(op Op) *node {
	p := w.process(op.A)

	return p.nodes[op.B%uint64(len(p.nodes))]
}

// active returns the faults that are present.
func (w *harness) active() []Kind {
	var kinds []Kind

	note := func(present bool, kind Kind) {
		if present {
			kinds = append(kinds, kind)
		}
	}

	for _, p := range w.processes {
		note(!p.runs(), StopProcess)
		note(p.offset != 0, StepClock)
		note(p.crash.Dead(), KillProcess)
		note(p.failingReads > 0, StoreReads)
		note(p.storeDelay > 0, StoreSlow)
		note(p.signer != signs, SignerState)

		for _, f := range p.storeFaults {
			note(f == failsBefore, StoreDown)
			note(f == failsAfter, StoreUnknown)
			note(f == failsToSerialize, StoreConflict)
		}

		for _, n := range p.nodes {
			note(n.dead, DeadNode)
			note(len(n.failing) > 0, FailCalls)
			note(n.lag > 0 && n.lag < 1000, LagNode)
			note(n.lag >= 1000, LagFar)
			note(n.lost > 0, LoseAnswers)
			note(n.denied, DenyHashes)
			note(n.silent, SilentReceipts)
			note(n.lied(), LiePrices)
			note(n.pausesIn > 0, PauseInCall)
			note(n.repeats > 0, RepeatAnswers)
		}
	}

	note(w.feed.state != feedWorks, FeedState)
	note(w.heldBack(), HoldBack)

	for _, m := range w.merchants {
		note(w.receivers.state[m.host] != receives, ReceiverState)
	}

	return kinds
}

// recentOps is for how many operations a fault that is over at once still counts as present.
const recentOps = 5

// countCells counts the pairs of an operation and the faults that are present, or were played just before it.
func (w *harness) countCells(operation Kind) {
	if slices.Contains(Faults(), operation) {
		w.recent = append(w.recent, operation)
		w.recent = w.recent[max(len(w.recent)-recentOps, 0):]

		return
	}

	for _, fault := range append(w.active(), w.recent...) {
		w.account.Cells[Cell{fault, operation}]++
	}

	if len(w.recent) > 0 {
		w.recent = w.recent[1:]
	}
}

// Operations returns the kinds that are no faults, Faults the others.
func Operations() []Kind { return kindOrder[:slices.Index(kindOrder, PayHidden)] }

// Faults returns the kinds that are faults.
func Faults() []Kind { return kindOrder[slices.Index(kindOrder, PayHidden):] }

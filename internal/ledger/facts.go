package ledger

import (
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/settlement"
)

// Facts are what is known of one place, or of the outputs that plans join. Ids of deposits and steps sort by age.
type Facts struct {
	// Native is the id of the network's native coin, in which all fees are counted.
	Native string
	// SpendsOutputs is set where a transaction spends outputs: costs are split by input, and nothing is brought forward
	// from one plan to the next.
	SpendsOutputs bool
	// Since is what earlier facts came to that are not in these; zero for all facts of a place.
	Since       Checkpoint
	Deposits    []Deposit
	Plans       []Plan
	Withdrawals []Withdrawal
}

// Checkpoint is what facts came to that nothing changes any more: of deposits and plans that have ended, below
// finality. Nothing later has them as members.
type Checkpoint struct {
	Assets   []Asset
	FeeAhead chain.Amount
}

// Deposit is a payment with its settlement as it was opened.
type Deposit struct {
	// ID is the settlement's.
	ID      string
	AssetID string
	// Gross is what arrived, in base units of the asset, as the canonical chain has it now.
	Gross chain.Amount
	// Fee is the platform fee, in native base units.
	Fee    chain.Amount
	Source settlement.FeeSource
	// Canonical is set while the canonical chain holds the payment, deep enough.
	Canonical bool
	// LostAt is when the payment was last found to be gone; zero if it never was.
	LostAt time.Time
	// Verdicts are those of planning and sending, and the acts that end them.
	Verdicts []Verdict
	// Stored is the one result of a settlement that moves nothing: of a simulated payment, or at an address of the
	// merchant's own descriptor. Such a settlement is in no plan.
	Stored *Stored
}

// Stored is the result of a settlement without transactions; amounts in base units.
type Stored struct {
	FeePaid, NetReleased chain.Amount
	FeeTx, SweepTx       string
	At                   time.Time
}

// Verdict says why a settlement waits or failed, or that it is queued again.
type Verdict struct {
	At time.Time
	// Status is Held, Failed, or Pending for one that is queued again: by a person's retry, or to be planned anew.
	Status settlement.Status
	// Reason is empty with Pending.
	Reason settlement.Reason
	// Required is what the master wallet has to hold, in native base units; nil where it is not short.
	Required *chain.Amount
}

// Plan is a release as it was planned. Its members never change: what became of them is in other facts.
type Plan struct {
	ID string
	// Number counts the plans of the place from 0: clocks of processes differ, and so do their ids.
	Number  int
	MadeAt  time.Time
	AssetID string
	// Members are ids of deposits.
	Members []string
	// CarryIn is platform fee of other releases that the plan pays too, in native base units. The member Bearer bears
	// it.
	CarryIn chain.Amount
	Bearer  string
	// Required is what the master wallet has to hold for it, in native base units; nil where it takes nothing there.
	Required *chain.Amount
	// Steps are its transactions so far. A plan without any claims what earlier ones brought for payments that are
	// gone.
	Steps []Step
	// Over is set once no more steps follow.
	Over bool
}

// Step is a transaction of a plan.
type Step struct {
	// ID is the transaction's.
	ID   string
	Kind chain.StepKind
	// Members are those that it is for; nil for all of the plan.
	Members []string
	// TxHash is its latest; empty while nothing is signed.
	TxHash string
	// Live is set while signed bytes of it may be included, or included anew.
	Live bool
	// PaysFee is the platform fee that it pays, in native base units.
	PaysFee chain.Amount
	// Results are those of the transaction, of those that took its place, and of the end of its delegation.
	Results []Result
}

// Result is what a transaction did in a final block.
type Result struct {
	TxHash string
	// Canonical is set while the canonical chain holds that block.
	Canonical bool
	// LearnedAt is when the block was known to be final.
	LearnedAt time.Time
	// Cost is what the network took, in native base units, bought energy included.
	Cost chain.Amount
	// AtPlace is set where the place paid the cost, and not the master wallet.
	AtPlace bool
	// FeePaid is the platform fee that reached the fee address, in native base units.
	FeePaid chain.Amount
	// Brought is native coin that reached the place, in base units.
	Brought chain.Amount
	// Sent left the place for the master wallet, and Arrived reached it; base units of the plan's asset. A token may
	// keep some of it.
	Sent, Arrived chain.Amount
}

// Withdrawal is what a transaction that is not on record took of one asset from the place, in base units.
type Withdrawal struct {
	TxHash string
	// Plans is how many plans of the place were made before it was learned.
	Plans     int
	AssetID   string
	Amount    chain.Amount
	Canonical bool
	// Known is set once a person has said that nothing on record made it.
	Known bool
}

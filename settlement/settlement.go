// Package settlement settles confirmed payments: it takes the platform fee and moves the money from its
// deposit address to the merchant's master wallet.
//
// A settlement opens by reaction to a confirmed payment that has a price, in the transaction that confirms
// it. transitions.go is its pure state machine, service.go has the operations of merchants and operators.
// internal/sweep plans and moves: it groups settlements of one address and asset into a Sweep. Then it queues
// the transactions of the Sweep one after the other: top-up or delegation, fee, sweep.
package settlement

import (
	"context"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
)

// Status is the status of a settlement.
type Status string // spec 2.8.2

// The statuses of specification 3.4.
const (
	Pending   Status = "pending"
	Held      Status = "held"
	Releasing Status = "releasing"
	Released  Status = "released"
	Failed    Status = "failed"
	Reverted  Status = "reverted"
)

// Reason is why a settlement is held or failed (specification 2.8).
type Reason string // spec 2.8.3

// The reasons: the first three hold, the others fail.
const (
	InsufficientMasterBalance Reason = "insufficient_master_balance"
	Uneconomic                Reason = "uneconomic"
	BelowSweepMin             Reason = "below_sweep_min"

	PaymentOrphaned   Reason = "payment_orphaned"
	FundsMissing      Reason = "funds_missing"
	NotReleasable     Reason = "not_releasable"
	TransactionFailed Reason = "transaction_failed"
	Replanning        Reason = "replanning"
	Unclassified      Reason = "unclassified"
)

// FeeSource is the payer of the platform fee.
type FeeSource string // spec D4.12

// The sources: a native deposit pays its own fee; the master wallet pays the fee of a token deposit.
const (
	FromDeposit FeeSource = "deposit"
	FromMaster  FeeSource = "master"
)

// Settlement takes one confirmed payment to the master wallet.
type Settlement struct {
	ID        string
	Owner     event.Owner
	Status    Status
	PaymentID string
	// InvoiceID or DepositAddressID is the object that the payment was for.
	InvoiceID, DepositAddressID string
	Network                     string
	Asset                       string
	AssetID                     string
	NativeAsset                 string
	// Deposit is the address that holds the money and the key that signs for it.
	Deposit chain.Party
	// Gross is the deposit, in base units of the asset.
	Gross    chain.Amount
	USDValue decimal.Decimal
	FeeBPS   int
	// FeeUSD = USDValue × FeeBPS / 10000, rounded down to 8 places. NativePrice is USD per native coin in the
	// same snapshot. FeeNative = FeeUSD ÷ NativePrice, rounded down to a base unit.
	FeeUSD, NativePrice decimal.Decimal // spec 2.8.15
	FeeNative           chain.Amount
	FeeSource           FeeSource
	// FeePaid + FeeCarried = FeeNative + CarriedIn, always. FeeCarried is the unpaid part: it is still due,
	// or left to a later release.
	FeePaid, FeeCarried, CarriedIn chain.Amount
	// CarriedOut is the part of FeeCarried that was added to the CarriedFee of the account. A later release
	// pays it, or already paid it.
	CarriedOut chain.Amount
	// RequiredNative is the amount that the master wallet must hold for the release: fee + top-up + network
	// fees.
	RequiredNative      *chain.Amount
	MasterWalletAddress chain.Address
	// Reason is why it is held or failed. A reverted settlement has payment_orphaned while its payment is
	// gone; the API does not show that.
	Reason Reason
	// FailedFor is the reason of a settlement that had failed before its payment left the chain. Once the
	// payment is back, the settlement has failed for it again; the API shows it as the reason throughout. It
	// is empty if the settlement then returns to the queue.
	FailedFor Reason
	FeeTx     string
	TopUpTx   string
	SweepTx   string
	// NetworkFees is this settlement's share of the network fees of its release, in native base units.
	NetworkFees chain.Amount
	// ResidueIn and ResidueOut are its shares of the native coin at the deposit address that belongs to no
	// deposit, before and after the release; base units. ResidueOut includes the part of a top-up that no fee
	// used.
	ResidueIn, ResidueOut chain.Amount
	// NetReleased is the measured amount that arrived at the master wallet; nil before.
	NetReleased *chain.Amount
	Simulated   bool
	// SweepID is the sweep that has or had the settlement, set when its first transaction is queued. A
	// pending or held settlement that has one is not planned again.
	SweepID string
	// ConfirmedAt is the payment's.
	ConfirmedAt time.Time
	HeldSince   time.Time
	ReleasedAt  time.Time
	FailedAt    time.Time
	CreatedAt   time.Time
	// DueAt is when planning looks at it next; zero while it waits for a person, or does not wait.
	DueAt    time.Time
	Sequence int64
	Version  int64
	// ReasonMessage says more than Reason of why it waits or failed: a code, a colon and a sentence.
	// WaitingSince is when the wait began, once it has lasted more than a minute; zero otherwise.
	ReasonMessage string
	WaitingSince  time.Time
}

// Sweep moves one or more settlements of an address and asset to the master wallet.
type Sweep struct {
	ID      string
	Owner   event.Owner
	Network string
	AssetID string
	Deposit chain.Party
	Master  chain.Party
	// SettlementIDs are its settlements, oldest first.
	SettlementIDs []string
	// Amount is the sum of their gross; Fee the platform fee that it pays, CarryIn the part of Fee left by
	// earlier ones.
	Amount, Fee, CarryIn chain.Amount
	// FeeAddress receives the platform fee.
	FeeAddress chain.Address
	// ResidueIn and ResidueOut: native coin at the deposit address that belongs to no deposit,
	// before and after.
	ResidueIn, ResidueOut chain.Amount
	// Owed is the part of its deposits that transactions of earlier releases took, in base units of the
	// asset. Claims is the part of Owed, or of residue, that these transactions brought to the master wallet.
	// Its settlements show Claims as released. If they took all of its deposits, the sweep has no
	// transaction.
	Owed   chain.Amount
	Claims []Brought
	// LeftFees are its network fees that the last settlement to leave it still bears, in native base units.
	LeftFees chain.Amount
	// Steps are its transactions so far, in order.
	Steps []Step
	// Done is set once it ended, released or failed.
	Done bool
	// DueAt is when planning looks at it next; zero while one of its transactions is under way, and once it
	// is done.
	DueAt     time.Time
	CreatedAt time.Time
	Version   int64
}

// Claimed returns the sum of the claims of a sweep, in base units of its asset.
func (r *Sweep) Claimed() (sum chain.Amount) {
	for _, b := range r.Claims {
		sum = sum.Add(b.Amount)
	}

	return sum
}

// Step is one transaction of a release.
type Step struct {
	Kind          chain.StepKind `json:"kind"`
	TransactionID string         `json:"transaction_id"`
	State         wallet.State   `json:"state"`
	TxHash        string         `json:"tx_hash,omitempty"`
	// NetworkFee is the network fee of the transaction; 0 before it is final.
	NetworkFee chain.Amount `json:"network_fee"`
	// PaysFee is the platform fee that it pays.
	PaysFee chain.Amount `json:"pays_fee"`
	// Parts are the shares of PaysFee by settlement, set if a settlement may leave the sweep early or has
	// left it. The settlements that stay bear the rest.
	Parts []Part `json:"parts,omitempty"`
	// Displaced are the transactions that blocked it, or replaced it in a block, with their costs. If it is a
	// delegation, its displacing transaction took the stake back.
	Displaced []Cost `json:"displaced,omitempty"`
	// UndelegationID is the transaction that takes the stake of a delegation back, once the sweep is over.
	UndelegationID string `json:"undelegation_id,omitempty"`
	// ResidueAdded and ResidueTaken are native coin that the step left at the deposit address, or took from
	// it, beyond the deposits.
	ResidueAdded chain.Amount `json:"residue_added,omitzero"`
	ResidueTaken chain.Amount `json:"residue_taken,omitzero"`
	// LostTaken is the cost, for payments that are gone, of a release that ended without a sweep; native base
	// units. Its last step has it.
	LostTaken chain.Amount `json:"lost_taken,omitzero"`
	// TokenAdded and TokenTaken are the same of the token that a sweep moves, in its base units.
	TokenAdded chain.Amount `json:"token_added,omitzero"`
	TokenTaken chain.Amount `json:"token_taken,omitzero"`
	// Unclaimed is what a sweep brought to the master wallet for payments that are gone, in base units of the
	// asset.
	Unclaimed chain.Amount `json:"unclaimed,omitzero"`
	// Recorded is set once its inclusion was final and counted. A transaction that leaves the chain and comes
	// back is not counted twice.
	Recorded bool `json:"recorded,omitempty"`
}

// Cost is the network fee of a transaction.
type Cost struct {
	TransactionID string       `json:"transaction_id"`
	NetworkFee    chain.Amount `json:"network_fee"`
}

// Part is the share of one settlement in a platform fee.
type Part struct {
	SettlementID string       `json:"settlement_id"`
	Amount       chain.Amount `json:"amount"`
}

// CarriedFee is the platform fee that was too small to be paid on its own: one row per owner and network.
type CarriedFee struct {
	Owner   event.Owner
	Network string
	Amount  chain.Amount
	Version int64
}

// Residue is native coin left at one of our addresses that belongs to no deposit. Owed is the opposite: the
// amount that transactions took out of deposits that were not theirs, because a fork changed their cost or
// their payments. The next release of native coin bears Owed. One of the two is 0.
type Residue struct {
	Network string
	Address chain.Address
	Amount  chain.Amount
	Owed    chain.Amount
	// Unclaimed reached the master wallet from this address, but no settlement shows it, because the payments
	// that it was swept for are gone. Oldest first. The next release of native coin claims it.
	Unclaimed []Brought
	// Tokens are the residues of tokens, at most one entry per asset.
	Tokens []TokenResidue
	// ClaimedBy are the ids of sweeps without a transaction that have claimed Brought amounts of other
	// sweeps.
	ClaimedBy []string
	Version   int64
}

// TokenResidue is the Residue of a token, in its base units. The next release of the token bears Owed.
type TokenResidue struct {
	AssetID   string       `json:"asset_id"`
	Amount    chain.Amount `json:"amount,omitzero"`
	Owed      chain.Amount `json:"owed,omitzero"`
	Unclaimed []Brought    `json:"unclaimed,omitempty"`
}

// Brought is the amount that a sweep brought to the master wallet for payments that are gone, in base units
// of its asset.
type Brought struct {
	SweepID string       `json:"sweep_id"`
	Amount  chain.Amount `json:"amount"`
}

// Filter selects settlements for a list.
type Filter struct {
	Owner                       event.Owner
	Statuses                    []Status
	Networks                    []string
	PaymentID, InvoiceID        string
	DepositAddressID            string
	CreatedAfter, CreatedBefore time.Time // inclusive, exclusive; zero: open
	After                       string
	Limit                       int
}

// Reader has the reads of this package.
type Reader interface {
	// Settlement returns a settlement of an owner, or fault.NotFound when the owner has none of this id.
	Settlement(ctx context.Context, owner event.Owner, id string) (Settlement, error)
	// SettlementsByID returns the settlements that exist, each once, oldest first.
	SettlementsByID(ctx context.Context, ids []string) ([]Settlement, error)
	// SettlementsOfPayments returns the settlements of these payments, in any order.
	SettlementsOfPayments(ctx context.Context, paymentIDs []string) ([]Settlement, error)
	// Settlements returns a page, newest first.
	Settlements(ctx context.Context, f Filter) ([]Settlement, error)
	// DueSettlements returns the settlements of a network that are pending, held, or failed and self-healing,
	// with DueAt ≤ now, oldest first.
	DueSettlements(ctx context.Context, network string, now time.Time, limit int) ([]Settlement, error)
	// SettlementsAt returns the pending and held settlements of an address and asset, oldest first.
	SettlementsAt(
		ctx context.Context,
		network string,
		address chain.Address,
		assetID string,
	) ([]Settlement, error)
	// Sweep returns a sweep, or fault.NotFound.
	Sweep(ctx context.Context, id string) (Sweep, error)
	// DueSweeps returns the sweeps of a network that are not done with DueAt ≤ now, oldest first.
	DueSweeps(ctx context.Context, network string, now time.Time, limit int) ([]Sweep, error)
	// SweepsAt returns the sweeps of these deposit addresses that are not done, in any order.
	SweepsAt(ctx context.Context, network string, addresses []chain.Address) ([]Sweep, error)
	// Carry returns the fee carried for an owner on a network; ok is false, and the record zero, when there is none.
	Carry(ctx context.Context, owner event.Owner, network string) (c CarriedFee, ok bool, err error)
	// Residue returns the residue at an address; ok is false, and the record zero, when there is none.
	Residue(ctx context.Context, network string, address chain.Address) (r Residue, ok bool, err error)
	// SettlementSettings returns the settings of an account, or fault.NotFound.
	SettlementSettings(ctx context.Context, accountID string) (Settings, error)
}

// Tx has the reads and writes that one operation of this package may make.
type Tx interface {
	Reader
	wallet.Tx
	PutSettlements(ctx context.Context, s ...*Settlement) error
	PutSweep(ctx context.Context, r *Sweep) error
	// CarryForUpdate is Carry with the row locked until the transaction ends.
	CarryForUpdate(ctx context.Context, owner event.Owner, network string) (c CarriedFee, ok bool, err error)
	PutCarry(ctx context.Context, c *CarriedFee) error
	// ResidueForUpdate is Residue with the row locked until the transaction ends.
	ResidueForUpdate(
		ctx context.Context,
		network string,
		address chain.Address,
	) (r Residue, ok bool, err error)
	PutResidue(ctx context.Context, r *Residue) error
}

// database is this package's view of a store.
type database interface {
	Reader
	wallet.Reader
	Update(ctx context.Context, f func(ctx context.Context, tx Tx) error) error
}

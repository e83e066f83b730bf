package chain

import (
	"context"
	"time"
)

// Party is an address of ours with the key that signs for it.
type Party struct {
	Key     KeyRef  `json:"key"`
	Address Address `json:"address"`
}

// Output is what one destination receives.
type Output struct {
	To      Address `json:"to"`
	AssetID string  `json:"asset_id"`
	Amount  Amount  `json:"amount"`
}

// Coin is a spendable output of ours on a UTXO network.
type Coin struct {
	Outpoint Outpoint `json:"outpoint"`
	Owner    Party    `json:"owner"`
	Amount   Amount   `json:"amount"`
	Height   uint64   `json:"height"` // 0 while unconfirmed
}

// Order describes what a transaction must do. internal/txmgr sets the nonce and the coins.
type Order struct {
	// From signs and pays (account networks) or receives the change (UTXO networks).
	From Party `json:"from"`
	// FeePayer pays the network fee where that can be somebody else (Solana); nil: From.
	FeePayer *Party `json:"fee_payer,omitempty"`
	// Outputs are what must arrive. Networks that can pay only one destination refuse more
	// (fault.Unsupported).
	Outputs []Output `json:"outputs"`
	// SubtractFee takes the network fee out of the last output, which must be of the native coin: a sweep
	// whose inputs and outputs balance to the base unit.
	SubtractFee bool `json:"subtract_fee,omitempty"`
	// Close ends the account that the outputs empty, where networks have that (Solana: a token
	// account, whose rent goes back to whoever paid it, or a wallet without coin). Such a
	// transaction is reverted when something arrives in between. PlanSweep sets it; Build may
	// leave the account open all the same.
	Close bool `json:"close,omitempty"` // spec D4.22
	// MaxFee is the most the transaction may cost, in base units of the native coin. Build refuses with
	// fault.Limited and code fee_above_maximum when the network asks for more now.
	MaxFee Amount `json:"max_fee"`
	// Nonce is the account sequence number to use (networks with Nonces).
	Nonce uint64 `json:"nonce,omitempty"`
	// DurableNonce is the nonce to use (networks with DurableNonces); nil: the transaction runs out instead. Build
	// reads nothing of its account.
	DurableNonce *DurableNonce `json:"durable_nonce,omitempty"`
	// Coins are the inputs that may be chosen from (UTXO networks); a release names those of its deposits.
	Coins []Coin `json:"coins,omitempty"`
	// Spends are those of Coins that must be spent, so that the transaction excludes another one. Build fails
	// as fault.Invalid where Coins lacks one.
	Spends []Outpoint `json:"spends,omitempty"`
	// Bumps is an output to one of our addresses in a payer's waiting transaction. It must be spent, and
	// the fee must also pay for that transaction and its unconfirmed parents, so that all of them are
	// included; see Bumper.
	Bumps *Coin `json:"bumps,omitempty"`
	// Recovers is the stray that is moved, all of it. The only output goes to whoever pays the fee; see Recoverer.
	Recovers *Stray `json:"recovers,omitempty"`
	// Replaces is an earlier attempt that this one must displace by paying more, at the same nonce or durable
	// nonce, or sharing a coin. Its Raw is empty where a person acknowledged it and a fork took its block: then
	// what it paid is MaxFee, what it offered is unknown, and this one offers what the network asks now.
	Replaces *Signed `json:"replaces,omitempty"`
	// Outbids is set where nodes refused Replaces and none has it: their pools may hold bytes of lost records at its
	// nonce, whose price is not known. This one then pays at least twice the tip of Replaces.
	Outbids bool `json:"outbids,omitempty"`
	// Expired is the newest attempt, which ran out: it may have offered too little.
	Expired *Signed `json:"expired,omitempty"`
}

// Unsigned is a built transaction that waits for its signatures.
type Unsigned struct {
	// Raw is the driver's own form of the transaction, opaque to others.
	Raw []byte
	// Payloads are what must be signed, in the order Assemble wants the signatures.
	Payloads []Payload
	// MaxFee is the most that this transaction can cost if it is included.
	MaxFee Amount
	// Inputs are the outputs it spends; UTXO networks only.
	Inputs []Outpoint
	// Outputs are what it pays, the network fee already taken out where SubtractFee asked for it.
	Outputs []Output
	// UnconfirmedParents are the spends of waiting transactions of others that it depends on; see Signed.
	UnconfirmedParents []Spend
}

// Signed is a transaction ready to be sent, as it is stored before the first broadcast.
type Signed struct {
	TxHash string     `json:"tx_hash"`
	Raw    []byte     `json:"raw"`
	Nonce  uint64     `json:"nonce,omitempty"`
	MaxFee Amount     `json:"max_fee"`
	Inputs []Outpoint `json:"inputs,omitempty"`
	// DurableNonce is that of the order: the transaction can be included until it is used.
	DurableNonce *DurableNonce `json:"durable_nonce,omitempty"`
	// Outputs are what it pays; see Unsigned.
	Outputs []Output `json:"outputs,omitempty"`
	// UnconfirmedParents are the spends of waiting transactions of others that it depends on. Once
	// another transaction makes one of them in a final block, this one can never be included.
	UnconfirmedParents []Spend `json:"unconfirmed_parents,omitempty"`
	// From is the account that sends it.
	From Address `json:"from"`
	// ValidToHeight and ValidTo bound when it can be included (Solana's last valid block height, Tron's
	// expiration); zero where a network has no such bound.
	ValidToHeight uint64    `json:"valid_to_height,omitempty"`
	ValidTo       time.Time `json:"valid_to,omitzero"`
}

// TxState is where a transaction of ours stands on the network.
type TxState string

// The states. TxUnknown claims nothing: the transaction may still appear.
const (
	TxUnknown  TxState = "unknown"
	TxPooled   TxState = "pooled"
	TxIncluded TxState = "included"
	TxDead     TxState = "dead"
)

// TerminalReason is why a transaction can never be included any more, proven at a final block.
type TerminalReason string

// The reasons: another transaction used the nonce or coin, or the validity ran out.
const (
	ReasonConflict TerminalReason = "conflict"
	ReasonExpired  TerminalReason = "expired"
)

// TxStatus is the answer of Sender.Status.
type TxStatus struct {
	State TxState
	// Block is where it is included.
	Block Ref
	// Final is set when the block is final by the network's own rule (or deep enough where it has none).
	Final bool
	// Reverted is set when it is included and its execution failed: only the fee was spent.
	Reverted bool
	// Fee is the network fee in base units of the native coin; when included.
	Fee Amount
	// Transfers are what its inclusion moved, to count what measurably arrived; when included.
	Transfers []Transfer
	// Reason is set when State is TxDead.
	Reason TerminalReason
}

// Sender makes, sends and looks up transactions. It never chooses a nonce and never signs.
type Sender interface {
	// Build makes the transaction of an order at current fees. Refusals that waiting cannot cure are
	// fault.Invalid (code destination_not_payable), missing money fault.State (code insufficient_funds),
	// fees above MaxFee fault.Limited; a node without an answer is fault.Unavailable.
	Build(ctx context.Context, order Order) (Unsigned, error)
	// Assemble puts the signatures in and computes the hash. It does no I/O and verifies every signature
	// against the key that had to make it.
	Assemble(order Order, unsigned Unsigned, keys []PublicKey, signatures [][]byte) (Signed, error)
	// Broadcast hands the bytes to the network. nil: the node took them, or had them already.
	// fault.Invalid: the node refused them for good as malformed or unfunded. Any other error, such as a
	// time-out, proves nothing: look the transaction up, and send the same bytes again.
	Broadcast(ctx context.Context, tx Signed) error
	// Status looks one attempt up. Included is only what a block of the chain holds, as that block shows
	// it. A driver whose blocks are read (BlockScanner) need not answer TxDead: internal/txmgr proves
	// that from blocks. Any other answers it with a proof read at a final block, by two nodes where two
	// are configured, and never because one does not know the hash.
	Status(ctx context.Context, tx Signed) (TxStatus, error)
}

// GasReader is a Sender that knows of reverted transactions whether they only lacked gas.
type GasReader interface {
	// RanOutOfGas reports whether a transaction in a block was reverted only because its gas, or energy, did not
	// suffice: it may work with more. It is what the block shows, by two nodes where two are configured. One that is
	// in no block is fault.NotFound (code transaction_unknown); it errors as Status does otherwise.
	RanOutOfGas(ctx context.Context, tx Signed) (bool, error)
}

// FitChecker is a Sender that knows whether blocks still take what was signed. internal/txmgr then replaces bytes that
// no block takes at once.
type FitChecker interface {
	// Fits reports whether a block may hold the transaction by its gas. A node that cannot answer is fault.Unavailable.
	Fits(ctx context.Context, tx Signed) (bool, error)
}

// Batcher is a Sender that can pay several destinations at once, as networks that spend outputs do.
// internal/txmgr then batches payouts that are due together. A driver that is no Batcher gets orders of one
// output.
type Batcher interface {
	// MaxOutputs returns how many outputs of one asset an order may have; 1 where the configuration
	// allows no more. Build refuses more with fault.Unsupported, and pays each output for itself,
	// be they to one destination. It does no I/O.
	MaxOutputs() int
}

// StepKind names one transaction of a release.
type StepKind string

// The steps in the order in which they run. A network leaves out what it does not need.
const (
	StepTopUp    StepKind = "topup"    // native coin from the master wallet to the deposit address, for gas
	StepDelegate StepKind = "delegate" // energy for the sweep: stake that is taken back, or bought of an EnergyBuyer's
	StepFee      StepKind = "fee"      // the platform fee
	StepSweep    StepKind = "sweep"    // the deposit to the master wallet; may also carry the platform fee
)

// SweepRequest asks how to move deposits of one asset from one address to the master wallet.
type SweepRequest struct {
	Asset   Asset
	Deposit Party
	Master  Party
	// FeeAddress receives the platform fee.
	FeeAddress Address
	// Amount is the sum of the deposits to move, in base units of Asset.
	Amount Amount
	// Fee is the platform fee to pay now, in base units of the native coin; 0 when it is carried.
	Fee Amount
	// Coins are the outputs that hold the deposits, on networks that spend outputs; they add up to
	// Amount and may lie at several addresses, Deposit being that of the oldest.
	Coins []Coin
	// Residue is native coin already at the deposit address that no deposit explains (left-over top-up gas).
	Residue Amount
	// Spent is what earlier steps of this release took from the deposit's native coin, fees included.
	Spent Amount
	// Done are the steps that are confirmed. A StepDelegate that failed is among them: it is not tried again.
	Done []StepKind
	// KeepOpen asks for a plan without Order.Close: a sweep with it was reverted.
	KeepOpen bool
}

// EnergyBuyer is a Sweeper whose StepDelegate may pay native coin to those who sell energy. What they get is a cost of
// the release, beside its network fees.
type EnergyBuyer interface {
	// EnergySellers returns whom such a step may pay. It does no I/O.
	EnergySellers() []Address
}

// SweepStep is one transaction to make.
type SweepStep struct {
	Kind  StepKind
	Order Order
	// NetworkFee is the estimate of what it will cost, base units of the native coin.
	NetworkFee Amount
	// PaysFee is the platform fee carried by this transaction.
	PaysFee Amount
}

// Sweeper plans releases.
type Sweeper interface {
	// PlanSweep returns the steps that are still to be done, at current fees, in order. It reads the
	// network and changes nothing. A deposit that cannot be moved as it stands is fault.Invalid (code
	// not_releasable); a native deposit smaller than the fees is fault.State (code uneconomic),
	// with an empty plan.
	PlanSweep(ctx context.Context, release SweepRequest) ([]SweepStep, error)
}

package chain

import (
	"context"
	"time"
)

// Driver reads one network. Every call honours its context; a node that cannot answer is
// fault.Unavailable and nothing is guessed. Drivers keep no state that matters: any number of processes
// run the same driver over the same store.
type Driver interface {
	// Network describes the network, its assets complete with ids; always the same value.
	Network() Network
	// Head returns the node's view of the tip and of finality.
	Head(ctx context.Context) (Head, error)
	// RefAt returns the canonical block at a height. A height above the tip is fault.NotFound; a height
	// that the node no longer has is fault.Stopped with code node_pruned.
	RefAt(ctx context.Context, height uint64) (Ref, error)
	// ParseAddress returns the canonical form of an address of this network, or fault.Invalid.
	ParseAddress(s string) (Address, error)
}

// TipReader reads the newest block alone, on networks where the finality beside it costs calls. Whoever follows such a
// network reads both when finality may have moved.
type TipReader interface {
	// Tip returns what Head would return as Tip.
	Tip(ctx context.Context) (Ref, error)
}

// BlockScanner reads whole blocks. The driver reports every transfer of an enabled asset and never
// learns which addresses matter.
type BlockScanner interface {
	// Blocks returns the canonical blocks of the heights from to to (inclusive), ascending and linked by
	// parent hash. It may return a shorter prefix (at least one block) when the range is too much for the
	// node; it never leaves a gap. A range above the tip is fault.NotFound, a pruned one fault.Stopped.
	Blocks(ctx context.Context, from, to uint64) ([]Block, error)
}

// ParentReader reads which parent a block names. It proves that the last block that was read is still in the chain if
// no node has that one any more. A BlockScanner needs no ParentReader; without either the network then stops.
type ParentReader interface {
	// ParentAt returns the hash of the parent that the canonical block at a height names. Its errors are those of
	// Driver.RefAt.
	ParentAt(ctx context.Context, height uint64) (string, error)
}

// HeadNotifier is notified by a node of each new block, so that a payment is read as soon as it is mined. A
// notification is a hint: nothing in it is believed, and the network is polled all the same.
type HeadNotifier interface {
	// NotifyHeads calls notify after each block that the node announces, until ctx ends or the subscription
	// does. notify returns at once. The error says why it ended, never nil; that the node announces nothing at
	// all is fault.Unsupported.
	NotifyHeads(ctx context.Context, notify func()) error
}

// AddressScanner reads the transfers to given addresses, for networks whose full blocks are too heavy.
type AddressScanner interface {
	// TransfersTo returns one Block per height that holds a transfer to one of the addresses, ascending,
	// within from and to (inclusive).
	TransfersTo(ctx context.Context, addresses []Address, from, to uint64) ([]Block, error)
}

// AddressPoller is an AddressScanner on networks where every call counts. It reads the history of each address on from
// where it was read to, so that nothing is lost by who restarts, and a busy address does not hold up another.
type AddressPoller interface {
	// ReadAddresses reads on in the histories of addresses, up to a height at most. Of one address it reads a
	// bounded number of transactions, oldest first. It may leave out addresses at which nothing seems to have moved.
	ReadAddresses(ctx context.Context, cursors []AddressCursor, to uint64) (AddressReading, error)
	// ReadingPace returns how many of a number of addresses one reading should ask for, and the shortest time
	// between two readings. It does no I/O.
	ReadingPace(addresses int) (perReading int, every time.Duration)
}

// AddressCursor is how far the history of an address was read.
type AddressCursor struct {
	Address Address
	// Since is when the address was made: transactions timed before are not read. Zero reads all of them.
	Since time.Time
	// Position is the driver's own, at most 64 KiB of text. Empty is the beginning of the history.
	Position string
}

// AddressReading is the answer of an AddressPoller.
type AddressReading struct {
	// Blocks are as AddressScanner returns them, up to At. They may be older than others that were read before.
	Blocks []Block
	// At is the last block that was read, at most the height asked for. It is below it when the node that
	// answered is.
	At Ref
	// Moved are the cursors whose Position changed. A Position never passes a transaction that is neither in
	// Blocks nor in Unread, or was in those of an earlier reading.
	Moved []AddressCursor
	// More are the addresses that should be read again at once, of this reading or not.
	More []Address
	// Unread are what could not be read, each from its Height up to At.
	Unread []Unread
	// Failed is why some addresses could not be read now: their cursors stand where they were. Nil for none.
	Failed error
}

// Mempool shows transactions that wait for a block.
type Mempool interface {
	// Pool returns the waiting transactions that move enabled assets. It may leave some out.
	Pool(ctx context.Context) ([]PoolTx, error)
}

// Finder looks up one transaction: for hints, and for transactions that no scan shows any more.
type Finder interface {
	// Transaction returns the transaction, or fault.NotFound when neither chain nor pool has it.
	Transaction(ctx context.Context, hash string) (FoundTx, error)
}

// Holding names a balance.
type Holding struct {
	Address Address
	AssetID string
}

// Balancer reads balances at a block.
type Balancer interface {
	// Balances returns the balance of each holding at the state after block at, in the order asked. A block
	// that the node does not have is fault.Unavailable, with code block_too_old where no node has balances at it any
	// more, however long one waits. Holdings that their token's contract does not answer
	// for do not fail the others: all are returned, those as 0, with an UnreadableError that names them. No block
	// proves a balance: it also names those that no two nodes say alike, where several are configured (ErrNotAgreed).
	Balances(ctx context.Context, at Ref, holdings []Holding) ([]Amount, error)
}

// CoinReader reads outputs, on networks that spend outputs instead of keeping accounts (UTXO).
// internal/txmgr indexes the coins of our addresses from the blocks of such a network, and sums balances
// up from them.
type CoinReader interface {
	// Unspent returns the newest block and, in the order asked, the amount of each output that no
	// block up to it spends; 0 for those that are spent, unknown or not yet in a block.
	Unspent(ctx context.Context, outpoints []Outpoint) (at Ref, amounts []Amount, err error)
}

// Deriver turns public keys into addresses.
type Deriver interface {
	// DeriveAddress returns the canonical address of a public key. It does no I/O.
	DeriveAddress(key PublicKey) (Address, error)
}

// TokenAccounter knows the account that holds a token for an owner (Solana).
type TokenAccounter interface {
	// TokenAccount returns the associated token account of owner for a token. It does no I/O.
	TokenAccount(owner Address, asset Asset) (Address, error)
}

// FeeEstimator estimates what a transaction may cost.
type FeeEstimator interface {
	// EstimateFee returns the most that the order's transaction should be allowed to cost now, in
	// base units of the native coin. It includes a margin for a replacement and the creation of the
	// destination's account, and covers what displaces Order.Replaces.
	EstimateFee(ctx context.Context, order Order) (Amount, error)
}

// FeeChecker checks whether waiting bytes of ours pay enough, so that they are not replaced for nothing.
type FeeChecker interface {
	// PaysEnough reports whether signed bytes, with what they rest on, pay at least what the network asks
	// for now.
	PaysEnough(ctx context.Context, signed Signed) (bool, error)
}

// InputPricer prices the inputs of transactions, on networks that spend outputs.
type InputPricer interface {
	// InputFees returns what spending each coin adds to the network fee now, in base units of the native
	// coin, rounded up. A coin that cannot be spent is fault.Invalid.
	InputFees(ctx context.Context, coins []Coin) ([]Amount, error)
}

// Nonces reads the account sequence number of networks that have one (EVM).
type Nonces interface {
	// Nonce returns how many transactions of the address are in blocks up to the tip: the next free nonce
	// of an address that has nothing waiting.
	Nonce(ctx context.Context, address Address) (uint64, error)
	// AgreedNonce returns how many transactions of the address are in blocks up to a block, as two nodes count, or
	// the only one that is configured; its errors are those of Agreed. A wallet that never signed takes its first
	// nonce from it: too high a count leaves a hole that nothing behind it passes, too low a one makes bytes that
	// no block takes.
	AgreedNonce(ctx context.Context, address Address, at Ref) (uint64, error)
}

// Checker verifies what it is connected to.
type Checker interface {
	// Check makes sure that the node can be reached and is the network it is configured as:
	// fault.Unavailable or fault.Stopped (code chain_id_mismatch) otherwise.
	Check(ctx context.Context) error
}

package chain

import (
	"time"
)

// Ref identifies one block by height and hash.
type Ref struct {
	Height uint64    `json:"height"`
	Hash   string    `json:"hash"`
	Time   time.Time `json:"time"`
}

// IsZero reports whether the reference is empty.
func (r Ref) IsZero() bool { return r.Hash == "" }

// Head is a node's current view of the chain.
type Head struct {
	// Tip is the newest block.
	Tip Ref
	// Safe and Final are the newest blocks that the network itself reports as safe and finalized; zero
	// where the network or the node reports none.
	Safe, Final Ref
}

// Outpoint names one output of a transaction on a network that spends outputs (UTXO).
type Outpoint struct {
	TxHash string `json:"tx_hash"`
	Vout   uint32 `json:"vout"`
}

// Block is one canonical block with every transfer of an enabled asset in it.
type Block struct {
	Ref
	// Parent is the hash of the block before it.
	Parent string
	// Transfers are in chain order. Failed transactions and amounts of 0 are left out.
	Transfers []Transfer
	// Spent are the spends of the block's transactions, failed ones included. On networks without nonces they
	// show who signed the transactions. The list is complete: a spend that is not in it was not in the block.
	Spent []Spend
	// Unread are transactions whose transfers the node cannot show; all others are complete. They are read
	// again later; see Unread.
	Unread []Unread
	// Unverified says why the block's contents could not be checked against its header, such as
	// "unknown header fields"; empty when they were. Such a block was cross-checked as far as the
	// network allows, and never leaves credits waiting.
	Unverified string
}

// Unread describes transfers that could not be read. It blocks nothing else. It is read again until that
// succeeds, and the health report shows it meanwhile.
type Unread struct {
	// Address is the address whose transfers are incomplete; empty for a transaction of a whole block.
	Address Address
	// Height is the height of the first block in which something may be missing.
	Height uint64
	// TxHash is the transaction that cannot be read; empty when it is not known which one is missing.
	TxHash string
	// Why is the reason; empty if there is simply more to read.
	Why string
}

// Spend is something that a transaction uses up for good, so that no other transaction of the same chain can
// use it. That is an output on networks that spend outputs, or a nonce of its sender on networks that count
// an account's transactions.
type Spend struct {
	// Outpoint is zero on account networks.
	Outpoint Outpoint `json:"outpoint"`
	// Sender and Nonce are zero on networks that spend outputs.
	Sender Address `json:"sender,omitempty"`
	Nonce  uint64  `json:"nonce,omitempty"`
	// Value is the value that the nonce account Sender held, for a DurableNonce; empty elsewhere.
	Value string `json:"value,omitempty"`
	By    string `json:"by"` // hash of the transaction
	// Shared is set on networks whose accounts have no nonce (Solana, Tron). Such a row states that Sender
	// signed By, and excludes no other transaction.
	Shared bool `json:"shared,omitempty"`
	// Failed is set when the transaction is in the block and its execution failed. It is false in a pool.
	Failed bool `json:"failed,omitempty"`
}

// PoolTx is a transaction that waits for a block.
type PoolTx struct {
	TxHash    string
	Transfers []Transfer
	// Spent are its spends once it is in a block; see Block.Spent.
	Spent []Spend
}

// FoundTx is a transaction looked up by its hash.
type FoundTx struct {
	TxHash string
	// Block is where it is included; zero while it waits in the pool.
	Block Ref
	// Transfers are its transfers of enabled assets; empty when it failed.
	Transfers []Transfer
	// Failed is set when it was included and its execution failed.
	Failed bool
	// Spent are its spends; see Block.Spent.
	Spent []Spend
}

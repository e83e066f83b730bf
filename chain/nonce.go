package chain

import "context"

// DurableNonce is what a nonce account of the ledger holds (Solana). A transaction that names it can be included until
// the account holds something else, however long that takes; every transaction that uses it changes it, a failed one
// too. So of all transactions that name it a chain holds at most one.
type DurableNonce struct {
	// Account is the nonce account.
	Account Address `json:"account"`
	// Value is what it holds.
	Value string `json:"value"`
	// Height is that of a final block in which the account held it: transactions that name it are in later ones.
	Height uint64 `json:"height"`
}

// NonceAccount is the state of a nonce account in a final block.
type NonceAccount struct {
	DurableNonce

	// Unusable says why no transaction can use it now, such as that it is closed; empty when one can.
	Unusable string
	// Disputed is set when that is because two nodes show different states, as they do for a moment.
	Disputed bool
}

// DurableNonces keeps nonces in accounts of the ledger. internal/txmgr has every transaction that an address with such
// accounts sends use one of them, and no two at a time; see Order.DurableNonce. One of them is dead only when another
// used its nonce; see NonceRefuser for the exception.
type DurableNonces interface {
	// NonceAccounts returns the nonce accounts of an address; none where none are configured. It does no I/O.
	NonceAccounts(address Address) []Address
	// ReadNonces returns the state of nonce accounts of an address, in the order asked. Where more than one node is
	// configured, an account is usable only as two of them show it.
	ReadNonces(ctx context.Context, address Address, accounts []Address) ([]NonceAccount, error)
	// NonceUsed reports whether a nonce was used, and the final block at which its account held something else,
	// or was closed: one above nonce.Height, as a node that is behind shows what the account held before. Where more
	// than one node is configured, two of them must show that; at is then the later one.
	NonceUsed(ctx context.Context, nonce DurableNonce) (used bool, at Ref, err error)
}

// NonceRefuser is a DurableNonces of a network that may stop taking durable nonces. A transaction that waits at one has
// then expired, and is signed again without.
type NonceRefuser interface {
	// NonceRefused reports whether the network takes a transaction no more although its nonce account holds its nonce,
	// and the final block at which that is so. Where more than one node is configured, two of them must show that; at
	// is then the later one.
	NonceRefused(ctx context.Context, signed Signed) (refused bool, at Ref, err error)
}

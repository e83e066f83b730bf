package evm

import (
	"context"
	"errors"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Broadcast sends the bytes to every node, once. Errors:
//
//   - fault.Invalid (transaction_malformed, transaction_foreign): no node can accept the bytes
//   - fault.Invalid (chain:insufficient_funds): every node finds the sender unfunded
//   - fault.Unavailable: anything else, such as "nonce too low"; it proves nothing, Status decides
func (d *driver) Broadcast(ctx context.Context, tx chain.Signed) error {
	decoded, _, err := d.decodeSigned(tx.Raw)
	if err != nil {
		return err
	}

	if decoded.Hash().Hex() != tx.TxHash {
		return fault.New(
			fault.Invalid, "transaction_malformed", "the bytes of transaction %s have another hash",
			tx.TxHash,
		)
	}

	return d.nodes.Send(ctx, 1, func(ctx context.Context, node *endpoint) error {
		return node.sendRawTransaction(ctx, decoded.Hash(), tx.Raw)
	})
}

// sendRawTransaction sends the bytes to one node. It returns nil if the node refuses the bytes because it has
// them.
func (e *endpoint) sendRawTransaction(ctx context.Context, hash common.Hash, raw []byte) error {
	rpcCall := newCall("eth_sendRawTransaction", hexutil.Bytes(raw))
	if err := e.do(ctx, rpcCall); err != nil {
		return err
	}

	if refusal, ok := errors.AsType[*failover.Refusal](rpcCall.err); ok {
		verdict := classifyRefusal(refusal, hash)
		if verdict != nil && e.hasTransaction(ctx, hash) {
			return nil
		}

		return verdict
	}

	var accepted common.Hash
	if err := rpcCall.decode(e, &accepted); err != nil {
		return err
	}

	if accepted != hash {
		return e.Garbled("it took transaction %s as %s", hash.Hex(), accepted.Hex())
	}

	return nil
}

// hasTransaction reports whether the node has the transaction in its pool or in a block. A node refuses bytes
// that it has with messages about nonce or balance.
func (e *endpoint) hasTransaction(ctx context.Context, hash common.Hash) bool {
	rpcCall := newCall("eth_getTransactionByHash", hash)

	var tx txJSON

	return e.do(ctx, rpcCall) == nil && !rpcCall.isNull() && rpcCall.decode(e, &tx) == nil &&
		tx.Hash != nil &&
		*tx.Hash == hash
}

// Parts of the messages with which nodes refuse a transaction, in lower case. JSON-RPC has no codes
// for them. Sources: go-ethereum, Erigon, Reth, Nethermind, Besu and Anvil.
var (
	knownMessages = []string{
		"already known",
		"alreadyknown",
		"known transaction",
		"already imported",
		"already in mempool",
		"already exists",
	}
	unfundedMessages = []string{
		"insufficient funds",
		"insufficientfunds",
		"insufficient balance",
		"upfront cost exceeds account balance",
	}
	malformedMessages = []string{
		"rlp:",
		"invalid sender",
		"invalid signature",
		"invalid transaction signature",
		"invalid chain id",
		"invalidtxsignature",
		"invalidtxchainid",
		"intrinsic gas too low",
		"exceeds block gas limit",
		"transaction type not supported",
		"oversized data",
		"max priority fee per gas higher than max fee per gas",
		"failed to decode signed transaction",
	}
)

// classifyRefusal returns nil if the node has the transaction, fault.Invalid if its bytes cannot be
// accepted, and the refusal itself if it proves nothing.
func classifyRefusal(refusal *failover.Refusal, hash common.Hash) error {
	message := strings.ToLower(refusal.Message)

	contains := func(messages []string) bool {
		for _, text := range messages {
			if strings.Contains(message, text) {
				return true
			}
		}

		return false
	}

	switch {
	case contains(knownMessages):
		return nil
	case contains(unfundedMessages):
		return fault.Wrap(
			refusal, fault.Invalid, "chain:insufficient_funds",
			"the sender of transaction %s cannot pay for it",
			hash.Hex(),
		)
	case contains(malformedMessages):
		return fault.Wrap(
			refusal, fault.Invalid, "transaction_malformed",
			"the network does not take transaction %s as it is",
			hash.Hex(),
		)
	}

	return refusal
}

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

// Broadcast hands the bytes to the first endpoint that takes them, asking each one once. Bytes that
// no node could ever take, and a refusal as malformed or unfunded by every node that answers, are
// fault.Invalid; the latter with code chain:insufficient_funds. Everything else, "nonce too low"
// above all, is fault.Unavailable: it proves nothing, Status decides.
func (d *Driver) Broadcast(ctx context.Context, tx chain.Signed) error {
	decoded, _, err := d.signedEnvelope(tx.Raw)
	if err != nil {
		return err
	}

	if decoded.Hash().Hex() != tx.TxHash {
		return fault.New(
			fault.Invalid, "transaction_malformed", "the bytes of transaction %s have another hash",
			tx.TxHash,
		)
	}

	var refused *fault.Error // the first verdict, while no node gave an unclear answer

	unclear := false

	err = d.nodes.Ask(ctx, 1, 0, func(ctx context.Context, e *endpoint) error {
		err := e.sendRaw(ctx, decoded.Hash(), tx.Raw)

		verdict, ok := errors.AsType[*fault.Error](err)
		if !ok {
			unclear = unclear || err != nil
			return err
		}

		if refused == nil {
			refused = verdict
		}

		return errRefused
	})
	if err != nil && refused != nil && !unclear && ctx.Err() == nil {
		return refused
	}

	return err
}

// errRefused makes ask try the next endpoint: another node may know of money that this one has not seen.
var errRefused = errors.New("a node refused the transaction")

func (e *endpoint) sendRaw(ctx context.Context, hash common.Hash, raw []byte) error {
	c := newCall("eth_sendRawTransaction", hexutil.Bytes(raw))
	if err := e.do(ctx, c); err != nil {
		return err
	}

	if r, ok := errors.AsType[*failover.Refusal](c.err); ok {
		verdict := sendVerdict(r, hash)
		if verdict != nil && e.knows(ctx, hash) {
			return nil
		}

		return verdict
	}

	var taken common.Hash
	if err := c.decode(e, &taken); err != nil {
		return err
	}

	if taken != hash {
		return e.Garbled("it took transaction %s as %s", hash.Hex(), taken.Hex())
	}

	return nil
}

// knows reports whether the node has the transaction already, in its pool or in a block: nodes refuse such
// bytes with words about the nonce or the balance that is left.
func (e *endpoint) knows(ctx context.Context, hash common.Hash) bool {
	c := newCall("eth_getTransactionByHash", hash)

	var tx txJSON

	return e.do(ctx, c) == nil && !c.null() && c.decode(e, &tx) == nil && tx.Hash != nil && *tx.Hash == hash
}

// What nodes say of a transaction that they do not put into their pool. JSON-RPC has no codes for it, only
// words: those of go-ethereum, Erigon, Reth, Nethermind, Besu and Anvil, in lower case.
var (
	wordsKnown = []string{
		"already known",
		"alreadyknown",
		"known transaction",
		"already imported",
		"already in mempool",
		"already exists",
	}
	wordsUnfunded = []string{
		"insufficient funds",
		"insufficientfunds",
		"insufficient balance",
		"upfront cost exceeds account balance",
	}
	wordsMalformed = []string{
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

// sendVerdict classifies a refusal: nil when the node had the transaction already, fault.Invalid when it
// is no good, the refusal itself when it proves nothing.
func sendVerdict(r *failover.Refusal, hash common.Hash) error {
	words := strings.ToLower(r.Message)

	says := func(list []string) bool {
		for _, w := range list {
			if strings.Contains(words, w) {
				return true
			}
		}

		return false
	}
	switch {
	case says(wordsKnown):
		return nil
	case says(wordsUnfunded):
		return fault.Wrap(
			r, fault.Invalid, "chain:insufficient_funds",
			"the sender of transaction %s cannot pay for it",
			hash.Hex(),
		)
	case says(wordsMalformed):
		return fault.Wrap(
			r, fault.Invalid, "transaction_malformed",
			"the network does not take transaction %s as it is",
			hash.Hex(),
		)
	}

	return r
}

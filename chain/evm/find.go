package evm

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Transaction returns a transaction from the chain or the pool. A transaction in a block is read from that
// block, verified as by Blocks. A pending one is decoded from its own bytes and is provisional. Errors:
//
//   - fault.Invalid (tx_hash_invalid)
//   - fault.NotFound (transaction_unknown)
func (d *driver) Transaction(ctx context.Context, hash string) (chain.FoundTx, error) {
	txHash, err := parseHash(hash)
	if err != nil {
		return chain.FoundTx{}, err
	}

	found := chain.FoundTx{TxHash: txHash.Hex()}

	err = d.ask(ctx, 0, func(ctx context.Context, node *endpoint) error {
		lookup, err := d.lookUpTx(ctx, node, txHash)
		if err != nil {
			return err
		}

		if lookup.tx == nil {
			return fault.New(
				fault.NotFound, "transaction_unknown", "network %s has no transaction %s",
				d.network.Slug, txHash.Hex(),
			)
		}

		if lookup.receipt == nil {
			found.Spent = []chain.Spend{lookup.tx.spend(false)}
			found.Transfers, err = d.pendingTransfers(node, lookup.tx)

			return err
		}

		found.Block, found.Failed = lookup.block, *lookup.receipt.Status == 0
		found.Spent = []chain.Spend{lookup.tx.spend(found.Failed)}

		found.Transfers, err = d.transfersOf(node, lookup.tx, lookup.receipt, lookup.coinLogs)
		if err != nil || !d.traces || found.Failed || lookup.receipt.hasCoinLogs() {
			return err
		}

		internal, err := d.internalTransfers(ctx, node, txHash)
		found.Transfers = append(found.Transfers, internal...)

		return err
	})
	if err != nil {
		return chain.FoundTx{}, err
	}

	return found, nil
}

// txLookup is the result of a lookup: unknown (no tx), in the pool (no receipt), or in a block.
type txLookup struct {
	tx      *txJSON
	receipt *receiptJSON
	block   chain.Ref
	// coinLogs is set where the block logs all transfers of coin.
	coinLogs bool
}

// lookUpTx looks up a transaction at one node. The node's answer by hash only selects the block to read. The
// transaction and its receipt are those of the canonical block, verified as by Blocks.
func (d *driver) lookUpTx(ctx context.Context, node *endpoint, hash common.Hash) (txLookup, error) {
	byHash := newCall("eth_getTransactionByHash", hash)
	if err := node.do(ctx, byHash); err != nil || byHash.isNull() {
		return txLookup{}, err
	}

	tx := new(txJSON)
	if err := byHash.decode(node, tx); err != nil {
		return txLookup{}, err
	}

	if err := tx.checkComplete(node); err != nil {
		return txLookup{}, err
	}

	switch {
	case *tx.Hash != hash:
		return txLookup{}, node.Garbled("asked for transaction %s, it answered %s", hash.Hex(), tx.Hash.Hex())
	case tx.BlockHash == nil:
		return txLookup{tx: tx}, d.verifyPooled(node, tx)
	case tx.BlockNumber == nil:
		return txLookup{}, node.Garbled("transaction %s is in a block without number", hash.Hex())
	}

	blocks, err := d.readVerified(ctx, node, uint64(*tx.BlockNumber), uint64(*tx.BlockNumber))
	if err != nil {
		return txLookup{}, err
	}

	block := &blocks[0]
	if *block.json.Hash != *tx.BlockHash {
		return txLookup{}, node.Garbled(
			"transaction %s is in a block that is not the one at height %d", hash.Hex(), block.ref.Height,
		)
	}

	for i := range block.json.Transactions {
		if included := &block.json.Transactions[i]; *included.Hash == hash {
			return txLookup{
				tx:       included,
				receipt:  block.receipts[i],
				block:    block.ref,
				coinLogs: block.logsCoin(),
			}, nil
		}
	}

	return txLookup{}, node.Garbled("transaction %s is not in the block that it names", hash.Hex())
}

// verifyPooled replaces the node's claims about a pending transaction by the contents of its bytes. A
// transaction of an unknown type keeps the node's claims.
func (d *driver) verifyPooled(node *endpoint, tx *txJSON) error {
	kind, err := tx.kind(node)
	if err != nil {
		return err
	}

	decoded, err := d.format.decodeTx(kind, tx.raw)

	switch {
	case errors.Is(err, errUnknownType):
		return nil
	case err != nil:
		return node.Garbled("transaction %s cannot be read: %s", tx.Hash.Hex(), node.Clean(err.Error()))
	case decoded.hash != *tx.Hash:
		return node.Garbled("transaction %s does not have that hash", tx.Hash.Hex())
	}

	decoded.replace(tx)

	if tx.signed == nil {
		return nil
	}

	tx.Input = tx.signed.Data()

	wrong := make([]bool, 1)
	if d.recoverSenders([]*txJSON{tx}, wrong); wrong[0] && d.holds(checkSender) {
		return node.Garbled("transaction %s was not signed by the sender that it names", tx.Hash.Hex())
	}

	return nil
}

// parseHash returns a transaction hash; anything else is fault.Invalid (tx_hash_invalid).
func parseHash(text string) (common.Hash, error) {
	var hash common.Hash

	digits, ok := strings.CutPrefix(text, "0x")
	if ok && len(digits) == 2*common.HashLength {
		if _, err := hex.Decode(hash[:], []byte(digits)); err == nil {
			return hash, nil
		}
	}

	if len(text) > 80 {
		text = text[:80] + "…"
	}

	return hash, fault.New(
		fault.Invalid, "tx_hash_invalid",
		"%q is not a transaction hash: write 0x and 64 hexadecimal digits",
		text,
	)
}

// Nonce returns the number of the address's transactions in blocks up to the tip.
func (d *driver) Nonce(ctx context.Context, address chain.Address) (uint64, error) {
	account, err := parseAddress(string(address))
	if err != nil {
		return 0, err
	}

	var nonce hexutil.Uint64

	err = d.ask(ctx, 0, func(ctx context.Context, node *endpoint) error {
		rpcCall := newCall("eth_getTransactionCount", account, "latest")
		if err := node.do(ctx, rpcCall); err != nil {
			return err
		}

		return rpcCall.decode(node, &nonce)
	})
	if err != nil {
		return 0, err
	}

	return uint64(nonce), nil
}

// AgreedNonce returns the number of an address's transactions in blocks up to a block, as counted by two
// nodes.
func (d *driver) AgreedNonce(ctx context.Context, address chain.Address, at chain.Ref) (uint64, error) {
	account, err := parseAddress(string(address))
	if err != nil {
		return 0, err
	}

	subject := failover.Subject{
		What:   fmt.Sprintf("the transactions of %s up to block %d", address, at.Height),
		Height: at.Height,
	}

	return failover.Agree(
		ctx, d.nodes, d.attempts, subject,
		func(ctx context.Context, node *endpoint) (uint64, error) {
			if err := refreshTip(ctx, node, at.Height); err != nil {
				return 0, err
			}

			rpcCall := newCall("eth_getTransactionCount", account, hexutil.EncodeUint64(at.Height))
			if err := node.do(ctx, rpcCall); err != nil {
				return 0, err
			}

			var counted hexutil.Uint64
			if err := rpcCall.decode(node, &counted); err != nil {
				return 0, err
			}

			return uint64(counted), nil
		},
	)
}

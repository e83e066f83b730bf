package evm

import (
	"context"
	"encoding/hex"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Transaction returns a transaction from the chain or the pool. Errors:
//
//   - fault.Invalid (tx_hash_invalid)
//   - fault.NotFound (transaction_unknown)
func (d *Driver) Transaction(ctx context.Context, hash string) (chain.FoundTx, error) {
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
			found.Transfers, err = d.pendingTransfers(node, lookup.tx)
			return err
		}

		found.Block, found.Failed = lookup.block, *lookup.receipt.Status == 0

		found.Transfers, err = d.transfersOf(node, &lookup.tx.txJSON, lookup.receipt)
		if err != nil || !d.traces || found.Failed {
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
	tx      *poolTxJSON
	receipt *receiptJSON
	block   chain.Ref
}

// lookUpTx looks up a transaction at one node. A receipt counts only while its block is canonical.
func (d *Driver) lookUpTx(ctx context.Context, node *endpoint, hash common.Hash) (txLookup, error) {
	byHash := newCall("eth_getTransactionByHash", hash)

	receipt := newCall("eth_getTransactionReceipt", hash)
	if err := node.do(ctx, byHash, receipt); err != nil {
		return txLookup{}, err
	}

	if byHash.isNull() && receipt.isNull() {
		return txLookup{}, nil
	}

	var found txLookup
	if err := byHash.decode(node, &found.tx); err != nil {
		return found, err
	}

	if err := found.tx.checkComplete(node); err != nil {
		return found, err
	}

	if *found.tx.Hash != hash {
		return found, node.Garbled(
			"asked for transaction %s, it answered %s",
			hash.Hex(), found.tx.Hash.Hex(),
		)
	}

	if receipt.isNull() {
		if found.tx.BlockHash != nil {
			return found, node.Garbled("transaction %s is in a block and has no receipt", hash.Hex())
		}

		return found, nil
	}

	if err := receipt.decode(node, &found.receipt); err != nil {
		return found, err
	}

	if found.receipt.BlockNumber == nil || found.receipt.BlockHash == nil {
		return found, node.Garbled("the receipt of transaction %s names no block", hash.Hex())
	}

	var err error
	if found.block, err = node.refAt(ctx, uint64(*found.receipt.BlockNumber)); err != nil {
		return found, err
	}

	return found, found.receipt.check(node, hash, common.HexToHash(found.block.Hash))
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
func (d *Driver) Nonce(ctx context.Context, address chain.Address) (uint64, error) {
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

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
func (d *Driver) Transaction(ctx context.Context, hash string) (chain.Found, error) {
	txHash, err := parseHash(hash)
	if err != nil {
		return chain.Found{}, err
	}

	found := chain.Found{TxHash: txHash.Hex()}

	err = d.ask(ctx, 0, func(ctx context.Context, e *endpoint) error {
		lookup, err := d.lookUpTx(ctx, e, txHash)
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
			found.Transfers, err = d.pendingTransfers(e, lookup.tx)
			return err
		}

		found.Block, found.Failed = lookup.block, *lookup.receipt.Status == 0

		found.Transfers, err = d.transfersOf(e, &lookup.tx.txJSON, lookup.receipt)
		if err != nil || !d.traces || found.Failed {
			return err
		}

		internal, err := d.internalTransfers(ctx, e, txHash)
		found.Transfers = append(found.Transfers, internal...)

		return err
	})
	if err != nil {
		return chain.Found{}, err
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
func (d *Driver) lookUpTx(ctx context.Context, e *endpoint, hash common.Hash) (txLookup, error) {
	byHash := newCall("eth_getTransactionByHash", hash)

	receipt := newCall("eth_getTransactionReceipt", hash)
	if err := e.do(ctx, byHash, receipt); err != nil {
		return txLookup{}, err
	}

	if byHash.isNull() && receipt.isNull() {
		return txLookup{}, nil
	}

	var found txLookup
	if err := byHash.decode(e, &found.tx); err != nil {
		return found, err
	}

	if err := found.tx.checkComplete(e); err != nil {
		return found, err
	}

	if *found.tx.Hash != hash {
		return found, e.Garbled("asked for transaction %s, it answered %s", hash.Hex(), found.tx.Hash.Hex())
	}

	if receipt.isNull() {
		if found.tx.BlockHash != nil {
			return found, e.Garbled("transaction %s is in a block and has no receipt", hash.Hex())
		}

		return found, nil
	}

	if err := receipt.decode(e, &found.receipt); err != nil {
		return found, err
	}

	if found.receipt.BlockNumber == nil || found.receipt.BlockHash == nil {
		return found, e.Garbled("the receipt of transaction %s names no block", hash.Hex())
	}

	var err error
	if found.block, err = e.refAt(ctx, uint64(*found.receipt.BlockNumber)); err != nil {
		return found, err
	}

	return found, found.receipt.check(e, hash, common.HexToHash(found.block.Hash))
}

// parseHash returns a transaction hash; anything else is fault.Invalid (tx_hash_invalid).
func parseHash(s string) (common.Hash, error) {
	var h common.Hash

	digits, ok := strings.CutPrefix(s, "0x")
	if ok && len(digits) == 2*common.HashLength {
		if _, err := hex.Decode(h[:], []byte(digits)); err == nil {
			return h, nil
		}
	}

	if len(s) > 80 {
		s = s[:80] + "…"
	}

	return h, fault.New(
		fault.Invalid, "tx_hash_invalid",
		"%q is not a transaction hash: write 0x and 64 hexadecimal digits",
		s,
	)
}

// Nonce returns the number of the address's transactions in blocks up to the tip.
func (d *Driver) Nonce(ctx context.Context, address chain.Address) (uint64, error) {
	a, err := parseAddress(string(address))
	if err != nil {
		return 0, err
	}

	var nonce hexutil.Uint64

	err = d.ask(ctx, 0, func(ctx context.Context, e *endpoint) error {
		c := newCall("eth_getTransactionCount", a, "latest")
		if err := e.do(ctx, c); err != nil {
			return err
		}

		return c.decode(e, &nonce)
	})
	if err != nil {
		return 0, err
	}

	return uint64(nonce), nil
}

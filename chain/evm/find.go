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

// Transaction looks a transaction up in chain and pool. Something that is no transaction hash is
// fault.Invalid.
func (d *Driver) Transaction(ctx context.Context, hash string) (chain.Found, error) {
	h, err := parseHash(hash)
	if err != nil {
		return chain.Found{}, err
	}

	found := chain.Found{TxHash: h.Hex()}

	err = d.ask(ctx, 0, func(ctx context.Context, e *endpoint) error {
		s, err := d.sight(ctx, e, h)
		if err != nil {
			return err
		}

		if s.tx == nil {
			return fault.New(
				fault.NotFound, "transaction_unknown", "network %s has no transaction %s",
				d.network.Slug, h.Hex(),
			)
		}

		if s.receipt == nil {
			found.Transfers, err = d.foreseen(e, s.tx)
			return err
		}

		found.Block, found.Failed = s.block, *s.receipt.Status == 0
		if found.Transfers, err = d.moved(
			e, &s.tx.txJSON, s.receipt,
		); err != nil || !d.traces ||
			found.Failed {
			return err
		}

		internal, err := d.internal(ctx, e, h)
		found.Transfers = append(found.Transfers, internal...)

		return err
	})
	if err != nil {
		return chain.Found{}, err
	}

	return found, nil
}

// sighting is where one transaction was seen: nowhere (no tx), in the pool (no receipt), or in a block.
type sighting struct {
	tx      *poolTxJSON
	receipt *receiptJSON
	block   chain.Ref
}

// sight looks a transaction up at one endpoint. A receipt counts only while its block is canonical.
func (d *Driver) sight(ctx context.Context, e *endpoint, hash common.Hash) (sighting, error) {
	byHash := newCall("eth_getTransactionByHash", hash)

	receipt := newCall("eth_getTransactionReceipt", hash)
	if err := e.do(ctx, byHash, receipt); err != nil {
		return sighting{}, err
	}

	if byHash.null() && receipt.null() {
		return sighting{}, nil
	}

	var s sighting
	if err := byHash.decode(e, &s.tx); err != nil {
		return s, err
	}

	if err := s.tx.check(e); err != nil {
		return s, err
	}

	if *s.tx.Hash != hash {
		return s, e.Garbled("asked for transaction %s, it answered %s", hash.Hex(), s.tx.Hash.Hex())
	}

	if receipt.null() {
		if s.tx.BlockHash != nil {
			return s, e.Garbled("transaction %s is in a block and has no receipt", hash.Hex())
		}

		return s, nil
	}

	if err := receipt.decode(e, &s.receipt); err != nil {
		return s, err
	}

	if s.receipt.BlockNumber == nil || s.receipt.BlockHash == nil {
		return s, e.Garbled("the receipt of transaction %s names no block", hash.Hex())
	}

	var err error
	if s.block, err = e.refAt(ctx, uint64(*s.receipt.BlockNumber)); err != nil {
		return s, err
	}

	return s, s.receipt.check(e, hash, common.HexToHash(s.block.Hash))
}

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

// Nonce returns how many transactions of the address are in blocks up to the tip.
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

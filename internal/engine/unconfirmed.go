package engine

// This file finds payments that are deep enough and wait, as no two nodes show their blocks alike.

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/scan"
	"github.com/seed-8ee7f392/payments/internal/ingest"
	"github.com/seed-8ee7f392/payments/internal/invoicestate"
	"github.com/seed-8ee7f392/payments/internal/scanstate"
	"github.com/seed-8ee7f392/payments/invoice"
)

// maxAskedBlocks bounds the blocks that are asked for to find out why payments wait.
const maxAskedBlocks = 4

// waitingDeep returns how many payments are deep enough, were when nodes were last compared, and wait because no two
// nodes show their blocks alike, and why; up to maxWaiting. Other reasons why a payment waits are named elsewhere.
func (e *Engine) waitingDeep(
	ctx context.Context,
	driver chain.Driver,
	agreed chain.Agreed,
	cursor scan.Cursor,
) (count int, why string, err error) {
	deep, err := e.deepPayments(ctx, driver.Network(), cursor)
	if err != nil {
		return 0, "", err
	}

	hashes := map[chain.Ref][]string{}
	for _, p := range e.nodes.stillDeep(driver.Network().Slug, deep) {
		hashes[p.Block] = append(hashes[p.Block], p.TxHash)
		count++
	}

	blocks := slices.SortedFunc(
		maps.Keys(hashes), func(a, b chain.Ref) int { return cmp.Compare(a.Height, b.Height) },
	)

	for _, at := range blocks[:min(len(blocks), maxAskedBlocks)] {
		block, err := agreed.AgreedBlock(ctx, at, hashes[at])
		if ctx.Err() != nil {
			return 0, "", ctx.Err()
		}

		if err != nil {
			return count, err.Error(), nil
		}

		if hash := notShown(block, hashes[at]); hash != "" {
			return count, fmt.Sprintf(
				"no two nodes of network %s show transaction %s in block %d",
				driver.Network().Slug,
				hash,
				at.Height,
			), nil
		}
	}

	return 0, "", nil
}

// deepPayments returns the payments of a network that were read in a block and are deep enough, and that no retry row
// holds up.
func (e *Engine) deepPayments(
	ctx context.Context,
	n chain.Network,
	cursor scan.Cursor,
) ([]invoice.Payment, error) {
	waiting, err := e.config.Store.UnconfirmedPayments(ctx, n.Slug, cursor.At.Height, maxWaiting)
	if err != nil || len(waiting) == 0 {
		return nil, err
	}

	rows, err := ingest.AllRetries(ctx, e.config.Store, n.Slug, e.config.Now())
	if err != nil {
		return nil, err
	}

	queued := map[invoice.TransferKey]bool{}
	for _, row := range rows {
		queued[invoicestate.KeyOf(row.Transfer)] = true
	}

	return slices.DeleteFunc(waiting, func(p invoice.Payment) bool {
		return p.Status != invoice.Detected || p.Simulated || p.TxHash == "" || p.Block.IsZero() ||
			queued[invoicestate.PaymentKey(p)] || !scanstate.IsFinal(cursor, n, p.Required, p.Block)
	}), nil
}

// notShown returns the first of the hashes of transactions that a block as two nodes show it does not show, and does
// not prove to be elsewhere.
func notShown(block chain.Block, hashes []string) string {
	for _, hash := range hashes {
		unread := slices.ContainsFunc(block.Unread, func(u chain.Unread) bool { return u.TxHash == hash })
		shown := slices.ContainsFunc(block.Transfers, func(t chain.Transfer) bool { return t.TxHash == hash })

		if unread || !shown && block.Unverified != "" {
			return hash
		}
	}

	return ""
}

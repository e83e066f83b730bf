package solana

import (
	"context"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// found is a transaction with the block that holds it.
type found struct {
	executed
	block header
}

// Transaction looks a transaction up by its first signature, in confirmed blocks: Solana has no
// pool that can be read.
func (d *Driver) Transaction(ctx context.Context, hash string) (chain.Found, error) {
	signature, err := solanago.SignatureFromBase58(hash)
	if err != nil || signature.String() != hash {
		if len(hash) > 100 {
			hash = hash[:100] + "…"
		}

		return chain.Found{}, fault.New(
			fault.NotFound, "transaction_unknown",
			"%q is no Solana transaction: those are named by 64 bytes in base58",
			hash,
		)
	}

	var answer chain.Found

	err = d.ask(ctx, func(ctx context.Context, e *endpoint) error {
		f, err := d.lookUp(ctx, e, hash)
		if err != nil {
			return err
		}

		answer = chain.Found{TxHash: hash, Block: f.block.ref(), Failed: f.meta.failed()}
		answer.Transfers, err = d.transfers(f.executed)

		return err
	})
	if err != nil {
		return chain.Found{}, err
	}

	return answer, nil
}

// lookUp reads a transaction and the block that holds it; failover.ErrMissing when the node does not know it.
func (d *Driver) lookUp(ctx context.Context, e *endpoint, hash string) (found, error) {
	var answer *struct {
		Slot        uint64          `json:"slot"`
		Transaction wireTransaction `json:"transaction"`
		Meta        *meta           `json:"meta"`
	}

	err := e.call(ctx, &answer, "getTransaction", hash, map[string]any{
		"commitment":                     "confirmed",
		"encoding":                       "base64",
		"maxSupportedTransactionVersion": 0,
	})
	if err != nil {
		return found{}, err
	}

	if answer == nil {
		return found{}, failover.ErrMissing
	}

	x, err := e.resolve(answer.Transaction, answer.Meta)
	if err != nil {
		return found{}, err
	}

	if x.hash != hash {
		return found{}, e.Garbled("asked for transaction %s, it answered %s", hash, x.hash)
	}

	block, err := e.header(ctx, answer.Slot)
	if err != nil {
		return found{}, e.absent(ctx, 0, err)
	}

	return found{x, block}, nil
}

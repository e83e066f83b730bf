package sim

import (
	"context"
	"slices"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// Assemble adds the signatures, one per input by the owner of what it spends. Anything else is
// fault.Invalid with code signature_invalid.
func (u *UTXO) Assemble(
	order chain.Order,
	unsigned chain.Unsigned,
	keys []chain.PublicKey,
	signatures [][]byte,
) (chain.Signed, error) {
	tx, spent, err := decodeUnsignedUTXO(unsigned.Raw)
	if err != nil {
		return chain.Signed{}, err
	}

	mismatch := len(keys) != len(spent) || len(signatures) != len(spent) || tx.network != u.networkID ||
		len(unsigned.Outputs) > len(tx.outputs) || !slices.Equal(unsigned.Inputs, tx.inputs)
	if mismatch {
		return chain.Signed{}, fault.New(
			fault.Invalid, "signature_invalid",
			"keys, signatures and transaction do not belong together: it has %d inputs",
			len(spent),
		)
	}

	var sum uint64

	for i, output := range spent {
		signer, err := accountOf(keys[i])
		if err != nil {
			return chain.Signed{}, err
		}

		if signer != output.to || len(signatures[i]) != signatureSize {
			return chain.Signed{}, fault.New(
				fault.Invalid, "signature_invalid",
				"input %d takes a signature of %d bytes by %s, the key is that of %s",
				i, signatureSize, output.to.address(), signer.address(),
			)
		}

		tx.signatures = append(tx.signatures, [signatureSize]byte(signatures[i]))
		if err := tx.verifyInput(i, output.to); err != nil {
			return chain.Signed{}, err
		}

		sum += output.amount
	}

	paid, _ := tx.paid()

	return chain.Signed{
		TxHash:             tx.hash(),
		Raw:                tx.raw(),
		MaxFee:             chain.Units(sum - min(paid, sum)),
		Inputs:             tx.inputs,
		Outputs:            unsigned.Outputs,
		UnconfirmedParents: unsigned.UnconfirmedParents,
		From:               order.From.Address,
	}, nil
}

// Broadcast puts a transaction into the pool. In addition to the errors of chain.Sender, a refusal by the
// pool's policy is fault.Unavailable, which proves nothing, with code:
//   - coin_spent: an input is spent in a block, unknown or immature
//   - fee_below_floor, pool_full: it pays less than the pool takes
//   - replacement_underpriced, replacement_invalid: BIP-125 does not let it displace what waits
//   - ancestors_exceeded, descendants_exceeded: too many unconfirmed transactions depend on each other
//   - output_dust: an output is below the dust limit
func (u *UTXO) Broadcast(ctx context.Context, signed chain.Signed) error {
	if err := u.call(ctx, MethodBroadcast); err != nil {
		return err
	}

	u.mu.Lock()
	defer u.mu.Unlock()

	return u.lostResponse(u.receive(signed))
}

// receive validates signed bytes and adds their transaction to the pool. A known one is accepted.
func (u *UTXO) receive(signed chain.Signed) error {
	tx, err := decodeUTXO(signed.Raw)
	if err != nil {
		return err
	}

	entry := &utxoEntry{tx: tx, hash: tx.hash()}
	if tx.network != u.networkID || len(tx.inputs) == 0 || entry.hash != signed.TxHash {
		return fault.New(
			fault.Invalid, "transaction_malformed",
			"the bytes are no transaction %s of network %s",
			signed.TxHash, u.network.Slug,
		)
	}

	if u.included[entry.hash] != nil || u.pool.byHash[entry.hash] != nil {
		return nil
	}

	for i, input := range tx.inputs {
		output, ok := u.spendable(input, u.tip())
		if !ok {
			break // accept refuses it
		}

		if err := tx.verifyInput(i, output.to); err != nil {
			return err
		}
	}

	for _, output := range tx.outputs {
		if output.amount < u.config.DustLimit {
			return refusedTx("output_dust", "an output of %d base units is dust", output.amount)
		}
	}

	return u.accept(entry)
}

// Status returns the status of a transaction. One outside the canonical chain is TxDead when another
// transaction spends one of its inputs, or of its unconfirmed parents', in a final block.
func (u *UTXO) Status(ctx context.Context, signed chain.Signed) (chain.TxStatus, error) {
	if err := u.call(ctx, MethodStatus); err != nil {
		return chain.TxStatus{}, err
	}

	u.mu.Lock()
	defer u.mu.Unlock()

	if entry := u.included[signed.TxHash]; entry != nil && entry.height <= u.nodeTip() {
		return chain.TxStatus{
			State:     chain.TxIncluded,
			Block:     u.headers[entry.height].Ref,
			Final:     u.isFinal(entry.height),
			Fee:       chain.Units(entry.fee),
			Transfers: u.transfers(entry),
		}, nil
	}

	for _, input := range signed.Inputs {
		if u.spentByOther(input, signed.TxHash) {
			return chain.TxStatus{State: chain.TxDead, Reason: chain.ReasonConflict}, nil
		}
	}

	for _, parent := range signed.UnconfirmedParents {
		if u.spentByOther(parent.Outpoint, parent.By) {
			return chain.TxStatus{State: chain.TxDead, Reason: chain.ReasonConflict}, nil
		}
	}

	if u.pool.byHash[signed.TxHash] != nil {
		return chain.TxStatus{State: chain.TxPooled}, nil
	}

	return chain.TxStatus{State: chain.TxUnknown}, nil
}

// spentByOther reports whether another transaction spends an output in a final block.
func (u *UTXO) spentByOther(at chain.Outpoint, hash string) bool {
	output := u.outputs[at]

	return output != nil && output.spentBy != "" && output.spentBy != hash && u.isFinal(output.spentAt)
}

package solana

import (
	"context"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"slices"

	solanago "github.com/gagliardetto/solana-go"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/internal/failover"
	"github.com/seed-8ee7f392/payments/fault"
)

// Build returns the unsigned transaction of an order, which pays native coin or one token. It uses the
// newest finalized blockhash, since a younger one could leave the chain and the transaction with it, or the order's
// durable nonce. One that replaces an earlier transaction, or follows one that ran out, offers a higher price.
// The fee payer pays for token accounts that a destination lacks. A transfer fee of the token is added,
// so that the amount arrives.
//
// With Order.Close it closes a token account that the order empties. The rent goes to the account that
// paid it; if that is unknown, the token account stays open. Coin below the rent minimum cannot remain,
// so the last output is reduced when more arrived since planning.
//
// A refusal is that of two nodes where several are configured: a payout fails by it.
func (d *driver) Build(ctx context.Context, order chain.Order) (chain.Unsigned, error) {
	builder, err := d.newTxBuilder(order)
	if err != nil {
		return chain.Unsigned{}, err
	}

	var unsigned chain.Unsigned

	err = d.nodes.AskFinal(ctx, d.config.Attempts, 0, func(ctx context.Context, e *endpoint) error {
		b := builder.clone()

		price, err := d.prepare(ctx, e, b)
		if err != nil {
			return err
		}

		unitLimit := b.unitLimit()
		if price, err = b.capPrice(b.raisePrice(price, d.config.MaxPriorityPrice), unitLimit); err != nil {
			return err
		}

		if err := b.checkReplaces(price); err != nil {
			return err
		}

		fee := b.networkFee(price, unitLimit)
		if err := b.subtractFee(fee); err != nil {
			return err
		}

		if err := b.checkFunds(d.native, fee); err != nil {
			return err
		}

		blockhash, validToHeight, err := d.lifetime(ctx, e, b)
		if err != nil {
			return err
		}

		unsigned, err = b.unsigned(price, unitLimit, blockhash, validToHeight)

		return err
	})

	return unsigned, err
}

// lifetime returns the durable nonce of the order, which never runs out, or else the newest finalized blockhash with
// its last valid block height.
func (d *driver) lifetime(
	ctx context.Context,
	e *endpoint,
	b *txBuilder,
) (blockhash solanago.Hash, validToHeight uint64, err error) {
	if b.nonce != nil {
		return b.nonce.value, 0, nil
	}

	return d.latestBlockhash(ctx, e)
}

// clone returns a copy for one node, whose payments can be changed.
func (b *txBuilder) clone() *txBuilder {
	c := *b
	c.payments = slices.Clone(b.payments)

	return &c
}

// subtractFee reduces the last payment by the fee, in lamports, where the order demands it. One that does
// not cover the fee is fault.State.
func (b *txBuilder) subtractFee(fee uint64) error {
	if !b.order.SubtractFee {
		return nil
	}

	last := &b.payments[len(b.payments)-1]
	if b.order.Close {
		var total chain.Amount
		for _, p := range b.payments {
			total = total.Add(chain.Units(p.amount))
		}

		last.amount -= min(last.amount, b.rentShortfall(total, false))
	}

	if last.amount <= fee {
		return fault.New(
			fault.State, "insufficient_funds",
			"the %d lamports to send do not exceed the network fee of %d",
			last.amount, fee,
		)
	}

	last.amount -= fee
	last.Amount = chain.Units(last.amount)

	return nil
}

// blockhashAge is the number of blocks for which a blockhash is valid. Source: Agave,
// MAX_PROCESSING_AGE.
const blockhashAge = 150

// latestBlockhash returns the newest finalized blockhash and its last valid block height. Where several nodes are
// configured another one has the same block at that height: with a height that is too low what is still valid would
// count as expired.
func (d *driver) latestBlockhash(ctx context.Context, e *endpoint) (solanago.Hash, uint64, error) {
	var latest struct {
		Context struct {
			Slot uint64 `json:"slot"`
		} `json:"context"`
		Value struct {
			Hash          string `json:"blockhash"`
			ValidToHeight uint64 `json:"lastValidBlockHeight"`
		} `json:"value"`
	}

	finalized := map[string]any{"commitment": final}
	if err := e.call(ctx, &latest, "getLatestBlockhash", finalized); err != nil {
		return solanago.Hash{}, 0, err
	}

	h, err := e.header(ctx, latest.Context.Slot)
	if err != nil {
		return solanago.Hash{}, 0, e.blockError(ctx, 0, err)
	}

	// A transaction counts as expired once this height is final, so it must be plausible. It is compared with the
	// height of the very block, since another backend may answer the second call.
	hash, err := solanago.HashFromBase58(latest.Value.Hash)
	if err != nil || hash.String() != h.Hash || latest.Value.ValidToHeight < h.Height+blockhashAge ||
		latest.Value.ValidToHeight > h.Height+4*blockhashAge {
		return solanago.Hash{}, 0, e.Garbled(
			"its blockhash %q can be used up to height %d, and the height of its block is %d",
			e.Clean(latest.Value.Hash), latest.Value.ValidToHeight, h.Height,
		)
	}

	_, err = sharedAnswer(
		ctx, d, e, chain.Ref{Height: h.Height, Hash: h.Hash}, "the newest final block",
		func(ctx context.Context, e *endpoint) (chain.Ref, error) { return e.refIn(ctx, h.slot) },
	)

	return hash, latest.Value.ValidToHeight, err
}

// refIn returns the block of a slot, without its time; nothing where the node says that the slot has none.
func (e *endpoint) refIn(ctx context.Context, slot uint64) (chain.Ref, error) {
	h, err := e.header(ctx, slot)
	if failover.RefusedWith(err, codeSlotSkipped, codeLongTermSkipped) {
		err = nil
	}

	return chain.Ref{Height: h.Height, Hash: h.Hash}, err
}

// unsignedTx is the JSON of Unsigned.Raw.
type unsignedTx struct {
	// Message is the legacy message in its wire format, which the signers sign.
	Message []byte `json:"message"`

	// ValidToHeight is the last block height that may include it; 0 with a durable nonce.
	ValidToHeight uint64 `json:"valid_to_height"`

	// Owners are whom the token accounts belong to that are paid, in their order: the message names the
	// accounts alone, and Decode derives them from these.
	Owners []string `json:"owners,omitempty"`

	// Recovers is the token account that a recovery empties. Where it is set Decode takes nothing else.
	Recovers string `json:"recovers,omitempty"`
}

// maxTransactionSize is the limit in bytes. Source: solana.com/docs/core/transactions.
const maxTransactionSize = 1232

// unsigned returns the unsigned transaction. An order too large for one is fault.Unsupported.
func (b *txBuilder) unsigned(
	price, unitLimit uint64,
	blockhash solanago.Hash,
	validToHeight uint64,
) (chain.Unsigned, error) {
	tx, err := solanago.NewTransaction(
		b.instructions(price, unitLimit), blockhash, solanago.TransactionPayer(b.payer),
	)
	if err != nil {
		return chain.Unsigned{}, fault.Wrap(
			err, fault.Invalid, "order_invalid",
			"the order from %s cannot be written as a transaction",
			b.from,
		)
	}

	message, err := tx.Message.MarshalBinary()
	if err == nil && 1+64*int(tx.Message.Header.NumRequiredSignatures)+len(message) > maxTransactionSize {
		err = errMalformed
	}

	if err != nil {
		return chain.Unsigned{}, fault.Wrap(
			err, fault.Unsupported, "order_unsupported",
			"the order from %s pays %d outputs, more than fit into one transaction",
			b.from, len(b.payments),
		)
	}

	written := unsignedTx{Message: message, ValidToHeight: validToHeight, Owners: b.tokenOwners()}
	if b.order.Recovers != nil {
		written.Recovers = b.source.String()
	}

	raw, err := json.Marshal(written)
	if err != nil {
		return chain.Unsigned{}, err
	}

	maxFee := chain.Units(b.networkFee(price, unitLimit)).Add(chain.Units(b.rent))
	unsigned := chain.Unsigned{Raw: raw, MaxFee: maxFee}

	// In the order of the message's signers: the fee payer first.
	if b.payer != b.from {
		payload := chain.Payload{Key: b.order.FeePayer.Key, Data: message}
		unsigned.Payloads = append(unsigned.Payloads, payload)
	}

	unsigned.Payloads = append(unsigned.Payloads, chain.Payload{Key: b.order.From.Key, Data: message})
	for _, p := range b.payments {
		unsigned.Outputs = append(unsigned.Outputs, p.Output)
	}

	return unsigned, nil
}

// tokenOwners returns the owners of the token accounts that are paid.
func (b *txBuilder) tokenOwners() []string {
	var owners []string

	for _, p := range b.payments {
		if p.mint != nil {
			owners = append(owners, p.to.String())
		}
	}

	return owners
}

// Assemble adds the signatures to an unsigned transaction. The transaction hash is the first signature,
// the fee payer's. Signatures or keys that do not match are fault.Invalid, code signature_invalid.
func (d *driver) Assemble(
	order chain.Order,
	unsigned chain.Unsigned,
	keys []chain.PublicKey,
	signatures [][]byte,
) (chain.Signed, error) {
	var (
		decoded unsignedTx
		message solanago.Message
	)

	if err := json.Unmarshal(unsigned.Raw, &decoded); err != nil {
		return chain.Signed{}, signatureInvalid(
			"the unsigned transaction from %s cannot be read", order.From.Address,
		)
	}

	if err := message.UnmarshalBase64(encodeBase64(decoded.Message)); err != nil {
		return chain.Signed{}, signatureInvalid(
			"the unsigned transaction from %s holds no message", order.From.Address,
		)
	}

	if err := checkNonce(message, order); err != nil {
		return chain.Signed{}, signatureInvalid("the transaction from %s: %v", order.From.Address, err)
	}

	tx, err := attachSignatures(order, message, decoded.Message, keys, signatures)
	if err != nil {
		return chain.Signed{}, err
	}

	raw, err := tx.MarshalBinary()
	if err != nil {
		return chain.Signed{}, signatureInvalid(
			"the transaction from %s cannot be written", order.From.Address,
		)
	}

	return chain.Signed{
		TxHash:        tx.Signatures[0].String(),
		Raw:           raw,
		MaxFee:        unsigned.MaxFee,
		Outputs:       unsigned.Outputs,
		From:          order.From.Address,
		DurableNonce:  order.DurableNonce,
		ValidToHeight: decoded.ValidToHeight,
	}, nil
}

// attachSignatures returns the transaction of a message after verifying one signature per signer.
func attachSignatures(
	order chain.Order,
	message solanago.Message,
	rawMessage []byte,
	keys []chain.PublicKey,
	signatures [][]byte,
) (*solanago.Transaction, error) {
	signers := int(message.Header.NumRequiredSignatures)
	if len(keys) != signers || len(signatures) != signers || len(message.AccountKeys) < signers {
		return nil, signatureInvalid(
			"the transaction from %s needs %d signatures and got %d of %d keys",
			order.From.Address, signers, len(signatures), len(keys),
		)
	}

	tx := &solanago.Transaction{Message: message}
	for i, signature := range signatures {
		signer := message.AccountKeys[i]
		if keys[i].Curve != chain.Ed25519 || string(keys[i].Bytes) != string(signer[:]) {
			return nil, signatureInvalid(
				"signature %d of the transaction from %s has to be made by %s, not by another key",
				i+1, order.From.Address, signer,
			)
		}

		if len(signature) != ed25519.SignatureSize || !ed25519.Verify(signer[:], rawMessage, signature) {
			return nil, signatureInvalid(
				"signature %d of the transaction from %s is not that of %s",
				i+1, order.From.Address, signer,
			)
		}

		tx.Signatures = append(tx.Signatures, solanago.SignatureFromBytes(signature))
	}

	return tx, nil
}

func signatureInvalid(format string, args ...any) error {
	return fault.New(fault.Invalid, "signature_invalid", format, args...)
}

func encodeBase64(raw []byte) string { return base64.StdEncoding.EncodeToString(raw) }

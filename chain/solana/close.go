package solana

import (
	"context"
	"encoding/binary"
	"math/bits"
	"slices"

	solanago "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/base58"

	"github.com/seed-8ee7f392/payments/fault"
)

// maxHistory is the number of a token account's transactions that are searched for its creation.
const maxHistory = 200

// planClose sets rentRecipient when the order closes the sender's token account: Order.Close is set, the
// payments empty it, and the payer of its rent is found.
func (d *driver) planClose(ctx context.Context, e *endpoint, b *txBuilder) error {
	if b.sourceMint == nil || !b.order.Close || b.held.amount == 0 {
		return nil
	}

	// Wrapped coin that arrives in between would go to the receiver of the rent.
	if b.sourceMint.key == solanago.WrappedSol {
		return nil
	}

	var total uint64 // base units

	for _, p := range b.payments {
		if p.account == b.source {
			return nil
		}

		sum, carry := bits.Add64(total, p.gross, 0)
		if carry != 0 {
			return nil // more than there is: checkFunds refuses it
		}

		total = sum
	}

	closable := b.held.closeAuthority.IsZero() || b.held.closeAuthority == b.from
	if total != b.held.amount || !closable {
		return nil
	}

	history, _, err := e.signatures(ctx, b.source.String(), 0, 0)
	if err != nil {
		return err
	}

	for _, info := range history[:min(len(history), maxHistory)] {
		if info.failed() {
			continue
		}

		tx, err := d.fetchListed(ctx, e, info.Signature)
		if err != nil {
			return err
		}

		if payer, created := tx.rentPayer(b.source); created {
			b.rentRecipient, err = d.sharedRentPayer(ctx, e, b.source, info.Signature, payer)
			return err
		}
	}

	return nil
}

// sharedRentPayer returns who paid the rent of a token account in the transaction that opened it, as two nodes show it;
// nil where they differ, since the rent would go to whom one of them names.
func (d *driver) sharedRentPayer(
	ctx context.Context,
	e *endpoint,
	account solanago.PublicKey,
	hash string,
	payer *solanago.PublicKey,
) (*solanago.PublicKey, error) {
	if payer == nil {
		return nil, nil //nolint:nilnil // an unknown payer is no error
	}

	named, err := sharedAnswer(
		ctx, d, e, *payer, "transaction "+hash,
		func(ctx context.Context, e *endpoint) (solanago.PublicKey, error) {
			tx, err := d.fetchListed(ctx, e, hash)
			if err != nil {
				return solanago.PublicKey{}, err
			}

			if payer, _ := tx.rentPayer(account); payer != nil {
				return *payer, nil
			}

			return solanago.PublicKey{}, nil
		},
	)
	if named.IsZero() || fault.Code(err) == "nodes_disagree" {
		return nil, nil //nolint:nilnil // an unknown payer is no error
	}

	return &named, err
}

// rentPayer reports whether the transaction opened a token account, and returns who paid its rent; nil when
// that is unknown.
func (tx executedTx) rentPayer(account solanago.PublicKey) (payer *solanago.PublicKey, created bool) {
	index := slices.Index(tx.keys, account)
	if index < 0 || !tx.opened(index) {
		return nil, false
	}

	for _, group := range tx.meta.Inner {
		for _, in := range group.Instructions {
			if in.Program < 0 || in.Program >= len(tx.keys) ||
				tx.keys[in.Program] != solanago.SystemProgramID ||
				len(in.Accounts) < 2 ||
				in.Accounts[1] != index {
				continue
			}

			data, err := base58.Decode(in.Data)
			if err != nil || len(data) < 4 || in.Accounts[0] < 0 || in.Accounts[0] >= len(tx.keys) {
				return nil, true
			}

			if code := binary.LittleEndian.Uint32(data); code == 0 || code == 2 { // CreateAccount, Transfer
				return &tx.keys[in.Accounts[0]], true
			}
		}
	}

	return nil, true
}

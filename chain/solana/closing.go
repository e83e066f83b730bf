package solana

import (
	"context"
	"encoding/binary"

	solanago "github.com/gagliardetto/solana-go"
	"github.com/gagliardetto/solana-go/base58"
)

// longHistory is how many transactions of a token account are looked through for the one that made it.
const longHistory = 200

// closing decides whether the sender's token account is closed as ordered, and notes to whom its rent goes.
func (d *Driver) closing(ctx context.Context, e *endpoint, s *spend) error {
	if s.sourceMint == nil || !s.order.Close || s.held.amount == 0 {
		return nil
	}

	var moved uint64

	for _, p := range s.payments {
		if p.account == s.source {
			return nil
		}

		moved += p.gross // what is too much is refused by judge
	}

	if moved != s.held.amount || (!s.held.closer.IsZero() && s.held.closer != s.from) {
		return nil
	}

	history, _, err := e.signatures(ctx, s.source.String(), 0, 0)
	if err != nil {
		return err
	}

	for _, info := range history[:min(len(history), longHistory)] {
		if info.failed() {
			continue
		}

		payer, made, err := d.rentPayer(ctx, e, info.Signature, s.source)
		if err != nil {
			return err
		}

		if made {
			s.refund = payer
			return nil
		}
	}

	return nil
}

// rentPayer says whether a transaction made an account, and who paid for it; nil when that does not show.
func (d *Driver) rentPayer(
	ctx context.Context,
	e *endpoint,
	signature string,
	account solanago.PublicKey,
) (payer *solanago.PublicKey, made bool, err error) {
	f, err := d.lookUp(ctx, e, signature)
	if err != nil {
		return nil, false, err
	}

	at := -1

	for i, key := range f.keys {
		if key == account {
			at = i
		}
	}

	if at < 0 || f.meta.PreBalances[at] > 0 || f.meta.PostBalances[at] == 0 {
		return nil, false, nil
	}

	for _, group := range f.meta.Inner {
		for _, in := range group.Instructions {
			if in.Program < 0 || in.Program >= len(f.keys) ||
				f.keys[in.Program] != solanago.SystemProgramID ||
				len(in.Accounts) < 2 ||
				in.Accounts[1] != at {
				continue
			}

			data, err := base58.Decode(in.Data)
			if err != nil || len(data) < 4 || in.Accounts[0] < 0 || in.Accounts[0] >= len(f.keys) {
				return nil, true, nil
			}

			if code := binary.LittleEndian.Uint32(data); code == 0 || code == 2 { // CreateAccount, Transfer
				return &f.keys[in.Accounts[0]], true, nil
			}
		}
	}

	return nil, true, nil
}

// innerInstructions are the calls that one instruction made.
type innerInstructions struct {
	Instructions []struct {
		Program  int    `json:"programIdIndex"`
		Accounts []int  `json:"accounts"`
		Data     string `json:"data"`
	} `json:"instructions"`
}

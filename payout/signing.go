package payout

import (
	"context"
	"slices"
)

// Signing records the signatures of a payout. The payout's tag covers it.
type Signing struct {
	// Spent is one thing that each signature uses up (the key of a chain.Spend), oldest first: a nonce or an
	// output. Where transactions only expire, it is the transaction itself. A replacement uses up the last of
	// them and adds none.
	Spent []string `json:"spent,omitempty"`
	// Foreign are the hashes of transactions that equal the payout but, according to a person, are not it.
	Foreign []string `json:"foreign,omitempty"`
}

// Replaces reports whether bytes that use up spends (keys of chain.Spend) exclude the last signature of the
// payout.
func (p Payout) Replaces(spends []string) bool {
	signed := len(p.Signing.Spent)

	return signed > 0 && slices.Contains(spends, p.Signing.Spent[signed-1])
}

// spend records what a new signature uses up (keys of chain.Spend), and reports whether that changed the
// payout. A payout that was changed outside this service stays as it is: nothing is signed for it any more.
func (s *Service) spend(p *Payout, spends []string) (changed bool, err error) {
	if len(spends) == 0 || p.Replaces(spends) || s.Verify(*p) != nil {
		return false, nil
	}

	p.Signing.Spent = append(slices.Clip(p.Signing.Spent), spends[0])

	return true, s.authenticate(p)
}

// AcknowledgeTx stores a person's answer about a transaction that equals a payout. With spent (the key of a
// chain.Spend), the transaction is the payout and uses up spent. With an empty spent, it is not the payout.
func (s *Service) AcknowledgeTx(ctx context.Context, tx Tx, payoutID, txHash, spent string) error {
	p, err := tx.PayoutByID(ctx, payoutID)
	if err != nil || s.Verify(p) != nil {
		return err
	}

	if spent != "" {
		if changed, err := s.spend(&p, []string{spent}); err != nil || !changed {
			return err
		}

		return tx.PutPayout(ctx, &p)
	}

	p.Signing.Foreign = append(slices.Clip(p.Signing.Foreign), txHash)
	if err := s.authenticate(&p); err != nil {
		return err
	}

	return tx.PutPayout(ctx, &p)
}

package payout

import (
	"context"
	"slices"
)

// Signing records the signatures of a payout. The payout's tag covers it.
type Signing struct {
	// Spent is one thing that each signature uses up (the key of a chain.Spend), oldest first: a nonce or
	// an output, and where transactions only expire the transaction itself. A replacement uses up the last
	// of them and adds none.
	Spent []string `json:"spent,omitempty"`
	// Foreign are the hashes of transactions that equal the payout and are not it, as a person said.
	Foreign []string `json:"foreign,omitempty"`
}

// Replaces reports whether bytes that use up spends (the key of a chain.Spend) exclude the last signature
// of the payout.
func (p Payout) Replaces(spends []string) bool {
	signed := len(p.Signing.Spent)

	return signed > 0 && slices.Contains(spends, p.Signing.Spent[signed-1])
}

// spend records what a new signature uses up (the key of a chain.Spend), and reports whether that changed
// the payout. One that was changed outside this service stays as it is: nothing is signed for it any more.
func (s *Service) spend(p *Payout, spends []string) (changed bool, err error) {
	if len(spends) == 0 || p.Replaces(spends) || s.Verify(*p) != nil {
		return false, nil
	}

	p.Signing.Spent = append(slices.Clip(p.Signing.Spent), spends[0])

	return true, s.authenticate(p)
}

// AcknowledgeTx stores what a person said of a transaction that equals a payout: that it is the payout, and uses up
// spent (the key of a chain.Spend), or with an empty one that it is not.
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

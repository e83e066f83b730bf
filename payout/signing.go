package payout

import (
	"context"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

// Signing records the signatures of a payout. The payout's tag covers it.
type Signing struct {
	// Spent is one thing that each signature uses up (chain.Spend.Key), oldest first: a nonce or an output, and
	// where transactions only expire the transaction itself. A replacement uses up the last of them and adds none.
	Spent []string `json:"spent,omitempty"`
	// Foreign are the hashes of transactions that equal the payout and are not it, as a person said.
	Foreign []string `json:"foreign,omitempty"`
}

// signingSlack is how long after GiveUpAfter a signature may still be under way.
const signingSlack = time.Minute

// Replaces reports whether bytes that use up spends (chain.Spend.Key) exclude the last signature of the payout.
func (p Payout) Replaces(spends []string) bool {
	signed := len(p.Signing.Spent)

	return signed > 0 && slices.Contains(spends, p.Signing.Spent[signed-1])
}

// CheckSigning refuses bytes that could be included besides earlier ones, once the payout is older than
// GiveUpAfter: by then it is signed, or has failed as stale. Until then the caller looks for it on the network.
//
// Errors: fault.Forbidden, code payout_signed_already.
func (p Payout) CheckSigning(spends []string, now time.Time) error {
	if p.Replaces(spends) || now.Before(p.CreatedAt.Add(GiveUpAfter+signingSlack)) {
		return nil
	}

	return fault.New(
		fault.Forbidden, "payout_signed_already",
		"payout %s is of %s: what is signed now has to replace what was signed then",
		p.ID, p.CreatedAt.Format(time.RFC3339),
	)
}

// spend records what a new signature uses up (chain.Spend.Key), and reports whether that changed the payout. One that
// was changed outside this service stays as it is: nothing is signed for it any more.
func (s *Service) spend(p *Payout, spends []string) (changed bool, err error) {
	if len(spends) == 0 || p.Replaces(spends) || s.Verify(*p) != nil {
		return false, nil
	}

	p.Signing.Spent = append(slices.Clip(p.Signing.Spent), spends[0])

	return true, s.authenticate(p)
}

// AcknowledgeTx stores what a person said of a transaction that equals a payout: that it is the payout, and uses up
// spent (chain.Spend.Key), or with an empty one that it is not.
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

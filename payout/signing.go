package payout

import (
	"context"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

// Signing is what the service knows of a payout's signatures. Its tag covers it.
type Signing struct {
	// Spent is one thing that each signature uses up (chain.Spend.Key), oldest first: a nonce or an output, and
	// where transactions only expire the transaction itself. A replacement uses up the last of them and adds none.
	Spent []string `json:"spent,omitempty"`
	// Foreign are the hashes of transactions that equal the payout and are not it, as a person said.
	Foreign []string `json:"foreign,omitempty"`
}

// signingSlack is how long after GiveUpAfter a signature may still be under way.
const signingSlack = time.Minute

// AcceptedAt returns when the payout could be signed first: when it was made, or approved.
func (p Payout) AcceptedAt() time.Time {
	if p.Approval.ApprovedAt.After(p.CreatedAt) {
		return p.Approval.ApprovedAt
	}

	return p.CreatedAt
}

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

// RecordSpentTx stores what a signature of a payout uses up, with its bytes: spends are chain.Spend.Key. A payout that
// was changed outside this service stays as it is: nothing is signed for it any more.
func (s *Service) RecordSpentTx(ctx context.Context, tx Tx, payoutID string, spends []string) error {
	return s.changeSigning(ctx, tx, payoutID, func(p *Payout) {
		if len(spends) > 0 && !p.Replaces(spends) {
			p.Signing.Spent = append(slices.Clip(p.Signing.Spent), spends[0])
		}
	})
}

// RecordForeignTx stores that a transaction which equals a payout is not it.
func (s *Service) RecordForeignTx(ctx context.Context, tx Tx, payoutID, txHash string) error {
	return s.changeSigning(ctx, tx, payoutID, func(p *Payout) {
		if !slices.Contains(p.Signing.Foreign, txHash) {
			p.Signing.Foreign = append(slices.Clip(p.Signing.Foreign), txHash)
		}
	})
}

// changeSigning changes what is known of a payout's signatures, and its tag.
func (s *Service) changeSigning(ctx context.Context, tx Tx, payoutID string, change func(p *Payout)) error {
	p, err := tx.PayoutByID(ctx, payoutID)
	if err != nil || s.Verify(p) != nil {
		return err
	}

	spent, foreign := len(p.Signing.Spent), len(p.Signing.Foreign)

	change(&p)

	if len(p.Signing.Spent) == spent && len(p.Signing.Foreign) == foreign {
		return nil
	}

	if err := s.authenticate(&p); err != nil {
		return err
	}

	return tx.PutPayout(ctx, &p)
}

package webhook

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/paging"
)

// Reseal encrypts the signing secrets of an owner's endpoints with the sealer's current key and returns how
// many endpoints it changed. The secrets themselves stay the same. If an endpoint's secret cannot be
// decrypted, the others are still resealed; the error names it.
func (s *Service) Reseal(ctx context.Context, owner event.Owner) (done int, err error) {
	f := EndpointFilter{Owner: owner, Limit: paging.Most}
	for {
		page, listErr := s.db.WebhookEndpoints(ctx, f)
		if listErr != nil {
			return done, errors.Join(err, listErr)
		}

		for _, e := range page {
			if oneErr := s.reseal(ctx, owner, e.ID); oneErr != nil {
				err = errors.Join(
					err,
					fmt.Errorf("seal the signing secret of webhook endpoint %s anew: %w", e.ID, oneErr),
				)

				continue
			}

			done++
		}

		if len(page) < f.Limit || ctx.Err() != nil {
			return done, errors.Join(err, ctx.Err())
		}

		f.After = page[len(page)-1].ID
	}
}

func (s *Service) reseal(ctx context.Context, owner event.Owner, id string) error {
	return s.db.Update(ctx, func(ctx context.Context, tx Tx) error {
		e, err := endpoint(ctx, tx, owner, id)
		if err != nil {
			return err
		}

		for _, sealed := range []*[]byte{&e.SealedSecret, &e.SealedPrevious} {
			if len(*sealed) == 0 {
				continue
			}

			secret, err := s.seal.Open(*sealed, secretContext(id))
			if err != nil {
				return err
			}

			*sealed = s.seal.Seal(secret, secretContext(id))
		}

		return tx.PutEndpoint(ctx, &e)
	})
}

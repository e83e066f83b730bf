package httpapi

import (
	"context"
	"errors"
	"strings"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/requestkey"
	"github.com/seed-8ee7f392/payments/invoice"
)

const changeTries = 4

// change prepares and commits. It starts over up to changeTries times if the preparation is stale at the
// commit: a quote expired, or another process assigned the address.
func (s *server) change(ctx context.Context, c *call) (requestkey.Answer, error) {
	for try := 1; ; try++ {
		answer, err := s.changeOnce(ctx, c)

		stale := errors.Is(err, fault.Conflict) || errors.Is(err, fault.Duplicate) ||
			errors.Is(err, invoice.ErrUnprepared)
		if !stale || try == changeTries || ctx.Err() != nil ||
			strings.HasPrefix(fault.Code(err), "idempotency_") {
			return answer, err
		}
	}
}

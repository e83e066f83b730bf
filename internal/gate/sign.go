package gate

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/hostcall"
	"github.com/seed-8ee7f392/payments/internal/redact"
)

// If the signer of a wallet hangs, it blocks the other wallets of its network. signLimit bounds the time of a
// call, as documented at chain.Signer; signPause bounds how often that happens.
const (
	signLimit = time.Minute
	signPause = time.Minute
)

// sign calls the host's signer. A signature that comes after signLimit is dropped. Further requests with the
// same keys are fault.Unavailable with code signer_timeout until the call has returned and signPause has
// passed.
func (g *Gate) sign(
	ctx context.Context,
	request chain.SignRequest,
	signing []chain.Address,
) ([][]byte, error) {
	signatures, err := g.signing.Do(ctx, keysOf(request), func(ctx context.Context) ([][]byte, error) {
		return g.config.Signer.Sign(ctx, request)
	})
	if !errors.Is(err, hostcall.ErrTooLong) {
		return signatures, g.signerError(ctx, request, err)
	}

	from := keysOf(request)
	if len(signing) > 0 && signing[0] != "" { // a driver need not derive addresses
		from = string(signing[0])
	}

	return nil, fault.Wrap(
		err, fault.Unavailable, "signer_timeout",
		"the signer gave no signature of wallet %s on %s within %s; it is asked again: see what it waits for",
		from, request.Network, signLimit,
	)
}

// signerError returns the error of the host's signer. If that is no fault, its text is logged without
// possible secrets, and the returned error does not show it to records and merchants.
func (g *Gate) signerError(ctx context.Context, request chain.SignRequest, err error) error {
	_, known := errors.AsType[*fault.Error](err)
	_, refused := errors.AsType[*chain.Refusal](err)

	if err == nil || known || refused || ctx.Err() != nil {
		return err
	}

	g.config.Log.WarnContext(
		ctx, "the signer gave no signature",
		"network", request.Network, "kind", request.Intent.Kind, "object", request.Intent.ObjectID,
		"error", redact.Secrets(err.Error()),
	)

	return fault.Wrap(
		err,
		fault.Unavailable,
		"signer_failed",
		"the signer gave no signature on %s; the log has what it said, and it is asked again",
		request.Network,
	)
}

// keysOf returns a key made of the network and the keys of a request.
func keysOf(request chain.SignRequest) string {
	names := make([]string, len(request.Payloads))
	for i, p := range request.Payloads {
		names[i] = p.Key.String()
	}

	slices.Sort(names)

	return request.Network + " " + strings.Join(slices.Compact(names), " ")
}

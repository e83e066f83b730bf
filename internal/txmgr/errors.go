package txmgr

import (
	"context"
	"errors"

	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/fault"
)

// stops reports whether an error ends the turn: the lease is lost, the store is down or the context ended.
// Any other error delays one transaction only, even if a reaction of the host to its event returned it.
func (d *walletWorker) stops(ctx context.Context, err error) bool {
	_, stored := errors.AsType[*storeError](err)

	return errors.Is(err, fault.LeaseLost) || (stored && errors.Is(err, fault.Unavailable)) ||
		ctx.Err() != nil
}

// storeError marks an error of the store, or of a closure that ran in its transaction.
type storeError struct{ error }

func (e *storeError) Unwrap() error { return e.error }

// illegalMove marks the error of a move that the stored record refuses.
type illegalMove struct{ error }

func (e *illegalMove) Unwrap() error { return e.error }

// PublicText returns the part of an error that records, rows and logs may show; see publicText.
func PublicText(err error) string { return publicText(err) }

// publicText returns the part of an error that rows and logs may show. For a fault that is its code and
// message and those of its causes, at most 300 bytes; for any other error its kind. Errors of third parties'
// drivers and signers that are no faults may contain anything, such as a URL with a key.
func publicText(err error) string {
	if f, ok := errors.AsType[*fault.Error](err); ok {
		said := f.Code
		if f.Message != "" {
			said += ": " + f.Message
		}

		if _, ok := errors.AsType[*fault.Error](f.Cause); ok {
			said += ": " + publicText(f.Cause)
		}

		if len(said) > 300 {
			said = said[:300]
		}

		return said
	}

	for _, kind := range []error{
		fault.Unavailable,
		fault.Invalid,
		fault.State,
		fault.Limited,
		context.DeadlineExceeded,
		context.Canceled,
	} {
		if errors.Is(err, kind) {
			return kind.Error()
		}
	}

	return "an error without a word; the driver or signer has the details"
}

// reasonCode returns a signer's reason as a part of a failure code: letters, digits and "_-.", at most 64
// bytes; "unspecified" when nothing is left.
func reasonCode(s string) string {
	clean := []byte{}

	for _, c := range []byte(s) {
		if c == '_' || c == '-' || c == '.' || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
			(c >= 'A' && c <= 'Z') {
			clean = append(clean, c)
		}

		if len(clean) == 64 {
			break
		}
	}

	if len(clean) == 0 {
		return "unspecified"
	}

	return string(clean)
}

// refuse returns the fault.State error of a move that the transaction's state does not allow.
func refuse(t wallet.Transaction, what string) error {
	return fault.New(
		fault.State, "transaction_state", "transaction %s is %s and cannot %s",
		t.ID, t.State, what,
	)
}

package requestkey

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/seed-8ee7f392/payments/fault"
)

// refusal is the JSON of a stored error.
type refusal struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Param   string `json:"param,omitempty"`
}

// refusedStatus is the HTTP status of stored refusals: the request was understood, and it alone decided.
const refusedStatus = 422

// refuse stores an error that is storable, and returns it. It also returns it if storing fails: the request
// had no effect, and the next one is checked afresh. An error of the work, whose claim may not have been
// tried, counts only if no other request holds the key.
func (c Config[T]) refuse(
	ctx context.Context,
	r Request,
	err error,
	worked bool,
) (Answer, error) { // spec D9.5
	body, ok := c.storable(err)
	if !ok && !worked {
		return Answer{}, err
	}

	work := func(context.Context, T) (int, []byte, error) { return refusedStatus, body, nil }
	if !ok { // only to learn whether the claim succeeds
		work = func(context.Context, T) (int, []byte, error) { return 0, nil, err }
	}

	_, claimed, storeErr := c.claimAnswer(ctx, r, c.Now().Add(-TTL), &storeWait{left: Wait}, work)
	if storeErr == nil || claimed {
		return Answer{}, err
	}

	if errors.Is(storeErr, fault.Duplicate) {
		// Another request was answered meanwhile, perhaps differently: only the stored answer counts.
		if record, ok, lookupErr := c.lookup(ctx, r); lookupErr == nil && ok {
			return c.replay(record, r)
		}
	}

	if worked && fault.Code(storeErr) == "idempotency_request_in_progress" {
		return Answer{}, storeErr
	}

	return Answer{}, err
}

// storable returns the stored form of an error that every later request gets. ok is false for an error that
// does not depend on the request alone, or has another status than 422.
func (c Config[T]) storable(err error) (body []byte, ok bool) { // spec D12.21
	f, ok := errors.AsType[*fault.Error](err)
	if !ok || !errors.Is(f.Kind, fault.Invalid) || f.Transient || c.Status(err) != refusedStatus {
		return nil, false
	}

	body, jsonErr := json.Marshal(refusal{Code: f.Code, Message: f.Message, Param: f.Param})

	return body, jsonErr == nil
}

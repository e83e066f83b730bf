package requestkey

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/fault"
)

// replay returns the answer of a record. The API key is checked before the fingerprint, so that a key without
// permission learns nothing about the request.
func (c Config[T]) replay(record idempotency.Record, r Request) (Answer, error) { // spec 5.6
	if record.KeyID != r.KeyID && !hasAll(r.Permissions, record.Scopes) {
		return Answer{}, fault.New(
			fault.Forbidden, "idempotency_key_not_yours",
			"this Idempotency-Key was used by another API key: use one of your own",
		)
	}

	if record.Fingerprint != r.Fingerprint { // spec 7.3
		return Answer{}, fault.New(
			fault.Invalid,
			"idempotency_key_reused",
			"this Idempotency-Key was used for another request: use a new key for a new request, or send "+
				"the same request again",
		)
	}

	if record.Status == 0 {
		return Answer{}, inProgress()
	}

	context, err := sealContext(record)
	if err != nil {
		return Answer{}, err
	}

	body, err := c.Seal.Open(record.SealedBody, context)
	if err != nil {
		return Answer{}, fmt.Errorf("opening the stored answer: %w", err)
	}

	if record.Status < 400 {
		return Answer{Status: record.Status, Body: body, Replayed: true}, nil
	}

	var stored refusal
	if err := json.Unmarshal(body, &stored); err != nil {
		return Answer{}, fault.Wrap(
			err, fault.Unavailable, "sealed_data_damaged", "the stored answer cannot be read",
		)
	}

	refused := &fault.Error{
		Kind:    fault.Invalid,
		Code:    stored.Code,
		Message: stored.Message,
		Param:   stored.Param,
	}

	return Answer{Replayed: true}, refused
}

// hasAll reports whether have contains all of want.
func hasAll(have, want []string) bool {
	return !slices.ContainsFunc(want, func(permission string) bool {
		kind, _, ok := strings.Cut(permission, ":")

		return !slices.Contains(have, permission) && (!ok || !slices.Contains(have, kind+":*"))
	})
}

package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"
	"net/http"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/requestkey"
)

const maxIdempotencyKey = 255 // bytes

// changeOnce prepares and commits, at most once per Idempotency-Key.
func (s *server) changeOnce(ctx context.Context, c *call) (requestkey.Answer, error) {
	prepare := func(ctx context.Context) (requestkey.Commit[payments.Tx], error) {
		commitAny, err := c.op.prepare(ctx, c)
		if err != nil {
			return nil, err
		}

		return func(ctx context.Context, tx payments.Tx) (int, []byte, error) {
			answer, err := commitAny(ctx, tx)
			if err != nil {
				return 0, nil, err
			}

			body, err := render(answer)

			return http.StatusOK, body, err // spec D1.15
		}, nil
	}

	if c.idempotencyKey != "" {
		return requestkey.Run(ctx, s.answers, c.idempotencyRequest(), prepare)
	}

	commitBody, err := prepare(ctx)
	if err != nil {
		return requestkey.Answer{}, err
	}

	var answer requestkey.Answer

	err = s.answers.Update(ctx, func(ctx context.Context, tx payments.Tx) error {
		status, body, err := commitBody(ctx, tx)
		answer = requestkey.Answer{Status: status, Body: body}

		return err
	})

	return answer, err
}

// canonicalBody returns the body as canonical JSON (RFC 8785): the order of members, white space and the
// escaping of characters do not count. Numbers stay as they are written.
func (c *call) canonicalBody() []byte { // spec D12.22
	canonical := jsontext.Value(bytes.Clone(c.raw))

	err := canonical.Canonicalize(jsontext.CanonicalizeRawInts(false), jsontext.CanonicalizeRawFloats(false))
	if err != nil { // an absent body
		return c.raw
	}

	return canonical
}

// idempotencyRequest returns the key with its fingerprint: SHA-256 over method, path and canonical body.
func (c *call) idempotencyRequest() requestkey.Request { // spec D9.4
	fingerprint := sha256.New()
	for _, part := range []string{c.op.method, c.path} {
		_, _ = io.WriteString(fingerprint, part+"\n")
	}

	_, _ = fingerprint.Write(c.canonicalBody())

	permissions := make([]string, len(c.key.Scopes))
	for i, scope := range c.key.Scopes {
		permissions[i] = string(scope)
	}

	if c.op.sends {
		permissions = append(permissions, c.key.PayoutPermissions(c.settings)...)
	}

	return requestkey.Request{
		Key:         idempotency.Key{Owner: c.owner, Key: c.idempotencyKey},
		KeyID:       c.key.ID,
		Permissions: permissions,
		Fingerprint: [32]byte(fingerprint.Sum(nil)),
		ClaimFirst:  c.op.claimFirst,
	}
}

// readIdempotencyKey sets c.idempotencyKey from the header of a POST. Other methods ignore the header.
func (c *call) readIdempotencyKey(r *http.Request) error { // spec 4.1.1
	if c.op.method != http.MethodPost {
		return nil
	}

	values := r.Header.Values("Idempotency-Key")
	if len(values) == 0 {
		if c.op.idempotency == keyRequired { // spec 4.6.2
			return fault.New(
				fault.Invalid, "idempotency_key_required",
				"this request needs an Idempotency-Key header, so that sending it twice pays once",
			)
		}

		return nil
	}

	key := values[0]
	badLength := key == "" || len(key) > maxIdempotencyKey // spec 4.1.2

	if len(values) != 1 || badLength || !printable([]byte(key)) {
		return fault.New(
			fault.Invalid, "idempotency_key_invalid",
			"send one Idempotency-Key of 1 to %d printable ASCII characters without spaces",
			maxIdempotencyKey,
		)
	}

	c.idempotencyKey = key

	return nil
}

// printable reports whether all bytes are visible ASCII, without spaces.
func printable(text []byte) bool {
	for _, c := range text {
		if c < '!' || c > '~' {
			return false
		}
	}

	return true
}

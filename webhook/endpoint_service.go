package webhook

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/paging"
)

// This file holds the merchants' operations on endpoints.

// secretPrefix begins every signing secret.
const secretPrefix = "whsec_" // spec 5.8

// EndpointParams are the parameters of CreateEndpoint.
type EndpointParams struct {
	Owner       event.Owner
	URL         string
	Description string
	// Events are known types, or the single entry "*".
	Events []event.Type
}

// CreateEndpoint adds an endpoint and returns its signing secret, which cannot be read again.
//
// Errors:
//   - fault.Invalid: a parameter breaks a rule; the error names it
//   - fault.State, code webhook_endpoint_limit_exceeded: the account has 16 in this mode
func (s *Service) CreateEndpoint(
	ctx context.Context,
	p EndpointParams,
) (e Endpoint, secret string, err error) {
	err = s.db.Update(ctx, func(ctx context.Context, tx Tx) (err error) {
		e, secret, err = s.createEndpoint(ctx, tx, p)
		return err
	})

	return e, secret, err
}

// createEndpoint is CreateEndpoint inside a transaction.
func (s *Service) createEndpoint(ctx context.Context, tx Tx, p EndpointParams) (Endpoint, string, error) {
	types, err := checkEvents(p.Events)
	if err == nil {
		err = checkDescription(p.Description)
	}

	if err == nil {
		err = checkURL(p.URL, p.Owner.Livemode, s.guard)
	}

	if err != nil {
		return Endpoint{}, "", err
	}

	if err := tx.LockAccount(ctx, p.Owner.AccountID); err != nil {
		return Endpoint{}, "", fmt.Errorf("lock account %s: %w", p.Owner.AccountID, err)
	}

	existing, err := tx.WebhookEndpoints(ctx, EndpointFilter{Owner: p.Owner, Limit: maxEndpoints})
	if err != nil {
		return Endpoint{}, "", fmt.Errorf(
			"count the webhook endpoints of account %s: %w",
			p.Owner.AccountID, err,
		)
	}

	if len(existing) >= maxEndpoints {
		return Endpoint{}, "", fault.New(fault.State, "webhook_endpoint_limit_exceeded",
			"this account has %d webhook endpoints, as many as it may have: delete one first", len(existing))
	}

	at := s.stamp()
	e := Endpoint{
		ID:          s.ids.Next(),
		Owner:       p.Owner,
		URL:         p.URL,
		Description: p.Description,
		Events:      types,
		Status:      Enabled,
		CreatedAt:   at,
		UpdatedAt:   at,
	}

	var secret string
	if secret, e.SealedSecret, e.SecretLast4, err = s.newSecret(e.ID); err != nil {
		return Endpoint{}, "", err
	}

	err = tx.PutEndpoint(ctx, &e)

	return e, secret, err
}

// newSecret returns a new signing secret for an endpoint: "whsec_" and 32 random bytes in base64.
func (s *Service) newSecret(endpointID string) (secret string, sealed []byte, last4 string, err error) {
	// spec D8.5
	var raw [32]byte
	if _, err := io.ReadFull(s.entropy, raw[:]); err != nil {
		return "", nil, "", fault.Wrap(
			err, fault.Unavailable, "entropy_unavailable", "no randomness for a signing secret",
		)
	}

	secret = secretPrefix + base64.StdEncoding.EncodeToString(raw[:])

	return secret, s.seal.Seal([]byte(secret), secretContext(endpointID)), secret[len(secret)-4:], nil
}

// EndpointUpdate holds the fields that UpdateEndpoint changes. Nil fields stay as they are.
type EndpointUpdate struct {
	URL         *string
	Description *string
	Events      *[]event.Type
	// Status may become Enabled or Disabled.
	Status *EndpointStatus
}

// UpdateEndpoint changes an endpoint. Disabling it fails its pending deliveries.
func (s *Service) UpdateEndpoint(
	ctx context.Context,
	owner event.Owner,
	id string,
	u EndpointUpdate,
) (e Endpoint, err error) {
	err = s.db.Update(ctx, func(ctx context.Context, tx Tx) (err error) {
		e, err = s.updateEndpoint(ctx, tx, owner, id, u)
		return err
	})

	return e, err
}

// updateEndpoint is UpdateEndpoint inside a transaction.
func (s *Service) updateEndpoint(
	ctx context.Context,
	tx Tx,
	owner event.Owner,
	id string,
	u EndpointUpdate,
) (Endpoint, error) {
	before, err := endpoint(ctx, tx, owner, id)
	if err != nil {
		return Endpoint{}, err
	}

	e, at := before, s.stamp()
	if u.URL != nil && *u.URL != e.URL {
		if err := checkURL(*u.URL, owner.Livemode, s.guard); err != nil {
			return Endpoint{}, err
		}

		// Failures of the old URL do not count against the new one.
		e.URL, e.FirstFailureAt = *u.URL, time.Time{}
	}

	if u.Description != nil {
		if err := checkDescription(*u.Description); err != nil {
			return Endpoint{}, err
		}

		e.Description = *u.Description
	}

	if u.Events != nil {
		if e.Events, err = checkEvents(*u.Events); err != nil {
			return Endpoint{}, err
		}
	}

	if u.Status != nil {
		switch *u.Status {
		case Enabled:
			e = e.enabled(at)
		case Disabled:
			e = e.disabled(at)
		default:
			return Endpoint{}, fault.Param(
				"status", "parameter_invalid", "status can be set to enabled or disabled",
			)
		}
	}

	sameTarget := e.URL == before.URL && slices.Equal(e.Events, before.Events)
	if sameTarget && e.Description == before.Description && e.Status == before.Status {
		return before, nil
	}

	e.UpdatedAt = at
	err = PutChanged(ctx, tx, &e, before.Status)

	return e, err
}

// PutChanged stores an endpoint and appends the event of its change of status. If it became disabled, its
// pending deliveries fail.
func PutChanged(ctx context.Context, tx Tx, e *Endpoint, before EndpointStatus) error { // spec D8.10
	changed, events := e.withStatusEvent(before)
	*e = changed

	if err := tx.PutEndpoint(ctx, e); err != nil {
		return err
	}

	if e.Status == Disabled && before != Disabled {
		if err := tx.FailDeliveries(ctx, e.ID); err != nil {
			return fmt.Errorf("end the deliveries of webhook endpoint %s: %w", e.ID, err)
		}
	}

	if len(events) == 0 {
		return nil
	}

	return tx.AppendEvents(ctx, events...)
}

// DeleteEndpoint removes an endpoint and fails its pending deliveries; ended deliveries stay readable.
func (s *Service) DeleteEndpoint(ctx context.Context, owner event.Owner, id string) error {
	return s.db.Update(ctx, func(ctx context.Context, tx Tx) error {
		return s.deleteEndpoint(ctx, tx, owner, id)
	})
}

// deleteEndpoint is DeleteEndpoint inside a transaction.
func (s *Service) deleteEndpoint(ctx context.Context, tx Tx, owner event.Owner, id string) error {
	if _, err := endpoint(ctx, tx, owner, id); err != nil {
		return err
	}

	if err := tx.FailDeliveries(ctx, id); err != nil {
		return fmt.Errorf("end the deliveries of webhook endpoint %s: %w", id, err)
	}

	return tx.DeleteEndpoint(ctx, id)
}

// RotateSecret gives an endpoint a new signing secret and returns it. The previous secret goes on signing,
// beside the new one, for overlap, 0 to 168 hours. A secret older than that stops signing at once.
func (s *Service) RotateSecret(
	ctx context.Context,
	owner event.Owner,
	id string,
	overlap time.Duration,
) (e Endpoint, secret string, err error) {
	err = s.db.Update(ctx, func(ctx context.Context, tx Tx) (err error) {
		e, secret, err = s.rotateSecret(ctx, tx, owner, id, overlap)
		return err
	})

	return e, secret, err
}

// rotateSecret is RotateSecret inside a transaction.
func (s *Service) rotateSecret(
	ctx context.Context,
	tx Tx,
	owner event.Owner,
	id string,
	overlap time.Duration,
) (Endpoint, string, error) {
	if overlap < 0 || overlap > maxOverlap {
		return Endpoint{}, "", fault.Param(
			"overlap_hours", "parameter_invalid", "overlap_hours must be 0 to %d",
			int(maxOverlap/time.Hour),
		)
	}

	e, err := endpoint(ctx, tx, owner, id)
	if err != nil {
		return Endpoint{}, "", err
	}

	secret, sealed, last4, err := s.newSecret(id)
	if err != nil {
		return Endpoint{}, "", err
	}

	e = e.rotated(sealed, last4, overlap, s.stamp())
	err = tx.PutEndpoint(ctx, &e)

	return e, secret, err
}

// GetEndpoint returns an endpoint, or fault.NotFound.
func (s *Service) GetEndpoint(ctx context.Context, owner event.Owner, id string) (Endpoint, error) {
	return endpoint(ctx, s.db, owner, id)
}

// ListEndpoints returns a page of endpoints, newest first, and whether there are more. A limit of 0 is 50;
// limits outside 1 to 100 are set to the nearest bound.
func (s *Service) ListEndpoints(
	ctx context.Context,
	f EndpointFilter,
) (page []Endpoint, more bool, err error) {
	limit := paging.Limit(f.Limit)
	f.Limit = limit + 1

	page, err = s.db.WebhookEndpoints(ctx, f)

	return paging.Page(page, limit, err)
}

func endpoint(ctx context.Context, r Reader, owner event.Owner, id string) (Endpoint, error) {
	e, err := r.WebhookEndpoint(ctx, owner, id)
	return e, notFound(err, "webhook endpoint", id)
}

// notFound replaces a store's fault.NotFound by the error that the API shows.
func notFound(err error, object, id string) error {
	if errors.Is(err, fault.NotFound) {
		return fault.Missing(object, id)
	}

	return err
}

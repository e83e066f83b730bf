package sqlstore

// This file holds the rows of accounts.

import (
	"time"

	"github.com/seed-8ee7f392/payments/account"
	"github.com/seed-8ee7f392/payments/account/idempotency"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/store/lease"
)

// accountRow is a row of {accounts}.
type accountRow struct {
	ID        string                     `db:"id"`
	Index     uint32                     `db:"idx"`
	Settings  document[account.Settings] `db:"settings"`
	LogoType  string                     `db:"logo_type"`
	Logo      []byte                     `db:"logo"`
	CreatedAt moment                     `db:"created_at"`
	UpdatedAt moment                     `db:"updated_at"`
	MAC       []byte                     `db:"mac"`
	Version   int64                      `db:"version"`
}

func accountRowOf(from *account.Account) accountRow {
	return accountRow{
		ID:        from.ID,
		Index:     from.Index,
		Settings:  documentOf(from.Settings),
		LogoType:  from.LogoType,
		Logo:      from.Logo,
		CreatedAt: moment(from.CreatedAt),
		UpdatedAt: moment(from.UpdatedAt),
		MAC:       from.MAC,
		Version:   from.Version,
	}
}

func (r *accountRow) record() account.Account {
	return account.Account{
		ID:        r.ID,
		Index:     r.Index,
		Settings:  r.Settings.value,
		LogoType:  r.LogoType,
		Logo:      r.Logo,
		CreatedAt: time.Time(r.CreatedAt),
		UpdatedAt: time.Time(r.UpdatedAt),
		MAC:       r.MAC,
		Version:   r.Version,
	}
}

// keyRow is a row of {api_keys}.
type keyRow struct {
	ID string `db:"id"`
	ownerRow
	Publishable  bool                          `db:"publishable"`
	Name         string                        `db:"name"`
	Hash         digest                        `db:"hash"`
	Last4        string                        `db:"last4"`
	Scopes       document[[]account.Scope]     `db:"scopes"`
	AllowedIPs   document[[]string]            `db:"allowed_ips"`
	Destinations document[[]chain.Destination] `db:"destinations"`
	ExpiresAt    moment                        `db:"expires_at"`
	RevokedAt    moment                        `db:"revoked_at"`
	RolledFrom   string                        `db:"rolled_from"`
	CreatedAt    moment                        `db:"created_at"`
	MAC          []byte                        `db:"mac"`
	Version      int64                         `db:"version"`
}

func keyRowOf(from *account.Key) keyRow {
	return keyRow{
		ID:           from.ID,
		ownerRow:     ownerRow(from.Owner),
		Publishable:  from.Publishable,
		Name:         from.Name,
		Hash:         digest(from.Hash),
		Last4:        from.Last4,
		Scopes:       documentOf(from.Scopes),
		AllowedIPs:   documentOf(from.AllowedIPs),
		Destinations: documentOf(from.Destinations),
		ExpiresAt:    moment(from.ExpiresAt),
		RevokedAt:    moment(from.RevokedAt),
		RolledFrom:   from.RolledFrom,
		CreatedAt:    moment(from.CreatedAt),
		MAC:          from.MAC,
		Version:      from.Version,
	}
}

func (r *keyRow) record() account.Key {
	return account.Key{
		ID:           r.ID,
		Owner:        event.Owner(r.ownerRow),
		Publishable:  r.Publishable,
		Name:         r.Name,
		Hash:         r.Hash,
		Last4:        r.Last4,
		Scopes:       r.Scopes.value,
		AllowedIPs:   r.AllowedIPs.value,
		Destinations: r.Destinations.value,
		ExpiresAt:    time.Time(r.ExpiresAt),
		RevokedAt:    time.Time(r.RevokedAt),
		RolledFrom:   r.RolledFrom,
		CreatedAt:    time.Time(r.CreatedAt),
		MAC:          r.MAC,
		Version:      r.Version,
	}
}

// claimRow is a row of {idempotency_keys}.
type claimRow struct {
	ownerRow
	Key         string             `db:"idempotency_key"`
	KeyID       string             `db:"key_id"`
	Scopes      document[[]string] `db:"scopes"`
	Fingerprint digest             `db:"fingerprint"`
	Status      int                `db:"status"`
	SealedBody  []byte             `db:"sealed_body"`
	CreatedAt   moment             `db:"created_at"`
}

func claimRowOf(from *idempotency.Record) claimRow {
	return claimRow{
		ownerRow:    ownerRow(from.Owner),
		Key:         from.Key.Key,
		KeyID:       from.KeyID,
		Scopes:      documentOf(from.Scopes),
		Fingerprint: digest(from.Fingerprint),
		Status:      from.Status,
		SealedBody:  from.SealedBody,
		CreatedAt:   moment(from.CreatedAt),
	}
}

func (r *claimRow) record() idempotency.Record {
	return idempotency.Record{
		Key:         idempotency.Key{Owner: event.Owner(r.ownerRow), Key: r.Key},
		KeyID:       r.KeyID,
		Scopes:      r.Scopes.value,
		Fingerprint: r.Fingerprint,
		Status:      r.Status,
		SealedBody:  r.SealedBody,
		CreatedAt:   time.Time(r.CreatedAt),
	}
}

// leaseRow is a row of {leases}.
type leaseRow struct {
	Name      string `db:"name"`
	Owner     string `db:"owner"`
	Fence     int64  `db:"fence"`
	UpdatedAt moment `db:"updated_at"`
	Note      prose  `db:"note"`
}

func leaseRowOf(from *lease.Lease) leaseRow {
	return leaseRow{
		Name:      from.Name,
		Owner:     from.Owner,
		Fence:     from.Fence,
		UpdatedAt: moment(from.UpdatedAt),
		Note:      prose(from.Note),
	}
}

func (r *leaseRow) record() lease.Lease {
	return lease.Lease{
		Name:      r.Name,
		Owner:     r.Owner,
		Fence:     r.Fence,
		UpdatedAt: time.Time(r.UpdatedAt),
		Note:      string(r.Note),
	}
}

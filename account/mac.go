package account

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
)

// authenticator makes and verifies authentication tags of rows. internal/seal.Sealer implements it.
type authenticator interface {
	// MAC returns a tag that VerifyMAC accepts for the same message and context only.
	MAC(message, context []byte) []byte
	// VerifyMAC checks that MAC made the tag for the message and the context. A tag of a key that is not
	// configured is fault.Unavailable, a wrong one fault.Forbidden.
	VerifyMAC(message, context, tag []byte) error
}

// keyMessage is what the tag of a key covers: every field but Version and the tag. Empty lists count as absent,
// since stores do not distinguish them.
type keyMessage struct {
	AccountID    string
	Livemode     bool
	Publishable  bool
	Name         string
	Hash         []byte
	Last4        string
	Scopes       []Scope             `json:",omitempty"`
	AllowedIPs   []string            `json:",omitempty"`
	Destinations []chain.Destination `json:",omitempty"`
	ExpiresAt    int64               // Unix milliseconds; below 0 for the zero time
	RevokedAt    int64
	RolledFrom   string
	CreatedAt    int64
}

// accountMessage is what the tag of an account covers: the fields that decide about its wallets and its
// money.
type accountMessage struct {
	Index    uint32
	Settings Settings
}

// sealKey sets the tag of a key.
func (s *Service) sealKey(k *Key) error {
	message, context, err := keyToAuthenticate(*k)
	if err == nil && s.seal != nil {
		k.MAC = s.seal.MAC(message, context)
	}

	return err
}

// checkKey returns the error of an unknown key if the key's tag is wrong: this service did not make it.
func (s *Service) checkKey(k Key) error {
	message, context, err := keyToAuthenticate(k)
	if err != nil || s.seal == nil {
		return err
	}

	if err = s.seal.VerifyMAC(message, context, k.MAC); errors.Is(err, fault.Forbidden) {
		return unknownKey()
	}

	return err
}

func keyToAuthenticate(k Key) (message, context []byte, err error) {
	message, err = json.Marshal(keyMessage{
		AccountID:    k.Owner.AccountID,
		Livemode:     k.Owner.Livemode,
		Publishable:  k.Publishable,
		Name:         k.Name,
		Hash:         k.Hash[:],
		Last4:        k.Last4,
		Scopes:       k.Scopes,
		AllowedIPs:   k.AllowedIPs,
		Destinations: k.Destinations,
		ExpiresAt:    millis(k.ExpiresAt),
		RevokedAt:    millis(k.RevokedAt),
		RolledFrom:   k.RolledFrom,
		CreatedAt:    millis(k.CreatedAt),
	})

	return message, []byte("api_keys/" + k.ID), err
}

// sealAccount sets the tag of an account.
func (s *Service) sealAccount(a *Account) error {
	message, context, err := accountToAuthenticate(*a)
	if err == nil && s.seal != nil {
		a.MAC = s.seal.MAC(message, context)
	}

	return err
}

// checkAccount returns fault.Unavailable, code account_damaged, for an account whose tag is wrong.
func (s *Service) checkAccount(a Account) error {
	message, context, err := accountToAuthenticate(a)
	if err != nil || s.seal == nil {
		return err
	}

	if err = s.seal.VerifyMAC(message, context, a.MAC); errors.Is(err, fault.Forbidden) {
		return damagedAccount(err, a.ID)
	}

	return err
}

func damagedAccount(cause error, id string) error {
	return fault.Wrap(
		cause, fault.Unavailable, "account_damaged",
		"the settings of account %s were changed outside this service: restore the row, or set them anew", id,
	)
}

func accountToAuthenticate(a Account) (message, context []byte, err error) {
	message, err = json.Marshal(accountMessage{a.Index, a.Settings})

	return message, []byte("accounts/" + a.ID), err
}

// millis returns a time as a number that every store can keep.
func millis(t time.Time) int64 {
	if t.IsZero() {
		return -1
	}

	return t.UnixMilli()
}

// accountReader reads accounts: a store, or a transaction.
type accountReader interface {
	Account(ctx context.Context, id string) (Account, error)
}

// Verify returns an account after checking that this service set its index and settings.
//
// Errors: fault.NotFound; fault.Unavailable, code account_damaged.
func (s *Service) Verify(ctx context.Context, id string) (Account, error) {
	return s.VerifyIn(ctx, s.db, id)
}

// VerifyIn is Verify for an account that r reads, such as a transaction. It returns the account that it
// verified.
//
// Errors: those of Verify.
func (s *Service) VerifyIn(ctx context.Context, r accountReader, id string) (Account, error) {
	a, err := r.Account(ctx, id)
	if err == nil {
		err = s.checkAccountOf(a, id)
	}

	if err != nil {
		return Account{}, err
	}

	return a, nil
}

// checkAccountOf is checkAccount, and requires the account to have the given id.
func (s *Service) checkAccountOf(a Account, id string) error {
	if a.ID != id {
		return damagedAccount(nil, id)
	}

	return s.checkAccount(a)
}

// Reseal authenticates an account and its keys with payments.Config.SecretKey if an older key did, and
// returns how many rows it changed. A row whose tag is wrong stays as it is, and is in the error.
func (s *Service) Reseal(ctx context.Context, id string) (done int, err error) {
	if s.seal == nil {
		return 0, nil
	}

	var failed []error

	err = s.db.Update(ctx, func(ctx context.Context, tx Tx) error {
		done, failed = 0, nil

		a, err := tx.Account(ctx, id)
		if err != nil {
			return err
		}

		keys, err := tx.Keys(ctx, id)
		if err != nil {
			return err
		}

		if err := s.checkAccount(a); err != nil {
			failed = []error{err}
		} else if before := a.MAC; s.sealAccount(&a) == nil && !slices.Equal(before, a.MAC) {
			done++

			if err := tx.PutAccount(ctx, &a); err != nil {
				return err
			}
		}

		for _, k := range keys {
			before := k.MAC
			if s.checkKey(k) != nil {
				failed = []error{errors.Join(append(failed, fault.New(
					fault.Unavailable, "api_key_damaged",
					"the API key %s was changed outside this service", k.ID,
				))...)}

				continue
			}

			if err := s.sealKey(&k); err != nil || slices.Equal(before, k.MAC) {
				continue
			}

			done++

			if err := tx.PutKey(ctx, &k); err != nil {
				return err
			}
		}

		return nil
	})

	return done, errors.Join(append(failed, err)...)
}

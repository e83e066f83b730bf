package account

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/counter"
	"github.com/seed-8ee7f392/payments/internal/eventctx"
	"github.com/seed-8ee7f392/payments/internal/limit"
	"github.com/seed-8ee7f392/payments/internal/paging"
	"github.com/seed-8ee7f392/payments/limits"
)

// maxLogo is the largest logo, in bytes.
const maxLogo = 64 << 10

// Config configures a Service. DB, Registry and IDs are required.
type Config struct {
	DB database
	// Registry has the assets and parses the addresses that settings and keys may name.
	Registry *chain.Registry
	IDs      idSource
	// Now defaults to time.Now.
	Now func() time.Time
	// Entropy makes keys. Defaults to crypto/rand.
	Entropy io.Reader
	// KeyPrefix begins every key, 1 to 16 of a-z and 0-9. Defaults to "pay".
	KeyPrefix string
	// Seal authenticates accounts and keys. Defaults to none: then whoever can write the database can make
	// keys.
	Seal authenticator
	// Limits has the budgets of unknown keys. Each has a default.
	Limits limits.Table
}

// idSource makes the ids of new objects.
type idSource interface{ Next() string }

// Service manages accounts and keys. It is for the host's own code: the HTTP API only
// authenticates. It is safe for concurrent use.
type Service struct {
	db       database
	registry *chain.Registry
	ids      idSource
	now      func() time.Time
	entropy  io.Reader
	prefix   string
	seal     authenticator
	limits   limits.Table
	seen     seen
	unknown  unknown
}

// New returns a Service. It starts nothing.
//
// Errors: fault.Invalid without DB, Registry or IDs, or for a prefix that keys cannot have.
func New(c Config) (*Service, error) {
	if c.DB == nil || c.Registry == nil || c.IDs == nil {
		return nil, fault.New(fault.Invalid, "config_invalid", "account.Config needs DB, Registry and IDs")
	}

	if c.Now == nil {
		c.Now = time.Now
	}

	if c.KeyPrefix == "" {
		c.KeyPrefix = "pay"
	}

	if !validPrefix(c.KeyPrefix) {
		return nil, fault.New(
			fault.Invalid, "key_prefix_invalid",
			"Config.KeyPrefix %q cannot begin API keys: write 1 to %d of a-z and 0-9",
			shortened(c.KeyPrefix), maxPrefix,
		)
	}

	return &Service{
		db:       c.DB,
		registry: c.Registry,
		ids:      c.IDs,
		now:      c.Now,
		entropy:  c.Entropy,
		prefix:   c.KeyPrefix,
		seal:     c.Seal,
		limits:   limit.Complete(c.Limits),
		unknown:  unknown{buckets: limit.NewBuckets(c.Now)},
	}, nil
}

// CreateAccount adds a merchant.
//
// Errors: fault.Invalid for settings that break a rule; it names the field.
func (s *Service) CreateAccount(ctx context.Context, settings Settings) (Account, error) {
	settings, err := s.checkSettings(settings, Settings{})
	if err != nil {
		return Account{}, err
	}

	newID, at := s.ids.Next(), s.stamp()

	var created Account

	err = s.db.Update(ctx, func(ctx context.Context, tx Tx) error {
		index, err := tx.ReserveNumbers(ctx, counter.AccountIndex, 1, 0)
		if err != nil {
			return err
		}

		created = Account{ID: newID, Index: uint32(index), Settings: settings, CreatedAt: at, UpdatedAt: at}
		if err := s.sealAccount(&created); err != nil {
			return err
		}

		return tx.PutAccount(ctx, &created)
	})

	return created, err
}

// Get returns an account, or fault.NotFound.
func (s *Service) Get(ctx context.Context, id string) (Account, error) { return s.db.Account(ctx, id) }

// List returns a page of accounts, newest first, that follow the id after ("" for the first page), and
// whether there are more. A limit of 0 is 50; limits outside 1 to 100 are set to the nearest bound.
func (s *Service) List(ctx context.Context, after string, limit int) (page []Account, more bool, err error) {
	limit = paging.Limit(limit)
	page, err = s.db.Accounts(ctx, after, limit+1)

	return paging.Page(page, limit, err)
}

// UpdateSettings replaces an account's settings as a whole. Held settlements are re-evaluated. Other
// processes apply a new request rate and new allowlists within 5 s. A payout that was accepted is still paid,
// but it cannot be approved any more if its destination is not among the new ones. Assets and destinations of
// a network that is no longer served may stay or be removed.
func (s *Service) UpdateSettings(ctx context.Context, id string, settings Settings) (Account, error) {
	return s.change(ctx, id, true, func(a *Account) (err error) {
		a.Settings, err = s.checkSettings(settings, a.Settings)
		return err
	})
}

// SetLogo stores the picture that the checkout page shows: PNG, JPEG or WebP, at most 64 KiB, of the kind
// given by contentType. An empty logo removes it.
func (s *Service) SetLogo(ctx context.Context, id, contentType string, logo []byte) (Account, error) {
	switch {
	case len(logo) == 0:
		contentType, logo = "", nil
	case len(logo) > maxLogo:
		return Account{}, fault.Param(
			"logo", "logo_invalid", "the logo has %d bytes, and %d is the most: make it smaller",
			len(logo), maxLogo,
		)
	case contentType != "image/png" && contentType != "image/jpeg" && contentType != "image/webp":
		return Account{}, fault.Param("logo", "logo_invalid", "a logo is image/png, image/jpeg or image/webp")
	case http.DetectContentType(logo) != contentType:
		return Account{}, fault.Param("logo", "logo_invalid", "the logo's bytes are not %s", contentType)
	}

	return s.change(ctx, id, false, func(a *Account) error {
		a.LogoType, a.Logo = contentType, logo
		return nil
	})
}

// change applies f to an account, stores the account, and appends event.SettingsChanged in both modes.
// replaces reports that f replaces all settings.
func (s *Service) change(
	ctx context.Context,
	id string,
	replaces bool,
	f func(*Account) error,
) (Account, error) {
	at := s.stamp()

	var changed Account

	err := s.db.Update(ctx, func(ctx context.Context, tx Tx) error {
		a, err := tx.Account(ctx, id)
		if err != nil {
			return err
		}

		// A row that was changed outside this service must not get a tag with the next change. New settings
		// replace all of it.
		if err := s.checkAccount(a); err != nil && !replaces {
			return err
		}

		if err := f(&a); err != nil {
			return err
		}

		a.UpdatedAt = at
		if err := s.sealAccount(&a); err != nil {
			return err
		}

		if err := tx.PutAccount(ctx, &a); err != nil {
			return err
		}

		changed = a

		return tx.AppendEvents(ctx, eventctx.About(a, event.SettingsChanged)...)
	})
	s.seen.clear()

	return changed, err
}

// stamp returns the time as it is stored: UTC, in whole milliseconds.
func (s *Service) stamp() time.Time { return s.now().UTC().Truncate(time.Millisecond) }

package engine

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/shopspring/decimal"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/wallet"
	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/limit"
	"github.com/seed-8ee7f392/payments/invoice/rate"
	"github.com/seed-8ee7f392/payments/limits"
	"github.com/seed-8ee7f392/payments/store"
	"github.com/seed-8ee7f392/payments/webhook"
)

// Config configures an Engine. payments.Config has the same fields and documents them.
type Config struct {
	Store         store.Store
	Drivers       []chain.Driver
	Signer        chain.Signer
	Rates         rate.Source
	BaseURL       string
	SecretKey     []byte
	OldSecretKeys [][]byte
	FeeAddresses  map[string]string
	WatchOnly     map[string]map[uint32]string
	Foreign       wallet.ForeignPolicy
	Epoch         uint64
	ReplaceAfter  time.Duration
	MaxFeeShare   decimal.Decimal
	OnEvent       func(ctx context.Context, tx Tx, ev event.Event) error
	KeyPrefix     string
	QuoteFor      time.Duration
	Limits        limits.Table
	WebhookAllow  []netip.Prefix
	KeepEvents    time.Duration
	Webhooks      webhook.Policy
	Process       string
	Waker         store.Waker
	Log           *slog.Logger
	Now           func() time.Time
	Entropy       io.Reader
}

// complete checks the configuration and sets defaults.
//
// Errors: fault.Invalid for a field that is missing or wrong.
func (c *Config) complete() error {
	if err := c.check(); err != nil {
		return err
	}

	return c.setDefaults()
}

func (c *Config) check() error {
	if err := c.checkInterfaces(); err != nil {
		return err
	}

	switch {
	case len(c.SecretKey) != 32:
		return invalidField(
			"SecretKey",
			"must be 32 random bytes (the 64 characters of openssl rand -hex 32, decoded), kept outside the database",
		)
	case c.Foreign != wallet.FreezeWallet && c.Foreign != wallet.Tolerate:
		return invalidField("Foreign", "is neither FreezeWallet nor Tolerate")
	case c.Epoch > maxEpoch:
		return invalidField("Epoch", "is above 1,024: raise it by 1 after each restore")
	case len(c.Process) > maxProcess:
		return invalidField("Process", "is longer than 190 bytes")
	case c.QuoteFor != 0 && c.QuoteFor < minQuoteFor:
		return invalidField("QuoteFor", "must be at least 1 minute, or 0 for the default of 20 minutes")
	case c.MaxFeeShare.IsNegative():
		return invalidField("MaxFeeShare", "is negative: use a share such as 0.5, or 0 for that default")
	case c.KeepEvents != 0 && c.KeepEvents < minKeepEvents:
		return invalidField("KeepEvents", "must be at least 24 hours, or 0 for the default of 30 days")
	case c.ReplaceAfter < 0:
		return invalidField("ReplaceAfter", "is negative; leave it out for the default of 3 minutes")
	case slices.ContainsFunc(c.WebhookAllow, func(p netip.Prefix) bool { return !p.IsValid() }):
		return invalidField(
			"WebhookAllow",
			"has a prefix that names no addresses; make each with netip.ParsePrefix",
		)
	case !isBaseURL(c.BaseURL):
		return invalidField(
			"BaseURL",
			`must be scheme, host and at most a path, such as "https://pay.example.com"`,
		)
	}

	return nil
}

// minQuoteFor leaves a payer time to send, minKeepEvents a merchant a day to read what a webhook announced.
const (
	minQuoteFor   = time.Minute
	minKeepEvents = 24 * time.Hour
)

// invalidField returns the error for a field that cannot work; why explains what to put there.
func invalidField(field, why string) error {
	return fault.New(fault.Invalid, "config_invalid", "payments.Config.%s %s", field, why)
}

// checkInterfaces refuses a missing required field, and a field that holds a nil pointer, whose methods would
// panic.
func (c *Config) checkInterfaces() error {
	if len(c.Drivers) == 0 {
		return invalidField("Drivers", "is empty: give at least one network")
	}

	type field struct {
		name  string
		value any
		give  string
	}

	required := []field{
		{"Store", c.Store, "give one, such as sqlite.Open returns"},
		{"Signer", c.Signer, "give one, such as hdkey.New returns"},
		{"Rates", c.Rates, "give a source of prices, such as rate.Median returns"},
	}
	for i, d := range c.Drivers {
		required = append(required, field{fmt.Sprintf("Drivers[%d]", i), d, "give a driver, or leave it out"})
	}

	for _, f := range required {
		if f.value == nil {
			return invalidField(f.name, "is missing: "+f.give)
		}
	}

	for _, f := range append(
		required,
		field{"Waker", c.Waker, "give one, or nil for the default"},
		field{"Entropy", c.Entropy, "leave it out"},
	) {
		if isNilPointer(f.value) {
			return invalidField(f.name, "is a nil pointer: "+f.give)
		}
	}

	return nil
}

// isNilPointer reports whether an interface holds a nil pointer or a nil function. For a nil interface it
// reports false.
func isNilPointer(v any) bool {
	r := reflect.ValueOf(v)
	return (r.Kind() == reflect.Pointer || r.Kind() == reflect.Func) && r.IsNil()
}

// isBaseURL reports whether paths can be appended to a URL: it has no user, query, fragment or space, and may have a
// path.
func isBaseURL(s string) bool {
	u, err := url.Parse(s)
	if err != nil || u.Hostname() == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return false
	}

	return strings.EqualFold(s, u.Scheme+"://"+u.Host+u.EscapedPath())
}

// setDefaults fills in omitted fields.
func (c *Config) setDefaults() error {
	c.Limits = limit.Complete(c.Limits)

	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	if c.KeyPrefix == "" {
		c.KeyPrefix = "pay"
	}

	if c.Now == nil {
		c.Now = time.Now
	}

	if c.Log == nil {
		c.Log = slog.Default()
	}

	if c.Entropy == nil {
		c.Entropy = rand.Reader
	}

	if c.Process == "" {
		var b [8]byte
		if _, err := io.ReadFull(c.Entropy, b[:]); err != nil {
			return fmt.Errorf("naming the process by payments.Config.Entropy: %w", err)
		}

		c.Process = hex.EncodeToString(b[:])
	}

	if c.Waker == nil {
		c.Waker, _ = c.Store.(store.Waker)
	}

	return nil
}

// feeAddresses parses the fee addresses, by network slug.
func feeAddresses(configured map[string]string, networks *chain.Registry) (map[string]chain.Address, error) {
	out := make(map[string]chain.Address, len(configured))
	for slug, s := range configured {
		d, err := networks.Driver(slug)
		if err != nil {
			return nil, fault.Wrap(
				err, fault.Invalid, "config_invalid",
				"payments.Config.FeeAddresses names network %q",
				slug,
			)
		}

		if out[slug], err = d.ParseAddress(s); err != nil {
			return nil, fault.Wrap(
				err, fault.Invalid, "config_invalid", "payments.Config.FeeAddresses[%q]", slug,
			)
		}
	}

	return out, nil
}

// watchOnlyAddresses parses the watch-only addresses, by network slug and index of the account.
func watchOnlyAddresses(
	configured map[string]map[uint32]string,
	networks *chain.Registry,
) (map[string]map[uint32]chain.Address, error) {
	out := make(map[string]map[uint32]chain.Address, len(configured))
	for slug, wallets := range configured {
		d, err := networks.Driver(slug)
		if err != nil {
			return nil, fault.Wrap(
				err, fault.Invalid, "config_invalid", "payments.Config.WatchOnly names network %q",
				slug,
			)
		}

		out[slug] = make(map[uint32]chain.Address, len(wallets))
		for index, s := range wallets {
			if out[slug][index], err = d.ParseAddress(s); err != nil {
				return nil, fault.Wrap(
					err, fault.Invalid, "config_invalid", "payments.Config.WatchOnly[%q][%d]", slug,
					index,
				)
			}
		}
	}

	return out, nil
}

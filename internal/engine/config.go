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
	"strings"
	"time"

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
	missing := func(field, why string) error {
		return fault.New(fault.Invalid, "config_invalid", "payments.Config.%s %s", field, why)
	}

	switch {
	case c.Store == nil:
		return missing("Store", "is missing")
	case len(c.Drivers) == 0:
		return missing("Drivers", "is empty: give at least one network")
	case c.Signer == nil:
		return missing("Signer", "is missing")
	case c.Rates == nil:
		return missing("Rates", "is missing")
	case len(c.SecretKey) != 32:
		return missing(
			"SecretKey",
			"must be 32 random bytes (openssl rand -hex 32), kept outside the database",
		)
	case c.Foreign != wallet.FreezeWallet && c.Foreign != wallet.Tolerate:
		return missing("Foreign", "is neither FreezeWallet nor Tolerate")
	case c.Epoch > maxEpoch:
		return missing("Epoch", "is above 1,024: raise it by 1 after each restore")
	case len(c.Process) > maxProcess:
		return missing("Process", "is longer than 190 bytes")
	}

	u, err := url.Parse(c.BaseURL)
	if err != nil || u.Host == "" || (u.Scheme != "https" && u.Scheme != "http") {
		return missing("BaseURL", `must be an absolute URL such as "https://pay.example.com"`)
	}

	return nil
}

// setDefaults fills in what was left out.
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

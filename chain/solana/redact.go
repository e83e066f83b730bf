package solana

import (
	"fmt"
	"log/slog"

	"github.com/seed-8ee7f392/payments/internal/redact"
)

// This file prints values that hold secrets without them.

// String returns the name of the type, without secrets.
func (c Config) String() string { return redact.Text("solana.Config", c.Network.Slug) }

// GoString is String.
func (c Config) GoString() string { return c.String() }

// Format writes String for every verb.
func (c Config) Format(state fmt.State, _ rune) { redact.Format(state, c.String()) }

// LogValue is String.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText is String, for encoders that would look at the fields.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// String returns the name of the type, without secrets.
func (d *Driver) String() string { return redact.Text("solana.Driver", d.network.Slug) }

// GoString is String.
func (d *Driver) GoString() string { return d.String() }

// Format writes String for every verb.
func (d *Driver) Format(state fmt.State, _ rune) { redact.Format(state, d.String()) }

// LogValue is String.
func (d *Driver) LogValue() slog.Value { return slog.StringValue(d.String()) }

// MarshalText is String, for encoders that would look at the fields.
func (d *Driver) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

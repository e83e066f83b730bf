package tron

import (
	"fmt"
	"log/slog"

	"github.com/seed-8ee7f392/payments/internal/redact"
)

// This file prints values that hold secrets without them.

// String returns the name of the type, without secrets.
func (c Config) String() string { return redact.Text("tron.Config", c.Network.Slug) }

// GoString is String.
func (c Config) GoString() string { return c.String() }

// Format writes String for every verb.
func (c Config) Format(state fmt.State, _ rune) { redact.Format(state, c.String()) }

// LogValue is String.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText is String, for encoders that would look at the fields.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// String returns the name of the type, without secrets.
func (n Node) String() string { return redact.Text("tron.Node") }

// GoString is String.
func (n Node) GoString() string { return n.String() }

// Format writes String for every verb.
func (n Node) Format(state fmt.State, _ rune) { redact.Format(state, n.String()) }

// LogValue is String.
func (n Node) LogValue() slog.Value { return slog.StringValue(n.String()) }

// MarshalText is String, for encoders that would look at the fields.
func (n Node) MarshalText() ([]byte, error) { return []byte(n.String()), nil }

// String returns the name of the type, without secrets.
func (d *Driver) String() string { return redact.Text("tron.Driver", d.network.Slug) }

// GoString is String.
func (d *Driver) GoString() string { return d.String() }

// Format writes String for every verb.
func (d *Driver) Format(state fmt.State, _ rune) { redact.Format(state, d.String()) }

// LogValue is String.
func (d *Driver) LogValue() slog.Value { return slog.StringValue(d.String()) }

// MarshalText is String, for encoders that would look at the fields.
func (d *Driver) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

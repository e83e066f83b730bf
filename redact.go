package payments

import (
	"fmt"
	"log/slog"

	"github.com/seed-8ee7f392/payments/internal/redact"
)

// This file prints values that hold secrets without them.

// String returns the name of the type, without secrets.
func (c Config) String() string { return redact.Text("payments.Config") }

// GoString is String.
func (c Config) GoString() string { return c.String() }

// Format writes String for every verb.
func (c Config) Format(state fmt.State, _ rune) { redact.Format(state, c.String()) }

// LogValue is String.
func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText is String, for encoders that would look at the fields.
func (c Config) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// String returns the name of the type, without secrets.
func (e Engine) String() string { return redact.Text("payments.Engine") }

// GoString is String.
func (e Engine) GoString() string { return e.String() }

// Format writes String for every verb.
func (e Engine) Format(state fmt.State, _ rune) { redact.Format(state, e.String()) }

// LogValue is String.
func (e Engine) LogValue() slog.Value { return slog.StringValue(e.String()) }

// MarshalText is String, for encoders that would look at the fields.
func (e Engine) MarshalText() ([]byte, error) { return []byte(e.String()), nil }

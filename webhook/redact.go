package webhook

import (
	"fmt"
	"log/slog"

	"github.com/seed-8ee7f392/payments/internal/redact"
)

// This file prints values that hold secrets without them.

// String returns the name of the type, without secrets.
func (c ReceiverConfig) String() string { return redact.Text("webhook.ReceiverConfig") }

// GoString is String.
func (c ReceiverConfig) GoString() string { return c.String() }

// Format writes String for every verb.
func (c ReceiverConfig) Format(state fmt.State, _ rune) { redact.Format(state, c.String()) }

// LogValue is String.
func (c ReceiverConfig) LogValue() slog.Value { return slog.StringValue(c.String()) }

// MarshalText is String, for encoders that would look at the fields.
func (c ReceiverConfig) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// String returns the name of the type, without secrets.
func (r *Receiver) String() string { return redact.Text("webhook.Receiver") }

// GoString is String.
func (r *Receiver) GoString() string { return r.String() }

// Format writes String for every verb.
func (r *Receiver) Format(state fmt.State, _ rune) { redact.Format(state, r.String()) }

// LogValue is String.
func (r *Receiver) LogValue() slog.Value { return slog.StringValue(r.String()) }

// MarshalText is String, for encoders that would look at the fields.
func (r *Receiver) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

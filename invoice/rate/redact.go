package rate

import (
	"fmt"
	"log/slog"

	"github.com/seed-8ee7f392/payments/internal/redact"
)

// This file prints values that hold secrets without them.

// String returns the name of the type, without secrets.
func (f Feed) String() string { return redact.Text("rate.Feed", f.Name) }

// GoString is String.
func (f Feed) GoString() string { return f.String() }

// Format writes String for every verb.
func (f Feed) Format(state fmt.State, _ rune) { redact.Format(state, f.String()) }

// LogValue is String.
func (f Feed) LogValue() slog.Value { return slog.StringValue(f.String()) }

// MarshalText is String, for encoders that would look at the fields.
func (f Feed) MarshalText() ([]byte, error) { return []byte(f.String()), nil }

package sim

import (
	"fmt"
	"log/slog"

	"github.com/seed-8ee7f392/payments/internal/redact"
)

// This file prints values that hold secrets without them.

// String returns the name of the type, without secrets.
func (s *Signer) String() string { return redact.Text("sim.Signer") }

// GoString is String.
func (s *Signer) GoString() string { return s.String() }

// Format writes String for every verb.
func (s *Signer) Format(state fmt.State, _ rune) { redact.Format(state, s.String()) }

// LogValue is String.
func (s *Signer) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String, for encoders that would look at the fields.
func (s *Signer) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

package kv

import (
	"fmt"
	"log/slog"

	"github.com/seed-8ee7f392/payments/internal/redact"
)

// This file prints a store without its records.

// String returns the name of the type.
func (s *Store) String() string { return redact.Text("kv.Store") }

// GoString is String.
func (s *Store) GoString() string { return s.String() }

// Format writes String for every verb.
func (s *Store) Format(state fmt.State, _ rune) { redact.Format(state, s.String()) }

// LogValue is String.
func (s *Store) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String, for encoders that would look at the fields.
func (s *Store) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

package sqlstore

import (
	"fmt"
	"log/slog"

	"github.com/seed-8ee7f392/payments/internal/redact"
)

// This file prints values that hold secrets without them.

// String returns the name of the type, without secrets.
func (s *sqlStore) String() string { return redact.Text("sqlstore.Store", s.dialect.Name) }

// GoString is String.
func (s *sqlStore) GoString() string { return s.String() }

// Format writes String for every verb.
func (s *sqlStore) Format(state fmt.State, _ rune) { redact.Format(state, s.String()) }

// LogValue is String.
func (s *sqlStore) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText is String, for encoders that would look at the fields.
func (s *sqlStore) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

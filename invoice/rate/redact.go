package rate

import (
	"fmt"

	"github.com/seed-8ee7f392/payments/internal/redact"
)

// This file prints values that hold secrets without them.

// Format writes the name of the type, without secrets, for every verb.
func (f Feed) Format(state fmt.State, _ rune) { redact.Format(state, redact.Text("rate.Feed", f.Name)) }

// MarshalText is what Format writes, for encoders that would look at the fields.
func (f Feed) MarshalText() ([]byte, error) { return []byte(redact.Text("rate.Feed", f.Name)), nil }

package rate

import (
	"fmt"

	"github.com/seed-8ee7f392/payments/internal/redact"
)

// This file prints values without the secrets that they hold.

// Format writes the name of the type, without secrets, for every verb.
func (f Feed) Format(state fmt.State, _ rune) { redact.Format(state, redact.Text("rate.Feed", f.Name)) }

// MarshalText returns the text of Format, for encoders that would encode the fields otherwise.
func (f Feed) MarshalText() ([]byte, error) { return []byte(redact.Text("rate.Feed", f.Name)), nil }

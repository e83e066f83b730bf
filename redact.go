package payments

import (
	"fmt"

	"github.com/seed-8ee7f392/payments/internal/redact"
)

// This file prints values without the secrets that they hold.

// Format writes the name of the type, without secrets, for every verb.
func (c Config) Format(state fmt.State, _ rune) { redact.Format(state, redact.Text("payments.Config")) }

// MarshalText returns the text of Format, for encoders that would encode the fields otherwise.
func (c Config) MarshalText() ([]byte, error) { return []byte(redact.Text("payments.Config")), nil }

// Format writes the name of the type, without secrets, for every verb.
func (e Engine) Format(state fmt.State, _ rune) { redact.Format(state, redact.Text("payments.Engine")) }

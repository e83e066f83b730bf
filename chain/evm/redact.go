package evm

import (
	"fmt"

	"github.com/seed-8ee7f392/payments/internal/redact"
)

// This file prints values that hold secrets without them.

// Format writes the name of the type, without secrets, for every verb.
func (c Config) Format(state fmt.State, _ rune) {
	redact.Format(state, redact.Text("evm.Config", c.Network.Slug))
}

// MarshalText returns the text that Format writes, for encoders that would read the fields.
func (c Config) MarshalText() ([]byte, error) {
	return []byte(redact.Text("evm.Config", c.Network.Slug)), nil
}

// Format writes the name of the type, without secrets, for every verb.
func (d *driver) Format(state fmt.State, _ rune) {
	redact.Format(state, redact.Text("evm.Driver", d.network.Slug))
}

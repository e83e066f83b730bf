package webhook

import (
	"fmt"

	"github.com/seed-8ee7f392/payments/internal/redact"
)

// This file prints values that hold secrets without them.

// Format writes the name of the type, without secrets, for every verb.
func (c ReceiverConfig) Format(state fmt.State, _ rune) {
	redact.Format(state, redact.Text("webhook.ReceiverConfig"))
}

// MarshalText is what Format writes, for encoders that would look at the fields.
func (c ReceiverConfig) MarshalText() ([]byte, error) {
	return []byte(redact.Text("webhook.ReceiverConfig")), nil
}

// Format writes the name of the type, without secrets, for every verb.
func (r *receiver) Format(state fmt.State, _ rune) {
	redact.Format(state, redact.Text("webhook.Receiver"))
}

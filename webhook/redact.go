package webhook

import (
	"fmt"

	"github.com/seed-8ee7f392/payments/internal/redact"
)

// This file prints values without the secrets that they hold.

// Format writes the name of the type, without secrets, for every verb.
func (c ReceiverConfig) Format(state fmt.State, _ rune) {
	redact.Format(state, redact.Text("webhook.ReceiverConfig"))
}

// MarshalText returns the text of Format, for encoders that would encode the fields otherwise.
func (c ReceiverConfig) MarshalText() ([]byte, error) {
	return []byte(redact.Text("webhook.ReceiverConfig")), nil
}

// Format writes the name of the type, without secrets, for every verb.
func (r *receiver) Format(state fmt.State, _ rune) {
	redact.Format(state, redact.Text("webhook.Receiver"))
}

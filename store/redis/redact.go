package redis

import (
	"fmt"

	"github.com/seed-8ee7f392/payments/internal/redact"
)

// This file prints values without the secrets that they hold.

// Format writes the name of the type, without secrets, for every verb.
func (s *Shared) Format(state fmt.State, _ rune) { redact.Format(state, redact.Text("redis.Shared")) }

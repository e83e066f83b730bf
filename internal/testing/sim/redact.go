package sim

import (
	"fmt"

	"github.com/seed-8ee7f392/payments/internal/redact"
)

// This file prints values that hold secrets without them.

// Format writes the name of the type, without secrets, for every verb.
func (s *Signer) Format(state fmt.State, _ rune) { redact.Format(state, redact.Text("sim.Signer")) }

package sqlite

import (
	"fmt"

	"github.com/seed-8ee7f392/payments/internal/redact"
)

// Format prints the name of the type for every verb: its pool may hold a password.
func (s Store) Format(state fmt.State, _ rune) { redact.Format(state, redact.Text("sqlite.Store")) }

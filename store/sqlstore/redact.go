package sqlstore

import (
	"fmt"

	"github.com/seed-8ee7f392/payments/internal/redact"
)

// Format prints the name of the type for every verb, without secrets.
func (s *sqlStore) Format(state fmt.State, _ rune) {
	redact.Format(state, redact.Text("sqlstore.Store", s.dialect.Name))
}

package sqlstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/store/sqlstore"
)

// TestIncompleteDialectIsRefused names what a dialect lacks.
func TestIncompleteDialectIsRefused(t *testing.T) {
	_, err := sqlstore.New(sqlstore.Options{Dialect: sqlstore.Dialect{Name: "new"}})
	if !errors.Is(err, fault.Invalid) || fault.Code(err) != "dialect_incomplete" {
		t.Fatalf("an empty dialect answered %v", err)
	}

	for _, part := range []string{"Upsert", "Types", "Explain", "Claim"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not name %s: %v", part, err)
		}
	}

	if strings.Contains(err.Error(), "Name,") {
		t.Errorf("the error names what is there: %v", err)
	}

	if _, _, err := sqlstore.Join(sqlstore.Dialect{}, nil); !errors.Is(err, fault.Invalid) {
		t.Errorf("a join of an empty dialect answered %v", err)
	}
}

package postgres

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed-8ee7f392/payments/fault"
)

// Every state of a lost or refused connection, a time-out or an unknown commit has its kind and its cure.
func TestStatesOfTroubleHaveTheirCure(t *testing.T) {
	for _, code := range []string{
		"08000", "08001", "08003", "08004", "08006", "08007", "08P01", "25P03", "25P04", "40003", "42P05",
		"53000", "53100", "53200", "53300", "57014", "57P01", "57P02", "57P03", "57P05", "58000", "58030", "55P03",
	} {
		got := explain(&pgconn.PgError{Code: code})
		if !errors.Is(got.Word, fault.Unavailable) || got.Code == "" || got.Sentence == "" {
			t.Errorf("%s is %v, %q: %q", code, got.Word, got.Code, got.Sentence)
		}
	}
}

// A database that is not there is not one that refuses its user.
func TestMissingDatabaseIsNamed(t *testing.T) {
	if got := explain(&pgconn.PgError{Code: "3D000"}); got.Code != "database_missing" {
		t.Errorf("3D000 is %q: %q", got.Code, got.Sentence)
	}

	if got := explain(&pgconn.PgError{Code: "28P01"}); got.Code != "database_denied" {
		t.Errorf("28P01 is %q: %q", got.Code, got.Sentence)
	}
}

package postgres_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/fault"
)

// A session of a server that takes no writes any more is not kept: after a fail-over behind one name the pool connects
// to the new primary.
func TestReadOnlySessionsAreReplaced(t *testing.T) {
	db := database(t, 1, nil)
	st := open(t, db, "")

	if err := st.Update(t.Context(), put("before")); err != nil {
		t.Fatal(err)
	}

	// The pool's only session sees what one of a primary sees that became a standby.
	if _, err := db.ExecContext(
		t.Context(), "SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY",
	); err != nil {
		t.Fatal(err)
	}

	if err := st.Update(t.Context(), put("meanwhile")); fault.Code(err) != "database_read_only" {
		t.Fatalf("a session that cannot write: %v", err)
	}

	if err := st.Update(t.Context(), put("after")); err != nil {
		t.Errorf("the session was kept: %v", err)
	}
}

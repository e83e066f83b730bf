package postgres

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5/pgtype"
)

// TestParameters encodes parameters as PostgreSQL reads them (documentation, "Frontend/Backend Protocol" and
// src/backend/utils/adt for the binary forms).
func TestParameters(t *testing.T) {
	types := pgtype.NewMap()
	oids := []uint32{
		pgtype.TextOID,
		pgtype.TextOID,
		pgtype.JSONOID,
		pgtype.Int8OID,
		pgtype.BoolOID,
		pgtype.ByteaOID,
		pgtype.TimestamptzOID,
		pgtype.TextOID,
		pgtype.ByteaOID,
	}
	args := []any{
		"",
		"é",
		`{"a":1}`,
		int64(258),
		true,
		[]byte{0, 1},
		time.Date(2000, 1, 1, 0, 0, 0, 1000, time.UTC),
		nil,
		[]byte(nil),
	}
	want := [][]byte{
		{},
		[]byte("é"),
		[]byte(`{"a":1}`),
		{0, 0, 0, 0, 0, 0, 1, 2},
		{1},
		{0, 1},
		{0, 0, 0, 0, 0, 0, 0, 1},
		nil,
		nil,
	}

	p := buffers.New().(*parameters)
	for range 2 { // the second time over what was there
		if err := p.encode(types, oids, args); err != nil {
			t.Fatal(err)
		}

		if diff := cmp.Diff(want, p.values); diff != "" {
			t.Error(diff)
		}
	}

	for name, bad := range map[string]struct {
		oids []uint32
		args []any
	}{
		"too few":         {oids[:2], args[:1]},
		"of another type": {[]uint32{pgtype.Int8OID}, []any{time.Time{}}},
	} {
		if err := p.encode(types, bad.oids, bad.args); err == nil {
			t.Errorf("parameters %s: no error", name)
		}
	}
}

package sqlstore

// This file holds the versions of the schema, and the check that the database has the wanted one.

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"

	"github.com/seed-8ee7f392/payments/fault"
)

// Sub returns the subtree of an embedded directory, and panics when it is missing.
func Sub(files fs.FS, dir string) fs.FS {
	sub, err := fs.Sub(files, dir)
	if err != nil {
		panic(err)
	}

	return sub
}

// LatestVersion returns the number at the beginning of the last migration's name.
func LatestVersion(migrations fs.FS) int64 {
	files, err := fs.Glob(migrations, "*.sql")
	if err != nil {
		panic(err)
	}

	latest := int64(0)

	for _, name := range files {
		number, _, _ := strings.Cut(name, "_")

		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			panic(fmt.Sprintf("migration %s has no number", name))
		}

		latest = max(latest, version)
	}

	return latest
}

// Fits compares the schema that is there with the one that is wanted; fault.Unavailable when they differ.
func (d *Dialect) Fits(have int64) error {
	switch want := d.WantVersion; {
	case have == 0:
		return fault.New(fault.Unavailable, "schema_missing",
			"the %s database has no schema of this library; it needs version %d: run Migrate", d.Name, want)
	case have < want:
		return fault.New(
			fault.Unavailable, "schema_old",
			"the %s database has version %d of the schema and this code needs version %d: run Migrate",
			d.Name, have, want,
		)
	case have > want:
		return fault.New(
			fault.Unavailable,
			"schema_new",
			"the %s database has version %d of the schema and this code knows only version %d: a newer "+
				"release wrote it, run that",
			d.Name,
			have,
			want,
		)
	}

	return nil
}

// Explain gives a driver's error its word and says what was being done.
func Explain(explain func(error) Explanation, err error, doing string) error {
	x := explain(err)
	if x.Word == nil {
		return fmt.Errorf("%s: %w", doing, err)
	}

	return fault.Wrap(err, x.Word, x.Code, "%s: %s", doing, x.Sentence)
}

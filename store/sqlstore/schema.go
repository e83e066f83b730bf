package sqlstore

// This file holds the versions of the schema: one text, rendered for each dialect.

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing/fstest"

	"github.com/seed-8ee7f392/payments/fault"
)

//go:embed migrations/*.sql
var templates embed.FS

// wantVersion is the version of the schema that this code was written for.
var wantVersion = latestVersion(templates)

// Types are how a database declares the columns and tables of the schema.
type Types struct {
	// Text is any text; Key, one of at most 255 characters that an index holds. Both compare by bytes.
	Text, Key string
	// Int holds 64 bits with a sign, Bool true or false, Time microseconds in UTC.
	Int, Bool, Time string
	// Bytes are bytes; Hash is 32 bytes that an index holds; JSON is a document that is read exactly as
	// written.
	Bytes, Hash, JSON string
	// Heap, Clustered and Churned are appended to CREATE TABLE: Heap by default, Clustered if rows are small
	// and read by the primary key, Churned if rows change often.
	Heap, Clustered, Churned string
	// Prologue is a statement with which each migration begins, such as a limit of its transaction; optional.
	Prologue string
	// Partial is set if an index may have a condition. If not, it holds all rows.
	Partial bool
	// Distributed is set if tables are spread over machines by account, with Citus' functions.
	Distributed bool
}

// complete reports whether each kind of column has a type.
func (t Types) complete() bool {
	return !slices.Contains([]string{t.Text, t.Key, t.Int, t.Bool, t.Time, t.Bytes, t.Hash, t.JSON}, "")
}

// Migrations returns the files of the schema in the dialect.
func (d *Dialect) Migrations() fs.FS {
	files, err := fs.Glob(templates, "migrations/*.sql")
	if err != nil {
		panic(err) // cannot happen: the pattern is well formed
	}

	out := fstest.MapFS{}

	for _, name := range files {
		text, err := templates.ReadFile(name)
		if err != nil {
			panic(err) // cannot happen: the file is embedded
		}

		out[path.Base(name)] = &fstest.MapFile{Data: []byte(d.schemaText(string(text))), Mode: 0o444}
	}

	return out
}

// placeholder is a name or a condition in braces.
var placeholder = regexp.MustCompile(` ?\{([^{}]+)\}`)

// schemaText renders a file of the schema.
func (d *Dialect) schemaText(template string) string {
	types := map[string]string{
		"TEXT":      d.Types.Text,
		"KEY":       d.Types.Key,
		"INT":       d.Types.Int,
		"BOOL":      d.Types.Bool,
		"TIME":      d.Types.Time,
		"BYTES":     d.Types.Bytes,
		"HASH":      d.Types.Hash,
		"JSON":      d.Types.JSON,
		"HEAP":      d.Types.Heap,
		"CLUSTERED": d.Types.Clustered,
		"CHURNED":   d.Types.Churned,
		"PROLOGUE":  d.Types.Prologue,
	}

	var lines []string

	for line := range strings.Lines(template) {
		if strings.HasPrefix(line, "--") && !strings.HasPrefix(line, "-- +") {
			continue // comments are about the template
		}

		line, wanted := d.conditionalLine(line)
		if !wanted {
			continue
		}

		lines = append(lines, placeholder.ReplaceAllStringFunc(line, func(found string) string {
			name := strings.Trim(found, " {}")
			space := found[:strings.IndexByte(found, '{')]

			if condition, ok := strings.CutPrefix(name, "WHERE "); ok {
				if !d.Types.Partial {
					return ""
				}

				return space + "WHERE " + condition
			}

			if declared, ok := types[name]; ok {
				return strings.TrimRight(space+declared, " ")
			}

			return space + d.Prefix + name
		}))
	}

	return strings.Join(lines, "")
}

// conditionalLine returns a line without the word that restricts it to some databases; wanted reports whether
// the dialect is one of them.
func (d *Dialect) conditionalLine(line string) (rest string, wanted bool) {
	for word, wanted := range map[string]bool{
		"{PARTIAL} ":     d.Types.Partial,
		"{WHOLE} ":       !d.Types.Partial,
		"{DISTRIBUTED} ": d.Types.Distributed,
	} {
		if rest, ok := strings.CutPrefix(line, word); ok {
			return rest, wanted
		}
	}

	return line, true
}

// latestVersion returns the number at the beginning of the last migration's name.
func latestVersion(migrations fs.FS) int64 {
	files, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil {
		panic(err)
	}

	latest := int64(0)

	for _, name := range files {
		number, _, _ := strings.Cut(path.Base(name), "_")

		version, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			panic(fmt.Sprintf("migration %s has no number", name))
		}

		latest = max(latest, version)
	}

	return latest
}

// versionTable returns the name of the table of applied versions.
func (d *Dialect) versionTable() string { return d.Prefix + "schema_version" }

// schemaVersion returns the version of the schema; 0 when there is none.
func (d *Dialect) schemaVersion(ctx context.Context, db *sql.DB) (int64, error) {
	var tables int

	row := db.QueryRowContext(ctx, d.text(d.TableExists), d.versionTable())
	if err := row.Scan(&tables); err != nil || tables == 0 {
		return 0, err
	}

	var version sql.NullInt64

	row = db.QueryRowContext(ctx, "SELECT max(version_id) FROM "+d.versionTable()+" WHERE is_applied")
	err := row.Scan(&version)

	return version.Int64, err
}

// fits returns fault.Unavailable if the present schema differs from the wanted one.
func (d *Dialect) fits(have int64) error {
	switch want := wantVersion; {
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

// Explain wraps a driver's error with its kind and with what was being done.
func Explain(explain func(error) Explanation, err error, doing string) error {
	x := explain(err)
	if x.Word == nil {
		return fmt.Errorf("%s: %w", doing, err)
	}

	return fault.Wrap(err, x.Word, x.Code, "%s: %s", doing, x.Sentence)
}

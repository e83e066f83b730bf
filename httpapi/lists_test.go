package httpapi_test

import (
	"cmp"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	sqlitedriver "modernc.org/sqlite"

	"github.com/seed-8ee7f392/payments/internal/testing/sqltest"
	"github.com/seed-8ee7f392/payments/store/sqlite"
)

const (
	listsFile  = "../docs/api.md"
	listsBegin = "<!-- lists: go test ./httpapi -run TestListsAreServedByIndexes -update writes them -->\n"
	listsEnd   = "<!-- end of lists -->\n"
)

// filterSamples are a value of each filter, and where several are allowed, several.
var filterSamples = map[string][]string{
	"status":             nil, // from the document
	"network":            {"simnet", "simnet,simnet"},
	"type":               {"invoice.paid", "invoice.paid,invoice.created"},
	"order_id":           {"A-1"},
	"q":                  {"a"},
	"invoice_id":         {nobody},
	"payment_id":         {nobody},
	"deposit_address_id": {nobody},
	"object_id":          {nobody},
	"created_after":      {"2026-01-01T00:00:00Z"},
	"created_before":     {"2100-01-01T00:00:00Z"},
	"detected_after":     {"2026-01-01T00:00:00Z"},
	"detected_before":    {"2100-01-01T00:00:00Z"},
}

// listOperation is an operation of the document that answers with pages.
type listOperation struct {
	path    string
	filters []listFilter
}

// listParameter is a parameter as the document has it.
type listParameter struct {
	Name, In string
	Schema   struct {
		Enum  []string
		Items *struct{ Enum []string }
	}
}

type listFilter struct {
	name    string
	samples []string
}

// Every list is asked with each of its filters, and SQLite is asked by which index it answers. The
// table in docs/api.md says the same: it lacks no list and no filter, and names no index that is
// not used.
func TestListsAreServedByIndexes(t *testing.T) {
	file := filepath.Join(t.TempDir(), "payments.db")

	made, err := sqlite.Open(file)
	if err != nil {
		t.Fatal(err)
	}

	if err := made.Close(); err != nil {
		t.Fatal(err)
	}

	recorder := &sqltest.Recorder{}
	db := sqltest.Open(&sqlitedriver.Driver{}, "file:"+file, recorder)

	t.Cleanup(func() { _ = db.Close() })
	s := openOn(t, sqlite.New(db), nil, time.Now)
	s.post(t, "/v1/webhook_endpoints", `{"url":"http://127.0.0.1:1/","events":["*"]}`)

	ids := map[string]string{
		"/v1/invoices":          s.post(t, "/v1/invoices", invoiceBody)["id"].(string),
		"/v1/deposit_addresses": s.post(t, "/v1/deposit_addresses", `{"network":"simnet"}`)["id"].(string),
	}
	for _, path := range []string{"/v1/webhook_endpoints", "/v1/events"} {
		ids[path] = s.get(t, path)["data"].([]any)[0].(map[string]any)["id"].(string)
	}

	var rows []string

	for _, op := range s.lists(t) {
		path := op.path
		if before, after, ok := strings.Cut(path, "/{id}"); ok {
			path = before + "/" + ids[before] + after
		}

		ask := func(query string) string {
			t.Helper()
			recorder.Take()
			s.get(t, path+query)

			return plan(t, s, recorder, func(text string, args []any) ([]string, error) {
				rows, err := db.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, args...)
				if err != nil {
					return nil, err
				}
				defer rows.Close()

				var lines []string

				for rows.Next() {
					var (
						id, parent, unused int
						line               string
					)
					if err := rows.Scan(&id, &parent, &unused, &line); err != nil {
						return nil, err
					}

					lines = append(lines, line)
				}

				return lines, rows.Err()
			})
		}

		rows = append(rows, "| `GET "+op.path+"` | | "+ask("")+" |")
		for _, f := range op.filters {
			for i, sample := range f.samples {
				several := map[bool]string{true: ", several"}[i > 0]
				rows = append(rows, "| | `"+f.name+"`"+several+" | "+ask("?"+f.name+"="+sample)+" |")
			}
		}
	}

	if len(rows) < 40 {
		t.Errorf("only %d rows:\n%s", len(rows), strings.Join(rows, "\n"))
	}

	compareLists(t, "| list | filter | index |\n|---|---|---|\n"+strings.Join(rows, "\n")+"\n")
}

// lists reads the operations that page from the document, each with its filters.
func (s *shop) lists(t *testing.T) []listOperation {
	t.Helper()

	var d struct {
		Paths map[string]map[string]struct{ Parameters []listParameter }
	}
	if err := json.Unmarshal(
		s.do(t, request{method: "GET", path: "/v1/openapi.json", key: "-"}).body, &d,
	); err != nil {
		t.Fatal(err)
	}

	var out []listOperation

	for path, methods := range d.Paths {
		op := listOperation{path: path}

		parameters := methods["get"].Parameters
		if !slices.ContainsFunc(
			parameters, func(p listParameter) bool { return p.Name == "starting_after" },
		) {
			continue
		}

		for _, p := range parameters {
			if p.In != "query" || p.Name == "starting_after" || p.Name == "limit" {
				continue
			}

			samples, known := filterSamples[p.Name]
			if !known {
				t.Fatalf("%s has the filter %s, of which this test knows no value", path, p.Name)
			}

			if samples == nil {
				samples = []string{p.Schema.Items.Enum[0], strings.Join(p.Schema.Items.Enum[:2], ",")}
			}

			if p.Schema.Items == nil {
				samples = samples[:1]
			}

			op.filters = append(op.filters, listFilter{p.Name, samples})
		}

		out = append(out, op)
	}

	slices.SortFunc(out, func(a, b listOperation) int { return cmp.Compare(a.path, b.path) })

	return out
}

var usedIndex = regexp.MustCompile(`USING (?:COVERING )?INDEX (\w+)|(PRIMARY KEY)`)

// plan names the indexes by which the list among the recorded statements was answered.
func plan(
	t *testing.T,
	s *shop,
	r *sqltest.Recorder,
	explain func(text string, args []any) ([]string, error),
) string {
	t.Helper()

	statements, _, _ := r.Take()

	var names []string

	asked := 0

	seen := map[string]bool{} // balances are listed again after they were refreshed
	for _, st := range statements {
		if seen[st.Text] {
			continue
		}

		seen[st.Text] = true
		if !strings.Contains(st.Text, "LIMIT") &&
			!strings.Contains(st.Text, "FROM payments_balances i WHERE account_id") {
			continue
		}

		asked++

		lines, err := explain(st.Text, st.Args)
		if err != nil {
			t.Fatalf("%s: %v", st.Text, err)
		}

		for _, line := range lines {
			if strings.HasPrefix(line, "SCAN payments_") && !strings.Contains(line, "USING") {
				t.Errorf("%s\nreads a whole table: %s", st.Text, line)
			}

			for _, m := range usedIndex.FindAllStringSubmatch(line, -1) {
				name := "`" + m[1] + "`"
				if m[2] != "" || strings.HasPrefix(m[1], "sqlite_autoindex_") {
					name = "primary key"
				}

				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}

	r.Take()

	switch {
	case asked == 0:
		return "none: the configuration, in memory"
	case asked > 1 || len(names) == 0:
		t.Errorf("%d queries by %q, want one by an index", asked, names)
	}

	return strings.Join(names, ", ")
}

// compareLists holds docs/api.md against what was seen, or writes it there.
func compareLists(t *testing.T, want string) {
	t.Helper()

	raw, err := os.ReadFile(listsFile)
	if err != nil {
		t.Fatal(err)
	}

	before, rest, ok := strings.Cut(string(raw), listsBegin)

	got, after, ok2 := strings.Cut(rest, listsEnd)
	if !ok || !ok2 {
		t.Fatalf("%s has no table of lists between its two comments", listsFile)
	}

	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		if err := os.WriteFile(listsFile, []byte(before+listsBegin+want+listsEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}

		return
	}

	if diff := gocmp.Diff(got, want); diff != "" {
		t.Errorf("the table of lists in %s is not what is seen: %s", listsFile, diff)
	}
}

// A bound before all that was ever made selects nothing; .NET sends it for a time that nobody set.
func TestNothingIsOlderThanYearOne(t *testing.T) {
	s := open(t, nil)
	id := s.post(t, "/v1/invoices", invoiceBody)["id"].(string)
	s.post(t, "/v1/test/invoices/"+id+"/simulate_payment", `{"outcome":"paid"}`)

	for _, path := range []string{
		"/v1/invoices?created_before=0001-01-01T00:00:00Z",
		"/v1/payments?detected_before=0001-01-01T00:00:00Z",
	} {
		if rows := s.get(t, path)["data"].([]any); len(rows) > 0 {
			t.Errorf("%s: %d rows", path, len(rows))
		}

		if rows := s.get(t, strings.Replace(path, "before", "after", 1))["data"].([]any); len(rows) == 0 {
			t.Errorf("%s as after: no rows", path)
		}
	}
}

// TestATimestampWithAnUnescapedPlusSaysSo: in a query string + is a space.
func TestATimestampWithAnUnescapedPlusSaysSo(t *testing.T) {
	s := open(t, nil)
	ask := func(offset string) reply {
		return s.do(
			t,
			request{method: "GET", path: "/v1/invoices?created_after=2026-01-01T00:00:00" + offset},
		)
	}

	f := ask("+02:00").refused(t, 400)
	if f.Param != "created_after" || !strings.Contains(f.Message, "%2B") {
		t.Errorf("%+v", f)
	}

	s.ok(t, ask("%2B02:00"))

	if f := ask("Z%2B").refused(t, 400); strings.Contains(f.Message, "%2B") {
		t.Errorf("%+v", f)
	}
}

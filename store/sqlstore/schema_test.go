package sqlstore

import (
	"regexp"
	"strings"
	"testing"
)

// An index of the schema holds no column of unbounded text: not every database can build such an index.
func TestIndexesHoldBoundedColumns(t *testing.T) {
	text, err := templates.ReadFile("migrations/00001_tables.sql")
	if err != nil {
		t.Fatal(err)
	}

	var (
		column = regexp.MustCompile(`(?m)^ +([a-z_0-9]+) +\{([A-Z]+)\}`)
		index  = regexp.MustCompile(`(?m)CREATE (?:UNIQUE )?INDEX ([a-z_0-9]+) ON \{([a-z_]+)\} \(([^)]*)\)`)
		tables = map[string]map[string]string{}
	)

	body := regexp.MustCompile(`(?s)CREATE TABLE \{([a-z_]+)\} \((.*?)\n\)`)

	for _, table := range body.FindAllStringSubmatch(string(text), -1) {
		tables[table[1]] = map[string]string{}
		for _, declared := range column.FindAllStringSubmatch(table[2], -1) {
			tables[table[1]][declared[1]] = declared[2]
		}
	}

	indexes := index.FindAllStringSubmatch(string(text), -1)
	if len(indexes) < 50 {
		t.Fatalf("%d indexes were found", len(indexes))
	}

	for _, found := range indexes {
		for name := range strings.SplitSeq(found[3], ", ") {
			switch kind := tables[found[2]][name]; kind {
			case "TEXT", "JSON", "BYTES":
				t.Errorf("index %s holds %s.%s, which is {%s}", found[1], found[2], name, kind)
			}
		}
	}
}

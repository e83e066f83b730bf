package docs_test

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"testing"
)

var errorRow = regexp.MustCompile("(?m)^\\| ([0-9]{3}) \\| <a id=\"([a-z_]+)\"></a>`([a-z_]+)` \\|")

// Every error that the API can answer is explained in errors.md, under its own anchor and in order, and no other.
func TestErrorsAreExplained(t *testing.T) {
	offered, err := os.ReadFile("../httpapi/testdata/v1.json")
	if err != nil {
		t.Fatal(err)
	}

	var version struct {
		Errors []string `json:"errors"`
	}
	if err := json.Unmarshal(offered, &version); err != nil {
		t.Fatal(err)
	}

	page, err := os.ReadFile("errors.md")
	if err != nil {
		t.Fatal(err)
	}

	var explained []string

	for _, row := range errorRow.FindAllStringSubmatch(string(page), -1) {
		if row[2] != row[3] {
			t.Errorf("the anchor of %s is %s", row[3], row[2])
		}

		explained = append(explained, fmt.Sprintf("%s %s", row[1], row[3]))
	}

	// What is answered to a request that reaches no operation has no place in the document of the operations.
	answered := append(version.Errors, "404 path_unknown", "405 method_not_allowed")
	slices.Sort(answered)

	if len(explained) == 0 || !slices.Equal(explained, answered) {
		t.Errorf("errors.md explains\n%q,\nthe API answers\n%q", explained, answered)
	}
}

package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// schema is a schema of the document, as far as the bodies of requests use it.
type schema struct {
	Ref        string `json:"$ref"`
	Type       any
	Properties map[string]*schema
	Required   []string
	Items      *schema
	Pattern    string
	Format     string
	Enum       []string
	MinLength  int
	Minimum    int

	AdditionalProperties json.RawMessage
}

// isString reports whether a value may be a string.
func (s *schema) isString() bool {
	types, several := s.Type.([]any)

	return s.Type == "string" || several && slices.Contains(types, any("string"))
}

// isFreeText reports whether the document lets a string be empty.
func (s *schema) isFreeText() bool {
	return s.Pattern == "" && s.Format == "" && len(s.Enum) == 0 && s.MinLength == 0
}

// bodyOperation is an operation of the document with a body.
type bodyOperation struct {
	name, method, path string
	body               *schema
}

// apiDocument is the document with its schemas.
type apiDocument struct {
	Paths map[string]map[string]struct {
		OperationID string
		RequestBody *struct {
			Content map[string]struct{ Schema *schema }
		}
	}
	Components struct{ Schemas map[string]*schema }
}

// bodies returns the operations of the document that have a body, by name.
func (s *shop) bodies(t *testing.T) (apiDocument, []bodyOperation) {
	t.Helper()

	var d apiDocument

	answer := s.do(t, request{method: "GET", path: "/v1/openapi.json", key: "-"})
	if err := json.Unmarshal(answer.body, &d); err != nil {
		t.Fatal(err)
	}

	var found []bodyOperation

	for path, methods := range d.Paths {
		for method, op := range methods {
			if op.RequestBody != nil {
				body := op.RequestBody.Content["application/json"].Schema
				found = append(found, bodyOperation{op.OperationID, strings.ToUpper(method), path, body})
			}
		}
	}

	slices.SortFunc(found, func(a, b bodyOperation) int { return strings.Compare(a.name, b.name) })

	return d, found
}

// resolve follows a reference.
func (d apiDocument) resolve(s *schema) *schema {
	if name, ok := strings.CutPrefix(s.Ref, "#/components/schemas/"); ok {
		return d.Components.Schemas[name]
	}

	return s
}

// emptyCase is a body with an empty string for one field.
type emptyCase struct {
	param    string
	body     any
	freeText bool
}

// emptyStrings returns a body for each string of a schema, with an empty one in its place.
func (d apiDocument) emptyStrings(s *schema, path string) []emptyCase {
	s = d.resolve(s)

	var cases []emptyCase

	switch {
	case s.isString():
		cases = append(cases, emptyCase{path, "", s.isFreeText()})
	case s.Items != nil:
		for _, c := range d.emptyStrings(s.Items, path+"[0]") {
			cases = append(cases, emptyCase{c.param, []any{c.body}, c.freeText})
		}
	case bytes.HasPrefix(s.AdditionalProperties, []byte("{")): // a map of strings
		cases = append(cases, emptyCase{path + ".k", map[string]any{"k": ""}, true})
	case s.Properties != nil:
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			at := name
			if path != "" {
				at = path + "." + name
			}

			for _, c := range d.emptyStrings(s.Properties[name], at) {
				body := map[string]any{}

				for _, other := range s.Required {
					body[other] = d.sample(s.Properties[other], other)
				}

				body[name] = c.body
				cases = append(cases, emptyCase{c.param, body, c.freeText})
			}
		}
	}

	return cases
}

// samples are values that the API takes, of the fields that a pattern does not tell.
var samples = map[string]string{
	"asset":       "SIM",
	"network":     "simnet",
	"currency":    "EUR",
	"amount":      "5000000000000",
	"destination": "sim1destination",
	"url":         "http://127.0.0.1:1/",
	"events":      "*",
}

// sample returns a value for a required field.
func (d apiDocument) sample(s *schema, name string) any {
	s = d.resolve(s)

	switch {
	case len(s.Enum) > 0:
		return s.Enum[0]
	case s.isString():
		return samples[name]
	case s.Items != nil:
		return []any{d.sample(s.Items, name)}
	case s.Properties != nil:
		body := map[string]any{}
		for _, required := range s.Required {
			body[required] = d.sample(s.Properties[required], required)
		}

		return body
	}

	return s.Minimum
}

// TestAnEmptyStringIsNoAbsentValue sends "" for each string that the document knows in a body. Where the string has a
// form or a least length, it is refused; it never stands for all of something. A free text may be empty.
func TestAnEmptyStringIsNoAbsentValue(t *testing.T) {
	s := open(t, nil)
	d, operations := s.bodies(t)
	wildcard := regexp.MustCompile(`\{[^}]*\}`)
	refused, taken := 0, 0

	for _, op := range operations {
		for i, c := range d.emptyStrings(op.body, "") {
			body, err := json.Marshal(c.body)
			if err != nil {
				t.Fatal(err)
			}

			r := s.do(t, request{
				method: op.method,
				path:   wildcard.ReplaceAllString(op.path, nobody),
				body:   string(body),
				header: header("Idempotency-Key", fmt.Sprintf("%s-%d", op.name, i)),
			})

			var answer struct{ Error fault }
			if r.status >= 400 {
				if err := json.Unmarshal(r.body, &answer); err != nil {
					t.Fatal(err)
				}
			}

			isRefused := r.status == 400 && answer.Error.Param == c.param
			if isRefused == c.freeText {
				t.Errorf("%s with an empty %s (free text: %t): %d %s", op.name, c.param, c.freeText, r.status, r.body)
			}

			if c.freeText {
				taken++
			} else {
				refused++
			}
		}
	}

	if refused < 25 || taken < 8 {
		t.Errorf("only %d fields with a form and %d free texts were tried", refused, taken)
	}
}

package httpapi_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/account"
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

// stringCase is a body with a text for one field.
type stringCase struct {
	param string
	body  any
	field *schema
}

// withText returns a body for each string of a schema, with a text in its place.
func (d apiDocument) withText(s *schema, path, text string) []stringCase {
	s = d.resolve(s)

	var cases []stringCase

	switch {
	case s.isString():
		cases = append(cases, stringCase{path, text, s})
	case s.Items != nil:
		for _, c := range d.withText(s.Items, path+"[0]", text) {
			cases = append(cases, stringCase{c.param, []any{c.body}, c.field})
		}
	case bytes.HasPrefix(s.AdditionalProperties, []byte("{")): // a map of strings
		cases = append(cases, stringCase{path + ".k", map[string]any{"k": text}, &schema{}})
	case s.Properties != nil:
		for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
			at := name
			if path != "" {
				at = path + "." + name
			}

			for _, c := range d.withText(s.Properties[name], at, text) {
				body := map[string]any{}

				for _, other := range s.Required {
					body[other] = d.sample(s.Properties[other], other)
				}

				body[name] = c.body
				cases = append(cases, stringCase{c.param, body, c.field})
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
	refused, taken := 0, 0

	for _, op := range operations {
		for _, c := range d.withText(op.body, "", "") {
			isRefused, answer := s.refuses(t, op, c)
			if free := c.field.isFreeText(); isRefused == free {
				t.Errorf("%s with an empty %s (free text: %t): %s", op.name, c.param, free, answer)
			}

			if isRefused {
				refused++
			} else {
				taken++
			}
		}
	}

	if refused < 25 || taken < 8 {
		t.Errorf("only %d fields with a form and %d free texts were tried", refused, taken)
	}
}

// TestThePatternOfAnAmountIsWhatIsTaken sends texts for each amount of the document: 400 is what its pattern refuses.
// The key may pay: without a destination a payout is refused before its amounts are read.
func TestThePatternOfAnAmountIsWhatIsTaken(t *testing.T) {
	s := open(t, nil)
	s.key = s.newKey(t, account.KeyParams{
		Scopes:       account.AllScopes(),
		Destinations: destinations(string(s.network.NewAddress())),
	})

	d, operations := s.bodies(t)
	fields := map[string]bool{}

	for _, op := range operations {
		for _, text := range []string{
			"1", "10", "010", "010.00", "00", "01.5", "1.50", "1.", ".5", "-1", "+1", "1e3", " 1", "1 ", "0x1", "1,5",
			strings.Repeat("9", 31), strings.Repeat("9", 72), "1" + strings.Repeat("0", 72), strings.Repeat("9", 78),
		} {
			for _, c := range d.withText(op.body, "", text) {
				if !strings.HasSuffix(c.param, "amount") && !strings.HasSuffix(c.param, "fee") {
					continue
				}

				fields[op.name+" "+c.param] = true
				matches := regexp.MustCompile(c.field.Pattern).MatchString(text)

				if refused, answer := s.refuses(t, op, c); refused == matches {
					t.Errorf("%s with %s %q, of the pattern %t: %s", op.name, c.param, text, matches, answer)
				}
			}
		}
	}

	if len(fields) < 7 {
		t.Errorf("only the amounts %v were tried", slices.Collect(maps.Keys(fields)))
	}
}

var wildcard = regexp.MustCompile(`\{[^}]*\}`)

// refuses reports whether a body is refused with 400 for the case's field.
func (s *shop) refuses(t *testing.T, op bodyOperation, c stringCase) (refused bool, answer string) {
	t.Helper()

	body, err := json.Marshal(c.body)
	if err != nil {
		t.Fatal(err)
	}

	r := s.do(t, request{
		method: op.method,
		path:   wildcard.ReplaceAllString(op.path, nobody),
		body:   string(body),
		header: header("Idempotency-Key", fmt.Sprintf("%x", sha256.Sum256(body))),
	})

	var v struct{ Error fault }
	if err := json.Unmarshal(r.body, &v); err != nil {
		t.Fatal(err)
	}

	return r.status == 400 && v.Error.Param == c.param, fmt.Sprintf("%d %s", r.status, r.body)
}

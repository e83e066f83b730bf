package httpapi

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed-8ee7f392/payments/event"
	"github.com/seed-8ee7f392/payments/internal/engine"
)

// baseline is what version 1 of the API once offered. Within a version the service only adds
// (specification part 9), so nothing that is in testdata/v1.json may disappear; -update adds what
// is new, and never takes anything away. Each entry is a promise:
//
//	operations   method, path, id, what it answers with, and who may call it
//	parameters   that one is known, by type; that it may be left out; each value that it takes
//	fields       that one is known, by type; of a request, that it may be left out; of an answer, that it always comes
//	errors       status and code
//	event_types  the type's name
type baseline struct {
	Operations []string `json:"operations"`
	Parameters []string `json:"parameters"`
	Fields     []string `json:"fields"`
	Errors     []string `json:"errors"`
	EventTypes []string `json:"event_types"`
}

const baselineFile = "testdata/v1.json"

func (b *baseline) lists() map[string]*[]string {
	return map[string]*[]string{
		"operation":  &b.Operations,
		"parameter":  &b.Parameters,
		"field":      &b.Fields,
		"error":      &b.Errors,
		"event type": &b.EventTypes,
	}
}

func TestVersionOneOnlyGrows(t *testing.T) {
	now := currentAPI(t)

	var once baseline

	raw, err := os.ReadFile(baselineFile)
	if err == nil {
		err = json.Unmarshal(raw, &once)
	}

	if err != nil {
		t.Fatal(err)
	}

	lost := removedSince(&once, &now)
	for _, line := range lost {
		t.Errorf("version 1 offered this, and it is gone: %s", line)
	}

	if *update {
		all := once
		for kind, list := range all.lists() {
			*list = slices.Concat(*list, *now.lists()[kind])
			slices.Sort(*list)
			*list = slices.Compact(*list)
		}

		if raw, err = json.MarshalIndent(all, "", "\t"); err != nil {
			t.Fatal(err)
		}

		if err := os.WriteFile(baselineFile, append(raw, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}

		return
	}

	for kind, list := range now.lists() {
		for _, line := range *list {
			if !slices.Contains(*once.lists()[kind], line) {
				t.Logf(
					"the %s %q is new: go test ./httpapi -run TestVersionOneOnlyGrows -update makes it a promise",
					kind,
					line,
				)
			}
		}
	}
}

// A baseline that nothing can break would be worth nothing: each entry's disappearance is noticed.
func TestEveryRemovalIsDetected(t *testing.T) {
	once := currentAPI(t)
	tried := 0

	for kind, list := range once.lists() {
		if len(*list) < 30 {
			t.Errorf("only %d %ss: %q", len(*list), kind, *list)
		}

		for i, line := range *list {
			now := once

			*now.lists()[kind] = slices.Delete(slices.Clone(*list), i, i+1)
			if lost := removedSince(&once, &now); len(lost) != 1 || !strings.Contains(lost[0], line) {
				t.Fatalf("without the %s %q the test finds %q", kind, line, lost)
			}

			tried++
		}
	}

	t.Logf("%d entries", tried)
}

func removedSince(once, now *baseline) (lost []string) { // spec 9.2
	for kind, list := range once.lists() {
		for _, line := range *list {
			if !slices.Contains(*now.lists()[kind], line) {
				lost = append(lost, kind+" "+line)
			}
		}
	}

	slices.Sort(lost)

	return lost
}

// offered reads what the API offers from its own document.
func currentAPI(t *testing.T) baseline {
	t.Helper()

	op := openAPI((&api{&engine.Engine{}}).operations(), "")

	v, err := op.read(t.Context(), &call{query: op.query.zero()})
	if err != nil {
		t.Fatal(err)
	}

	raw, ok := v.(json.RawMessage)
	if !ok {
		t.Fatalf("the document is a %T", v)
	}

	var d openDocument
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}

	b := baseline{}

	for path, methods := range d.Paths {
		for method, op := range methods {
			b.operation(strings.ToUpper(method)+" "+path, op)
		}
	}

	for name, s := range d.Components.Schemas {
		b.schema(name, s)
	}

	for _, typ := range append(event.Types(), event.Ping) {
		b.EventTypes = append(b.EventTypes, string(typ))
	}

	for _, list := range b.lists() {
		slices.Sort(*list)
		*list = slices.Compact(*list)
	}

	return b
}

// openDocument is as much of an OpenAPI document as the baseline needs.
type openDocument struct {
	Paths      map[string]map[string]openOperation
	Components struct{ Schemas map[string]openSchema }
}

type openOperation struct {
	OperationID string
	Scope       string `json:"x-scope"`
	Publishable bool   `json:"x-publishable-key"`
	Parameters  []struct {
		Name, In string
		Required bool
		Schema   openSchema
	}
	RequestBody *struct {
		Required bool
		Content  openContent
	}
	Responses map[string]struct {
		Description string
		Content     openContent
	}
}

type openContent map[string]struct{ Schema openSchema }

type openSchema struct {
	Type                 any    // a name, or a list with "null"
	Ref                  string `json:"$ref"`
	Format               string
	Properties           map[string]openSchema
	AdditionalProperties any
	Items                *openSchema
	Required             []string
	Enum                 []any
	Known                []any `json:"x-extensible-enum"`
}

func (s openSchema) kind() string {
	switch {
	case s.Ref != "":
		return strings.TrimPrefix(s.Ref, "#/components/schemas/")
	case s.Items != nil:
		return s.Items.kind() + "[]"
	case s.Format == "date-time":
		return "date-time"
	}

	return strings.Trim(fmt.Sprint(s.Type), "[]")
}

var codeName = regexp.MustCompile(`[^ ,]+`)

func (b *baseline) operation(route string, op openOperation) {
	b.Operations = append(b.Operations, route+" is "+op.OperationID)
	switch {
	case op.Publishable:
		b.Operations = append(b.Operations, route+" takes a publishable key")
	case op.Scope != "":
		b.Operations = append(b.Operations, route+" needs "+op.Scope+" alone")
	}

	for status, r := range op.Responses {
		if status == "200" {
			for _, content := range r.Content {
				b.Operations = append(b.Operations, route+" answers "+content.Schema.kind())
			}

			continue
		}

		for _, code := range codeName.FindAllString(r.Description, -1) {
			b.Errors = append(b.Errors, status+" "+code)
		}
	}

	if op.RequestBody != nil {
		for _, content := range op.RequestBody.Content {
			b.Parameters = append(b.Parameters, route+" body: "+content.Schema.kind())
		}

		if !op.RequestBody.Required {
			b.Parameters = append(b.Parameters, route+" body may be left out")
		}
	}

	for _, p := range op.Parameters {
		name := route + " " + p.In + " " + p.Name

		b.Parameters = append(b.Parameters, name+": "+p.Schema.kind())
		if !p.Required {
			b.Parameters = append(b.Parameters, name+" may be left out")
		}

		values := p.Schema.Enum
		if p.Schema.Items != nil {
			values = p.Schema.Items.Enum
		}

		for _, v := range values {
			b.Parameters = append(b.Parameters, fmt.Sprintf("%s takes %v", name, v))
		}
	}
}

func (b *baseline) schema(name string, s openSchema) {
	isBody := strings.HasSuffix(name, "Body")
	for field, p := range s.Properties {
		at := name + "." + field
		b.Fields = append(b.Fields, at+": "+p.kind())

		switch required := slices.Contains(s.Required, field); {
		case isBody && !required:
			b.Fields = append(b.Fields, at+" may be left out")
		case !isBody && required:
			b.Fields = append(b.Fields, at+" is always there")
		}

		values := slices.Concat(p.Enum, p.Known)
		if p.Items != nil {
			values = slices.Concat(p.Items.Enum, p.Items.Known)
		}

		for _, v := range values {
			b.Fields = append(b.Fields, fmt.Sprintf("%s knows %v", at, v))
		}
	}
}

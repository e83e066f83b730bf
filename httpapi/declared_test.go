package httpapi_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// declaredCodes are the error codes of a document, by method and path, such as "POST /v1/invoices", each as
// "status code".
type declaredCodes map[string][]string

var (
	pathParameter = regexp.MustCompile(`\\\{[^}]*\\\}`)

	declaredOnce sync.Once
	declared     declaredCodes
)

// answersOutsideOperations are the codes of requests that reach no operation. The document has no place for them.
var answersOutsideOperations = []string{"404 path_unknown", "405 method_not_allowed"}

// checkDeclared fails the test for an error that the API's document does not list for the operation, whatever else
// the test is about.
func (s *shop) checkDeclared(t testing.TB, q request, r reply) {
	t.Helper()

	if r.status < http.StatusBadRequest {
		return
	}

	var v struct{ Error fault }
	if err := json.Unmarshal(r.body, &v); err != nil || v.Error.Code == "" {
		return
	}

	code := strconv.Itoa(r.status) + " " + v.Error.Code
	if slices.Contains(answersOutsideOperations, code) {
		return
	}

	declaredOnce.Do(func() { declared = s.readDeclared(t) })

	path, _, _ := strings.Cut(q.path, "?")
	for operation, codes := range declared {
		if matches(operation, q.method, path) {
			if !slices.Contains(codes, code) {
				t.Errorf(
					"%s answers %s, which its entry in the document does not list: %q",
					operation,
					code,
					codes,
				)
			}

			return
		}
	}
}

// readDeclared reads the codes from the document that the API serves.
func (s *shop) readDeclared(t testing.TB) declaredCodes {
	t.Helper()

	answer := s.do(t, request{method: "GET", path: "/v1/openapi.json", key: "-"})

	var document struct {
		Paths map[string]map[string]struct {
			Responses map[string]struct{ Description string }
		}
	}
	if err := json.Unmarshal(answer.body, &document); err != nil || len(document.Paths) == 0 {
		t.Fatalf("the document cannot be read: %v", err)
	}

	codes := declaredCodes{}

	for path, methods := range document.Paths {
		for method, operation := range methods {
			for status, response := range operation.Responses {
				for code := range strings.SplitSeq(response.Description, ", ") {
					name := strings.ToUpper(method) + " " + path
					codes[name] = append(codes[name], status+" "+code)
				}
			}
		}
	}

	return codes
}

// matches reports whether a request is one of the operation.
func matches(operation, method, path string) bool {
	ofMethod, template, _ := strings.Cut(operation, " ")

	pattern := pathParameter.ReplaceAllString(regexp.QuoteMeta(template), "[^/]+")

	return ofMethod == method && regexp.MustCompile("^"+pattern+"$").MatchString(path)
}

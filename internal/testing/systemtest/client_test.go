package systemtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/gorillamux"
)

// client calls the API and holds every request and every answer, errors too, against the published document.
type client struct {
	t      *testing.T
	base   string
	doc    *openapi3.T
	router routers.Router
	// keys that the tests use: with every scope, held to a destination, publishable, live.
	key, sending, public, live string
	seen                       coverage
}

// coverage are the answers that each operation was seen to give: status and error code, "200 " for success.
type coverage map[string]map[string]bool

// read fetches and validates the document. Answers may have no field that it does not name.
func (c *client) read() {
	c.t.Helper()

	response, err := http.Get(c.base + "/v1/openapi.json")
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()

	raw, err := io.ReadAll(response.Body)
	if err != nil {
		c.t.Fatal(err)
	}

	if c.doc, err = openapi3.NewLoader().LoadFromData(raw); err != nil {
		c.t.Fatal(err)
	}

	if err := c.doc.Validate(c.t.Context()); err != nil {
		c.t.Fatalf("the document is not valid OpenAPI: %v", err)
	}

	for _, schema := range c.doc.Components.Schemas {
		if len(schema.Value.Properties) > 0 {
			no := false
			schema.Value.AdditionalProperties.Has = &no
		}
	}

	c.doc.Servers = openapi3.Servers{{URL: c.base}}
	if c.router, err = gorillamux.NewRouter(c.doc); err != nil {
		c.t.Fatal(err)
	}
}

// request is one call; key defaults to the client's key, "-" is none.
type request struct {
	method, path, body, key, idempotency string
	// kind is the body's Content-Type; "" is application/json.
	kind string
	// trouble is what befalls the store meanwhile; see unreliable.
	trouble string
}

func (c *client) prepare(q request) *http.Request {
	c.t.Helper()

	r, err := http.NewRequestWithContext(c.t.Context(), q.method, c.base+q.path, strings.NewReader(q.body))
	if err != nil {
		c.t.Fatal(err)
	}

	switch {
	case q.body == "":
		r.Body, r.ContentLength = http.NoBody, 0
	case q.kind != "":
		r.Header.Set("Content-Type", q.kind)
	default:
		r.Header.Set("Content-Type", "application/json")
	}

	if q.key == "" {
		q.key = c.key
	}

	if q.key != "-" {
		r.Header.Set("Authorization", "Bearer "+q.key)
	}

	if q.idempotency != "" {
		r.Header.Set("Idempotency-Key", q.idempotency)
	}

	if q.trouble != "" {
		r.Header.Set(troubleHeader, q.trouble)
	}

	return r
}

// send sends a request, checks the exchange against the document, and returns status, error code and body.
func (c *client) send(q request) (status int, code string, body []byte) {
	c.t.Helper()

	response, err := http.DefaultClient.Do(c.prepare(q))
	if err != nil {
		c.t.Fatal(err)
	}
	defer response.Body.Close()

	if body, err = io.ReadAll(response.Body); err != nil {
		c.t.Fatal(err)
	}

	code = c.check(q, response, body)

	return response.StatusCode, code, body
}

// do sends a request that is to be answered with a status, and returns the decoded body.
func (c *client) do(status int, q request) map[string]any {
	c.t.Helper()

	got, _, body := c.send(q)
	if got != status {
		c.t.Fatalf("%s %s: status %d, want %d: %s", q.method, q.path, got, status, body)
	}

	var v map[string]any
	if err := json.Unmarshal(body, &v); err != nil {
		c.t.Fatal(err)
	}

	return v
}

// refuse sends a request that is to be refused with a status and a code.
func (c *client) refuse(status int, code string, q request) {
	c.t.Helper()

	if gotStatus, gotCode, body := c.send(q); gotStatus != status || gotCode != code {
		c.t.Errorf("%s %s: status %d, want %d %s: %s", q.method, q.path, gotStatus, status, code, body)
	}
}

var wordy = regexp.MustCompile(`[^ ,]+`)

// unreadable are the statuses of requests that may break the document's rules. All others were
// understood, so they keep them.
var unreadable = []int{
	http.StatusBadRequest,
	http.StatusRequestEntityTooLarge,
	http.StatusUnsupportedMediaType,
}

// check holds an exchange against the document and returns the error code, "" for success.
func (c *client) check(q request, response *http.Response, body []byte) (code string) {
	c.t.Helper()
	r := c.prepare(q)

	route, params, err := c.router.FindRoute(r)
	if err != nil {
		c.t.Fatalf("%s %s is not in the document: %v", q.method, q.path, err)
	}

	options := &openapi3filter.Options{
		IncludeResponseStatus:             true,
		AuthenticationFunc:                openapi3filter.NoopAuthenticationFunc,
		RejectWhenRequestBodyNotSpecified: true,
	}

	asked := &openapi3filter.RequestValidationInput{
		Request:    r,
		PathParams: params,
		Route:      route,
		Options:    options,
	}
	if !slices.Contains(unreadable, response.StatusCode) {
		if err := openapi3filter.ValidateRequest(c.t.Context(), asked); err != nil {
			c.t.Errorf(
				"%s %s was answered with %d although the document forbids it: %v",
				q.method, q.path, response.StatusCode, err,
			)
		}
	}

	answered := &openapi3filter.ResponseValidationInput{
		RequestValidationInput: asked,
		Status:                 response.StatusCode,
		Header:                 response.Header,
		Options:                options,
	}
	if err := openapi3filter.ValidateResponse(c.t.Context(), answered.SetBodyBytes(body)); err != nil {
		c.t.Errorf("%s %s: the answer is not as documented: %v\n%s", q.method, q.path, err, body)
	}

	if response.StatusCode != http.StatusOK {
		var failed struct {
			Error struct {
				Code      string
				RequestID string `json:"request_id"`
			}
		}
		if err := json.Unmarshal(body, &failed); err != nil {
			c.t.Fatal(err)
		}

		code = failed.Error.Code
		if !slices.Contains(documented(route.Operation), answer(response.StatusCode, code)) {
			c.t.Errorf(
				"%s answers %d %s, which its documentation does not name: %s",
				route.Operation.OperationID, response.StatusCode, code, body,
			)
		}

		if failed.Error.RequestID != response.Header.Get("Request-Id") {
			c.t.Errorf(
				"request_id %s, Request-Id %s", failed.Error.RequestID,
				response.Header.Get("Request-Id"),
			)
		}
	}

	id := route.Operation.OperationID
	if c.seen[id] == nil {
		c.seen[id] = map[string]bool{}
	}

	c.seen[id][answer(response.StatusCode, code)] = true

	return code
}

func answer(status int, code string) string { return fmt.Sprintf("%d %s", status, code) }

// documented are the answers that an operation may give: its statuses, each with the error codes
// that its description lists.
func documented(op *openapi3.Operation) []string {
	var out []string

	for status, response := range op.Responses.Map() {
		if status == "200" {
			out = append(out, "200 ")
			continue
		}

		for _, code := range wordy.FindAllString(*response.Value.Description, -1) {
			out = append(out, status+" "+code)
		}
	}

	slices.Sort(out)

	return out
}

// ofOutputs are answers that only networks of outputs give, of which this service has none: chain/bitcoin tests them.
var ofOutputs = map[string]bool{
	"POST /v1/payouts 422 amount_too_large": true,
	"POST /v1/refunds 422 amount_too_large": true,
}

// report prints what was answered of what is documented, and fails the test when anything was not.
func (c *client) report() {
	c.t.Helper()

	var (
		operations, statuses, statusesHit, answers, answersHit int
		lines                                                  []string
	)

	for path, item := range c.doc.Paths.Map() {
		for method, op := range item.Operations() {
			operations++
			byStatus := map[string]bool{}

			for _, a := range documented(op) {
				if ofOutputs[method+" "+path+" "+a] {
					continue
				}

				status, _, _ := strings.Cut(a, " ")
				hit := c.seen[op.OperationID][a]
				byStatus[status] = byStatus[status] || hit
				answers++

				if hit {
					answersHit++
				} else {
					c.t.Errorf(
						"%s %s was never answered with %s: provoke it, or do not document it",
						method, path, a,
					)
				}
			}

			var list []string

			for status, hit := range byStatus {
				statuses++

				if hit {
					statusesHit++

					list = append(list, status)
				}
			}

			slices.Sort(list)
			lines = append(
				lines,
				fmt.Sprintf(
					"%-6s %-62s %d of %d: %s", method, path, len(list), len(byStatus),
					strings.Join(list, " "),
				),
			)
		}
	}

	slices.SortFunc(lines, func(a, b string) int { return strings.Compare(a[7:], b[7:]) })
	c.t.Logf("%d operations\n%s", operations, strings.Join(lines, "\n"))
	c.t.Logf("operations × documented statuses: %d of %d hit", statusesHit, statuses)
	c.t.Logf("operations × documented error codes, success being one: %d of %d hit", answersHit, answers)

	if operations == 0 || statuses <= operations {
		c.t.Errorf("%d operations with %d statuses", operations, statuses)
	}
}

func (c *client) get(path string) map[string]any {
	c.t.Helper()
	return c.do(200, request{method: "GET", path: path})
}

func (c *client) post(path, body string) map[string]any {
	c.t.Helper()
	return c.do(200, request{method: "POST", path: path, body: body})
}

func text(v map[string]any, name string) string {
	s, _ := v[name].(string)
	return s
}

func rows(v map[string]any) []map[string]any {
	var out []map[string]any

	data, _ := v["data"].([]any)
	for _, row := range data {
		out = append(out, row.(map[string]any))
	}

	return out
}

// await reads until a condition holds.
func (c *client) await(path string, done func(map[string]any) bool) map[string]any {
	c.t.Helper()

	deadline := time.Now().Add(time.Minute)

	for {
		v := c.get(path)
		if done(v) {
			return v
		}

		if time.Now().After(deadline) {
			c.t.Fatalf("%s stays %v", path, v)
		}

		<-time.After(50 * time.Millisecond)
	}
}

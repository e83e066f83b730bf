package httpapi

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/seed-8ee7f392/payments/internal/paging"
)

// schemaPrefix is the prefix of a reference to a schema.
const schemaPrefix = "#/components/schemas/"

// replayedHeader is the reference to the header of replayed answers. It is one component, because generators
// make a type for each list of values: ogen's client had the same type in every operation, and did not
// compile.
const replayedHeader = "#/components/headers/IdempotentReplayed"

// document renders the OpenAPI 3.1 document of the operations (https://spec.openapis.org/oas/v3.1.0).
// huma's generator makes the schemas from the Go types and their tags; nothing else of huma is used.
func document(operations []operation, docsURL string) ([]byte, error) {
	schemas := huma.NewMapRegistry(schemaPrefix, schemaName)
	doc := newDocument(schemas, docsURL)

	for i := range operations {
		addOperation(doc, &operations[i])
	}

	doc.Webhooks = eventWebhooks(schemas)

	for name, schema := range schemas.Map() {
		setDescriptions(schemas.TypeFromRef(schemaPrefix+name), schema)
		completeSchema(name, schema)
		bound(schemas.TypeFromRef(schemaPrefix+name), schema)
		openEnums(name, schema)
	}

	return json.Marshal(doc)
}

// newDocument returns the document without operations.
func newDocument(schemas huma.Registry, docsURL string) *huma.OpenAPI {
	doc := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title:   "Merchant Payments API",
			Version: "v1",
			License: &huma.License{Name: "MIT", Identifier: "MIT"},
			Description: "Accept and send crypto payments. Amounts in base units are strings of digits, " +
				"decimal values are strings with at most 8 places, " +
				"timestamps are RFC 3339 in UTC. Clients ignore fields, enum values and event types that " +
				"they do not know.",
		},
		Servers:  []*huma.Server{{URL: "/"}},
		Paths:    map[string]*huma.PathItem{},
		Security: []map[string][]string{{"apiKey": {}}},
		Components: &huma.Components{
			Schemas: schemas,
			Headers: map[string]*huma.Header{
				"IdempotentReplayed": {
					Description: "true when the answer is that of an earlier request with the same Idempotency-Key",
					Schema:      &huma.Schema{Type: "string", Enum: []any{"true"}},
				},
			},
			SecuritySchemes: map[string]*huma.SecurityScheme{
				"apiKey": {
					Type:        "http",
					Scheme:      "bearer",
					Description: "An API key, sent from the merchant's server.",
				},
			},
		},
	}
	if docsURL != "" {
		doc.ExternalDocs = &huma.ExternalDocs{URL: docsURL}
	}

	return doc
}

// addOperation adds an operation to its path, and its tag if no earlier operation has it.
func addOperation(doc *huma.OpenAPI, op *operation) {
	item := doc.Paths[op.path]
	if item == nil {
		item = &huma.PathItem{}
		doc.Paths[op.path] = item
	}

	documented := op.document(doc.Components.Schemas)
	switch op.method {
	case http.MethodGet:
		item.Get = documented
	case http.MethodPost:
		item.Post = documented
	case http.MethodPatch:
		item.Patch = documented
	case http.MethodDelete:
		item.Delete = documented
	}

	if !slices.ContainsFunc(doc.Tags, func(tag *huma.Tag) bool { return tag.Name == op.tag }) {
		doc.Tags = append(doc.Tags, &huma.Tag{Name: op.tag, Description: tagDescriptions[op.tag]})
	}
}

// document returns the operation as it is in the document.
func (op *operation) document(schemas huma.Registry) *huma.Operation {
	o := &huma.Operation{
		OperationID: op.id,
		Tags:        []string{op.tag},
		Summary:     op.summary,
		Description: op.description,
		Parameters:  op.parameters(schemas),
		Responses: map[string]*huma.Response{
			"200": {
				Description: "Done",
				Headers:     responseHeaders(),
				Content:     jsonContent(schemas.Schema(op.answer.typ, true, op.id+"Answer")),
			},
		},
		Extensions: map[string]any{},
	}
	if op.scope != "" {
		o.Extensions["x-scope"] = op.scope
	}

	switch op.access {
	case anyKey:
		o.Extensions["x-publishable-key"] = true
	case noKey:
		o.Security = []map[string][]string{}
	case secretKey:
		// The default of the whole document.
	}

	if op.body != nil && len(op.body.fields) > 0 {
		o.RequestBody = &huma.RequestBody{
			Required: !op.bodyOptional,
			Content:  jsonContent(schemas.Schema(op.body.typ, true, op.id+"Body")),
		}
	}

	for status, codes := range op.errorCodes() {
		o.Responses[strconv.Itoa(status)] = errorResponse(schemas, status, codes)
	}

	if op.method == http.MethodPost {
		for _, status := range []string{"200", "422"} {
			o.Responses[status].Headers["Idempotent-Replayed"] = &huma.Header{Ref: replayedHeader}
		}
	}

	return o
}

// errorResponse returns the response of an error status, which lists its codes.
func errorResponse(schemas huma.Registry, status int, codes []string) *huma.Response {
	response := &huma.Response{
		Description: strings.Join(codes, ", "),
		Headers:     responseHeaders(),
		Content:     jsonContent(schemas.Schema(reflect.TypeFor[errorBody](), true, "Error")),
	}
	if status == http.StatusTooManyRequests || status == http.StatusConflict {
		response.Headers["Retry-After"] = &huma.Header{
			Description: "Seconds to wait, where that is known",
			Schema:      &huma.Schema{Type: "integer"},
		}
	}

	return response
}

// errorCodes returns the error codes that the operation can answer, by status.
func (op *operation) errorCodes() map[int][]string {
	codes := codesByStatus{}

	op.addKeyCodes(codes)
	op.addInputCodes(codes)

	for _, code := range op.codes {
		text, name, _ := strings.Cut(code, " ")

		status, err := strconv.Atoi(text)
		if err != nil {
			panic("httpapi: operation " + op.id + " lists the code " + code + " without a status")
		}

		codes.add(status, name)
	}

	return codes
}

// codesByStatus is a set of error codes for each status, in the order in which they were added.
type codesByStatus map[int][]string

func (c codesByStatus) add(status int, codes ...string) {
	for _, code := range codes {
		if !slices.Contains(c[status], code) {
			c[status] = append(c[status], code)
		}
	}
}

// addKeyCodes adds the codes of an operation with an API key: of the key's checks, and of failures of the
// service.
func (op *operation) addKeyCodes(codes codesByStatus) {
	if op.access == noKey {
		return
	}

	codes.add(http.StatusInternalServerError, "internal_error")
	codes.add(http.StatusServiceUnavailable, "service_unavailable")
	codes.add(
		http.StatusUnauthorized,
		"api_key_required", "api_key_invalid", "api_key_expired", "api_key_revoked",
	)
	codes.add(http.StatusForbidden, "ip_not_allowed")
	codes.add(http.StatusTooManyRequests, "rate_limited")

	if op.access == secretKey {
		codes.add(http.StatusForbidden, "publishable_key_not_allowed")
	}

	if op.scope != "" {
		codes.add(http.StatusForbidden, "scope_missing")
	}

	if op.testOnly {
		codes.add(http.StatusForbidden, "test_mode_only")
	}
}

// addInputCodes adds the codes of reading the path, the query, the headers and the body.
func (op *operation) addInputCodes(codes codesByStatus) {
	codes.add(http.StatusBadRequest, "parameter_unknown", "parameter_invalid")

	if op.query.hasRequired() || op.body != nil && op.body.hasRequired() {
		codes.add(http.StatusBadRequest, "parameter_missing")
	}

	if strings.Contains(op.path, "{") {
		codes.add(http.StatusNotFound, "resource_missing")
	}

	if op.prepare != nil {
		codes.add(http.StatusBadRequest, "body_invalid")
		codes.add(http.StatusRequestEntityTooLarge, "body_too_large")
		codes.add(http.StatusUnsupportedMediaType, "content_type_unsupported")
		codes.add(http.StatusConflict, "changed_meanwhile")
	}

	if op.method != http.MethodPost {
		return
	}

	codes.add(http.StatusBadRequest, "idempotency_key_invalid")
	codes.add(http.StatusForbidden, "idempotency_key_not_yours")
	codes.add(http.StatusConflict, "idempotency_request_in_progress")
	codes.add(http.StatusUnprocessableEntity, "idempotency_key_reused")

	if op.idempotency == keyRequired {
		codes.add(http.StatusBadRequest, "idempotency_key_required")
	}
}

// parameters returns the parameters of the path, the headers and the query, in this order.
func (op *operation) parameters(schemas huma.Registry) []*huma.Param {
	params := op.pathParameters()

	if op.method == http.MethodPost {
		longest := maxIdempotencyKey
		params = append(params, &huma.Param{
			Name:     "Idempotency-Key",
			In:       "header",
			Required: op.idempotency == keyRequired,
			Schema:   &huma.Schema{Type: "string", MaxLength: &longest, Pattern: "^[!-~]+$"},
			Description: "A request that succeeded, or was refused with 422 because of what it says, is answered as " +
				"the first time when it is sent again with the same key within 24 hours, and does nothing. Other " +
				"refusals are not kept: the same request is tried anew, and may then pay.",
		})
	}

	if op.paged {
		params = append(params, pageParameters()...)
	}

	for _, f := range reflect.VisibleFields(op.query.typ) {
		if name := f.Tag.Get("query"); name != "" {
			params = append(params, op.queryParameter(schemas, f, name))
		}
	}

	return params
}

// pathParameters returns the wildcards of the path.
func (op *operation) pathParameters() []*huma.Param {
	var params []*huma.Param

	for _, name := range []string{"id", "option_id"} {
		if !strings.Contains(op.path, "{"+name+"}") {
			continue
		}

		longest := maxParam
		params = append(params, &huma.Param{
			Name:     name,
			In:       "path",
			Required: true,
			Schema:   &huma.Schema{Type: "string", MaxLength: &longest},
		})
	}

	return params
}

// pageParameters returns the query parameters of every list.
func pageParameters() []*huma.Param {
	least, most, longest := float64(paging.Least), float64(paging.Most), maxParam

	return []*huma.Param{
		{
			Name:   "limit",
			In:     "query",
			Schema: &huma.Schema{Type: "integer", Minimum: &least, Maximum: &most, Default: paging.Default},
		},
		{
			Name:        "starting_after",
			In:          "query",
			Schema:      &huma.Schema{Type: "string", MaxLength: &longest},
			Description: "The next_cursor of the page before; send the same filters with it.",
		},
	}
}

// queryParameter returns the parameter of a field of the query's type.
func (op *operation) queryParameter(schemas huma.Registry, f reflect.StructField, name string) *huma.Param {
	param := &huma.Param{
		Name:        name,
		In:          "query",
		Required:    f.Tag.Get("required") == "true",
		Description: descriptions[op.query.typ.Name()+"."+name],
	}
	param.Schema = huma.SchemaFromField(schemas, f, name)
	param.Schema.Description, param.Schema.Nullable = "", false

	// OpenAPI's default is one parameter per value; values separated by commas are accepted as well.
	if f.Type.Kind() == reflect.Slice {
		param.Schema.Items.MaxLength = nil
	}

	if f.Type == reflect.TypeFor[time.Time]() {
		param.Schema = &huma.Schema{Type: "string", Format: "date-time"}
	}

	return param
}

// responseHeaders returns the headers that every response has.
func responseHeaders() map[string]*huma.Header {
	return map[string]*huma.Header{"Request-Id": {Required: true, Schema: &huma.Schema{Type: "string"}}}
}

// jsonContent returns the content of a JSON body.
func jsonContent(schema *huma.Schema) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{"application/json": {Schema: schema}}
}

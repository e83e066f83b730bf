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
)

// schemaPrefix begins the reference of a schema.
const schemaPrefix = "#/components/schemas/"

// document renders the OpenAPI 3.1 document of the operations. Schemas come from the Go types and
// their tags by huma's generator; of huma nothing else is used, and none of its package variables
// is changed.
func document(operations []operation, docsURL string) ([]byte, error) {
	schemas := huma.NewMapRegistry(schemaPrefix, schemaName)

	d := &huma.OpenAPI{
		OpenAPI: "3.1.0",
		Info: &huma.Info{
			Title:   "Merchant Payments API",
			Version: "v1",
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
		d.ExternalDocs = &huma.ExternalDocs{URL: docsURL}
	}

	tags := map[string]bool{}

	for i := range operations {
		op := &operations[i]

		item := d.Paths[op.path]
		if item == nil {
			item = &huma.PathItem{}
			d.Paths[op.path] = item
		}

		documented := op.document(schemas)
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

		if !tags[op.tag] {
			tags[op.tag] = true
			d.Tags = append(d.Tags, &huma.Tag{Name: op.tag})
		}
	}

	for name, s := range schemas.Map() {
		describe(schemas.TypeFromRef(schemaPrefix+name), s)
		open(name, s)
	}

	return json.Marshal(d)
}

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
		// The document's own default.
	}

	if op.body != nil && len(op.body.fields) > 0 {
		o.RequestBody = &huma.RequestBody{
			Required: !op.bodyOptional,
			Content:  jsonContent(schemas.Schema(op.body.typ, true, op.id+"Body")),
		}
	}

	for status, codes := range op.refusals() {
		r := &huma.Response{
			Description: strings.Join(codes, ", "),
			Headers:     responseHeaders(),
			Content:     jsonContent(schemas.Schema(reflect.TypeFor[errorBody](), true, "Error")),
		}
		if status == http.StatusTooManyRequests || status == http.StatusConflict {
			r.Headers["Retry-After"] = &huma.Header{
				Description: "Seconds to wait, where that is known",
				Schema:      &huma.Schema{Type: "integer"},
			}
		}

		o.Responses[strconv.Itoa(status)] = r
	}

	return o
}

// refusals returns the error codes of the operation by status: all that it can answer, and none
// that it cannot.
func (op *operation) refusals() map[int][]string {
	out := map[int][]string{}

	add := func(status int, codes ...string) {
		for _, code := range codes {
			if !slices.Contains(out[status], code) {
				out[status] = append(out[status], code)
			}
		}
	}
	if op.access != noKey {
		add(http.StatusInternalServerError, "internal_error")
		add(http.StatusServiceUnavailable, "service_unavailable")
		add(
			http.StatusUnauthorized, "api_key_required", "api_key_invalid", "api_key_expired",
			"api_key_revoked",
		)
		add(http.StatusForbidden, "ip_not_allowed")
		add(http.StatusTooManyRequests, "rate_limited")

		if op.access == secretKey {
			add(http.StatusForbidden, "publishable_key_not_allowed")
		}

		if op.scope != "" {
			add(http.StatusForbidden, "scope_missing")
		}

		if op.testOnly {
			add(http.StatusForbidden, "test_mode_only")
		}
	}

	add(http.StatusBadRequest, "parameter_unknown", "parameter_invalid")

	if op.query.demands() || op.body != nil && op.body.demands() {
		add(http.StatusBadRequest, "parameter_missing")
	}

	if strings.Contains(op.path, "{") {
		add(http.StatusNotFound, "resource_missing")
	}

	if op.prepare != nil {
		add(http.StatusBadRequest, "body_invalid")
		add(http.StatusRequestEntityTooLarge, "body_too_large")
		add(http.StatusUnsupportedMediaType, "content_type_unsupported")
		add(http.StatusConflict, "changed_meanwhile")
	}

	if op.method == http.MethodPost {
		add(http.StatusBadRequest, "idempotency_key_invalid")
		add(http.StatusForbidden, "idempotency_key_not_yours")
		add(http.StatusConflict, "idempotency_request_in_progress")
		add(http.StatusUnprocessableEntity, "idempotency_key_reused")

		if op.idempotency == keyRequired {
			add(http.StatusBadRequest, "idempotency_key_required")
		}
	}

	for _, code := range op.codes {
		status, name, _ := strings.Cut(code, " ")

		n, err := strconv.Atoi(status)
		if err != nil {
			panic("httpapi: operation " + op.id + " lists the code " + code + " without a status")
		}

		add(n, name)
	}

	return out
}

func (op *operation) parameters(schemas huma.Registry) []*huma.Param {
	var out []*huma.Param

	for _, name := range []string{"id", "option_id"} {
		if strings.Contains(op.path, "{"+name+"}") {
			longest := maxParam
			out = append(
				out,
				&huma.Param{
					Name:     name,
					In:       "path",
					Required: true,
					Schema:   &huma.Schema{Type: "string", MaxLength: &longest},
				},
			)
		}
	}

	if op.method == http.MethodPost {
		longest := maxIdempotencyKey
		out = append(out, &huma.Param{
			Name:     "Idempotency-Key",
			In:       "header",
			Required: op.idempotency == keyRequired,
			Schema:   &huma.Schema{Type: "string", MaxLength: &longest, Pattern: "^[!-~]+$"},
			Description: "Sending the request again with the same key within 24 hours answers as the " +
				"first time and does nothing.",
		})
	}

	if op.paged {
		least, most, longest := 1.0, float64(maxLimit), maxParam
		out = append(
			out,
			&huma.Param{
				Name:   "limit",
				In:     "query",
				Schema: &huma.Schema{Type: "integer", Minimum: &least, Maximum: &most, Default: defaultLimit},
			},
			&huma.Param{
				Name:        "starting_after",
				In:          "query",
				Schema:      &huma.Schema{Type: "string", MaxLength: &longest},
				Description: "The next_cursor of the page before; send the same filters with it.",
			},
		)
	}

	for _, f := range reflect.VisibleFields(op.query.typ) {
		name := f.Tag.Get("query")
		if name == "" {
			continue
		}

		p := &huma.Param{
			Name:        name,
			In:          "query",
			Required:    f.Tag.Get("required") == "true",
			Description: descriptions[op.query.typ.Name()+"."+name],
		}
		p.Schema = huma.SchemaFromField(schemas, f, name)
		p.Schema.Description, p.Schema.Nullable = "", false

		if f.Type.Kind() == reflect.Slice { // separated by commas: style form, not exploded
			explode := false
			p.Explode = &explode
			p.Schema.Items.MaxLength = nil
		}

		if f.Type == reflect.TypeFor[time.Time]() {
			p.Schema = &huma.Schema{Type: "string", Format: "date-time"}
		}

		out = append(out, p)
	}

	return out
}

func responseHeaders() map[string]*huma.Header {
	return map[string]*huma.Header{"Request-Id": {Required: true, Schema: &huma.Schema{Type: "string"}}}
}

func jsonContent(s *huma.Schema) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{"application/json": {Schema: s}}
}

// schemaNames are the published names of types whose own name does not say enough.
var schemaNames = map[string]string{
	"invoice.Resource":         "Invoice",
	"invoice.OptionResource":   "InvoiceOption",
	"payments.PaymentResource": "Payment",
	"settlement.Resource":      "Settlement",
	"payout.Resource":          "Payout",
	"payout.RefundResource":    "Refund",
	"invoice.DepositResource":  "DepositAddress",
	"webhook.EndpointResource": "WebhookEndpoint",
	"webhook.DeliveryResource": "WebhookDelivery",
	"webhook.AttemptResource":  "DeliveryAttempt",
	"httpapi.errorBody":        "Error",
	"httpapi.errorDetail":      "ErrorDetail",
}

// schemaName names a schema: its published name, or that of its type; lists are named after what they hold.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}

	if name, ok := schemaNames[t.String()]; ok {
		return name
	}

	if strings.HasPrefix(t.Name(), "listing[") {
		data, _ := t.FieldByName("Data")
		return schemaName(data.Type.Elem(), hint) + "List"
	}

	name := huma.DefaultSchemaNamer(t, hint)

	return strings.TrimSuffix(strings.ToUpper(name[:1])+name[1:], "Resource")
}

// amounts are the fields that hold base units wherever they appear, except a Price's.
var amounts = []string{
	"amount",
	"amount_due",
	"amount_paid",
	"amount_detected",
	"min_amount",
	"gross",
	"fee_native",
	"fee_paid",
	"fee_carried",
	"required_native",
	"network_fees",
	"net_released",
	"max_network_fee",
	"network_fee",
	"balance",
	"reserved",
	"available",
}

// describe gives a type's fields their descriptions.
func describe(t reflect.Type, s *huma.Schema) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}

	name, _, _ := strings.Cut(t.Name(), "[")

	for field, p := range s.Properties {
		if text, ok := descriptions[name+"."+field]; ok {
			p.Description = text
		}
	}
}

// open completes a generated schema: amounts get their pattern, lists are never null, and an answer
// may have fields that a client does not know yet. Request bodies stay closed.
func open(name string, s *huma.Schema) {
	for field, p := range s.Properties {
		if p.Type == "array" {
			p.Nullable = false
		}
		// the bound is that of a map's values
		if values, ok := p.AdditionalProperties.(*huma.Schema); ok && p.MaxLength != nil {
			values.MaxLength, p.MaxLength = p.MaxLength, nil
		}

		if name != "Price" && p.Type == "string" && p.Pattern == "" && slices.Contains(amounts, field) {
			p.Pattern = "^(0|[1-9][0-9]{0,77})$"
		}
	}

	if s.Type == "object" && !strings.HasSuffix(name, "Body") {
		s.AdditionalProperties = nil
	}
}

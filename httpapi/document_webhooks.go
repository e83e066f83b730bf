package httpapi

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/seed-8ee7f392/payments/event"
)

// tagDescriptions describe the operations of each tag.
var tagDescriptions = map[string]string{
	"Deposit addresses": "Reusable addresses, such as one for each customer.",
	"Events":            "What happened, as it was sent to webhook endpoints.",
	"Invoices":          "What a payer owes, and how it may be paid.",
	"Payments":          "Transfers to addresses of invoices and to deposit addresses.",
	"Payouts":           "Money sent from the master wallets, and what these hold.",
	"Reference":         "Networks, assets, rates and this document.",
	"Refunds":           "Money sent back to payers.",
	"Settlements":       "How payments reach the master wallets.",
	"Test mode":         "Payments without a network.",
	"Webhooks":          "Endpoints that events are sent to, and the log of deliveries.",
}

// eventWebhooks describes the deliveries of every event type, for receivers.
func eventWebhooks(schemas huma.Registry) map[string]*huma.PathItem {
	all := map[string]*huma.PathItem{}

	for _, typ := range append(event.Types(), event.Ping) {
		body := schemas.Schema(eventSchema(typ), true, "Event")
		all[string(typ)] = &huma.PathItem{Post: &huma.Operation{
			OperationID: "on" + camelCase(string(typ)),
			Tags:        []string{"Events"},
			Summary:     "An event of type " + string(typ),
			Description: "The header Service-Signature holds t=<unix seconds>,v1=<hex>: HMAC-SHA256 of the time, " +
				"a dot and the raw body, with the endpoint's secret.",
			Parameters: []*huma.Param{{
				Name:     "Service-Signature",
				In:       "header",
				Required: true,
				Schema:   &huma.Schema{Type: "string"},
			}},
			RequestBody: &huma.RequestBody{Required: true, Content: jsonContent(body)},
			Responses: map[string]*huma.Response{
				"2XX": {Description: "It was handled"},
				"401": {Description: "The signature does not verify; it is sent again"},
			},
			Security: []map[string][]string{},
		}}
	}

	return all
}

// camelCase returns "invoice.payment_detected" as "InvoicePaymentDetected".
func camelCase(name string) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '.' || r == '_' }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}

	return b.String()
}

// openEnums replaces the lists of values in an answer's schema by a note. The lists grow within a version,
// and clients must accept unknown values (specification part 9); generated clients would refuse them.
func openEnums(name string, schema *huma.Schema) {
	if strings.HasSuffix(name, "Body") {
		return
	}

	openEnum(schema)

	for _, property := range schema.Properties {
		openEnum(property)

		if property.Items != nil {
			openEnum(property.Items)
		}
	}
}

func openEnum(schema *huma.Schema) {
	if len(schema.Enum) == 0 {
		return
	}

	if schema.Extensions == nil {
		schema.Extensions = map[string]any{}
	}

	schema.Extensions["x-extensible-enum"], schema.Enum = schema.Enum, nil
}

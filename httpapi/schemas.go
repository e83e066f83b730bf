package httpapi

import (
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// schemaNames are the published names of Go types whose own name is ambiguous.
var schemaNames = map[string]string{
	"invoice.Resource":         "Invoice",
	"invoice.OptionResource":   "InvoiceOption",
	"engine.PaymentResource":   "Payment",
	"settlement.Resource":      "Settlement",
	"payout.Resource":          "Payout",
	"payout.RefundResource":    "Refund",
	"invoice.DepositResource":  "DepositAddress",
	"webhook.EndpointResource": "WebhookEndpoint",
	"webhook.DeliveryResource": "WebhookDelivery",
	"webhook.AttemptResource":  "DeliveryAttempt",
	"engine.EventPayment":      "EventPayment",
	"engine.EventDeposit":      "EventDeposit",
	"httpapi.eventRequest":     "EventResourceRequestStruct",
	"httpapi.errorBody":        "Error",
	"httpapi.errorDetail":      "ErrorDetail",
}

// schemaName returns the published name of a Go type's schema. A list is its entries' name with "List".
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

	for _, generic := range []struct{ prefix, suffix string }{{"eventOf[", "Event"}, {"dataOf[", "EventData"}} {
		if strings.HasPrefix(t.Name(), generic.prefix) {
			return eventSchemaName(t) + generic.suffix
		}
	}

	name := huma.DefaultSchemaNamer(t, hint)

	return strings.TrimSuffix(strings.ToUpper(name[:1])+name[1:], "Resource")
}

// eventSchemaName returns the object name of a type of eventOf or dataOf, such as "Invoice"; "" for any
// object.
func eventSchemaName(t reflect.Type) string {
	object, ok := t.FieldByName("Object")
	if !ok {
		data, _ := t.FieldByName("Data")
		object, _ = data.Type.FieldByName("Object")
	}

	if object.Type.Kind() == reflect.Map {
		return ""
	}

	return strings.TrimPrefix(schemaName(object.Type, ""), "Event")
}

// amountFields are the names of fields in base units, in every schema but Price.
var amountFields = []string{
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
	"residue_in",
	"residue_out",
	"net_released",
	"max_network_fee",
	"network_fee",
	"balance",
	"reserved",
	"available",
}

// nullableFields are the fields that hold an object or null; the generator knows only values.
var nullableFields = []string{"Balance.frozen"}

// setDescriptions sets the descriptions of a type's fields.
func setDescriptions(t reflect.Type, schema *huma.Schema) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}

	name, _, _ := strings.Cut(t.Name(), "[")

	for field, property := range schema.Properties {
		if text, ok := descriptions[name+"."+field]; ok {
			property.Description = text
		}
	}
}

// completeSchema adds what the generator omits. Amounts have a pattern, lists are never null, and answers may
// have fields that a client does not know. Request bodies have no other fields.
func completeSchema(name string, schema *huma.Schema) {
	for field, property := range schema.Properties {
		if slices.Contains(nullableFields, name+"."+field) {
			schema.Properties[field] = &huma.Schema{
				OneOf:       []*huma.Schema{{Ref: property.Ref}, {Type: "null"}},
				Description: property.Description,
			}

			continue
		}

		if property.Type == "array" {
			property.Nullable = false
		}

		// The tag maxLength of a map bounds its values.
		if values, ok := property.AdditionalProperties.(*huma.Schema); ok && property.MaxLength != nil {
			values.MaxLength, property.MaxLength = property.MaxLength, nil
		}

		isAmount := name != "Price" && slices.Contains(amountFields, field)
		if isAmount && property.Type == "string" && property.Pattern == "" {
			property.Pattern = "^(0|[1-9][0-9]{0,77})$"
		}
	}

	if schema.Type == "object" && !strings.HasSuffix(name, "Body") {
		schema.AdditionalProperties = nil
	}
}

// bound sets the bounds of the names in a map, which are in the tag keyMaxLength.
func bound(t reflect.Type, schema *huma.Schema) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}

	if t.Kind() != reflect.Struct {
		return
	}

	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		most := tagInt(f, "keyMaxLength")

		if property := schema.Properties[name]; property != nil && most > 0 {
			property.Extensions = map[string]any{
				"propertyNames": map[string]any{"minLength": 1, "maxLength": most},
			}
		}
	}
}

// descriptions are the OpenAPI descriptions of fields and query parameters, by Go type and wire name.
var descriptions = map[string]string{
	"createDepositBody.name":     "For people, such as your customer's number",
	"createDepositBody.metadata": "At most 50 keys of 1 to 40 characters",

	"updateDepositBody.metadata": "Replaces all keys",
	"updateDepositBody.status":   "A disabled address is still watched and credited; it is only no longer handed out",

	"depositQuery.status":  "One or several, separated by commas",
	"depositQuery.network": "Slugs, separated by commas",
	"depositQuery.q":       "Name, address or id: whole or its beginning, without case",

	"errorDetail.code":       "Stable name of the rule that refused",
	"errorDetail.message":    "A sentence for a person",
	"errorDetail.param":      "The input field at fault",
	"errorDetail.request_id": "The same as the Request-Id header",

	"eventOf.request":  "The API request that caused it; empty when none did",
	"eventOf.sequence": "Counts up per object: puts its events in order",

	"dataOf.object": "The object as the event left it",

	"eventQuery.type":           "One or several, separated by commas",
	"eventQuery.created_after":  "Inclusive",
	"eventQuery.created_before": "Exclusive",

	"createInvoiceBody.price": "What is owed in money; makes a fiat invoice",
	"createInvoiceBody.options": "How it may be paid. Left out with a price: with every asset that is " +
		"enabled, priced at that moment or not. Required without one, each with its amount",
	"createInvoiceBody.order_id": "The merchant's own reference",
	"createInvoiceBody.metadata": "At most 50 keys of 1 to 40 characters",
	"createInvoiceBody.tolerance_bps": "How much too little still pays it, in ten-thousandths. Defaults to the " +
		"account's setting",
	"createInvoiceBody.expires_in": "Seconds. Defaults to 86400",
	"createInvoiceBody.pre_selection_expires_in": "Seconds, at most expires_in. Defaults to 7200 or expires_in, " +
		"whichever is less",
	"createInvoiceBody.success_url": "https; http only in test mode",
	"createInvoiceBody.cancel_url":  "https; http only in test mode",

	"priceBody.currency": "ISO 4217",
	"priceBody.amount":   "Above 0, at most 8 decimal places",

	"optionBody.amount": "Base units; only without a price",

	"invoiceQuery.status":         "One or several, separated by commas",
	"invoiceQuery.network":        "Slugs, separated by commas: invoices with an option there",
	"invoiceQuery.q":              "Id, order id or customer e-mail: whole or its beginning, without case",
	"invoiceQuery.created_after":  "Inclusive",
	"invoiceQuery.created_before": "Exclusive",

	"invoicePaymentsQuery.status": "One or several, separated by commas",

	"listing.next_cursor": "Pass it as starting_after to read on; null on the last page",

	"paymentQuery.status":          "One or several, separated by commas",
	"paymentQuery.network":         "Slugs, separated by commas",
	"paymentQuery.q":               "Transaction hash, address or id: whole or its beginning, without case",
	"paymentQuery.detected_after":  "Inclusive",
	"paymentQuery.detected_before": "Exclusive",

	"settlementQuery.status":         "One or several, separated by commas",
	"settlementQuery.network":        "Slugs, separated by commas",
	"settlementQuery.created_after":  "Inclusive",
	"settlementQuery.created_before": "Exclusive",

	"createPayoutBody.amount": "What the destination receives, in base units",
	"createPayoutBody.max_network_fee": "The most that the network may take, in base units of the native coin. " +
		"Defaults to what it asks for now, with a margin",
	"createPayoutBody.memo": "The merchant's own note; never sent to the network",

	"createRefundBody.invoice_id": "Either this or payment_id",
	"createRefundBody.amount":     "Base units. Defaults to all that was received and not yet refunded",
	"createRefundBody.destination": "Required: an exchange pays from hot wallets, so the sender's address " +
		"is never assumed",
	"createRefundBody.metadata": "At most 50 keys of 1 to 40 characters",

	"payoutQuery.status":         "One or several, separated by commas",
	"payoutQuery.network":        "Slugs, separated by commas",
	"payoutQuery.q":              "Transaction hash, destination or id: whole or its beginning, without case",
	"payoutQuery.created_after":  "Inclusive",
	"payoutQuery.created_before": "Exclusive",

	"refundQuery.status":         "One or several, separated by commas",
	"refundQuery.created_after":  "Inclusive",
	"refundQuery.created_before": "Exclusive",

	"balanceResource.address":      "The master wallet",
	"balanceResource.balance":      "On the network, at block_height",
	"balanceResource.reserved":     "Promised to payouts, refunds and releases",
	"balanceResource.block_height": "0 before the balance is read, and again after a fork took its block",
	"balanceResource.frozen":       "Why nothing new is paid from the wallet; null while it is not frozen",

	"frozenResource.tx_hash": "The transaction that is not on record",

	"balanceQuery.network": "Slugs, separated by commas",

	"networkResource.explorer_tx_url":      "Contains {txHash}",
	"networkResource.explorer_address_url": "Contains {address}",

	"rateResource.rate": "Price of one whole unit of base",

	"assetQuery.network": "Slug",

	"rateQuery.base":  "Symbol of an asset",
	"rateQuery.quote": "Defaults to USD",

	"simulateInvoiceBody.option_id": "Defaults to the selected option, or the first",
	"simulateInvoiceBody.amount":    "Base units. Defaults to what the outcome needs",

	"simulateDepositBody.amount": "Base units; required for a new payment",

	"createEndpointBody.url":    "https; http only in test mode",
	"createEndpointBody.events": "Event types, or the single entry *",

	"rotateSecretBody.overlap_hours": "How long the previous secret signs along. Defaults to 24",

	"deliveryQuery.status": "One or several, separated by commas",

	"Price.currency": "ISO 4217 code",
	"Price.amount":   "Decimal with at most 8 places",

	"Resource.tx_hash":          "Payouts that left in one transaction share it",
	"Resource.amount_delivered": "What arrived, in base units; there when it is less than the amount",
	"Resource.network_fee": "What the network took for this payout: its share, where the transaction pays others " +
		"too",
}

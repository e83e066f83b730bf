package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/seed-8ee7f392/payments/fault"
)

// errorBody is what every refused or failed request is answered with.
type errorBody struct {
	Error errorDetail `json:"error"`
}

type errorDetail struct {
	Type      errorType `json:"type"`
	Code      string    `json:"code" example:"parameter_invalid"`
	Message   string    `json:"message"`
	Param     string    `json:"param,omitempty" example:"options[0].amount"`
	RequestID string    `json:"request_id"`
	DocURL    string    `json:"doc_url,omitempty" format:"uri"`
}

// errorType is the class of an error (decisions part 9).
type errorType string

// Schema lists the types.
func (errorType) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{
		Type: "string",
		Enum: []any{
			"invalid_request",
			"authentication",
			"permission",
			"not_found",
			"conflict",
			"idempotency",
			"rate_limited",
			"unavailable",
			"api_error",
		},
	}
}

// problem is an error as HTTP knows it.
type problem struct {
	status               int
	kind                 errorType
	code, message, param string
}

// statusOf are the codes whose status does not follow from their word.
var statusOf = map[string]int{
	"body_invalid":             http.StatusBadRequest,
	"body_too_large":           http.StatusRequestEntityTooLarge,
	"content_type_unsupported": http.StatusUnsupportedMediaType,
	"idempotency_key_required": http.StatusBadRequest,
	"idempotency_key_invalid":  http.StatusBadRequest,
	"id_invalid":               http.StatusBadRequest,
	"insufficient_balance":     http.StatusUnprocessableEntity,
	"refund_exceeds_payment":   http.StatusUnprocessableEntity,
	"refund_payment_required":  http.StatusUnprocessableEntity,
	"method_not_allowed":       http.StatusMethodNotAllowed,
}

// shownUnavailable are the codes of fault.Unavailable whose message is written for API callers.
// What others say about databases and nodes is for the log.
var shownUnavailable = map[string]bool{"price_unavailable": true}

// problemOf classifies an error by its outermost fault word. Invalid is 400 when the request cannot be
// understood (codes parameter_…) and 422 when it is understood and refused.
func problemOf(err error) problem {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		f = &fault.Error{Word: wordOf(err)}
	}

	p := problem{code: f.Code, message: f.Message, param: f.Param}
	switch {
	case errors.Is(f.Word, fault.Invalid):
		p.status, p.kind = http.StatusUnprocessableEntity, "invalid_request"
		if strings.HasPrefix(f.Code, "parameter_") {
			p.status = http.StatusBadRequest
		}
	case errors.Is(f.Word, fault.Unauthenticated):
		p.status, p.kind = http.StatusUnauthorized, "authentication"
	case errors.Is(f.Word, fault.Forbidden):
		p.status, p.kind = http.StatusForbidden, "permission"
	case errors.Is(f.Word, fault.NotFound):
		p.status, p.kind = http.StatusNotFound, "not_found"
	case errors.Is(f.Word, fault.State):
		p.status, p.kind = http.StatusConflict, "conflict"
	case errors.Is(f.Word, fault.Conflict) || errors.Is(f.Word, fault.Duplicate):
		p.status, p.kind = http.StatusConflict, "conflict"
		if !strings.HasPrefix(p.code, "idempotency_") { // which of the rows it was is no use to a caller
			p.code, p.message, p.param = "changed_meanwhile", "somebody else changed the object at the "+
				"same time: send the request again", ""
		}
	case errors.Is(f.Word, fault.Limited):
		p.status, p.kind = http.StatusTooManyRequests, "rate_limited"
	case errors.Is(f.Word, fault.Unsupported):
		p.status, p.kind = http.StatusUnprocessableEntity, "invalid_request"
	case errors.Is(f.Word, fault.Unavailable) || errors.Is(f.Word, fault.Stopped) || errors.Is(f.Word, fault.LeaseLost):
		p.status, p.kind = http.StatusServiceUnavailable, "unavailable"
		if !shownUnavailable[f.Code] {
			p.code, p.message, p.param = "service_unavailable", "something that this service depends on "+
				"gives no answer: nothing was decided, try again later", ""
		}
	default:
		return problem{
			http.StatusInternalServerError,
			"api_error",
			"internal_error",
			"something went wrong here: quote the request id when you ask about it",
			"",
		}
	}

	if status, ok := statusOf[p.code]; ok {
		p.status = status
		if status < http.StatusInternalServerError && p.kind == "conflict" {
			p.kind = "invalid_request"
		}
	}

	if strings.HasPrefix(p.code, "idempotency_") {
		p.kind = "idempotency"
	}

	if p.code == "" {
		p.code = string(p.kind)
	}

	if p.message == "" {
		p.message = f.Word.Error()
	}

	return p
}

// wordOf is the fault word of an error that carries one without a *fault.Error.
func wordOf(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fault.Unavailable
	}

	for _, word := range []error{
		fault.NotFound, fault.State, fault.Conflict, fault.Duplicate, fault.Unauthenticated, fault.Forbidden,
		fault.Limited,
		fault.Unavailable, fault.Stopped, fault.LeaseLost, fault.Unsupported, fault.Invalid,
	} {
		if errors.Is(err, word) {
			return word
		}
	}

	return nil
}

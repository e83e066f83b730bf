package httpapi

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/seed-8ee7f392/payments/fault"
)

// errorBody is the JSON of every error (decisions part 9).
type errorBody struct {
	Error errorDetail `json:"error"`
}

type errorDetail struct { // spec D9.1
	Type      errorType `json:"type"`
	Code      string    `json:"code" example:"parameter_invalid"`
	Message   string    `json:"message"`
	Param     string    `json:"param,omitempty" example:"options[0].amount"`
	RequestID string    `json:"request_id"`
	DocURL    string    `json:"doc_url,omitempty" format:"uri"`
}

// errorType is the class of an error (decisions part 9).
type errorType string

// Schema returns the OpenAPI enum of error types.
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

// problem is the status and content of an error body.
type problem struct {
	status               int
	kind                 errorType
	code, message, param string
}

// codeStatus is the status of codes whose status does not follow from their kind.
var codeStatus = map[string]int{
	"amount_too_large":         http.StatusUnprocessableEntity,
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

// publicUnavailable are the codes of fault.Unavailable whose message is written for API callers. Messages
// about databases and nodes are only logged.
var publicUnavailable = map[string]bool{"price_unavailable": true}

// problemOf returns the status, type, code and message of an error, by the kind of its outermost fault.Error.
func problemOf(err error) problem {
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		f = &fault.Error{Kind: kindOf(err)}
	}

	p := problem{code: f.Code, message: f.Message, param: f.Param}

	p.status, p.kind = classify(f)
	if p.kind == "api_error" {
		return internalProblem()
	}

	p.hideDetails(f)

	if status, ok := codeStatus[p.code]; ok {
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
		p.message = f.Kind.Error()
	}

	return p
}

// classify returns the status and type of an error's kind. Invalid is 400 when the request cannot be
// understood (codes parameter_…) and 422 when it is understood and refused.
func classify(f *fault.Error) (int, errorType) { // spec 7.1
	switch {
	case errors.Is(f.Kind, fault.Invalid):
		if strings.HasPrefix(f.Code, "parameter_") {
			return http.StatusBadRequest, "invalid_request"
		}

		return http.StatusUnprocessableEntity, "invalid_request"
	case errors.Is(f.Kind, fault.Unauthenticated):
		return http.StatusUnauthorized, "authentication"
	case errors.Is(f.Kind, fault.Forbidden):
		return http.StatusForbidden, "permission"
	case errors.Is(f.Kind, fault.NotFound):
		return http.StatusNotFound, "not_found"
	case errors.Is(f.Kind, fault.State), isRowConflict(f):
		return http.StatusConflict, "conflict"
	case errors.Is(f.Kind, fault.Limited):
		return http.StatusTooManyRequests, "rate_limited"
	case errors.Is(f.Kind, fault.Unsupported):
		return http.StatusUnprocessableEntity, "invalid_request"
	case isUnavailable(f):
		return http.StatusServiceUnavailable, "unavailable"
	}

	return http.StatusInternalServerError, "api_error"
}

// isRowConflict reports whether another transaction changed or created the same row first.
func isRowConflict(f *fault.Error) bool {
	return errors.Is(f.Kind, fault.Conflict) || errors.Is(f.Kind, fault.Duplicate)
}

// isUnavailable reports whether a dependency of the service is unavailable.
func isUnavailable(f *fault.Error) bool {
	return errors.Is(f.Kind, fault.Unavailable) || errors.Is(f.Kind, fault.Stopped) ||
		errors.Is(f.Kind, fault.LeaseLost)
}

// internalProblem is an error without a kind: a defect of this service.
func internalProblem() problem { // spec D9.2
	return problem{
		status:  http.StatusInternalServerError,
		kind:    "api_error",
		code:    "internal_error",
		message: "something went wrong here: quote the request id when you ask about it",
	}
}

// hideDetails replaces a code and message that name rows, databases or nodes.
func (p *problem) hideDetails(f *fault.Error) {
	switch {
	case p.kind == "conflict" && isRowConflict(f) && !strings.HasPrefix(p.code, "idempotency_"):
		p.code, p.param = "changed_meanwhile", ""
		p.message = "somebody else changed the object at the same time: send the request again"
	case p.kind == "unavailable" && !publicUnavailable[f.Code]:
		p.code, p.param = "service_unavailable", ""
		p.message = "something that this service depends on gives no answer: nothing was decided, " +
			"try again later"
	}
}

// kindOf returns the fault kind of an error that wraps a kind without a *fault.Error; nil if it has none.
func kindOf(err error) error {
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fault.Unavailable
	}

	kinds := []error{
		fault.NotFound,
		fault.State,
		fault.Conflict,
		fault.Duplicate,
		fault.Unauthenticated,
		fault.Forbidden,
		fault.Limited,
		fault.Unavailable,
		fault.Stopped,
		fault.LeaseLost,
		fault.Unsupported,
		fault.Invalid,
	}

	i := slices.IndexFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
	if i < 0 {
		return nil
	}

	return kinds[i]
}

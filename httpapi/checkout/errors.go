package checkout

import (
	"cmp"
	"errors"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

var errMethod = errors.New("method not allowed")

// errorView is the data of error.html.
type errorView struct {
	pageView
	// Back links to the invoice; "" when there is none.
	Back string
}

// writeError answers an error as a page or as JSON. Statuses from 500 are logged; their cause is not shown.
func (r *request) writeError(err error) {
	// The client is gone, unless net/http ended the context because the body came too slowly.
	if r.Context().Err() != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return
	}

	status, key := errorStatus(err)

	switch status {
	case http.StatusTooManyRequests:
		r.w.Header().Set("Retry-After", strconv.Itoa(max(int(fault.RetryAfter(err)/time.Second), 1)))
	case http.StatusServiceUnavailable:
		r.w.Header().Set("Retry-After", "10")
	}

	if status >= http.StatusInternalServerError {
		r.p.log.ErrorContext(
			r.Context(), "checkout request failed",
			"invoice", r.id, "action", r.action, "error", err,
		)
	}

	if r.wantsJSON() {
		r.writeErrorJSON(err, status, key)
		return
	}

	r.writeErrorPage(status, key)
}

// errorStatus returns the HTTP status of an error and the key of its messages error.<key>.….
func errorStatus(err error) (status int, key string) {
	switch {
	case errors.Is(err, errMethod):
		return http.StatusMethodNotAllowed, "method"
	case errors.Is(err, fault.NotFound):
		return http.StatusNotFound, "not_found"
	case errors.Is(err, fault.Limited):
		return http.StatusTooManyRequests, "limited"
	case errors.Is(err, fault.Invalid):
		return http.StatusUnprocessableEntity, "request"
	case errors.Is(err, fault.State), errors.Is(err, fault.Conflict):
		return http.StatusConflict, "request"
	case errors.Is(err, fault.Unavailable), errors.Is(err, fault.Stopped), errors.Is(err, fault.Unsupported):
		return http.StatusServiceUnavailable, "unavailable"
	}

	return http.StatusInternalServerError, "unavailable"
}

// writeErrorJSON writes the error's code and message; a status of 500 has the code "internal".
func (r *request) writeErrorJSON(err error, status int, key string) {
	code := cmp.Or(fault.Code(err), key)
	if status == http.StatusInternalServerError {
		code = "internal"
	}

	detail := map[string]string{"code": code, "message": r.lang.message("error." + key + ".message")}
	if err := r.writeJSON(status, map[string]any{"error": detail}); err != nil {
		r.logUnwritten(err)
	}
}

// writeErrorPage writes error.html, or plain text when the template fails.
func (r *request) writeErrorPage(status int, key string) {
	view := errorView{
		pageView: pageView{
			Lang:     r.lang.Tag,
			T:        r.lang.text,
			Root:     r.root(),
			Headline: r.lang.message("error." + key + ".headline"),
			Message:  r.lang.message("error." + key + ".message"),
			Tone:     toneOff,
		},
	}

	view.Title = view.Headline
	if isID(r.id) && status != http.StatusNotFound {
		view.Back = view.Root + r.link + langQuery(r.requestedLang())
	}

	if err := r.writePage(status, "error.html", view); err != nil {
		r.p.log.ErrorContext(r.Context(), "checkout error page not rendered", "error", err)
		http.Error(r.w, view.Headline, status)
	}
}

// isPayerError reports whether a payer can cause or meet the error; others are defects.
func isPayerError(err error) bool {
	kinds := []error{
		fault.Invalid,
		fault.State,
		fault.Conflict,
		fault.NotFound,
		fault.Unavailable,
		fault.Unsupported,
		fault.Stopped,
	}

	return slices.ContainsFunc(kinds, func(kind error) bool { return errors.Is(err, kind) })
}

// noticeOf returns the key of the message notice.<key> for a form's error.
func noticeOf(err error) string {
	switch code := fault.Code(err); {
	case code == "price_unavailable" || code == "amount_too_small":
		return code
	case errors.Is(err, fault.State), errors.Is(err, fault.Conflict), errors.Is(err, fault.NotFound):
		return "changed"
	}

	return "unavailable"
}

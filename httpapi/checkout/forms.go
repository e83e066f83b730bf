package checkout

import (
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/invoice"
)

// selectOption selects an option, or renews its quote.
func (r *request) selectOption() error {
	if _, err := r.invoice(); err != nil {
		return err
	}

	err := r.p.backend.Select(r.Context(), r.id, r.PostForm.Get("option"))
	switch {
	case err == nil:
		return r.answerForm(nil, nil)
	case errors.Is(err, fault.NotFound):
		// An unknown option returns to the page.
	case !isPayerError(err):
		return err
	}

	return r.answerForm(url.Values{"notice": {noticeOf(err)}}, err)
}

// maxHash is the longest transaction hash in characters; Solana's signatures have up to 88.
const maxHash = 128

// hint looks up the transaction whose hash the payer entered.
func (r *request) hint() error { // spec D10.3
	hash := strings.TrimSpace(r.PostForm.Get("tx_hash"))

	inv, err := r.invoice()
	if err != nil {
		return err
	}

	answer := "invalid"

	if looksLikeHash(hash) {
		if err := r.allowHint(inv.ID); err != nil {
			return err
		}

		if answer, err = r.lookUpHint(inv.ID, hash); err != nil {
			return err
		}
	}

	if r.wantsJSON() {
		return r.writeJSON(http.StatusOK, map[string]string{"hint": answer})
	}

	q := url.Values{"hint": {answer}}
	if len(hash) <= maxHash {
		q.Set("tx", hash)
	}

	return r.answerForm(q, nil)
}

// allowHint charges a look-up to the budgets of the invoice, of the client's address, and of this process. A
// client over a budget of its own charges nothing to the budget of all.
func (r *request) allowHint(invoiceID string) error {
	t := r.p.limits
	if err := r.allow("checkout/hints/"+invoiceID, perSecond(t.HintsPerInvoice)); err != nil {
		return err
	}

	if err := r.allow("checkout/hints of/"+r.client, perSecond(t.HintsPerClient)); err != nil {
		return err
	}

	return r.take(r.p.own, "hints", perSecond(t.Hints))
}

// lookUpHint returns the key of the message hint.<key>: a HintResult, "invalid" or "unavailable".
func (r *request) lookUpHint(invoiceID, hash string) (string, error) {
	result, err := r.p.backend.Hint(r.Context(), invoiceID, hash)
	switch {
	case err == nil:
		return string(result), nil
	case errors.Is(err, fault.NotFound):
		return string(invoice.HintNotFound), nil
	case errors.Is(err, fault.Invalid):
		return "invalid", nil
	case !isPayerError(err):
		return "", err
	}

	r.p.log.WarnContext(r.Context(), "hint not looked up", "invoice", invoiceID, "error", err)

	return "unavailable", nil
}

// looksLikeHash reports whether a text could be any network's transaction hash, without asking a node.
func looksLikeHash(s string) bool {
	if len(s) < 32 || len(s) > maxHash {
		return false
	}

	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}

	return true
}

// simulate makes a payment in test mode. For a live invoice it is fault.NotFound.
func (r *request) simulate() error {
	inv, err := r.invoice()
	if err != nil {
		return err
	}

	if inv.Owner.Livemode {
		return fault.Missing("invoice in test mode", inv.ID)
	}

	outcome := invoice.Outcome(r.PostForm.Get("outcome"))

	err = r.p.backend.Simulate(r.Context(), inv, outcome)
	switch {
	case err == nil:
		return r.answerForm(nil, nil)
	case !isPayerError(err):
		return err
	}

	return r.answerForm(url.Values{"notice": {noticeOf(err)}}, err)
}

// answerForm redirects to the page with the query q. A client that wants JSON gets the state, or failure.
func (r *request) answerForm(q url.Values, failure error) error {
	if r.wantsJSON() {
		if failure != nil {
			return failure
		}

		s, err := r.read()
		if err != nil {
			return err
		}

		return r.writeJSON(http.StatusOK, s)
	}

	if q == nil {
		q = url.Values{}
	}

	if lang := r.requestedLang(); lang != "" {
		q.Set("lang", lang)
	}

	r.redirect("../"+r.link, q, http.StatusSeeOther)

	return nil
}

// redirect redirects to a relative address. http.Redirect would make it absolute, which is wrong under a
// stripped prefix.
func (r *request) redirect(to string, q url.Values, status int) {
	if len(q) > 0 {
		to += "?" + q.Encode()
	}

	r.w.Header().Set("Location", to)
	r.w.WriteHeader(status)
}

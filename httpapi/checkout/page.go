package checkout

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"

	"github.com/seed-8ee7f392/payments/invoice"
)

// page writes the invoice's page.
func (r *request) page() error {
	inv, err := r.invoice()
	if err != nil {
		return err
	}

	f, err := r.p.loadSnapshot(r.Context(), inv)
	if err != nil {
		return err
	}

	query := r.pageQuery()

	state := stateOf(f)
	if state.CanSelect && (query.Choosing || state.Phase == phaseChoose) && inv.Kind == invoice.Fiat {
		f.Prices = r.p.prices(r.Context(), inv)
		state = stateOf(f)
	}

	view := newView(state, r.lang, r.p.site.languages, query)

	return r.writePage(http.StatusOK, "page.html", view)
}

// pageQuery parses the page's query string; unknown values are ignored.
func (r *request) pageQuery() pageQuery {
	q := r.URL.Query()

	query := pageQuery{Choosing: q.Get("choose") != "", Lang: r.requestedLang(), Link: r.link}
	if key := q.Get("notice"); knownNotices[key] {
		query.Notice = key
	}

	if key := q.Get("hint"); knownHints[key] {
		query.HintAnswer = key
	}

	if hash := q.Get("tx"); len(hash) <= maxHash {
		query.HintHash = hash
	}

	return query
}

// requestedLang returns the tag of the language that the query names, or "".
func (r *request) requestedLang() string {
	if l := r.p.site.languages.byTag(r.URL.Query().Get("lang")); l != nil {
		return l.Tag
	}

	return ""
}

// state writes the JSON of the State from which the page is made.
func (r *request) state() error {
	s, err := r.read()
	if err != nil {
		return err
	}

	return r.writeJSON(http.StatusOK, s)
}

// knownNotices and knownHints are the messages that the page's query may select.
var (
	knownNotices = map[string]bool{
		"price_unavailable": true,
		"amount_too_small":  true,
		"changed":           true,
		"unavailable":       true,
	}
	knownHints = map[string]bool{
		string(invoice.HintFound):    true,
		string(invoice.HintForeign):  true,
		string(invoice.HintFailed):   true,
		string(invoice.HintNotFound): true,
		string(invoice.HintUnusable): true,
		"invalid":                    true,
		"unavailable":                true,
	}
)

// read returns the state of an invoice. It has estimates while no option is selected.
func (r *request) read() (pageState, error) {
	p, ctx := r.p, r.Context()

	inv, err := r.invoice()
	if err != nil {
		return pageState{}, err
	}

	f, err := p.loadSnapshot(ctx, inv)
	if err != nil {
		return pageState{}, err
	}

	s := stateOf(f)
	if s.Phase == phaseChoose && inv.Kind == invoice.Fiat {
		f.Prices = p.prices(ctx, inv)
		s = stateOf(f)
	}

	return s, nil
}

// writePage renders a template and writes it.
func (r *request) writePage(status int, name string, data any) error {
	var b bytes.Buffer
	if err := r.p.site.templates.ExecuteTemplate(&b, name, data); err != nil {
		return err
	}

	h := r.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Language", r.lang.Tag)
	h.Set("Vary", "Accept-Language")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	r.w.WriteHeader(status)

	_, err := r.w.Write(b.Bytes())
	r.logUnwritten(err)

	return nil
}

// writeJSON writes a value as JSON.
func (r *request) writeJSON(status int, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}

	r.w.Header().Set("Content-Type", "application/json")
	r.w.WriteHeader(status)

	_, err = r.w.Write(append(b, '\n'))
	r.logUnwritten(err)

	return nil
}

// logUnwritten logs the error of writing an answer, which means that the client is gone.
func (r *request) logUnwritten(err error) {
	if err != nil {
		r.p.log.DebugContext(r.Context(), "checkout answer not written", "invoice", r.id, "error", err)
	}
}

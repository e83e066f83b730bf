package checkout

import (
	"bytes"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

// logo serves the logo of the merchant's account.
func (r *request) logo() error { // spec D10.10
	inv, err := r.invoice()
	if err != nil {
		return err
	}

	profile, err := r.p.merchant(r.Context(), inv.Owner.AccountID)
	if err != nil {
		return err
	}

	if profile.LogoVersion == "" {
		return fault.Missing("logo of invoice", inv.ID)
	}

	h := r.w.Header()
	h.Set("Content-Type", profile.logoType)
	h.Set("Cache-Control", "private, max-age=86400")
	h.Set("ETag", `"`+profile.LogoVersion+`"`)
	http.ServeContent(r.w, r.Request, "", time.Time{}, bytes.NewReader(profile.logo))

	return nil
}

// asset serves a file of assets/ by its hashed name; the browser may keep it for a year.
func (r *request) asset(name string) {
	a, ok := r.p.site.assets[name]
	if !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
		r.w.WriteHeader(http.StatusNotFound)
		return
	}

	h := r.w.Header()
	h.Set("Content-Type", a.contentType)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	h.Set("Vary", "Accept-Encoding")
	h.Set("X-Robots-Tag", "noindex")

	body := a.plain
	if a.gzip != nil && acceptsGzip(r.Header.Get("Accept-Encoding")) {
		h.Set("Content-Encoding", "gzip")

		body = a.gzip
	}

	h.Set("Content-Length", strconv.Itoa(len(body)))

	if r.Method == http.MethodHead {
		return
	}

	_, err := r.w.Write(body)
	r.logUnwritten(err)
}

// acceptsGzip reports whether an Accept-Encoding header allows gzip (RFC 9110 section 12.5.3).
func acceptsGzip(header string) bool {
	for item := range strings.SplitSeq(header, ",") {
		name, params, _ := strings.Cut(strings.TrimSpace(item), ";")
		if strings.TrimSpace(name) == "gzip" && weight(params) > 0 {
			return true
		}
	}

	return false
}

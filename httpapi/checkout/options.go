package checkout

import (
	"fmt"
	"io/fs"
	"net/netip"
	"strings"
	"unicode"

	"github.com/seed-8ee7f392/payments/store"
)

// Options change the look of the page and its access rules. The zero value and nil give the built-in page.
type Options struct {
	// Files replaces files of the page by those of the same name, and adds languages and assets:
	//
	//	assets/brand.css        none is built in: rules that come after the stylesheet's, such as other colours
	//	assets/checkout.css     the stylesheet
	//	assets/checkout.js      the script
	//	assets/icon.svg         the picture in the browser's tab
	//	assets/*                any other file that templates and stylesheets refer to
	//	lang/<tag>.json         messages of a language, one by one; a new language falls back to English for others
	//	page.html, error.html   the templates of the same names (html/template); their data is a pageView
	//
	// It is read once. The browser refuses inline styles and scripts, and files of other hosts.
	Files fs.FS

	// FrameAncestors are the sources that may frame the page, as in Content-Security-Policy:
	// "https://shop.example.com". Defaults to none.
	FrameAncestors []string

	// TrustedProxies are the peers whose forwarding header is trusted. Defaults to none: the client
	// is the peer.
	TrustedProxies []netip.Prefix

	// ForwardedHeader is the trusted proxies' header: a list of addresses, the latest hop last. Defaults to
	// X-Forwarded-For.
	ForwardedHeader string

	// Limiter limits requests; a store/redis limiter is shared by many processes. Defaults to one in memory.
	Limiter store.Limiter
}

// policy returns the Content-Security-Policy of every answer.
func (o *Options) policy() (string, error) { // spec D10.7
	ancestors := "'none'"

	for _, a := range o.FrameAncestors {
		if a == "" || strings.ContainsAny(a, ";,") || strings.ContainsFunc(a, unicode.IsSpace) {
			return "", fmt.Errorf("FrameAncestors: %q is not one source such as https://shop.example.com", a)
		}
	}

	if len(o.FrameAncestors) > 0 {
		ancestors = strings.Join(o.FrameAncestors, " ")
	}

	return "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; " +
		"connect-src 'self'; " +
		"form-action 'self'; base-uri 'none'; frame-ancestors " + ancestors, nil
}

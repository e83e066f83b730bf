package checkout

import (
	"fmt"
	"io/fs"
	"net/netip"
	"strings"
	"unicode"

	"github.com/seed-8ee7f392/payments/store"
)

// Options change how the page looks and who may do what. The zero value, and nil, is the built-in page.
type Options struct {
	// Files replaces files of the page by those of the same name, and adds languages and assets:
	//
	//	assets/brand.css        there is none built in: rules that come after the stylesheet's, such as other colours
	//	assets/checkout.css     the stylesheet
	//	assets/checkout.js      the script
	//	assets/icon.svg         the picture in the browser's tab
	//	assets/*                anything else that templates and stylesheets name
	//	lang/<tag>.json         messages of a language, one by one; what a new one lacks is said in English
	//	page.html, error.html   the templates of the same names (html/template); they are given a View
	//
	// It is read once. Inline styles and scripts and files from elsewhere are refused by the browser.
	Files fs.FS
	// FrameAncestors are who may show the page in a frame, as in Content-Security-Policy:
	// "https://shop.example.com". Defaults to nobody.
	FrameAncestors []string
	// TrustedProxies are peers whose X-Forwarded-For header is believed. Defaults to none: a client
	// is its peer address.
	TrustedProxies []netip.Prefix
	// Limiter counts requests, such as a store/redis limiter shared by many processes. Defaults to
	// one in memory.
	Limiter store.Limiter
}

// policy is the Content-Security-Policy of everything that is served.
func (o *Options) policy() (string, error) {
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

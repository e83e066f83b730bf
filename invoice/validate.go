package invoice

import (
	"fmt"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/internal/wire"
)

// The bounds of decisions 2.1 and 7. Texts count characters.
const (
	maxOptions      = 20  // spec D2.1.2
	maxOrderID      = 128 // spec D2.1.4
	maxEmail        = 254
	maxDescription  = 500
	maxURL          = 2048
	maxMetadata     = 50
	maxMetadataKey  = 40
	maxMetadataText = 500
	maxTolerance    = 500 // spec D2.1.6
	maxName         = 64  // spec D7.2
)

func invalid(param, format string, args ...any) error {
	return fault.Param(param, "parameter_invalid", format, args...)
}

// checkCreate does the checks that need neither store nor registry.
func checkCreate(p CreateParams) error {
	if err := checkMoney(p); err != nil {
		return err
	}

	for _, t := range []struct {
		param, text string
		limit       int
	}{
		{"order_id", p.OrderID, maxOrderID},
		{"customer_email", p.CustomerEmail, maxEmail},
		{"description", p.Description, maxDescription},
	} {
		if err := checkText(t.param, t.text, t.limit); err != nil {
			return err
		}
	}

	if p.CustomerEmail != "" && !isEmail(p.CustomerEmail) {
		return invalid("customer_email", "%q is not an e-mail address", p.CustomerEmail)
	}

	if err := checkMetadata(p.Metadata); err != nil {
		return err
	}

	if p.ToleranceBPS != nil && (*p.ToleranceBPS < 0 || *p.ToleranceBPS > maxTolerance) {
		return invalid("tolerance_bps", "the tolerance is 0 to %d ten-thousandths", maxTolerance)
	}

	life := p.ExpiresIn
	if life == 0 {
		life = defaultLife
	}

	if life < minLife || life > maxLife {
		return invalid("expires_in", "an invoice lives from 300 to 604800 seconds")
	}

	if p.PreSelectionExpiresIn != 0 && (p.PreSelectionExpiresIn < minLife || p.PreSelectionExpiresIn > life) {
		return invalid(
			"pre_selection_expires_in",
			"the time to choose an option is from 300 seconds to expires_in (%d)",
			int64(life/time.Second),
		)
	}

	if err := checkURL("success_url", p.SuccessURL, p.Owner.Livemode); err != nil {
		return err
	}

	return checkURL("cancel_url", p.CancelURL, p.Owner.Livemode)
}

// checkMoney checks price and options against each other.
func checkMoney(p CreateParams) error { // spec D2.1.1
	if p.Price != nil {
		if c := p.Price.Currency; len(c) != 3 || strings.Trim(c, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
			return invalid("price.currency", "%q is not an ISO 4217 code such as EUR", clip(c))
		}

		amount, err := wire.ParseDecimal("price.amount", p.Price.Amount)
		if err != nil {
			return err
		}

		if amount.Sign() <= 0 {
			return invalid("price.amount", "the price must be above 0")
		}
	}

	switch {
	case p.Price == nil && len(p.Options) == 0:
		return fault.Param(
			"options", "parameter_missing", "an invoice without a price needs options with amounts",
		)
	case p.Options != nil && len(p.Options) == 0:
		return invalid("options", "the list is empty: leave it out to take every enabled asset")
	case len(p.Options) > maxOptions:
		return invalid("options", "an invoice has at most %d options", maxOptions)
	}

	for i, o := range p.Options { // spec D2.1.3
		switch {
		case p.Price != nil && !o.Amount.IsZero():
			return invalid(optionParam(i)+".amount", "an invoice with a price has no amounts in its options")
		case p.Price == nil && o.Amount.IsZero():
			return fault.Param(
				optionParam(i)+".amount", "parameter_missing",
				"an invoice without a price needs an amount above 0 in each option",
			)
		}
	}

	return nil
}

// optionParam returns the name of an option in errors.
func optionParam(i int) string { return fmt.Sprintf("options[%d]", i) }

func clip(s string) string {
	if r := []rune(s); len(r) > 64 {
		return string(r[:64]) + "…"
	}

	return s
}

// checkText refuses text that is too long, and text that no database can store.
func checkText(param, text string, limit int) error {
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		return invalid(param, "the text must be UTF-8 without NUL characters")
	}

	if wire.HasBidiControl(text) {
		return invalid(param, "the text must have no characters that turn the direction of others")
	}

	if utf8.RuneCountInString(text) > limit {
		return invalid(param, "the text has more than %d characters", limit)
	}

	return nil
}

func checkMetadata(m map[string]string) error { // spec D2.1.5
	if len(m) > maxMetadata {
		return invalid("metadata", "metadata has at most %d keys", maxMetadata)
	}

	for k, v := range m {
		if k == "" {
			return invalid("metadata", "a metadata key has 1 to %d characters", maxMetadataKey)
		}

		if err := checkText("metadata", k, maxMetadataKey); err != nil {
			return err
		}

		if err := checkText("metadata."+clip(k), v, maxMetadataText); err != nil {
			return err
		}
	}

	return nil
}

// isEmail checks the form of an address only: one @, something on both sides, no spaces, at most 254 bytes
// (RFC 5321, 4.5.3.1.3).
func isEmail(s string) bool {
	local, domain, ok := strings.Cut(s, "@")

	return ok && len(s) <= maxEmail && local != "" && domain != "" &&
		!strings.ContainsAny(s, " \t\r\n<>,;\"") &&
		!strings.Contains(domain, "@") &&
		!strings.HasPrefix(domain, ".") &&
		!strings.HasSuffix(domain, ".") &&
		!strings.Contains(domain, "..")
}

// checkURL requires a host, and https, or http in test mode.
func checkURL(param, s string, livemode bool) error { // spec D2.1.9
	if s == "" {
		return nil
	}

	if err := checkText(param, s, maxURL); err != nil {
		return err
	}

	u, err := url.Parse(s)
	if err != nil || u.Host == "" || u.Hostname() == "" || u.User != nil ||
		(u.Scheme != "https" && (u.Scheme != "http" || livemode)) {
		if livemode {
			return invalid(param, "the URL must begin with https:// and name a host")
		}

		return invalid(param, "the URL must begin with https:// or http:// and name a host")
	}

	return nil
}

// checkAmount refuses an amount, in base units, below the asset's minimum or above what one
// transfer can move.
func checkAmount(asset chain.Asset, amount chain.Amount, field string) error { // spec 2.5.2
	if amount.Less(asset.MinAmount) {
		o := Option{Asset: asset.Symbol, Network: asset.Network, Decimals: asset.Decimals}
		return tooSmall(field, o, asset.MinAmount)
	}

	if chain.MaxTransfer.Less(amount) {
		return fault.Param(field, "parameter_invalid", "the amount is more than one transfer can move")
	}

	return nil
}

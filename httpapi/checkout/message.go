package checkout

import (
	"slices"

	"github.com/seed-8ee7f392/payments/invoice"
)

// setMessage sets the headline, the message and the tone.
func (w *pageView) setMessage(l *language) {
	s := &w.State

	pairs := []string{"merchant", w.Merchant}
	if p := s.Payment; p != nil {
		pairs = append(
			pairs,
			"asset", p.Asset, "network", p.NetworkName, "missing", p.MissingText, "received", s.ReceivedText,
			"excess", p.ExcessText,
		)
	}

	if s.Price != nil && s.Outstanding != "" {
		owed := formatMoneyCeil(mustDecimal(s.Outstanding), mustDecimal(s.Price.Amount), s.Price.Currency)
		pairs = append(pairs, "outstanding", owed+"\u00a0"+s.Price.Currency)
	}

	key := s.messageKey()
	w.Headline, w.Message = l.message(key+".headline", pairs...), l.message(key+".message", pairs...)
	w.Tone = phaseTones[s.Phase]
}

// phaseTones are the tones of the phases.
var phaseTones = map[phase]tone{
	phaseChoose:       toneNeutral,
	phasePay:          toneNeutral,
	phaseQuoteExpired: toneWarning,
	phaseSeen:         toneWaiting,
	phaseConfirming:   toneWaiting,
	phaseInterrupted:  toneWaiting,
	phaseUnderpaid:    toneWarning,
	phaseClosing:      toneWaiting,
	phasePaid:         toneGood,
	phaseExpired:      toneOff,
	phaseCanceled:     toneOff,
	phaseRefunded:     toneGood,
	phaseLate:         toneWarning,
}

// messageKey returns the key of the headline and the message.
func (s *pageState) messageKey() string { // spec D10.4
	switch s.Phase {
	case phaseChoose:
		if s.Kind == invoice.Crypto {
			return "choose_crypto"
		}
	case phasePaid:
		return s.paidMessageKey()
	case phaseLate:
		if s.Status == invoice.Canceled {
			return "late_canceled"
		}

		if !slices.ContainsFunc(s.Transactions, func(t transaction) bool { return t.Late }) {
			return "expired_underpaid"
		}
	case phaseUnderpaid:
		if s.Payment != nil && s.Payment.QuoteExpired && s.Outstanding != "" {
			return "underpaid_renew"
		}
	default:
	}

	return string(s.Phase)
}

// paidMessageKey returns the key of a paid invoice, by its most important flag.
func (s *pageState) paidMessageKey() string {
	has := func(flag invoice.Flag) bool { return slices.Contains(s.OutcomeFlags, flag) }

	switch {
	case has(invoice.PartiallyRefunded):
		return "paid_partially_refunded"
	case has(invoice.Overpaid) && s.Payment != nil && s.Payment.ExcessText != "":
		return "paid_overpaid_by"
	case has(invoice.Overpaid):
		return "paid_overpaid"
	case has(invoice.UnderpaidAccepted):
		return "paid_underpaid_accepted"
	case has(invoice.Late):
		return "paid_late"
	}

	return string(phasePaid)
}

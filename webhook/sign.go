package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

// This file holds the signature of a delivery, and its verification.
//
//	Service-Signature: t=<unix seconds>,v1=<hex>[,v1=<hex>]
//	v1 = HMAC-SHA256(key: the secret's own bytes, prefix included; message: t + "." + raw body)
//
// There is one v1 per active secret: two while a rotation's overlap lasts.

// The headers of a delivery.
const (
	SignatureHeader  = "Service-Signature"
	EventIDHeader    = "Service-Event-Id"
	DeliveryIDHeader = "Service-Delivery-Id"
)

// Tolerance is how far a delivery's timestamp may be from the receiver's clock, in either direction.
const Tolerance = 300 * time.Second // spec D8.13

const (
	maxSignatureHeader = 4096 // bytes; ours have at most 162
	maxSignatures      = 16
)

// Sign returns the value of SignatureHeader for a body that is sent at a time, with one signature per secret.
// Receivers use it in their tests to make deliveries of their own.
func Sign(body []byte, at time.Time, secrets ...string) string { // spec 5.7
	t := strconv.FormatInt(at.Unix(), 10)

	var b strings.Builder
	b.WriteString("t=")
	b.WriteString(t)

	for _, secret := range secrets {
		b.WriteString(",v1=")
		b.WriteString(hex.EncodeToString(signature(body, t, secret)))
	}

	return b.String()
}

// signature returns HMAC-SHA256 of the time t (Unix seconds), a dot and the body, keyed with the secret.
func signature(body []byte, t, secret string) []byte { // spec D8.12
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(t))
	mac.Write([]byte{'.'})
	mac.Write(body)

	return mac.Sum(nil)
}

// Verify checks a delivery as VerifyAt does, at the present time. A merchant's handler calls it.
func Verify(body []byte, header string, secrets ...string) error {
	return VerifyAt(body, header, time.Now(), secrets...)
}

// VerifyAt checks that a delivery was sent by the holder of one of the secrets, within Tolerance of now. body
// is the raw body as it was received, before any parsing; header is the value of SignatureHeader. Give both
// secrets while a rotation is under way. It compares in constant time.
//
// A refused delivery is fault.Unauthenticated, with code
//
//   - signature_missing: the header is empty;
//   - signature_malformed: the header has no single timestamp, no v1 signature, or more than 16 of them;
//   - signature_mismatch: no signature was made with any of the secrets over this body and timestamp;
//   - signature_expired: the signature is good, but its time is more than Tolerance before or after
//     now: a replay, or a clock that is wrong.
//
// Without a secret, or with a blank one, it is fault.Invalid with code secret_missing: anybody could sign
// with it.
func VerifyAt(body []byte, header string, now time.Time, secrets ...string) error {
	if len(secrets) == 0 {
		return noSecret()
	}

	t, given, err := parseSignature(header)
	if err != nil {
		return err
	}

	genuine := false

	for _, secret := range secrets {
		if strings.TrimSpace(secret) == "" {
			return noSecret()
		}

		want := signature(body, t.text, secret)
		for _, got := range given {
			// Every pair is compared, so that the time taken does not reveal the pair that matched.
			genuine = hmac.Equal(got, want) || genuine
		}
	}

	if !genuine {
		return fault.New(
			fault.Unauthenticated,
			"signature_mismatch",
			"no signature of this delivery was made with the endpoint's secret: check that the secret is "+
				"the current one, and that the body is verified as it was received, before parsing",
		)
	}

	// In whole seconds, as in the header. A time.Duration would saturate for a time far from now.
	if age := now.Unix() - t.unix; age > int64(Tolerance/time.Second) || age < -int64(Tolerance/time.Second) {
		return fault.New(
			fault.Unauthenticated,
			"signature_expired",
			"this delivery was signed %d s from now, and at most %d s are allowed: it is a replay, or one "+
				"of the clocks is wrong",
			age,
			int64(Tolerance/time.Second),
		)
	}

	return nil
}

func noSecret() error {
	return fault.New(
		fault.Invalid, "secret_missing",
		"no signing secret was given: set the one that the creation of the endpoint returned",
	)
}

// timestamp is the time of a signature: the signed text, and the number.
type timestamp struct {
	text string
	unix int64
}

// parseSignature parses a header. It skips elements of other schemes, so that schemes can be added.
func parseSignature(header string) (t timestamp, signatures [][]byte, err error) {
	malformed := func(what string) (timestamp, [][]byte, error) {
		return timestamp{}, nil, fault.New(
			fault.Unauthenticated, "signature_malformed", "the %s header cannot be read: %s",
			SignatureHeader, what,
		)
	}

	switch {
	case header == "":
		return timestamp{}, nil, fault.New(
			fault.Unauthenticated, "signature_missing", "the request has no %s header",
			SignatureHeader,
		)
	case len(header) > maxSignatureHeader:
		return malformed("it is too long")
	}

	for element := range strings.SplitSeq(header, ",") {
		key, value, _ := strings.Cut(element, "=")
		switch key {
		case "t":
			if t.text != "" {
				return malformed("it has two timestamps")
			}

			unix, ok := parseUnix(value)
			if !ok {
				return malformed("its timestamp is not a number of seconds")
			}

			t = timestamp{value, unix}
		case "v1":
			if len(signatures) == maxSignatures {
				return malformed("it has too many signatures")
			}

			mac, err := hex.DecodeString(value)
			if err != nil || len(mac) != sha256.Size {
				return malformed("a v1 signature is not 64 hex characters")
			}

			signatures = append(signatures, mac)
		}
	}

	switch {
	case t.text == "":
		return malformed("it has no timestamp")
	case len(signatures) == 0:
		return malformed("it has no v1 signature")
	}

	return t, signatures, nil
}

// parseUnix parses 1 to 12 digits without leading zeros.
func parseUnix(s string) (int64, bool) {
	if s == "" || len(s) > 12 || (s[0] == '0' && len(s) > 1) {
		return 0, false
	}

	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}

	unix, err := strconv.ParseInt(s, 10, 64)

	return unix, err == nil
}

package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/seed-8ee7f392/payments/fault"
)

const (
	secretA = "whsec_QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE="
	secretB = "whsec_QkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkI="
)

// The value was computed with another implementation:
// printf '1795176000.{"id":"evt_1"}' | openssl dgst -sha256 -hmac "$secret"
func TestSignKnownAnswer(t *testing.T) {
	const want = "t=1795176000,v1=c369899bd8ef4a3a5f5febeeae4038483eeebe87b352f41d4202b3842b2ec065"
	if got := Sign([]byte(`{"id":"evt_1"}`), start, secretA); got != want {
		t.Errorf("signed %s, want %s", got, want)
	}
}

func TestVerify(t *testing.T) {
	body := []byte(`{"id":"evt_65a0000000000000000000aa","type":"invoice.paid"}`)
	good := Sign(body, start, secretA)
	both := Sign(body, start, secretB, secretA)
	mac := strings.TrimPrefix(good, "t=1795176000,v1=")

	type verdict struct {
		word error
		code string
	}

	fine := verdict{}
	missing, malformed := verdict{
		fault.Unauthenticated,
		"signature_missing",
	}, verdict{
		fault.Unauthenticated,
		"signature_malformed",
	}
	mismatch, expired := verdict{
		fault.Unauthenticated,
		"signature_mismatch",
	}, verdict{
		fault.Unauthenticated,
		"signature_expired",
	}
	secretMissing := verdict{fault.Invalid, "secret_missing"}

	one := []string{secretA}
	for _, c := range []struct {
		name    string
		body    string
		header  string
		now     time.Time
		secrets []string
		want    verdict
	}{
		{"good", string(body), good, start, one, fine},
		{"two signatures, the old secret", string(body), both, start, one, fine},
		{"two signatures, the new secret", string(body), both, start, []string{secretB}, fine},
		{"one signature, two secrets", string(body), good, start, []string{secretB, secretA}, fine},
		{"elements of other schemes", string(body), "v0=abc," + good + ",v2=whatever,x", start, one, fine},
		{"signatures before the time", string(body), "v1=" + mac + ",t=1795176000", start, one, fine},
		{"hex in capitals", string(body), "t=1795176000,v1=" + strings.ToUpper(mac), start, one, fine},
		{"300 s old", string(body), good, start.Add(300 * time.Second), one, fine},
		{"300 s ahead", string(body), good, start.Add(-300 * time.Second), one, fine},
		{"301 s old", string(body), good, start.Add(301 * time.Second), one, expired},
		{"301 s ahead", string(body), good, start.Add(-301 * time.Second), one, expired},
		{"a year old", string(body), good, start.AddDate(1, 0, 0), one, expired},
		{"a clock at the beginning of time", string(body), good, time.Time{}, one, expired},
		{"another secret", string(body), good, start, []string{secretB}, mismatch},
		{"another body", string(body) + " ", good, start, one, mismatch},
		{"no body", "", good, start, one, mismatch},
		{"another time", string(body), "t=1795176001,v1=" + mac, start, one, mismatch},
		{"another time with leading zeros", string(body), "t=01795176000,v1=" + mac, start, one, malformed},
		{"a signature of zeros", string(body), "t=1795176000,v1=" + strings.Repeat("00", 32), start, one, mismatch},
		{
			"the secret without its prefix",
			string(body),
			good,
			start,
			[]string{strings.TrimPrefix(secretA, "whsec_")},
			mismatch,
		},
		{"no header", string(body), "", start, one, missing},
		{"no time", string(body), "v1=" + mac, start, one, malformed},
		{"an empty time", string(body), "t=,v1=" + mac, start, one, malformed},
		{"two times", string(body), "t=1795176000," + good, start, one, malformed},
		{"a negative time", string(body), "t=-1,v1=" + mac, start, one, malformed},
		{"a time that is no number", string(body), "t=now,v1=" + mac, start, one, malformed},
		{"a time that does not fit", string(body), "t=99999999999999999999,v1=" + mac, start, one, malformed},
		{"no signature", string(body), "t=1795176000", start, one, malformed},
		{"only other schemes", string(body), "t=1795176000,v0=" + mac, start, one, malformed},
		{"half a signature", string(body), "t=1795176000,v1=" + mac[:32], start, one, malformed},
		{"not hex", string(body), "t=1795176000,v1=" + strings.Repeat("zz", 32), start, one, malformed},
		{"an empty signature", string(body), "t=1795176000,v1=", start, one, malformed},
		{"spaces", string(body), "t=1795176000, v1=" + mac, start, one, malformed},
		{
			"16 signatures",
			string(body),
			"t=1795176000" + strings.Repeat(",v1="+strings.Repeat("00", 32), 15) + ",v1=" + mac,
			start,
			one,
			fine,
		},
		{
			"17 signatures",
			string(body),
			"t=1795176000" + strings.Repeat(",v1="+strings.Repeat("00", 32), 16) + ",v1=" + mac,
			start,
			one,
			malformed,
		},
		{"a header without end", string(body), good + strings.Repeat(",", maxSignatureHeader), start, one, malformed},
		{"no secret", string(body), good, start, nil, secretMissing},
		{"an empty secret", string(body), good, start, []string{secretA, ""}, secretMissing},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := VerifyAt([]byte(c.body), c.header, c.now, c.secrets...)
			if c.want == fine {
				if err != nil {
					t.Errorf("refused: %v", err)
				}

				return
			}

			wantFault(t, err, c.want.word, c.want.code)

			if err != nil && strings.Contains(err.Error(), secretA) {
				t.Errorf("the error tells the secret: %v", err)
			}
		})
	}
}

func FuzzVerify(f *testing.F) {
	body := []byte(`{"id":"evt_1"}`)
	f.Add(body, Sign(body, start, secretA))
	f.Add(body, Sign(body, start, secretB, secretA))
	f.Add(body, "t=1,v1=00")
	f.Add([]byte{}, "t=,t=,v1=,,=")
	f.Fuzz(func(t *testing.T, body []byte, header string) {
		if VerifyAt(body, header, start, secretA) != nil {
			return
		}
		// Whatever is accepted must hold, somewhere, the signature of a time in range, computed here by hand.
		for element := range strings.SplitSeq(header, ",") {
			if at, ok := strings.CutPrefix(element, "t="); ok {
				mac := hmac.New(sha256.New, []byte(secretA))
				mac.Write([]byte(at + "." + string(body)))

				if strings.Contains(strings.ToLower(header), "v1="+hex.EncodeToString(mac.Sum(nil))) {
					return
				}
			}
		}

		t.Errorf("accepted %q over %q", header, body)
	})
}

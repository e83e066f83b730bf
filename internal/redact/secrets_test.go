package redact_test

import (
	"testing"

	"github.com/seed-8ee7f392/payments/internal/redact"
)

func TestTextsAreLoggedWithoutSecrets(t *testing.T) {
	for text, want := range map[string]string{
		"the HSM has no slot 3":                                   "the HSM has no slot 3",
		"Post \"https://user:pw@kms.example/v1/AKIA?sig=1\": EOF": "Post \"https://kms.example/…\": EOF",
		"dial https://kms.example: refused":                       "dial https://kms.example: refused",
		"token eyJhbGciOiJIUzI1NiIsInR5cCI6 is expired":           "token eyJhbG… is expired",
		"key 0x4c0883a69102937d6231471b5dbb6204fe512961708279 ":   "key 0x4c08… ",
		"InternalServerErrorException happened":                   "InternalServerErrorException happened",
	} {
		if got := redact.Secrets(text); got != want {
			t.Errorf("%q is logged as %q, want %q", text, got, want)
		}
	}
}

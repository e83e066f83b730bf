package webhook_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/seed-8ee7f392/payments/webhook"
)

// A merchant's server mounts what NewReceiver returns where its endpoint's URL leads; its tests sign deliveries
// of their own.
func ExampleNewReceiver() {
	const secret = "whsec_the-one-that-creating-the-endpoint-returned"

	receiver, err := webhook.NewReceiver(webhook.ReceiverConfig{
		Secrets: []string{secret},
		Handle: func(_ context.Context, n webhook.Notification) error {
			fmt.Println(n.Type, string(n.Data.Object))
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}

	body := `{"id":"evt_65a0000000000000000000aa","type":"invoice.paid","data":{"object":{"order_id":"1001"}}}`
	for range 2 { // sent twice, handled once
		request := httptest.NewRequest(http.MethodPost, "/webhooks", strings.NewReader(body))
		request.Header.Set(webhook.SignatureHeader, webhook.Sign([]byte(body), time.Now(), secret))

		answer := httptest.NewRecorder()
		receiver.ServeHTTP(answer, request)
		fmt.Println(answer.Code)
	}
	// Output:
	// invoice.paid {"order_id":"1001"}
	// 204
	// 204
}

// Whoever does not use NewReceiver verifies by hand, before parsing the body.
func ExampleVerify() {
	const secret = "whsec_the-one-that-creating-the-endpoint-returned"

	body, now := []byte(`{"type":"invoice.paid"}`), time.Now()
	header := webhook.Sign(body, now, secret)
	fmt.Println(webhook.VerifyAt(body, header, now, secret))
	fmt.Println(webhook.VerifyAt([]byte(`{"type":"invoice.canceled"}`), header, now, secret) != nil)
	// Output:
	// <nil>
	// true
}

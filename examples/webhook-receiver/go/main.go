// Command go receives webhooks at http://127.0.0.1:$PORT/webhooks.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/seed-8ee7f392/payments/webhook"
)

func main() {
	receiver, err := webhook.NewReceiver(webhook.ReceiverConfig{
		Secrets: []string{os.Getenv("WEBHOOK_SECRET")},
		Handle:  handle,
	})
	if err != nil {
		log.Fatal(err)
	}

	mux := http.NewServeMux()
	mux.Handle("/webhooks", receiver)

	server := &http.Server{
		Addr:              "127.0.0.1:" + os.Getenv("PORT"),
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
	}
	log.Fatal(server.ListenAndServe())
}

// handle is called once per event; an error makes the sender try again.
func handle(_ context.Context, n webhook.Notification) error {
	fmt.Println("received", n.Type, n.ID)
	return nil
}

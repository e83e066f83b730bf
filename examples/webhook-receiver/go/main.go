// Command go receives webhooks at http://127.0.0.1:$PORT/webhooks.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/seed-8ee7f392/payments/webhook"
)

func main() {
	secret, port := os.Getenv("WEBHOOK_SECRET"), os.Getenv("PORT")
	if secret == "" {
		log.Fatal("WEBHOOK_SECRET is not set: set it to the secret that creating the endpoint returned")
	}

	if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
		log.Fatalf("PORT is %q: set it to a free port, such as 8090", port)
	}

	receiver, err := webhook.NewReceiver(webhook.ReceiverConfig{
		Secrets: []string{secret},
		Handle:  handle,
	})
	if err != nil {
		log.Fatal(err)
	}

	mux := http.NewServeMux()
	mux.Handle("/webhooks", receiver)

	server := &http.Server{
		Addr:              "127.0.0.1:" + port,
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
	}
	log.Fatalf("PORT %s: %v: is another program there?", port, server.ListenAndServe())
}

// handle is called once per event; an error makes the sender try again.
func handle(_ context.Context, n webhook.Notification) error {
	fmt.Println("received", n.Type, n.ID)
	return nil
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/seed-8ee7f392/payments/webhook"
)

// receiver is the merchant's webhook endpoint. It records the types of events with a valid signature.
type receiver struct {
	mu     sync.Mutex
	secret string
	seen   map[string]bool
	bad    error
	wake   chan struct{}
}

// setSecret sets the signing secret.
func (r *receiver) setSecret(secret string) {
	r.mu.Lock()
	defer r.mu.Unlock()

	r.secret = secret
}

// listen serves the receiver on a free port; stop closes it.
func (r *receiver) listen() (stop func(), url string, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, "", err
	}

	server := &http.Server{Handler: r, ReadHeaderTimeout: 5 * time.Second}

	var wg sync.WaitGroup
	wg.Go(func() { _ = server.Serve(listener) })

	stop = func() {
		server.Close()
		wg.Wait()
	}

	return stop, "http://" + listener.Addr().String() + "/hooks", nil
}

// ServeHTTP verifies a delivery and records its type.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, 1<<20))

	r.mu.Lock()
	defer r.mu.Unlock()

	if err == nil {
		err = webhook.Verify(body, req.Header.Get("Service-Signature"), r.secret)
	}

	if err != nil {
		r.bad = err

		http.Error(w, "bad signature", http.StatusBadRequest)

		return
	}

	var event struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		http.Error(w, "bad body", http.StatusBadRequest)
		return
	}

	r.seen[event.Type] = true

	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// await waits until an event of the type has arrived.
func (r *receiver) await(ctx context.Context, typ string) error {
	ctx, cancel := context.WithTimeout(ctx, stepTimeout)
	defer cancel()

	for {
		r.mu.Lock()
		seen, bad := r.seen[typ], r.bad
		r.mu.Unlock()

		if bad != nil {
			return fmt.Errorf("a webhook did not verify: %w", bad)
		}

		if seen {
			return nil
		}

		select {
		case <-ctx.Done():
			return fmt.Errorf("no webhook %s arrived within %s", typ, stepTimeout)
		case <-r.wake:
		}
	}
}

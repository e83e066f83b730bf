package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/seed-8ee7f392/payments"
	"github.com/seed-8ee7f392/payments/chain"
	"github.com/seed-8ee7f392/payments/chain/hdkey"
	"github.com/seed-8ee7f392/payments/fault"
	"github.com/seed-8ee7f392/payments/limits"
)

// What goes over the socket: /public_key takes a chain.KeyRef, /sign a chain.SignRequest. A refusal is 403.
type (
	signatures struct {
		Signatures [][]byte `json:"signatures"`
	}
	refused struct {
		Reason string `json:"reason"`
	}
)

// runSigner serves the keys until ctx ends. The socket is its owner's and group's alone.
func runSigner(ctx context.Context, log *slog.Logger, s settings) error {
	mnemonic, err := readSecret("MNEMONIC_FILE", s.mnemonicFile, "a BIP-39 mnemonic")
	if err != nil {
		return err
	}

	drivers, err := s.drivers(log)
	if err != nil {
		return err
	}

	keys, err := newKeys(mnemonic, drivers, s)
	if err != nil {
		return err
	}

	listener, err := listenUnix(s.signerSocket)
	if err != nil {
		return fmt.Errorf("SIGNER_SOCKET: %w", err)
	}

	server := limits.Server(ctx, signerHandler(keys))
	stopped := context.AfterFunc(ctx, func() { _ = server.Close() })

	defer stopped()

	log.Info("the signer is ready")

	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}

	return nil
}

// newKeys returns the keys of a seed, which sign what the policy lets through.
func newKeys(mnemonic string, drivers []payments.ChainDriver, s settings) (*hdkey.Signer, error) {
	public, err := hdkey.New(mnemonic, "")
	if err != nil {
		return nil, fmt.Errorf("MNEMONIC_FILE holds no seed: %w", err)
	}

	return hdkey.New(mnemonic, "", hdkey.WithPolicy(newPolicy(public, drivers, s).check))
}

// listenUnix takes the socket in place of one that an earlier process left. One that answers is left alone.
func listenUnix(path string) (net.Listener, error) {
	if conn, err := net.Dial("unix", path); err == nil {
		return nil, errors.Join(
			fmt.Errorf("a signer answers at %s already: stop it first", path),
			conn.Close(),
		)
	}

	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}

	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("%w: name a path in a directory that this user may write to", err)
	}

	return listener, os.Chmod(path, 0o660)
}

func signerHandler(keys chain.Signer) http.Handler {
	mux := http.NewServeMux()

	mux.HandleFunc("POST /public_key", func(w http.ResponseWriter, r *http.Request) {
		var key chain.KeyRef
		if err := json.NewDecoder(r.Body).Decode(&key); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}

		public, err := keys.PublicKey(r.Context(), key)
		writeAnswer(w, public, err)
	})
	mux.HandleFunc("POST /sign", func(w http.ResponseWriter, r *http.Request) {
		var request chain.SignRequest
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}

		signed, err := keys.Sign(r.Context(), request)
		writeAnswer(w, signatures{signed}, err)
	})

	return mux
}

func writeAnswer(w http.ResponseWriter, answer any, err error) {
	var refusal *chain.Refusal

	switch {
	case errors.As(err, &refusal):
		w.WriteHeader(http.StatusForbidden)

		answer = refused{refusal.Reason}

	case err != nil:
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}

	_ = json.NewEncoder(w).Encode(answer)
}

// remoteSigner asks the signer's process. It is the same for a KMS: only the two questions are other ones.
type remoteSigner struct {
	socket string
	client *http.Client
}

func newRemoteSigner(socket string) remoteSigner {
	var dialer net.Dialer

	return remoteSigner{
		socket: socket,
		client: &http.Client{
			Timeout: 10 * time.Second,
			Transport: &http.Transport{
				DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					return dialer.DialContext(ctx, "unix", socket)
				},
			},
		},
	}
}

func (s remoteSigner) PublicKey(ctx context.Context, key chain.KeyRef) (chain.PublicKey, error) {
	var public chain.PublicKey

	err := s.ask(ctx, "/public_key", key, &public)

	return public, err
}

func (s remoteSigner) Sign(ctx context.Context, request chain.SignRequest) ([][]byte, error) {
	var signed signatures

	err := s.ask(ctx, "/sign", request, &signed)

	return signed.Signatures, err
}

// ask returns a *chain.Refusal for a refusal, which is final. Any other error leaves the work to be tried again.
func (s remoteSigner) ask(ctx context.Context, path string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}

	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://signer"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}

	resp, err := s.client.Do(req)
	if err != nil {
		return fault.Wrap(
			err, fault.Unavailable, "signer_down",
			"the signer does not answer at %s: start it with the command signer", s.socket,
		)
	}
	defer resp.Body.Close()

	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}

	switch resp.StatusCode {
	case http.StatusOK:
		return json.Unmarshal(text, answer)

	case http.StatusForbidden:
		var no refused
		if err := json.Unmarshal(text, &no); err != nil {
			return err
		}

		return &chain.Refusal{Reason: no.Reason}

	default:
		return fmt.Errorf("the signer answered %s: %s", resp.Status, bytes.TrimSpace(text))
	}
}

//go:build unix

// This file speaks to Bitcoin nodes.

package testenv

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// BitcoinRPC is the JSON-RPC endpoint of a Bitcoin node.
type BitcoinRPC struct {
	// URL is the endpoint with its credentials, http://user:password@127.0.0.1:port.
	URL string
	// Addr is 127.0.0.1:port.
	Addr string
	// User and Password are the credentials of URL.
	User, Password string
}

func rpcAt(addr string) BitcoinRPC {
	n := BitcoinRPC{Addr: addr, User: "test", Password: "regtest-password"}
	n.URL = "http://" + n.User + ":" + n.Password + "@" + addr

	return n
}

// BitcoinError is an error that a node answered.
type BitcoinError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *BitcoinError) Error() string { return fmt.Sprintf("error %d: %s", e.Code, e.Message) }

// Call makes one JSON-RPC call and stores the result in the value that result points to; nil throws
// it away. An error of the node's own is a *BitcoinError.
func (n *BitcoinRPC) Call(ctx context.Context, result any, method string, params ...any) error {
	if params == nil {
		params = []any{}
	}

	body, err := json.Marshal(map[string]any{"jsonrpc": "1.0", "id": 1, "method": method, "params": params})
	if err != nil {
		return err
	}

	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()

	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.URL, bytes.NewReader(body))
	if err != nil {
		return err
	}

	req.Header.Set("Content-Type", "application/json")

	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	defer resp.Body.Close()

	var answer struct {
		Result json.RawMessage `json:"result"`
		Error  *BitcoinError   `json:"error"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return fmt.Errorf("%s: HTTP %s: %w", method, resp.Status, err)
	}

	if answer.Error != nil {
		return fmt.Errorf("%s: %w", method, answer.Error)
	}

	if result == nil {
		return nil
	}

	return json.Unmarshal(answer.Result, result)
}

package main

// The HTTP interface. Source of paths, parameters and answers: TRON documentation
// (tronprotocol/documentation-en, docs/api/http), held to its printed answers by published_test.go.
// Fields of value 0 are left out, as protobuf's JSON does.

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"
)

func (n *node) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 4<<20))
	if err != nil {
		http.Error(w, "Payload Too Large", http.StatusRequestEntityTooLarge)
		return
	}

	n.mu.Lock()
	defer n.mu.Unlock()

	if name, ok := strings.CutPrefix(r.URL.Path, "/control/"); ok {
		n.serveControl(w, name, body)
		return
	}

	n.seen++

	if r.Method != http.MethodPost {
		http.Error(w, "this node takes POST only", http.StatusMethodNotAllowed)
		return
	}

	serve, solid := fullAPI[r.URL.Path], false
	if name, ok := strings.CutPrefix(r.URL.Path, "/walletsolidity/"); ok && solidNames[name] {
		serve, solid = fullAPI["/wallet/"+name], true
	}

	if serve == nil {
		http.NotFound(w, r)
		return
	}

	if len(body) == 0 {
		body = []byte("{}")
	}

	answer, err := serve(n, view{n: n, solid: solid}, body)
	if err != nil {
		answer = object{"Error": "class " + err.Error()}
	}

	w.Header().Set("Content-Type", "application/json")

	if err := json.NewEncoder(w).Encode(answer); err != nil {
		panic(http.ErrAbortHandler)
	}
}

// solidNames are the paths that exist under /walletsolidity too.
var solidNames = map[string]bool{
	"getnowblock":                  true,
	"getblockbynum":                true,
	"getblockbylimitnext":          true,
	"gettransactionbyid":           true,
	"gettransactioninfobyid":       true,
	"gettransactioninfobyblocknum": true,
	"getaccount":                   true,
	"triggerconstantcontract":      true,
	"getcandelegatedmaxsize":       true,
	"getdelegatedresourcev2":       true,
	"estimateenergy":               true,
	"getnodeinfo":                  true,
}

var fullAPI = map[string]handler{
	"/wallet/getnowblock": func(_ *node, v view, body []byte) (any, error) {
		return v.newest().json(), strictJSON(body, &struct{}{})
	},
	"/wallet/getblockbynum": func(_ *node, v view, body []byte) (any, error) {
		var in struct{ Num int64 }
		if err := strictJSON(body, &in); err != nil {
			return nil, err
		}

		if b := v.at(in.Num); b != nil {
			return b.json(), nil
		}

		return object{}, nil
	},
	"/wallet/getblockbylimitnext": func(_ *node, v view, body []byte) (any, error) {
		var in struct{ StartNum, EndNum int64 }
		if err := strictJSON(body, &in); err != nil {
			return nil, err
		}

		blocks := []any{}

		if in.EndNum > in.StartNum && in.EndNum-in.StartNum <= 100 {
			for h := in.StartNum; h < in.EndNum; h++ {
				if b := v.at(h); b != nil {
					blocks = append(blocks, b.json())
				}
			}
		}

		return object{}.put("block", blocks), nil
	},
	"/wallet/gettransactionbyid":        transactionByID(true),
	"/wallet/gettransactionfrompending": transactionByID(false),
	"/wallet/gettransactioninfobyid": func(n *node, v view, body []byte) (any, error) {
		id, err := readID(body)
		if err != nil {
			return nil, err
		}

		if b, k := n.included(id); b != nil && b.height <= v.newest().height {
			return n.infoJSON(b, k), nil
		}

		return object{}, nil
	},
	"/wallet/gettransactioninfobyblocknum": func(n *node, v view, body []byte) (any, error) {
		var in struct{ Num int64 }
		if err := strictJSON(body, &in); err != nil {
			return nil, err
		}

		if in.Num <= 0 {
			return object{}, nil
		}

		infos := []any{}
		if b := v.at(in.Num); b != nil {
			for k := range b.infos {
				infos = append(infos, n.infoJSON(b, k))
			}
		}

		return infos, nil
	},
	"/wallet/getaccount":              getAccount,
	"/wallet/getaccountresource":      getAccountResource,
	"/wallet/getcandelegatedmaxsize":  getCanDelegatedMaxSize,
	"/wallet/getdelegatedresourcev2":  getDelegatedResource,
	"/wallet/getchainparameters":      getChainParameters,
	"/wallet/triggerconstantcontract": triggerConstantContract,
	"/wallet/broadcasthex":            broadcastHex,
	"/wallet/getnodeinfo": func(n *node, _ view, body []byte) (any, error) {
		name := func(b *block) string { return fmt.Sprintf("Num:%d,ID:%s", b.height, hexBytes(b.id[:])) }

		info := object{
			"block":          name(n.head()),
			"solidityBlock":  name(n.solid()),
			"beginSyncNum":   int64(n.oldest),
			"configNodeInfo": object{"codeVersion": "4.8.1"},
		}

		return info, strictJSON(body, &struct{}{})
	},
}

func readID(body []byte) (id [32]byte, err error) {
	var in struct{ Value string }
	if err := strictJSON(body, &in); err != nil {
		return id, err
	}

	b, err := hex.DecodeString(in.Value)
	if err != nil {
		return id, fmt.Errorf("org.tron.core.services.http.JsonFormat$ParseException : %w", err)
	}

	copy(id[:], b)

	return id, nil
}

// transactionByID also shows transactions that wait: java-tron's transaction store holds them while they do.
func transactionByID(included bool) handler {
	return func(n *node, v view, body []byte) (any, error) {
		id, err := readID(body)
		if err != nil {
			return nil, err
		}

		if b, k := n.included(id); included && b != nil && b.height <= v.newest().height {
			return b.txs[k].json(b.infos[k]), nil
		}

		if t := n.waiting(id); t != nil && !v.solid {
			return t.json(nil), nil
		}

		return object{}, nil
	}
}

func getAccount(n *node, v view, body []byte) (any, error) {
	a, ws, known, err := readAccount(v, body)
	if err != nil || !known {
		return object{}, err
	}

	acc := ws.accounts[a]

	out := object{
		"address": hexBytes(prefixedBytes(a)),
		"owner_permission": object{
			"permission_name": "owner",
			"threshold":       1,
			"keys":            []any{object{"address": hexBytes(prefixedBytes(a)), "weight": 1}},
		},
	}.put("balance", ws.balance(a)).
		put("create_time", acc.created).
		put("free_net_usage", acc.freeUsed).
		put("net_usage", acc.netUsed)
	if len(acc.tokens) > 0 {
		var tokens []any
		for _, id := range slices.Sorted(maps.Keys(acc.tokens)) {
			tokens = append(tokens, object{"key": id, "value": acc.tokens[id]})
		}

		out["assetV2"] = tokens
	}

	if acc.contract {
		out["type"] = "Contract"
		delete(out, "owner_permission")
	}

	return out, nil
}

func readAccount(v view, body []byte) (a address, ws *workspace, known bool, err error) {
	var in struct{ Address string }
	if err := strictJSON(body, &in); err != nil {
		return a, nil, false, err
	}

	a, ok := addressHex(in.Address)
	if !ok {
		return a, nil, false, errors.New("java.lang.IllegalArgumentException : address is not valid")
	}

	ws, err = v.workspace()

	return a, ws, err == nil && ws.exists(a), err
}

func getAccountResource(n *node, v view, body []byte) (any, error) {
	a, ws, known, err := readAccount(v, body)
	if err != nil || !known {
		return object{}, err
	}

	acc := ws.accounts[a]

	return object{
		"TotalNetLimit":     43_200_000_000,
		"TotalEnergyLimit":  totalEnergy,
		"TotalEnergyWeight": totalWeight,
	}.
		put("freeNetUsed", acc.freeUsed).
		put("freeNetLimit", n.params["getFreeNetLimit"]).
		put("NetUsed", acc.netUsed).
		put("NetLimit", acc.netLimit).
		put("EnergyUsed", acc.energyUsed).
		put("EnergyLimit", acc.energy()), nil
}

func getChainParameters(n *node, _ view, body []byte) (any, error) {
	list := []any{}
	for key, value := range n.params {
		list = append(list, object{"key": key}.put("value", value))
	}

	return object{"chainParameter": list}, strictJSON(body, &struct{}{})
}

func triggerConstantContract(n *node, v view, body []byte) (any, error) {
	var in struct {
		OwnerAddress    string `json:"owner_address"`
		ContractAddress string `json:"contract_address"`
		Data            string `json:"data"`
		CallValue       int64  `json:"call_value"`
	}
	if err := strictJSON(body, &in); err != nil {
		return refusedCall("OTHER_ERROR", err.Error()), nil
	}

	owner, ownerOK := addressHex(in.OwnerAddress)
	contract, contractOK := addressHex(in.ContractAddress)

	data, err := hex.DecodeString(in.Data)
	if !ownerOK || !contractOK || err != nil {
		return refusedCall("OTHER_ERROR", "class java.lang.IllegalArgumentException : bad hex"), nil
	}

	ws, err := v.workspace()
	if err != nil {
		return nil, err
	}

	if !ws.accounts[contract].contract {
		const message = "Contract validate error : Smart contract is not exist."

		return refusedCall("CONTRACT_VALIDATE_ERROR", message), nil
	}

	o := n.simulate(ws, v.newest(), owner, contract, in.CallValue, data)

	id, now := v.newest().id, time.Now().UnixMilli()
	t := &transaction{
		kind:       typeTrigger,
		owner:      owner,
		to:         contract,
		amount:     in.CallValue,
		data:       data,
		refBytes:   id[6:8],
		refHash:    id[8:16],
		expiration: now + 60_000,
		timestamp:  now,
	}

	return o.callJSON(t), nil
}

func refusedCall(code, message string) object {
	return object{"result": object{"code": code, "message": hexBytes([]byte(message))}}
}

func broadcastHex(n *node, _ view, body []byte) (any, error) {
	var in struct{ Transaction string }
	if err := strictJSON(body, &in); err != nil {
		return nil, err
	}

	b, err := hex.DecodeString(in.Transaction)
	if err != nil {
		return nil, fmt.Errorf("org.bouncycastle.util.encoders.DecoderException : %w", err)
	}

	t, err := parseTransaction(b)
	if err != nil {
		return nil, fmt.Errorf("com.google.protobuf.InvalidProtocolBufferException : %w", err)
	}

	shown, err := json.Marshal(t.json(nil))
	if err != nil {
		return nil, err
	}

	answer := object{
		"result":      true,
		"code":        "SUCCESS",
		"message":     "",
		"transaction": string(shown),
		"txid":        hexBytes(t.id[:]),
	}
	if refused := n.broadcast(t); refused != nil {
		answer["result"], answer["code"], answer["message"] = false, refused.code, refused.message
	}

	return answer, nil
}

// Command client uses the API like a merchant's Go program does: through the code that oapi-codegen makes of
// the document. The package api is generated beside it.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"os"

	"example.com/client/api"
)

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2]); err != nil {
		log.Fatal(err)
	}

	fmt.Println("create, get, list with two statuses, and a typed error")
}

func run(ctx context.Context, base, key string) error {
	bearer := func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+key)
		return nil
	}

	client, err := api.NewClientWithResponses(base, api.WithRequestEditorFn(bearer))
	if err != nil {
		return err
	}

	order := "A-1"
	price := api.PriceBody{Currency: "EUR", Amount: "49.90"}

	created, err := client.CreateInvoiceWithResponse(ctx, nil, api.CreateInvoiceJSONRequestBody{Price: &price, OrderId: &order})
	if err != nil || created.JSON200 == nil {
		return fmt.Errorf("create: %w %s", err, created.Body)
	}

	read, err := client.GetInvoiceWithResponse(ctx, created.JSON200.Id)
	if err != nil || read.JSON200 == nil || *read.JSON200.OrderId != order || read.JSON200.Status != "open" {
		return fmt.Errorf("get: %w %s", err, read.Body)
	}

	statuses := []api.ListInvoicesParamsStatus{"open", "paid"}

	list, err := client.ListInvoicesWithResponse(ctx, &api.ListInvoicesParams{Status: &statuses})
	if err != nil || list.JSON200 == nil || len(list.JSON200.Data) != 1 || list.JSON200.Data[0].Id != read.JSON200.Id {
		return fmt.Errorf("list: %w %s", err, list.Body)
	}

	price.Amount = "nothing"

	refused, err := client.CreateInvoiceWithResponse(ctx, nil, api.CreateInvoiceJSONRequestBody{Price: &price})
	if err != nil || refused.JSON400 == nil || refused.JSON400.Error.Type != "invalid_request" {
		return fmt.Errorf("error: %w %s", err, refused.Body)
	}

	return nil
}

// Uses the API as a merchant's program in TypeScript does: with the types that openapi-typescript makes and
// openapi-fetch, both with their default settings. Compiled strictly, so that the types are tested too.
import createClient from "openapi-fetch";
import type { paths } from "./api";

declare const process: { argv: string[]; exit(code: number): never };

const [base, key] = process.argv.slice(2);
const client = createClient<paths>({ baseUrl: base, headers: { Authorization: `Bearer ${key}` } });

function check(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(what);
}

async function main() {
  const { data: created, error: refused } = await client.POST("/v1/invoices", {
    body: { price: { currency: "EUR", amount: "49.90" }, order_id: "A-1" },
  });
  check(created !== undefined, `create: ${JSON.stringify(refused)}`);

  const { data: read } = await client.GET("/v1/invoices/{id}", { params: { path: { id: created.id } } });
  check(read?.order_id === "A-1" && read.status === "open", `get: ${JSON.stringify(read)}`);

  const { data: list, error } = await client.GET("/v1/invoices", {
    params: { query: { status: ["open", "paid"] } },
  });
  check(list?.data.length === 1 && list.data[0].id === created.id, `list: ${JSON.stringify(list ?? error)}`);

  const { error: invalid, response } = await client.POST("/v1/invoices", {
    body: { price: { currency: "EUR", amount: "nothing" } },
  });
  check(
    invalid?.error.type === "invalid_request" && invalid.error.request_id === response.headers.get("Request-Id"),
    `error: ${JSON.stringify(invalid)}`,
  );
  console.log("create, get, list with two statuses, and a typed error");
}

main().catch((reason) => {
  console.error(reason);
  process.exit(1);
});

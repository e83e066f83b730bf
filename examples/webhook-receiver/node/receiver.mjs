// Receives webhooks at http://127.0.0.1:$PORT/webhooks. Needs Node.js and nothing else.
import { createHmac, timingSafeEqual } from "node:crypto";
import { createServer } from "node:http";

const fail = (sentence) => {
  console.error(sentence);
  process.exit(1);
};

const secret = process.env.WEBHOOK_SECRET;
if (!secret) fail("WEBHOOK_SECRET is not set: set it to the secret that creating the endpoint returned");

const port = Number(process.env.PORT);
if (!(Number.isInteger(port) && port > 0 && port < 65536)) fail(`PORT is "${process.env.PORT ?? ""}": set it to a free port, such as 8090`);

const tolerance = 300; // seconds between the sender's clock and this one
const maxBody = 1 << 20; // bytes

// The ids of handled events. A service in earnest keeps them in its database, in the transaction that handles the event.
const seen = new Set();

// verify reports whether the header has a signature of these very bytes, made with the secret, not long ago.
function verify(body, header) {
  const parts = (header ?? "").split(",").map((part) => part.split("=", 2));
  const times = parts.filter(([name]) => name === "t").map(([, value]) => value);
  if (times.length !== 1 || !/^[0-9]{1,12}$/.test(times[0])) return false;

  const want = createHmac("sha256", secret).update(times[0] + ".").update(body).digest();
  const genuine = parts.some(([name, value]) => {
    if (name !== "v1" || !/^[0-9a-f]{64}$/.test(value)) return false;
    return timingSafeEqual(Buffer.from(value, "hex"), want);
  });

  return genuine && Math.abs(Date.now() / 1000 - Number(times[0])) <= tolerance;
}

// handle is called once per event; what it throws makes the sender try again.
function handle(event) {
  console.log("received", event.type, event.id);
}

createServer(async (request, response) => {
  const answer = (status) => response.writeHead(status).end();
  if (request.method !== "POST" || request.url !== "/webhooks") return answer(404);

  try {
    const chunks = [];
    let size = 0;
    for await (const chunk of request) {
      size += chunk.length;
      if (size > maxBody) return answer(413);
      chunks.push(chunk);
    }
    const body = Buffer.concat(chunks);

    // The signature covers the bytes as they came: verify before parsing.
    if (!verify(body, request.headers["service-signature"])) return answer(401);

    const event = JSON.parse(body.toString("utf8"));
    if (!seen.has(event.id)) {
      handle(event);
      seen.add(event.id);
    }
    answer(204);
  } catch (error) {
    console.error(error);
    answer(500);
  }
})
  .on("error", (error) => fail(`PORT ${port}: ${error.message}: is another program there?`))
  .listen(port, "127.0.0.1");

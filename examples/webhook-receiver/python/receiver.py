"""Receives webhooks at http://127.0.0.1:$PORT/webhooks. Needs Python 3 and nothing else."""

import hashlib
import hmac
import json
import os
import re
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SECRET = os.environ.get("WEBHOOK_SECRET", "").encode()
if not SECRET:
    raise SystemExit("WEBHOOK_SECRET is not set: set it to the secret that creating the endpoint returned")

PORT = os.environ.get("PORT", "")
if not re.fullmatch("[0-9]{1,5}", PORT) or not 0 < int(PORT) < 65536:
    raise SystemExit(f'PORT is "{PORT}": set it to a free port, such as 8090')

TOLERANCE = 300  # seconds between the sender's clock and this one
MAX_BODY = 1 << 20  # bytes

# The ids of handled events. A service in earnest keeps them in its database, in the transaction that handles the event.
seen = set()
lock = threading.Lock()


def verify(body: bytes, header: str) -> bool:
    """Reports whether the header has a signature of these very bytes, made with the secret, not long ago."""
    parts = [part.partition("=")[::2] for part in header.split(",")]
    times = [value for name, value in parts if name == "t"]
    if len(times) != 1 or not re.fullmatch("[0-9]{1,12}", times[0]):
        return False

    want = hmac.new(SECRET, times[0].encode() + b"." + body, hashlib.sha256).hexdigest()
    given = [value for name, value in parts if name == "v1"]
    genuine = any(hmac.compare_digest(value.encode(), want.encode()) for value in given)

    return genuine and abs(time.time() - int(times[0])) <= TOLERANCE


def handle(event: dict) -> None:
    """Is called once per event; an exception makes the sender try again."""
    print("received", event["type"], event["id"], flush=True)


class Receiver(BaseHTTPRequestHandler):
    timeout = 10  # seconds that a sender may take

    def do_POST(self) -> None:
        self.send_response(self.receive())
        self.end_headers()

    def receive(self) -> int:
        if self.path != "/webhooks":
            return 404

        size = self.headers.get("Content-Length", "")
        if not re.fullmatch("[0-9]{1,10}", size):
            return 411
        if int(size) > MAX_BODY:
            return 413
        body = self.rfile.read(int(size))

        # The signature covers the bytes as they came: verify before parsing.
        if not verify(body, self.headers.get("Service-Signature", "")):
            return 401

        event = json.loads(body)
        with lock:
            if event["id"] not in seen:
                handle(event)
                seen.add(event["id"])
        return 204

    def log_message(self, *_: object) -> None:
        pass


try:
    server = ThreadingHTTPServer(("127.0.0.1", int(PORT)), Receiver)
except OSError as error:
    raise SystemExit(f"PORT {PORT}: {error.strerror}: is another program there?") from None

try:
    server.serve_forever()
except KeyboardInterrupt:
    pass

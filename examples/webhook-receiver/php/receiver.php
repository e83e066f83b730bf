<?php
// Receives webhooks at http://127.0.0.1:$PORT/webhooks: php -S 127.0.0.1:$PORT receiver.php
declare(strict_types=1);

const TOLERANCE = 300; // seconds between the sender's clock and this one
const MAX_BODY = 1 << 20; // bytes

ini_set('display_errors', '0'); // what is thrown is logged, and answered 500

// verify reports whether the header has a signature of these very bytes, made with the secret, not long ago.
function verify(string $body, string $header, string $secret): bool
{
    $times = $given = [];
    foreach (explode(',', $header) as $part) {
        [$name, $value] = explode('=', $part, 2) + [1 => ''];
        if ($name === 't') {
            $times[] = $value;
        } elseif ($name === 'v1') {
            $given[] = $value;
        }
    }
    if (count($times) !== 1 || !preg_match('/^[0-9]{1,12}$/D', $times[0])) {
        return false;
    }

    $want = hash_hmac('sha256', $times[0] . '.' . $body, $secret);
    $genuine = false;
    foreach ($given as $signature) {
        $genuine = hash_equals($want, $signature) || $genuine;
    }

    return $genuine && abs(time() - (int) $times[0]) <= TOLERANCE;
}

// handle is called once per event; what it throws makes the sender try again.
function handle(array $event): void
{
    file_put_contents('php://stdout', "received {$event['type']} {$event['id']}\n");
}

// once calls handle for an event that was not handled before. A service in earnest keeps the ids in its database, in the
// transaction that handles the event. Here each has a file, which is locked while the event is handled and has a byte
// afterwards: an event whose handling threw, or was cut off, is handled when it comes again.
function once(array $event): void
{
    $dir = sys_get_temp_dir() . '/webhooks-' . getenv('PORT');
    if (!is_dir($dir)) {
        @mkdir($dir, 0700);
    }

    $file = fopen($dir . '/' . hash('sha256', $event['id']), 'c+');
    if ($file === false || !flock($file, LOCK_EX)) {
        throw new RuntimeException("no file can be locked in $dir");
    }

    if (fread($file, 1) === '') {
        handle($event);
        fwrite($file, '1');
    }
}

$secret = getenv('WEBHOOK_SECRET');
if ($secret === false || $secret === '') {
    error_log('WEBHOOK_SECRET is not set: set it to the secret that creating the endpoint returned');
    http_response_code(500);
    exit;
}
if ($_SERVER['REQUEST_METHOD'] !== 'POST' || $_SERVER['REQUEST_URI'] !== '/webhooks') {
    http_response_code(404);
    exit;
}

$body = file_get_contents('php://input', false, null, 0, MAX_BODY + 1);
if (strlen($body) > MAX_BODY) {
    http_response_code(413);
    exit;
}

// The signature covers the bytes as they came: verify before parsing.
if (!verify($body, $_SERVER['HTTP_SERVICE_SIGNATURE'] ?? '', $secret)) {
    http_response_code(401);
    exit;
}

once(json_decode($body, true, 512, JSON_THROW_ON_ERROR));
http_response_code(204);

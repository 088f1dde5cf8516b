<?php
/* A producer in PHP with the extension redis (phpredis). Without REDIS_SOCKET it uses the Redis of this host. */

/* Calls a function of leat. Throws a RedisException with its error. */
function call(Redis $client, string $name, ...$arguments): array
{
    $client->clearLastError();
    $answer = $client->rawCommand('FCALL', $name, 1, ...$arguments);
    if ($answer === false) {
        throw new RedisException($client->getLastError() ?? 'no answer');
    }
    return $answer;
}

/* Adds a task, an array of fields. Returns 'new' or 'exists', and the id. */
function add(Redis $client, string $queue, array $task): array
{
    $parts = [];
    foreach ($task as $name => $value) {
        array_push($parts, $name, $value);
    }
    return call($client, 'leat_add', $queue, ...$parts);
}

/* Adds all of these tasks or none. Returns 'new' or 'exists', and the id, of each. */
function add_many(Redis $client, string $queue, array $tasks): array
{
    return array_chunk(call($client, 'leat_add_many', $queue, json_encode($tasks, JSON_THROW_ON_ERROR)), 2);
}

/* The task with not_after, one day ahead, and signature. */
function signed(array $task, string $stream, string $name, string $path): array
{
    $nonce = bin2hex(random_bytes(16));
    $task['not_after'] = time() + 86400;
    ksort($task, SORT_STRING);
    $parts = ['leat1', $name, $nonce, $stream];
    foreach ($task as $field => $value) {
        array_push($parts, $field, $value);
    }
    $form = implode('', array_map(fn ($part) => strlen((string) $part) . ":$part,", $parts));
    $mac = hash_hmac('sha256', $form, preg_replace('/\n\z/', '', file_get_contents($path)));
    return $task + ['signature' => "leat1:$name:$nonce:$mac"];
}

function show(array ...$answers): void
{
    foreach ($answers as [$what, $tid]) {
        echo "$what $tid\n";
    }
}

function produce(Redis $client): void
{
    // one task, by a plain XADD
    echo $client->xAdd('thumbnails', '*', ['command' => 'echo plain $TASK_SIZE >> done', 'SIZE' => 640]), "\n";

    // at most one with that key, in a lane, in half a second: both calls answer the same id
    $index = ['command' => 'echo index >> done', 'unique' => 'index', 'lane' => 'albums', 'delay' => '500ms'];
    show(add($client, 'thumbnails', $index));
    show(add($client, 'thumbnails', $index));

    // two tasks, both or none
    show(...add_many($client, 'thumbnails', [
        ['command' => 'echo two >> done'],
        ['command' => 'echo three $TASK_SIZE >> done', 'SIZE' => 64],
    ]));

    // any bytes for the task's stdin
    show(add($client, 'thumbnails', ['command' => 'cat > bytes', 'payload' => "\x00\x01\xfe\xff\n"]));

    // a task that is refused
    try {
        add($client, 'thumbnails', ['command' => 'echo never >> done', 'result_ttl' => 'soon']);
    } catch (RedisException $error) {
        if (!str_starts_with($error->getMessage(), 'REFUSED')) {
            throw $error;
        }
        echo $error->getMessage(), "\nrefused: 65\n";
    }

    // a signed task, for workers with [security] key_files = 2026a:FILE
    if ($key = getenv('LEAT_KEY')) {
        $task = ['command' => 'echo signed $TASK_SIZE >> done', 'SIZE' => 32, 'a' => '', 'payload' => "\x00\xff"];
        add($client, 'thumbnails', signed($task, 'thumbnails', '2026a', $key));
    }
}

$client = new Redis();
$socket = getenv('REDIS_SOCKET');
$socket ? $client->connect($socket) : $client->connect('localhost');
try {
    produce($client);
} catch (RedisException $error) {
    // FULL: nothing was added, try again later
    fwrite(STDERR, $error->getMessage() . "\n");
    exit(str_starts_with($error->getMessage(), 'FULL') ? 75 : 69);
}

/* A producer in Node with ioredis. Without REDIS_SOCKET it uses the Redis of this host. */
'use strict';
const { createHmac, randomBytes } = require('crypto');
const { readFileSync } = require('fs');
const Redis = require('ioredis');

/* Adds a task, an object of fields. Resolves to ['new' or 'exists', id]. */
function add(client, queue, task) {
  return client.fcall('leat_add', 1, queue, ...Object.entries(task).flat());
}

/* Adds all of these tasks or none. Resolves to 'new' or 'exists' and the id of each, in one list. */
function addMany(client, queue, tasks) {
  return client.fcall('leat_add_many', 1, queue, JSON.stringify(tasks));
}

/* The task with not_after, one day ahead, and signature. Values are text, numbers or Buffers. */
function signed(task, stream, name, path) {
  const key = readFileSync(path, 'latin1').replace(/\n$/, '');
  const nonce = randomBytes(16).toString('hex');
  const all = { ...task, not_after: String(Math.floor(Date.now() / 1000) + 86400) };
  const names = Object.keys(all).map((one) => Buffer.from(one)).sort(Buffer.compare);
  const mac = createHmac('sha256', Buffer.from(key, 'latin1'));
  for (const part of ['leat1', name, nonce, stream, ...names.flatMap((one) => [one, all[one]])]) {
    const bytes = Buffer.isBuffer(part) ? part : Buffer.from(String(part));
    mac.update(`${bytes.length}:`).update(bytes).update(',');
  }
  return { ...all, signature: `leat1:${name}:${nonce}:${mac.digest('hex')}` };
}

function show(answers) {
  for (let i = 0; i < answers.length; i += 2) console.log(answers[i], answers[i + 1]);
}

async function produce(client) {
  // one task, by a plain XADD
  console.log(await client.xadd('thumbnails', '*', 'command', 'echo plain $TASK_SIZE >> done', 'SIZE', 640));

  // at most one with that key, in a lane, in half a second: both calls answer the same id
  const index = { command: 'echo index >> done', unique: 'index', lane: 'albums', delay: '500ms' };
  show(await add(client, 'thumbnails', index));
  show(await add(client, 'thumbnails', index));

  // two tasks, both or none
  show(await addMany(client, 'thumbnails', [
    { command: 'echo two >> done' },
    { command: 'echo three $TASK_SIZE >> done', SIZE: 64 },
  ]));

  // any bytes for the task's stdin
  show(await add(client, 'thumbnails', { command: 'cat > bytes', payload: Buffer.from([0, 1, 254, 255, 10]) }));

  // a task that is refused
  try {
    await add(client, 'thumbnails', { command: 'echo never >> done', result_ttl: 'soon' });
  } catch (error) {
    if (!error.message.startsWith('REFUSED')) throw error;
    console.log(`${error.message}\nrefused: 65`);
  }

  // a signed task, for workers with [security] key_files = 2026a:FILE
  if (process.env.LEAT_KEY) {
    const task = { command: 'echo signed $TASK_SIZE >> done', SIZE: 32, a: '', payload: Buffer.from([0, 255]) };
    await add(client, 'thumbnails', signed(task, 'thumbnails', '2026a', process.env.LEAT_KEY));
  }
}

const client = new Redis(process.env.REDIS_SOCKET ?? 6379);
produce(client).catch((error) => {
  // FULL: nothing was added, try again later
  console.error(error.message);
  process.exitCode = error.message.startsWith('FULL') ? 75 : 69;
}).finally(() => client.disconnect());

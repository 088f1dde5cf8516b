/* A producer in Node with ioredis. Where REDIS_SOCKET is not set, Redis is that of this host. */
'use strict';
const { createHmac, randomBytes } = require('crypto');
const { readFileSync } = require('fs');
const Redis = require('ioredis');

const NAMES = 'bell waiting delayed names conf stats lanes laned'.split(' ');

/* Tasks are objects; due is 0, '+MS' or unix ms. All or nothing: [['new' or 'exists', id]]. */
async function enqueue(client, queue, tasks, due = 0) {
  const keys = [queue, ...NAMES.map((name) => `{${queue}}:${name}`)];
  const args = tasks.flatMap((task) => [due, Object.keys(task).length, ...Object.entries(task).flat()]);
  const [, ...reply] = await client.fcall('leat_enqueue', keys.length, ...keys, ...args);
  return tasks.map((_, i) => [reply[2 * i], reply[2 * i + 1]]);
}

/* The task with not_after, a day ahead, and signature. Values are text, numbers or Buffers. */
function signed(task, stream, name, path) {
  const key = readFileSync(path, 'latin1').replace(/\n$/, '');
  const nonce = randomBytes(16).toString('hex');
  const all = { ...task, not_after: Math.floor(Date.now() / 1000) + 86400 };
  const names = Object.keys(all).map((one) => Buffer.from(one)).sort(Buffer.compare);
  const mac = createHmac('sha256', Buffer.from(key, 'latin1'));
  for (const part of ['leat1', name, nonce, stream, ...names.flatMap((one) => [one, all[one]])]) {
    const bytes = Buffer.isBuffer(part) ? part : Buffer.from(String(part));
    mac.update(`${bytes.length}:`).update(bytes).update(',');
  }
  return { ...all, signature: `leat1:${name}:${nonce}:${mac.digest('hex')}` };
}

function show(answers) {
  for (const [what, tid] of answers) console.log(what, tid);
}

async function produce(client) {
  // one task, the plain way
  console.log(await client.xadd('thumbnails', '*', 'command', 'echo plain $TASK_SIZE >> done', 'SIZE', 640));

  // one that must not be there twice, in a lane, in half a second: the same answer twice
  const index = { command: 'echo index >> done', unique: 'index', lane: 'albums' };
  show(await enqueue(client, 'thumbnails', [index], '+500'));
  show(await enqueue(client, 'thumbnails', [index], '+500'));

  // three in one step; the last one gets any bytes on its stdin
  show(await enqueue(client, 'thumbnails', [
    { command: 'echo two >> done' },
    { command: 'echo three $TASK_SIZE >> done', SIZE: 64 },
    { command: 'cat > bytes', payload: Buffer.from([0, 1, 254, 255, 10]) },
  ]));

  // one that cannot be taken as it is
  try {
    await enqueue(client, 'thumbnails', [{ command: 'echo never >> done', result_ttl: 'soon' }]);
  } catch (error) {
    if (!error.message.startsWith('REFUSED')) throw error;
    console.log(`not taken: 65\n${error.message}`);
  }

  // one for workers that want signatures: [security] key_files = 2026a:FILE
  if (process.env.LEAT_KEY) {
    const task = { command: 'echo signed $TASK_SIZE >> done', SIZE: 32, a: '', payload: Buffer.from([0, 255]) };
    const fields = signed(task, 'thumbnails', '2026a', process.env.LEAT_KEY);
    await client.xadd('thumbnails', '*', ...Object.entries(fields).flat());
  }
}

const client = new Redis(process.env.REDIS_SOCKET ?? 6379);
produce(client).catch((error) => {
  // FULL: nothing was added, try again later
  console.error(error.message);
  process.exitCode = error.message.startsWith('FULL') ? 75 : 69;
}).finally(() => client.disconnect());

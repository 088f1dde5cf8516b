/* A producer in Node with ioredis. Where REDIS_SOCKET is not set, Redis is that of this host. */
'use strict';
const Redis = require('ioredis');

const NAMES = 'bell waiting delayed names conf stats lanes laned'.split(' ');

/* Tasks are objects; due is 0, '+MS' or unix ms. All or nothing: [['new' or 'exists', id]]. */
async function enqueue(client, queue, tasks, due = 0) {
  const keys = [queue, ...NAMES.map((name) => `{${queue}}:${name}`)];
  const args = tasks.flatMap((task) => [due, Object.keys(task).length, ...Object.entries(task).flat()]);
  const [, ...reply] = await client.fcall('leat_enqueue', keys.length, ...keys, ...args);
  return tasks.map((_, i) => [reply[2 * i], reply[2 * i + 1]]);
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
}

const client = new Redis(process.env.REDIS_SOCKET ?? 6379);
produce(client).catch((error) => {
  // FULL: nothing was added, try again later
  console.error(error.message);
  process.exitCode = error.message.startsWith('FULL') ? 75 : 69;
}).finally(() => client.disconnect());

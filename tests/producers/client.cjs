/* Uses leat.js: client.cjs SOCKET QUEUE redis|ioredis. Prints what it saw as JSON, as client.py does. */
'use strict';
const { Queue } = require('leat.js');

const [, , socket, name, kind] = process.argv;
const hour = 3600000;

async function connect() {
  if (kind === 'ioredis') return new (require('ioredis'))(socket);
  const client = require('redis').createClient({ socket: { path: socket } });
  await client.connect();
  return client;
}

function shown(result) {
  return result &&
    [result.state, result.succeeded, result.cause, result.status, result.stdout, result.stderr, result.attempt];
}

async function fails(promise) {
  try {
    await promise;
  } catch (error) {
    return [error.name, error.message];
  }
  return null;
}

async function main() {
  const client = await connect();
  const queue = new Queue(name, client);
  const seen = {};
  const ok = await queue.add('cat; echo $TASK_SIZE',
    { payload: Buffer.from('a\n'), env: { SIZE: 640 }, resultTtl: '1h', lane: 'alice' });
  seen.ok = shown(await ok.wait(300000));
  const bad = await queue.add('echo out; echo err >&2; exit 3', { maxAttempts: 1, resultTtl: hour, timeout: hour });
  seen.bad = shown(await bad.wait());
  const one = await queue.add({ command: 'true', unique: 'x', delay: '1d', resultTtl: '1h' });
  const two = await queue.add('true', { unique: 'x', delay: 24.5 * hour });
  seen.unique = [one.new, two.new, one.tid === two.tid];
  seen['not yet'] = await one.wait(50);
  seen['at once'] = await one.wait(0);
  seen.cancel = [await one.cancel(), await one.cancel()];
  seen.cancelled = shown(await one.wait(300000));
  const many = await queue.addMany([{ command: 'echo one', resultTtl: '1h' },
    { command: 'echo $TASK_N', env: { N: 2 }, resultTtl: '1h' }]);
  seen.many = [];
  for (const task of many) seen.many.push(shown(await task.wait(300000)));
  const long = await queue.add('exec sleep 600', { resultTtl: '1h' });
  while (await long.wait(200) === null) await long.cancel();
  seen.killed = shown(await long.wait(300000)).slice(0, 3);
  const plain = await queue.add('true');
  seen['no result'] = await fails(plain.wait(1000));
  seen.refused = await fails(queue.add('true', { lane: 'x'.repeat(201) }));
  seen.unknown = await fails(queue.add('true', { SIZE: 1 }));
  seen.env = await fails(queue.add('true', { env: { lane: 'x' } }));
  seen.bytes = await fails(queue.addMany([{ command: 'cat', payload: Buffer.from([255]) }]));
  console.log(JSON.stringify(seen));
  await (kind === 'ioredis' ? client.quit() : client.disconnect());
}

main();

/* Adds tasks to leat's queues, waits for their results, and cancels them. Needs a client of the package redis
 * (node-redis 4 to 6) or ioredis (5 or 6), and nothing else; leat.d.ts has the types.
 *
 *   const { Queue } = require('leat');
 *
 *   const queue = new Queue('thumbnails', client);
 *   const task = await queue.add('make thumbs', { env: { SIZE: 640 }, lane: 'alice', resultTtl: '1h' });
 *   console.log((await task.wait(60_000))?.stdout);
 *
 * leat-protocol(7) explains the fields of a task.
 *
 * A resident process does tasks itself; it needs no client. RESIDENT PROCESSES in leatd(8) has the rules:
 *
 *   const { serve } = require('leat');
 *
 *   serve(async (attempt) => console.log(String(attempt.payload), attempt.fields.SIZE)); */
'use strict';

const fs = require('fs');
const readline = require('readline');

const SUFFIXES = ['bell', 'waiting', 'delayed', 'names', 'conf', 'stats', 'lanes', 'laned', 'go', 'running',
  'dead', 'workers', 'cancel', 'awaited'];
const FIELDS = new Set(['command', 'payload', 'id', 'unique', 'unique_for', 'unique_next', 'lane', 'delay', 'at', 'expires',
  'directory', 'timeout', 'max_attempts', 'max_output', 'result_ttl', 'live', 'memory_max', 'memory_high',
  'pids_max', 'cpu_max', 'cpu_weight', 'io_weight', 'traceparent', 'tracestate', 'baggage']);
const DURATIONS = new Set(['unique_for', 'delay', 'timeout', 'result_ttl']);
const BLOCK_MS = 20000; // the longest blocking read
const PATIENCE_MS = 5000; // for an answer that is late
const LONGEST_TIMER_MS = 2 ** 31 - 1 - PATIENCE_MS;
const REPORT = 3; // the descriptor for reports of a resident process
const REASON = 500; // characters; a report has at most 4096 bytes

/* The task is wrong; it was not added, and would not be if it was added again. */
class Refused extends Error {}
Refused.prototype.name = 'Refused';

/* The queue is at its length limit; add the task later. */
class Full extends Error {}
Full.prototype.name = 'Full';

/* A value as the protocol wants it. Numbers that are durations are milliseconds, as everywhere in Node. */
function valueOf(name, value) {
  if (Buffer.isBuffer(value)) return value;
  if (value instanceof Uint8Array) return Buffer.from(value);
  if (value instanceof Date) return name === 'expires' ? String(value.getTime() / 1000) : String(value.getTime());
  if (DURATIONS.has(name) && typeof value === 'number') return `${Math.round(value)}ms`;
  return value === true ? '1' : String(value);
}

/* The fields of a task as [name, value] of the protocol. */
function pairsOf(task) {
  const pairs = [];
  for (const [key, value] of Object.entries(task)) {
    const name = key.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    if (value === undefined || value === null || value === false) continue;
    if (key === 'env') {
      for (const [variable, one] of Object.entries(value)) {
        if (FIELDS.has(variable)) {
          throw new Refused(`env: ${variable} is a field of the task, and no variable; give it outside of env`);
        }
        pairs.push([variable, valueOf('', one)]);
      }
    } else if (FIELDS.has(name)) {
      pairs.push([name, valueOf(name, value)]);
    } else {
      throw new Refused(`${key}: no such field; give variables of the task as env: { ${key}: … }`);
    }
  }
  return pairs;
}

/* A task as an object of the list that leat_add_many takes. */
function jsonOf(task) {
  return Object.fromEntries(pairsOf(task).map(([name, value]) => {
    if (Buffer.isBuffer(value) && !value.equals(Buffer.from(value.toString()))) {
      throw new Refused(`${name}: not UTF-8, which JSON needs; give it to add()`);
    }
    return [name, value.toString()];
  }));
}

/* Sends a command by a client of either package. */
function send(client, parts) {
  return typeof client.call === 'function' ? client.call(...parts) : client.sendCommand(parts);
}

/* The exception that fits the answer of a function, without the place in the function that Redis adds. */
function errorOf(error) {
  const [, kind, rest] = /^(REFUSED|FULL) ([^]*?)( script: \w+, on @\w+:\d+\.)?$/.exec(error.message) ?? [];
  const Kind = { REFUSED: Refused, FULL: Full }[kind];
  return Kind ? new Kind(rest, { cause: error }) : error;
}

/* The entries in the answer to XREAD of one stream. RESP2 has a list of streams. RESP3 has a map, which node-redis gives
 * as an object and ioredis as a list of keys and values. */
function entriesOf(reply) {
  if (!Array.isArray(reply)) return Object.values(reply)[0];
  return Array.isArray(reply[0]) ? reply[0][1] : reply[1];
}

/* The result from the fields of its entry, [name, value …]. */
function resultOf(tid, flat) {
  const row = {};
  for (let i = 0; i + 1 < flat.length; i += 2) row[flat[i]] = String(flat[i + 1]);
  const used = (row.usage ?? '').split(' ').filter(Boolean);
  const usage = {};
  for (let i = 0; i + 1 < used.length; i += 2) usage[used[i]] = Number(used[i + 1]);
  return {
    tid,
    state: row.state,
    succeeded: row.state === 'success',
    cause: row.cause ?? '',
    status: /^\d+$/.test(row.status ?? '') ? Number(row.status) : null,
    reason: row.reason ?? '',
    stdout: row.stdout ?? '',
    stderr: row.stderr ?? '',
    attempt: Number(row.attempt ?? 0),
    worker: row.worker ?? '',
    durationMs: Number(row.duration_us ?? 0) / 1000,
    usage,
  };
}

/* Reads the result of a task by a client for blocking reads. Resolves to null at the deadline. */
async function readResult(reader, key, tid, deadline) {
  if (typeof reader.call !== 'function') await reader.connect();
  for (;;) {
    const left = Math.max(0, Math.round(Math.min(BLOCK_MS, deadline - performance.now())));
    const block = left > 0 ? ['BLOCK', String(left)] : [];
    const reply = await send(reader, ['XREAD', ...block, 'STREAMS', key, '0']);
    if (reply) return resultOf(tid, entriesOf(reply)[0][1]);
    if (!(left > 0)) return null;
  }
}

/* A task that was added. */
class Task {
  constructor(queue, tid, isNew, kept) {
    this.tid = tid;
    this.new = isNew;
    Object.defineProperty(this, 'queue', { value: queue });
    Object.defineProperty(this, 'resultKept', { value: kept });
  }

  async wait(timeoutMs) {
    if (!this.resultKept) {
      throw new Error(`task ${this.tid}: no result is kept; add the task with resultTtl: '1h'`);
    }
    return this.queue.wait(this.tid, timeoutMs);
  }

  cancel() {
    return this.queue.cancel(this.tid);
  }
}

/* A queue. It has the name of the stream. */
class Queue {
  constructor(name, client, group = 'leat') {
    this.name = name;
    this.client = client;
    this.group = group;
    this.prefix = /^[^{]*\{[^}]+\}/.test(name) ? name : `{${name}}`;
  }

  async call(name, keys, ...parts) {
    try {
      return await send(this.client, ['FCALL', name, String(keys.length), ...keys, ...parts]);
    } catch (error) {
      throw errorOf(error);
    }
  }

  async add(command, options = {}) {
    const task = typeof command === 'string' ? { ...options, command } : command;
    const [what, tid] = await this.call('leat_add', [this.name], ...pairsOf(task).flat());
    return new Task(this, String(tid), String(what) === 'new', Boolean(task.resultTtl));
  }

  async addMany(tasks) {
    const answer = await this.call('leat_add_many', [this.name], JSON.stringify(tasks.map(jsonOf)));
    return tasks.map((task, i) =>
      new Task(this, String(answer[2 * i + 1]), String(answer[2 * i]) === 'new', Boolean(task.resultTtl)));
  }

  async wait(tid, timeoutMs = Infinity) {
    const deadline = performance.now() + timeoutMs;
    const reader = this.client.duplicate();
    // a broken connection rejects the read
    reader.on('error', () => {});
    // while Redis is down, clients connect again and again
    let timer = null;
    const silence = new Promise((resolve, reject) => {
      const tell = () => reject(new Error(`task ${tid}: cannot tell whether it has ended: Redis does not answer`));
      if (timeoutMs < LONGEST_TIMER_MS) timer = setTimeout(tell, timeoutMs + PATIENCE_MS);
    });
    try {
      return await Promise.race([readResult(reader, `${this.prefix}:result:${tid}`, tid, deadline), silence]);
    } finally {
      clearTimeout(timer);
      try {
        await (reader.destroy ?? reader.disconnect).call(reader);
      } catch { /* it never was open */ }
    }
  }

  async cancel(tid) {
    const keys = [this.name, ...SUFFIXES.map((suffix) => `${this.prefix}:${suffix}`)];
    for (;;) {
      const [, state] = await this.call('leat_cancel', keys, this.group, '1', tid, '');
      if (String(state) !== 'later') return String(state) !== 'gone';
    }
  }
}

/* ---- resident processes */

/* Throw it in a handler: the task becomes a dead letter at once. */
class Dead extends Error {}
Dead.prototype.name = 'Dead';

/* Throw it in a handler: the attempt ends as a process with this exit status, so the rules of [retry] apply. */
class Exit extends Error {
  constructor(status, reason = '') {
    super(reason);
    // child_process has null for a signal
    if (!Number.isInteger(status) || status < 0 || status > 255) {
      throw new RangeError(`Exit: ${status} is no exit status; give a number from 0 to 255`);
    }
    this.status = status;
  }
}
Exit.prototype.name = 'Exit';

/* The number and the attempt of a record. */
function attemptOf(line) {
  let record = null;
  try {
    record = JSON.parse(line);
  } catch { /* told below */ }
  if (!record || !record.fields) {
    throw new Error('serve: a record is no JSON; set [task] resident = yes, batch_format = json');
  }
  const { index, fields: { payload = '', ...fields }, base64 = {} } = record;
  const bytes = base64.payload === undefined ? Buffer.from(payload) : Buffer.from(base64.payload, 'base64');
  for (const [name, coded] of Object.entries(base64)) {
    if (name !== 'payload') fields[name] = Buffer.from(coded, 'base64').toString();
  }
  return [index, {
    tid: record.tid,
    id: record.id ?? null,
    attempt: record.attempt,
    maxAttempts: record.max_attempts,
    fence: record.fence,
    enqueuedAt: new Date(record.enqueued_at * 1000),
    deadline: record.deadline === undefined ? null : new Date(record.deadline * 1000),
    payload: bytes,
    fields,
  }];
}

/* The report on an attempt that has ended with this error. An unexpected one is in the task's output, too. */
function failureOf(error) {
  let result = 'retry';
  let reason = String(error);
  if (error instanceof Exit || error instanceof Dead) {
    result = error instanceof Exit ? `exit ${error.status}` : 'dead';
    reason = error.message;
  } else {
    console.error(error);
  }
  return `${result} ${reason.replace(/\s+/g, ' ').slice(0, REASON)}`;
}

async function serve(work) {
  if (!process.env.LEAT_BATCH) {
    throw new Error('serve: leatd starts this program, with [task] resident = yes; leat try tries it');
  }
  const report = (line) => fs.writeSync(REPORT, `${line}\n`);
  const one = async (index, attempt) => {
    let result = 'ok';
    try {
      await work(attempt);
    } catch (error) {
      result = failureOf(error);
    }
    report(`${index} ${result}`);
  };
  const running = new Set();
  const lines = readline.createInterface({ input: process.stdin });
  report('ready');
  for await (const line of lines) {
    const done = one(...attemptOf(line));
    running.add(done);
    done.finally(() => running.delete(done));
  }
  await Promise.all(running);
}

module.exports = { Queue, Task, Refused, Full, Dead, Exit, serve };

/* A resident process with leat.js, as serve.py. */
'use strict';
const { spawnSync } = require('child_process');
const { serve, Dead, Exit } = require('leat.js');

const waiting = [];

async function work(attempt) {
  const payload = String(attempt.payload);
  if (payload === 'meet') {
    await new Promise((resolve) => {
      waiting.push(resolve);
      if (waiting.length === 2) waiting.forEach((meet) => meet());
    });
    return;
  }
  const right = attempt.attempt >= 1 && attempt.attempt <= attempt.maxAttempts && attempt.fence > 0 &&
    attempt.deadline > attempt.enqueuedAt;
  if (!right) throw new Error('wrong numbers');
  console.log(attempt.tid, attempt.id ?? 'None', attempt.payload.toString('hex'), attempt.fields.SIZE);
  if (payload === 'dead') throw new Dead('no way\nout');
  if (payload === 'signal') throw new Exit(spawnSync('kill -9 $$', { shell: true }).status);
  if (payload === 'exit') throw new Exit(65, 'wrong data');
  if (payload === 'fail') throw new TypeError('x'.repeat(900));
  if (payload === 'read') {
    spawnSync('for fd in 3 4 5; do ! true 2>/dev/null >&$fd || echo open; done', { shell: true, stdio: [0, 1, 2] });
  }
}

serve(work);

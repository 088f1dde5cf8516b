#!/usr/bin/node
// A resident process for leat, to copy. RESIDENT PROCESSES in leatd(8) has the rules.
//
// [task]
// command = exec /usr/local/bin/handler.js
// resident = yes
// batch_format = json
const fs = require('fs');
const readline = require('readline');

// Does one task. An exception is a failure, and its text is the reason.
async function work(task) {
  const payload = task.fields.payload;
  if (!payload) {
    throw new Error('there is no payload');
  }
  console.log('attempt', task.attempt, 'of', payload);
}

async function main() {
  const lines = readline.createInterface({ input: process.stdin });
  fs.writeSync(3, 'ready\n');
  for await (const line of lines) { // until the end of the file
    const task = JSON.parse(line);
    let result = 'ok';
    try {
      await work(task);
    } catch (error) {
      result = `retry ${error.message}`.replace(/\n/g, ' ').slice(0, 500);
    }
    fs.writeSync(3, `${task.index} ${result}\n`);
  }
}

main();

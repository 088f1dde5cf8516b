// A resident process that does nothing, as people would write it.
const fs = require('fs');
const readline = require('readline');

async function work() {}

const lines = readline.createInterface({ input: process.stdin });
fs.writeSync(3, 'ready\n');
lines.on('line', async (line) => {
  const task = JSON.parse(line);
  let result = 'ok';
  try {
    await work(task);
  } catch (error) {
    result = `retry ${error.message}`;
  }
  fs.writeSync(3, `${task.index} ${result}\n`);
});

// node bullmq_noop.js MODULES SOCKET add COUNT: adds jobs. ... work CONCURRENCY: runs them until TERM comes.
const { Queue, Worker } = require(`${process.argv[2]}/bullmq`);

const connection = { path: process.argv[3], maxRetriesPerRequest: null };
const number = Number(process.argv[5]);

async function add() {
  const queue = new Queue('noop', { connection });
  for (let left = number; left > 0; left -= 1000) {
    const job = { name: 'noop', data: {}, opts: { removeOnComplete: true } };
    await queue.addBulk(new Array(Math.min(left, 1000)).fill(job));
  }
  await queue.close();
}

function work() {
  const worker = new Worker('noop', async () => {}, { connection, concurrency: number });
  process.on('SIGTERM', () => worker.close().then(() => process.exit(0)));
}

if (process.argv[4] === 'add') {
  add();
} else {
  work();
}

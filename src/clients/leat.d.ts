/** Adds tasks to leat's queues, waits for their results, and cancels them; serves as a resident process. See
 * leat-protocol(7) for the fields of a task, and RESIDENT PROCESSES in leatd(8). */

/** A duration such as '5m', or milliseconds. */
export type Duration = string | number;

/** A connected client of the package redis (4 to 6) or ioredis (5 or 6). */
export interface Client {
  duplicate(): any;
  call?: unknown;
  sendCommand?: unknown;
}

/** Fields that a task can have besides its command. */
export interface Options {
  /** The standard input of the task. */
  payload?: string | Uint8Array;
  /** Variables; the task finds NAME in $TASK_NAME. */
  env?: Record<string, string | number | Uint8Array>;
  /** A label; nothing is added while a task with it is in the queue. */
  id?: string;
  /** Nothing is added while a task with this key waits or runs. */
  unique?: string;
  /** After a success, the key stays taken for so long. */
  uniqueFor?: Duration;
  /** If the task with the key runs, add one that follows it. */
  uniqueNext?: boolean;
  /** Lanes take turns. */
  lane?: string;
  /** Start no earlier than that. */
  delay?: Duration;
  /** Start no earlier than then. */
  at?: Date;
  /** A task that has not started by then becomes a dead letter. */
  expires?: Date;
  /** Where the task starts, an absolute path on the worker's host. */
  directory?: string;
  /** An attempt that runs longer is killed. */
  timeout?: Duration;
  maxAttempts?: number;
  /** Such as '64K'. */
  maxOutput?: string;
  /** How long the result is kept; wait() needs that. */
  resultTtl?: Duration;
  /** Send the output while the task runs. */
  live?: boolean;
  /** The trace that the task belongs to (W3C Trace Context). */
  traceparent?: string;
  tracestate?: string;
  baggage?: string;
  memoryMax?: string;
  memoryHigh?: string;
  pidsMax?: number;
  cpuMax?: string;
  cpuWeight?: number;
  ioWeight?: number;
}

/** A task with its command, which may be missing if the worker's configuration has one. */
export interface Fields extends Options {
  command?: string;
}

/** How a task ended. */
export interface Result {
  tid: string;
  state: 'success' | 'dead' | 'cancelled';
  succeeded: boolean;
  /** success, or as in dead letters: exit, timeout, oom … */
  cause: string;
  /** The exit status, if there is one. */
  status: number | null;
  /** Why it failed, in words. */
  reason: string;
  /** The end of what the last attempt wrote. */
  stdout: string;
  stderr: string;
  attempt: number;
  worker: string;
  durationMs: number;
  /** The resources that the last attempt used, as far as they are known: cpu_us, max_rss … */
  usage: Record<string, number>;
}

export class Task {
  private constructor();
  readonly tid: string;
  /** False: a task with the same id or unique key was in the queue, and this is that one. */
  readonly new: boolean;
  /** As Queue.wait. */
  wait(timeoutMs?: number): Promise<Result | null>;
  /** As Queue.cancel. */
  cancel(): Promise<boolean>;
}

export class Queue {
  /** name: the stream of the queue. group: its consumer group, if that is not leat. */
  constructor(name: string, client: Client, group?: string);
  readonly name: string;
  /** Adds a task. Resolves to the task with the same id or unique key if there is one; its new is false. */
  add(command: string, options?: Options): Promise<Task>;
  add(task: Fields): Promise<Task>;
  /** Adds all of these tasks (at most 10,000) in one step, or none. */
  addMany(tasks: Fields[]): Promise<Task[]>;
  /** Resolves when the task has ended, or to null after that time. The task must have been added with resultTtl.
   * Each call opens a connection. */
  wait(tid: string, timeoutMs?: number): Promise<Result | null>;
  /** Cancels a task. Resolves to false if it is not in the queue. If it runs, its worker ends it at once. */
  cancel(tid: string): Promise<boolean>;
}

/** The task is wrong; it was not added, and would not be if it was added again. */
export class Refused extends Error {}

/** The queue is at its length limit; add the task later. */
export class Full extends Error {}

/** An attempt of a task, which leatd has handed to this process. */
export interface Attempt {
  tid: string;
  /** The label that the producer chose. */
  id: string | null;
  /** From 1. */
  attempt: number;
  maxAttempts: number;
  /** Greater than in all earlier runs of the task; see FENCING in leatd(8). */
  fence: number;
  enqueuedAt: Date;
  /** When the attempt times out. */
  deadline: Date | null;
  /** A Buffer. */
  payload: Uint8Array;
  /** All other fields. */
  fields: Record<string, string>;
}

/** The loop of a resident process, for [task] resident = yes and batch_format = json. Calls work for each task; with
 * [task] batch greater than 1, for up to that many at a time. Resolves when leatd ends the process. If work returns, the
 * task has succeeded, whatever it returns. If it throws, the attempt has failed, and the error is the reason; see also
 * Dead and Exit. */
export function serve(work: (attempt: Attempt) => unknown): Promise<void>;

/** Throw it in a handler: the task becomes a dead letter at once. */
export class Dead extends Error {}

/** Throw it in a handler: the attempt ends as a process with this exit status, so the rules of [retry] apply. */
export class Exit extends Error {
  constructor(status: number, reason?: string);
  readonly status: number;
}

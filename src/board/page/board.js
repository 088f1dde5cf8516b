// The page of leat-board. All that comes from tasks is shown by textContent: nothing here makes markup of text.
'use strict';

const PERIOD_MS = 2000, SERIES_PERIOD_MS = 10000, SVG = 'http://www.w3.org/2000/svg';
const main = document.getElementById('main'), pulse = document.getElementById('pulse');
const pulseText = document.getElementById('pulse-text'), crumbs = document.getElementById('crumbs');
const dialog = document.getElementById('task');
let token = '', view = null, timer = 0, fetchedAt = 0, seriesAt = 0, span = 'hour', turn = 0, shownQueues = '';

// ---- text

// Control characters, and those that change the direction of text, become visible.
function safe(text) {
  return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g,
    (found) => '\\u' + found.charCodeAt(0).toString(16).padStart(4, '0'));
}

// A member of an answer; bytes that are no UTF-8 come as NAME_base64.
function textOf(object, name) {
  if (object[name] !== undefined) {
    return safe(object[name]);
  }
  const bytes = object[name + '_base64'];
  return bytes === undefined ? '' : Array.from(atob(bytes), (one) => one >= ' ' && one <= '~' ? one
    : one === '\n' ? one : '\\x' + one.charCodeAt(0).toString(16).padStart(2, '0')).join('');
}

function count(number) {
  return Number(number || 0).toLocaleString('en-US');
}

function short(number) {
  const steps = [[1e9, 'G'], [1e6, 'M'], [1e3, 'k']];
  for (const [size, unit] of steps) {
    if (number >= size) {
      return (number / size).toFixed(number >= 10 * size ? 0 : 1).replace(/\.0$/, '') + unit;
    }
  }
  return number >= 10 || Number.isInteger(number) ? String(Math.round(number)) : number.toFixed(number < 1 ? 2 : 1);
}

// As leat writes times: in the two largest units.
function spanText(ms) {
  const units = [['d', 86400000], ['h', 3600000], ['m', 60000], ['s', 1000]];
  if (ms < 1000) {
    return ms > 0 ? Math.round(ms) + 'ms' : '0s';
  }
  const first = units.findIndex(([, size]) => ms >= size);
  const rest = first < 3 ? Math.floor(ms % units[first][1] / units[first + 1][1]) : 0;
  return Math.floor(ms / units[first][1]) + units[first][0] + (rest > 0 ? ' ' + rest + units[first + 1][0] : '');
}

function ageOf(unixMs, nowMs) {
  return unixMs > 0 && unixMs < nowMs + 60000 ? spanText(nowMs - unixMs) : '–';
}

function dateText(unixMs) {
  return unixMs > 0 ? new Date(unixMs).toLocaleString(undefined, {dateStyle: 'medium', timeStyle: 'medium'}) : '–';
}

// A word for a shell.
function quote(word) {
  return /^[\w.@%+=:,/-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'";
}

function causeOf(row) {
  const cause = textOf(row, 'cause'), status = textOf(row, 'status');
  return !status || status === cause ? cause : status.startsWith(cause) ? status : cause + ' ' + status;
}

function workerOf(row) {
  return textOf(row, 'worker').split(':')[0];
}

// ---- elements

function el(name, properties, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties || {})) {
    if (key === 'on') {
      Object.entries(value).forEach(([event, act]) => made.addEventListener(event, act));
    } else if (/^aria[A-Z]/.test(key)) {
      made.setAttribute('aria-' + key.slice(4).toLowerCase(), value);
    } else if (key in made) {
      made[key] = value;
    } else {
      made.setAttribute(key, value);
    }
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

function setText(node, text) {
  if (node.textContent !== text) {
    node.textContent = text;
  }
}

function setClass(node, name) {
  if (node.className !== name) {
    node.className = name;
  }
}

const badgeKinds = {healthy: 'good', paused: 'warn', drained: 'warn', pressed: 'warn', draining: 'warn',
  starting: '', running: 'good', ready: '', retrying: 'warn', delayed: '', following: '', claimed: '', held: 'warn',
  succeeded: 'good', cancelled: ''};

function badgeKind(state) {
  return Object.hasOwn(badgeKinds, state) ? badgeKinds[state] : 'bad';
}

function setBadge(node, state) {
  setText(node, state);
  setClass(node, 'badge ' + badgeKind(state));
}

// The state of a task, or how it ended.
function stateOf(row) {
  return row.state === 'done' ? textOf(row, 'outcome') || 'ended' : safe(row.state);
}

function panel(title, ...children) {
  const note = el('span', {className: 'soft'});
  const heading = el('h2', {textContent: title});
  const header = el('header', {}, heading, note);
  const section = el('section', {className: 'panel', ariaLabel: title}, header, ...children);
  return {section, header, heading, note};
}

// A table whose rows stay the same elements as long as their keys do, so that the focus stays too. columns: title,
// name of the class, fill(cell, row); make(cell) once for a new row.
function table(label, columns, keyOf, empty) {
  const body = el('tbody');
  const head = el('tr', {}, ...columns.map((one) => el('th', {scope: 'col', textContent: one.title,
    className: one.name || ''})));
  const whole = el('table', {ariaLabel: label}, el('thead', {}, head), body);
  const none = el('p', {className: 'soft', textContent: empty});
  const known = new Map();
  function update(rows, now) {
    const seen = new Set();
    let place = body.firstElementChild;
    for (const row of rows) {
      const key = keyOf(row);
      if (seen.has(key)) {
        continue;
      }
      seen.add(key);
      let line = known.get(key);
      if (!line) {
        line = el('tr', {}, ...columns.map((one) => el('td', {className: one.name || ''})));
        known.set(key, line);
        columns.forEach((one, i) => one.make && one.make(line.children[i], line));
      }
      line.row = row;
      columns.forEach((one, i) => one.fill(line.children[i], row, now));
      if (line === place) {
        place = place.nextElementSibling;
      } else {
        body.insertBefore(line, place);
      }
    }
    for (const [key, line] of known) {
      if (!seen.has(key)) {
        line.remove();
        known.delete(key);
      }
    }
    whole.classList.toggle('hidden', rows.length === 0);
    none.classList.toggle('hidden', rows.length > 0);
  }
  return {node: el('div', {}, whole, none), update};
}

function plainColumn(title, name, value) {
  return {title, name, fill: (cell, row, now) => setText(cell, value(row, now))};
}

// The column that opens the task.
function commandColumn() {
  return {
    title: 'Command', name: 'grow',
    make(cell, line) {
      cell.append(el('button', {className: 'plain', type: 'button', on: {click: () => openTask(line.row)}}));
    },
    fill(cell, row) {
      const command = textOf(row, 'command'), payload = textOf(row, 'payload_start');
      const text = command || (payload ? '< ' + payload : '(no command)');
      setText(cell.firstChild, text.replace(/\s+/g, ' '));
      cell.firstChild.title = text;
    },
  };
}

function copyLine(text) {
  const code = el('code', {textContent: text});
  const button = el('button', {className: 'box', type: 'button', textContent: 'Copy', ariaLabel: 'Copy: ' + text,
    on: {click: async () => {
      try {
        await navigator.clipboard.writeText(text);
        button.textContent = 'Copied';
      } catch {
        getSelection().selectAllChildren(code);
        button.textContent = 'Selected';
      }
      setTimeout(() => { button.textContent = 'Copy'; }, 1500);
    }}});
  return el('div', {className: 'command'}, code, button);
}

// ---- the board's answers

class Refused extends Error {}

async function get(path, parameters) {
  const query = new URLSearchParams(parameters || {}).toString();
  const answer = await fetch(path + (query ? '?' + query : ''),
    {headers: token ? {Authorization: 'Bearer ' + token} : {}, cache: 'no-store', credentials: 'omit'});
  if (answer.status === 401) {
    throw new Refused();
  }
  if (!answer.ok) {
    throw Object.assign(new Error((await answer.text()).trim()), {status: answer.status});
  }
  return answer.json();
}

// A question to a queue, which answers only some in a second.
async function ask(path, parameters) {
  for (let tries = 0; ; tries++) {
    try {
      return await get(path, parameters);
    } catch (error) {
      if (error.status !== 429 || tries === 5) {
        throw error;
      }
      await new Promise((resolve) => { setTimeout(resolve, 600); });
    }
  }
}

// ---- plots

const WIDTH = 359, HEIGHT = 100;

function svg(name, attributes) {
  const made = document.createElementNS(SVG, name);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  return made;
}

function ceiling(value) {
  if (!(value > 0)) {
    return 1;
  }
  const size = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find((one) => one * size >= value) * size;
}

// The least of these times that is not below the value: labels at it and at its half are whole numbers.
function timeCeiling(ms) {
  const times = [1, 2, 4, 10, 20, 40, 100, 200, 400, 1e3, 2e3, 4e3, 10e3, 20e3, 60e3, 120e3, 240e3, 600e3, 1200e3, 3600e3,
    7200e3, 14400e3, 43200e3, 86400e3, 172800e3];
  return times.find((one) => one >= ms) || Math.ceil(ms / 345600e3) * 345600e3;
}

function timeText(ms) {
  return ms > 0 && ms < 10 ? Number(ms.toFixed(1)) + 'ms' : spanText(ms);
}

const numbers = {text: short, ceiling}, times = {text: timeText, ceiling: timeCeiling};

function pathOf(values, top, closed) {
  let path = '', start = -1;
  const end = (last) => {
    if (closed && start >= 0) {
      path += `L${last} ${HEIGHT}L${start} ${HEIGHT}Z`;
    }
    start = -1;
  };
  values.forEach((value, i) => {
    if (value === null) {
      end(i - 1);
      return;
    }
    const y = (HEIGHT - value / top * HEIGHT).toFixed(2);
    path += start < 0 ? `M${i} ${y}${closed ? '' : 'h.01'}` : `L${i} ${y}`;
    start = start < 0 ? i : start;
  });
  end(values.length - 1);
  return path;
}

// lines: [{name: of the series, title, kind: colour}]; scale: numbers or times
function chart(title, lines, scale) {
  const drawing = svg('svg', {viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: 'none', 'aria-hidden': 'true'});
  [0, .5, 1].forEach((part) => drawing.append(svg('line', {class: 'grid', x1: 0, x2: WIDTH, y1: part * HEIGHT,
    y2: part * HEIGHT})));
  const paths = lines.map((line) => {
    const area = svg('path', {class: 'area s-' + line.kind}), stroke = svg('path', {class: 's-' + line.kind});
    drawing.append(area, stroke);
    return {area, stroke};
  });
  const cursor = svg('line', {class: 'cursor hidden', y1: 0, y2: HEIGHT});
  drawing.append(cursor);
  const values = lines.map(() => document.createTextNode('–'));
  const keys = lines.map((line, i) => el('span', {className: 'key s-' + line.kind},
    el('span', {}, lines.length > 1 ? line.title + ' ' : '', values[i])));
  const when = el('span', {className: 'num'});
  const axis = [0, .5, 1].map((part) => {
    const label = el('span', {className: 'y'});
    label.style.top = `calc(var(--plot) * ${1 - part})`;
    return label;
  });
  const ages = [el('span'), el('span'), el('span', {textContent: 'now'})];
  const figure = el('figure', {className: 'chart', tabIndex: 0, role: 'img'},
    el('figcaption', {}, el('strong', {textContent: title}), ...keys, when),
    el('div', {className: 'plot'}, ...axis, drawing, el('div', {className: 'x'}, ...ages)));
  let data = null, at = -1;
  function show() {
    if (!data) {
      return;
    }
    const size = data[lines[0].name].length;
    lines.forEach((line, i) => {
      const list = data[line.name];
      const value = at >= 0 ? list[at] : list.reduce((last, one) => one === null ? last : one, null);
      values[i].data = value === null ? '–' : scale.text(value);
    });
    setText(when, at >= 0 ? spanText((size - at) * data.step_ms) + ' ago' : '');
    cursor.classList.toggle('hidden', at < 0);
    cursor.setAttribute('x1', at);
    cursor.setAttribute('x2', at);
    figure.setAttribute('aria-label', title + (at >= 0 ? ', ' + when.textContent : '') + ': ' +
      lines.map((line, i) => line.title + ' ' + values[i].data).join(', '));
  }
  function move(to) {
    at = Math.max(0, Math.min(WIDTH, to));
    show();
  }
  function leave() {
    at = -1;
    show();
  }
  drawing.addEventListener('pointermove', (event) => {
    const box = drawing.getBoundingClientRect();
    move(Math.round((event.clientX - box.left) / box.width * WIDTH));
  });
  drawing.addEventListener('pointerleave', leave);
  figure.addEventListener('blur', leave);
  figure.addEventListener('keydown', (event) => {
    const by = {ArrowLeft: -1, ArrowRight: 1, PageUp: 30, PageDown: -30}[event.key];
    if (by) {
      move((at < 0 ? WIDTH : at) + by);
      event.preventDefault();
    } else if (event.key === 'Escape') {
      leave();
    }
  });
  function update(next) {
    data = next;
    const top = scale.ceiling(Math.max(...lines.map((line) => Math.max(0, ...data[line.name]))));
    lines.forEach((line, i) => {
      paths[i].stroke.setAttribute('d', pathOf(data[line.name], top, false));
      paths[i].area.setAttribute('d', i === 0 ? pathOf(data[line.name], top, true) : '');
    });
    [0, top / 2, top].forEach((value, i) => setText(axis[i], scale.text(value)));
    const whole = data.step_ms * (WIDTH + 1);
    setText(ages[0], spanText(whole) + ' ago');
    setText(ages[1], spanText(whole / 2));
    show();
  }
  return {node: figure, update};
}

// ---- all queues

function queuesView() {
  const columns = [
    {title: 'Queue', name: 'text',
      make: (cell) => cell.append(el('a')),
      fill(cell, row) {
        setText(cell.firstChild, safe(row.queue));
        cell.firstChild.href = '#/queue/' + encodeURIComponent(row.queue);
      }},
    {title: 'State', make: (cell) => cell.append(el('span')), fill: (cell, row) => setBadge(cell.firstChild, row.state)},
    figureColumn('Ready', 'ready'), figureColumn('Running', 'running'),
    figureColumn('Delayed', 'delayed', 'middle', 'retrying'), figureColumn('Dead', 'dead', '', null, 'bad'),
    plainColumn('Workers', 'num wide', (row) => row.status ? count(row.status.workers.filter((one) => one.live).length)
      : '–'),
    plainColumn('Tasks/s', 'num wide', (row) => row.status ? short(row.status.rate) : '–'),
    plainColumn('Oldest', 'num middle', (row) => row.status && row.status.figures.ready > 0
      ? spanText(row.status.figures.oldest_ready_ms) : '–'),
  ];
  const list = table('Queues', columns, (row) => row.queue, 'No queue is configured.');
  const alerts = el('div', {className: 'alerts'});
  const frame = panel('Queues', el('div', {className: 'scroll'}, list.node));
  main.replaceChildren(el('h1', {textContent: 'All queues'}), alerts, frame.section);
  document.title = 'leat: all queues';
  return {
    async refresh() {
      const queues = await get('api/queues');
      list.update(queues, 0);
      const wrong = queues.filter((one) => badgeKind(one.state) === 'bad');
      setAlerts(alerts, wrong.map((one) => ({text: safe(one.queue) + ': ' +
        (safe(one.reason) || one.status && one.status.problems.map(safe).join('; ') || one.state)})));
      setText(frame.note, wrong.length > 0 ? `${wrong.length} of ${queues.length} need attention`
        : `${queues.length} in all`);
      return queues.map((one) => one.queue);
    },
  };
}

function figureColumn(title, name, where, second, alarm) {
  return {
    title, name: 'num ' + (where || ''),
    fill(cell, row) {
      const value = row.status ? row.status.figures[name] + (second ? row.status.figures[second] : 0) : null;
      setText(cell, value === null ? '–' : count(value));
      setClass(cell, 'num ' + (where || '') + (value > 0 ? ' ' + (alarm || '') : ' zero'));
    },
  };
}

function setAlerts(node, list) {
  const key = JSON.stringify(list);
  if (node.key !== key) {
    node.key = key;
    node.replaceChildren(...list.map((one) => el('p', {className: 'alert' + (one.mild ? ' warn' : ''),
      textContent: one.text})));
  }
  node.classList.toggle('hidden', list.length === 0);
}

// ---- one queue

function figureBox(title) {
  const number = el('dd', {textContent: '–'}), more = el('dd', {className: 'more'});
  const node = el('div', {className: 'figure'}, el('dt', {textContent: title}), number, more);
  return {node, set(value, text, bad) {
    setText(number, value);
    setText(more, text || '');
    setClass(node, 'figure' + (bad ? ' bad' : ''));
  }};
}

const taskColumns = {
  age: (title, name) => plainColumn(title, 'num', (row, now) => ageOf(row[name], now)),
  label: (where) => ({title: 'Label or id', name: 'lane mono ' + where, fill(cell, row) {
    setText(cell, textOf(row, 'id') || textOf(row, 'tid'));
    cell.title = cell.textContent;
  }}),
  lane: () => plainColumn('Lane', 'lane wide', (row) => textOf(row, 'lane') || '–'),
  host: () => plainColumn('Host', 'middle', (row) => workerOf(row) || '–'),
  tries: () => plainColumn('Try', 'num middle', (row) => count(row.attempts)),
};

function workerState(worker) {
  const state = worker.live ? worker.state || 'unknown' : 'lost';
  return worker.live && worker.drained && state === 'running' ? 'drained' : state;
}

function workersTable(queue) {
  return table('Workers', [
    {title: 'Host', name: 'grow', fill(cell, row) {
      setText(cell, safe(row.host));
      cell.title = cell.textContent;
    }},
    {title: 'State', make: (cell) => cell.append(el('span')),
      fill: (cell, row) => setBadge(cell.firstChild, safe(workerState(row)))},
    {title: 'Slots', name: 'num',
      make: (cell) => cell.append(el('span', {className: 'bar', ariaHidden: 'true'}, el('i')), el('span')),
      fill(cell, row) {
        const known = row.running >= 0 && row.capacity > 0;
        cell.firstChild.firstChild.style.width = known ? Math.min(100, row.running / row.capacity * 100) + '%' : '0';
        setText(cell.lastChild, known ? `${row.running} / ${row.capacity}` : String(row.running ?? '–'));
      }},
    plainColumn('Done', 'num middle', (row) => row.succeeded === undefined ? '–' : count(row.succeeded)),
    plainColumn('Failed', 'num middle', (row) => row.failed === undefined ? '–' : count(row.failed)),
    plainColumn('Seen', 'num', (row, now) => ageOf(row.seen_ms, now)),
    plainColumn('Up', 'num wide', (row, now) => ageOf(row.started_ms, now)),
  ], (row) => row.host + ' ' + row.pid + ' ' + row.started_ms, 'No worker is registered for ' + safe(queue) + '.');
}

function lanesTable() {
  return table('Lanes', [
    plainColumn('Lane', 'text', (row) => textOf(row, 'lane') || '(none)'),
    plainColumn('Waiting', 'num', (row) => count(row.waiting)),
    plainColumn('Running', 'num', (row) => count(row.running)),
    plainColumn('Oldest', 'num middle', (row, now) => ageOf(row.oldest_ms, now)),
    plainColumn('Weight, cap', 'wide', (row) => textOf(row, 'settings') || '–'),
  ], (row) => textOf(row, 'lane'), 'No task waits or runs in a lane.');
}

function deadTable() {
  return table('Dead letters', [
    {title: 'Cause', name: 'cause bad', fill: (cell, row) => setText(cell, causeOf(row))},
    commandColumn(), taskColumns.lane(), taskColumns.tries(), taskColumns.age('Died', 'died_ms'),
  ], (row) => row.dead_id, 'No dead letters.');
}

function tookText(row) {
  return row.duration_us >= 0 ? spanText(Math.floor(row.duration_us / 1000)) : '–';
}

function endedTable() {
  return table('Ended tasks', [
    {title: 'End', name: 'end', fill(cell, row) {
      setText(cell, textOf(row, 'end'));
      cell.title = textOf(row, 'reason');
      setClass(cell, 'end ' + badgeKind(stateOf(row)));
    }},
    commandColumn(), taskColumns.label('roomy'), taskColumns.lane(),
    plainColumn('Host', 'lane vast', (row) => workerOf(row) || '–'), taskColumns.tries(),
    plainColumn('Took', 'num middle', tookText), taskColumns.age('Ended', 'ended_ms'),
  ], endKey, 'No task has ended, or the queue keeps no history.');
}

// A task that was retried after it had become a dead letter ends again.
function endKey(row) {
  return textOf(row, 'tid') + ' ' + row.ended_ms;
}

function commandsPanel(queue) {
  const leat = 'leat -q ' + quote(queue) + ' ';
  return el('section', {className: 'panel', ariaLabel: 'Commands'}, el('header', {},
    el('h2', {textContent: 'Commands'}), el('span', {className: 'soft', textContent: 'The board only reads. Run these in a terminal.'})),
  el('div', {className: 'actions'}, ...['status --watch', 'pause', 'resume', 'drain HOST', 'explain',
    'dead retry --cause timeout', 'doctor'].map((one) => copyLine(leat + one))));
}

// Settings that leat keeps for itself.
const hiddenSettings = ['protocol', 'sizes', 'floor_ms', 'floor_until', 'fence', 'hold_until', 'outage_until'];

function settingsPanel() {
  const frame = panel('Settings and totals');
  const lists = {};
  for (const title of ['Shared settings', 'Since the queue was created']) {
    lists[title] = {node: el('dl'), names: new Map()};
    frame.section.append(el('h3', {textContent: title}), lists[title].node);
  }
  // Once it was shown, it stays.
  function see(title, name, known, text) {
    const {node, names} = lists[title];
    if (known && !names.has(name)) {
      names.set(name, el('dd', {className: 'mono'}));
      node.append(el('div', {}, el('dt', {className: 'mono', textContent: safe(name)}), names.get(name)));
    }
    if (names.has(name)) {
      setText(names.get(name), text);
    }
  }
  frame.section.classList.add('settings');
  return {node: frame.section, update(status) {
    Object.entries(status.conf).sort().filter(([name]) => !hiddenSettings.includes(name)).forEach(([name, value]) =>
      see('Shared settings', name.replace(/_ms$/, ''), value !== '' && value !== 0,
        name.endsWith('_ms') ? spanText(Number(value)) : safe(value)));
    Object.entries(status.figures).filter(([name]) => name.startsWith('total_')).forEach(([name, value]) =>
      see('Since the queue was created', name.slice(6), value > 0, count(value)));
  }};
}

function queueAlerts(answer, status) {
  const list = [];
  if (answer.reason) {
    list.push({text: answer.state + ': ' + safe(answer.reason)});
  }
  if (status) {
    status.problems.forEach((one) => list.push({text: safe(one)}));
    if (status.paused) {
      const by = textOf(status, 'paused_by');
      list.push({mild: true, text: `Paused ${ageOf(status.paused_since_ms, status.now_ms)} ago` + (by ? ' by ' + by : '')
        + ': no task starts. leat -q ' + quote(status.queue) + ' resume ends this.'});
    }
    status.drained.forEach((host) => list.push({mild: true, text: (host === '*' ? 'All hosts are' : safe(host) + ' is') +
      ' drained' + (status.drained_by[host] ? ' by ' + safe(status.drained_by[host]) : '') + '.'}));
  }
  return list;
}

function searchForm(queue, show) {
  const input = el('input', {type: 'search', name: 'text', autocomplete: 'off', spellcheck: false, maxLength: 60,
    placeholder: 'Id, label, lane or command', ariaLabel: 'Search tasks by id, label, lane or command'});
  const form = el('form', {role: 'search', on: {submit: async (event) => {
    event.preventDefault();
    const text = input.value.trim();
    try {
      show(text, text ? await ask('api/search', {queue, text}) : null);
    } catch (error) {
      show(text, {error: error.message || 'The board does not answer.'});
    }
  }}}, input, el('button', {className: 'box', type: 'submit', textContent: 'Search'}));
  return form;
}

function foundPanel() {
  const list = table('Found tasks', [
    {title: 'State', make: (cell) => cell.append(el('span')), fill: (cell, row) => setBadge(cell.firstChild, stateOf(row))},
    commandColumn(), taskColumns.label('middle'), taskColumns.lane(),
  ], (row) => row.tid + row.state, 'No task found.');
  const close = el('button', {className: 'plain end', type: 'button', textContent: 'Close'});
  const frame = panel('Search', list.node);
  frame.header.append(close);
  frame.section.classList.add('hidden');
  close.addEventListener('click', () => frame.section.classList.add('hidden'));
  return {node: frame.section, show(text, answer) {
    frame.section.classList.toggle('hidden', !answer);
    if (answer) {
      setText(frame.heading, 'Search: ' + safe(text));
      setText(frame.note, answer.error || `${count(answer.tasks.length)} found; looked at the first ` +
        `${count(answer.looked_at)} tasks of all lists`);
      list.update(answer.tasks || [], 0);
    }
  }};
}

// Half of the attempts waited or took at most p50, 95 % at most p95.
function percentilesChart(title, name) {
  return chart(title, [{name: name + '_p50_ms', title: 'p50', kind: 'a'}, {name: name + '_p95_ms', title: 'p95', kind: 'b'}],
    times);
}

function plotsPanel() {
  const charts = [
    chart('Ready', [{name: 'ready', title: 'ready', kind: 'a'}], numbers),
    chart('Running', [{name: 'running', title: 'running', kind: 'a'}], numbers),
    chart('Ends per second', [{name: 'succeeded', title: 'succeeded', kind: 'a'}, {name: 'retried', title: 'retried',
      kind: 'b'}, {name: 'died', title: 'died', kind: 'c'}, {name: 'cancelled', title: 'cancelled', kind: 'd'}], numbers),
    percentilesChart('Waiting', 'waiting'), percentilesChart('Duration', 'duration'),
    chart('Delayed and dead', [{name: 'delayed', title: 'delayed', kind: 'a'}, {name: 'dead', title: 'dead', kind: 'c'}],
      numbers),
  ];
  const buttons = [['hour', 'Last hour'], ['day', 'Last day']].map(([name, title]) =>
    el('button', {className: 'box', type: 'button', textContent: title, on: {click: () => choose(name)}}));
  const frame = panel('History', el('div', {className: 'charts'}, ...charts.map((one) => one.node)));
  frame.header.append(el('span', {className: 'toggle end', role: 'group', ariaLabel: 'Span'}, ...buttons));
  function mark() {
    buttons.forEach((one, i) => one.setAttribute('aria-pressed', String(span === ['hour', 'day'][i])));
  }
  function choose(name) {
    span = name;
    seriesAt = 0;
    mark();
    tick();
  }
  mark();
  return {node: frame.section, update: (data) => charts.forEach((one) => one.update(data))};
}

function queueView(queue) {
  const badge = el('span'), alerts = el('div', {className: 'alerts'});
  const boxes = {ready: figureBox('Ready'), running: figureBox('Running'), delayed: figureBox('Delayed'),
    retrying: figureBox('Retrying'), dead: figureBox('Dead letters'), workers: figureBox('Workers')};
  const figures = el('dl', {className: 'figures'}, ...Object.values(boxes).map((one) => one.node));
  const found = foundPanel(), plots = plotsPanel(), settings = settingsPanel();
  const lists = {
    running: table('Running', [commandColumn(), taskColumns.lane(), taskColumns.host(), taskColumns.tries(),
      taskColumns.age('For', 'begun_ms')], (row) => row.tid, 'Nothing runs.'),
    ready: table('Waiting longest', [commandColumn(), taskColumns.lane(), taskColumns.tries(),
      taskColumns.age('Since', 'enqueued_ms')], (row) => row.tid, 'Nothing waits.'),
    delayed: table('Delayed and retrying', [commandColumn(), taskColumns.lane(),
      {title: 'State', name: 'middle', make: (cell) => cell.append(el('span')),
        fill: (cell, row) => setBadge(cell.firstChild, safe(row.state))},
      plainColumn('Due in', 'num', (row, now) => row.due_ms > 0 ? spanText(row.due_ms - now) : '–')], (row) => row.tid,
    'Nothing is delayed.'),
    dead: deadTable(), ended: endedTable(),
  };
  const workers = workersTable(queue), lanes = lanesTable();
  const panels = {
    running: panel('Running', lists.running.node), workers: panel('Workers', workers.node),
    ready: panel('Waiting longest', lists.ready.node), lanes: panel('Longest lanes', lanes.node),
    delayed: panel('Delayed and retrying', lists.delayed.node), dead: panel('Newest dead letters', lists.dead.node),
    ended: panel('Ended last', lists.ended.node),
  };
  main.replaceChildren(
    el('div', {className: 'head'}, el('h1', {textContent: safe(queue)}), badge, searchForm(queue, found.show)),
    alerts, found.node, figures, plots.node,
    el('div', {className: 'columns'}, ...[['workers', 'ready', 'lanes'], ['running'], ['dead', 'delayed']].map((names) =>
      el('div', {className: 'column'}, ...names.map((one) => panels[one].section)))),
    panels.ended.section, el('div', {className: 'columns'}, commandsPanel(queue), settings.node));
  document.title = 'leat: ' + safe(queue);

  let ended = [];

  function showFigures(status) {
    const {figures: now, workers: all} = status;
    const live = all.filter((one) => one.live), lost = all.length - live.length;
    const capacity = live.reduce((sum, one) => sum + Math.max(0, one.capacity || 0), 0);
    boxes.ready.set(count(now.ready), now.ready > 0 ? 'oldest ' + spanText(now.oldest_ready_ms) +
      (now.in_lanes > 0 ? `, ${count(now.in_lanes)} in lanes` : '') : '');
    boxes.running.set(count(now.running), `of ${count(capacity)} slots, ${short(status.rate)} tasks/s`);
    boxes.delayed.set(count(now.delayed), now.next_due_ms > 0 ? 'next in ' + spanText(now.next_due_ms - status.now_ms) : '');
    boxes.retrying.set(count(now.retrying), now.next_retry_ms > 0 ? 'next in ' +
      spanText(now.next_retry_ms - status.now_ms) : '');
    boxes.dead.set(count(now.dead), '', now.dead > 0);
    boxes.workers.set(count(live.length), lost > 0 ? `${lost} lost` : '', live.length === 0);
  }
  function showLists(answer, status) {
    const now = status.now_ms;
    const ready = (answer.ready || []).slice().sort((a, b) => a.enqueued_ms - b.enqueued_ms).slice(0, 12);
    lists.running.update((answer.running || []).slice().sort((a, b) => (a.begun_ms || now) - (b.begun_ms || now)), now);
    lists.ready.update(ready, now);
    lists.delayed.update(answer.delayed || [], now);
    lists.dead.update(answer.dead || [], now);
    lists.ended.update(answer.ended || [], now);
    lanes.update(answer.lanes || [], now);
    workers.update(status.workers, now);
    const more = (name, shown, all) => setText(panels[name].note, all > shown ? `${count(shown)} of ${count(all)}` : '');
    more('running', (answer.running || []).length, status.figures.running);
    more('ready', ready.length, status.figures.ready);
    more('delayed', (answer.delayed || []).length, status.figures.delayed + status.figures.retrying);
    more('dead', (answer.dead || []).length, status.figures.dead);
    setText(panels.ended.note, (answer.ended || []).length > 0 ? `leat -q ${quote(queue)} list --state done shows all of ` +
      'the history' : '');
    more('lanes', (answer.lanes || []).length, status.figures.lanes);
    setText(panels.workers.note, status.workers.length > 0 ? 'Slots are current; Done and Failed count since the start of ' +
      'a worker, as of Seen' : '');
    Object.keys(lists).filter((name) => answer[name] === null).forEach((name) =>
      setText(panels[name].note, 'not known: Redis refused the list, or its library is older'));
  }
  return {
    ended: () => ended,
    async refresh() {
      const answer = await get('api/queue', {queue}), status = answer.status;
      ended = answer.ended || [];
      setBadge(badge, answer.state);
      setAlerts(alerts, queueAlerts(answer, status));
      figures.style.opacity = status ? '' : '.5';
      if (status) {
        showFigures(status);
        showLists(answer, status);
        settings.update(status);
      }
      if (Date.now() - seriesAt >= SERIES_PERIOD_MS) {
        seriesAt = Date.now();
        plots.update(await get('api/series', {queue, span}));
      }
      return null;
    },
  };
}

// ---- one task

function row(title, value) {
  return value ? [el('dt', {textContent: title}), el('dd', {textContent: value})] : [];
}

function block(title, text) {
  return text ? el('div', {}, el('h3', {textContent: title}), el('pre', {tabIndex: 0, textContent: text})) : null;
}

// Commands are copied into a shell, so there are none for a damaged id.
function taskActions(task, queue) {
  if (!/^\d+-\d+$/.test(task.tid)) {
    return null;
  }
  const leat = 'leat -q ' + quote(queue) + ' ';
  const words = {dead: ['dead retry', 'dead drop', 'logs'], running: ['logs -f', 'explain', 'cancel --now'],
    done: ['explain', 'logs']}[task.state] || ['explain', 'cancel'];
  return el('div', {}, el('h3', {textContent: 'What you can do'}), el('div', {className: 'actions'},
    ...words.map((one) => copyLine(leat + one + ' ' + task.tid))));
}

function historyTable(history) {
  const list = table('Attempts that ended', [
    plainColumn('Try', 'num', (one) => count(one.attempt)),
    plainColumn('Cause', 'text', (one) => causeOf(one)),
    plainColumn('Took', 'num', (one) => spanText(one.ended_ms - one.begun_ms)),
    plainColumn('Ended', 'middle', (one) => dateText(one.ended_ms)),
    plainColumn('Host', 'text', (one) => workerOf(one)),
  ], (one) => one.attempt + ' ' + one.begun_ms, 'None.');
  list.update(history, 0);
  return history.length > 0 ? el('div', {}, el('h3', {textContent: 'Attempts that ended'}), list.node) : null;
}

function fieldText(task, name) {
  const field = (task.fields || []).find((one) => one.name === name);
  return field ? textOf(field, 'value') + (field.size ? `\n… ${count(field.size)} bytes in all` : '') : '';
}

function taskBody(task, queue) {
  const apart = ['command', 'payload', 'id', 'lane', 'unique'];
  const others = (task.fields || []).filter((one) => !apart.includes(one.name));
  const usage = task.usage || {};
  return [
    el('dl', {},
      ...(task.state === 'done' ? row('End', textOf(task, 'end')) : row('Cause', causeOf(task))),
      ...row('Reason', textOf(task, 'reason')), ...row('Label', textOf(task, 'id')),
      ...row('Lane', textOf(task, 'lane')), ...row('Unique key', textOf(task, 'unique')),
      ...row('Worker', textOf(task, 'worker')), ...row('Attempts', count(task.attempts)),
      ...row('Crashes', task.crashes > 0 ? count(task.crashes) : ''), ...row('Enqueued', dateText(task.enqueued_ms)),
      ...row('Due', task.due_ms > 0 ? dateText(task.due_ms) : ''),
      ...row('Begun', task.begun_ms > 0 ? dateText(task.begun_ms) : ''),
      ...row('Died', task.died_ms > 0 ? dateText(task.died_ms) : ''),
      ...row('Ended', task.ended_ms > 0 ? dateText(task.ended_ms) : ''),
      ...row('Waited', task.waited_ms >= 0 ? spanText(task.waited_ms) : ''),
      ...row('Took', task.duration_us >= 0 ? tookText(task) : ''),
      ...row('CPU', usage.cpu_us ? (usage.cpu_us / 1e6).toFixed(3) + ' s' : ''),
      ...row('Memory', usage.memory_peak || usage.max_rss ? short(usage.memory_peak || usage.max_rss) + 'B' : '')),
    block(task.state === 'done' ? 'Command, at most its first 200 bytes' : 'Command',
      task.state === 'done' ? textOf(task, 'command') : fieldText(task, 'command')), block('Payload', fieldText(task, 'payload')),
    block('End of stderr', textOf(task, 'stderr')), block('End of stdout', textOf(task, 'stdout')),
    others.length > 0 ? block('Other fields', others.map((one) => textOf(one, 'name') + ' = ' +
      textOf(one, 'value')).join('\n')) : null,
    historyTable(task.history || []), taskActions(task, queue),
  ];
}

// What is known of a task that was chosen: what the queue has, or how it ended. Of an ended one, only the dead letter
// tells more.
async function findTask(task, queue) {
  const ended = task.state === 'done';
  if (ended && task.outcome !== 'dead') {
    return task;
  }
  const found = await ask('api/task', {queue, id: task.dead_id ? 'd' + task.dead_id : task.tid});
  if (ended) {
    return found.state === 'dead' ? found : task;
  }
  return found.tid ? found : view.shown.ended().find((one) => one.tid === task.tid);
}

async function openTask(task) {
  const queue = view.queue, body = el('div', {className: 'body'}, el('p', {className: 'soft', textContent: 'Loading…'}));
  const badge = el('span');
  setBadge(badge, stateOf(task));
  dialog.replaceChildren(el('header', {}, el('h2', {id: 'task-title', textContent: textOf(task, 'tid')}), badge,
    el('button', {className: 'box', type: 'button', textContent: 'Close', on: {click: () => dialog.close()}})), body);
  dialog.showModal();
  try {
    const found = await findTask(task, queue);
    if (found) {
      setBadge(badge, stateOf(found));
      body.replaceChildren(...taskBody(found, queue).filter((one) => one));
    } else {
      body.replaceChildren(el('p', {textContent: 'This task is no longer in the queue: it has ended.'}));
    }
  } catch (error) {
    body.replaceChildren(el('p', {className: 'alert', textContent: error.message || 'The board does not answer.'}));
  }
}

dialog.addEventListener('click', (event) => {
  if (event.target === dialog) {
    dialog.close();
  }
});

// ---- the page

function tokenView() {
  const input = el('input', {type: 'password', name: 'token', autocomplete: 'off', ariaLabel: 'Token'});
  main.replaceChildren(el('section', {className: 'panel tokenform', ariaLabel: 'Token'},
    el('h1', {textContent: 'Token needed'}),
    el('p', {}, 'Run ', el('code', {textContent: 'leat-board --url'}),
      ' on the host of the board, as root, and open the address that it prints; or enter the token here.'),
    el('form', {on: {submit: (event) => {
      event.preventDefault();
      token = input.value.trim();
      go();
    }}}, input, el('button', {className: 'box', type: 'submit', textContent: 'Open'}))));
  document.title = 'leat';
  setPulse('', 'Waiting for the token');
  input.focus();
}

function keptToken() {
  try {
    return localStorage.getItem('leat-token') || '';
  } catch {
    return ''; // without storage it lasts until the page is closed
  }
}

// Keeps a token that the board took: any page elsewhere can open this one with another text in its address.
function keepToken() {
  try {
    if (token !== keptToken()) {
      localStorage.setItem('leat-token', token);
    }
  } catch {
    // as above
  }
}

function setPulse(name, text) {
  setClass(pulse, name);
  setText(pulseText, text);
}

function showCrumbs(queues) {
  const key = JSON.stringify([queues, view.queue]);
  if (shownQueues === key) {
    return;
  }
  shownQueues = key;
  crumbs.replaceChildren(el('select', {ariaLabel: 'Queue', on: {change: (event) => {
    location.hash = event.target.value;
  }}}, el('option', {value: '#/', textContent: 'All queues', selected: !view.queue}),
  ...queues.map((one) => el('option', {value: '#/queue/' + encodeURIComponent(one), textContent: safe(one),
    selected: one === view.queue}))));
}

async function tick() {
  const mine = ++turn;
  clearTimeout(timer);
  try {
    const queues = await view.shown.refresh();
    if (mine !== turn) {
      return;
    }
    if (queues) {
      view.queues = queues;
    } else if (!view.queues) {
      view.queues = (await get('api/queues')).map((one) => one.queue);
    }
    keepToken();
    fetchedAt = Date.now();
    setPulse('live', 'Live');
    showCrumbs(view.queues);
  } catch (error) {
    if (mine !== turn) {
      return;
    }
    if (error instanceof Refused) {
      const kept = keptToken();
      if (kept && kept !== token) {
        token = kept;
        tick();
      } else {
        tokenView();
      }
      return;
    }
    setPulse('stale', fetchedAt > 0 ? `No answer for ${spanText(Date.now() - fetchedAt)}` : 'No answer');
  }
  timer = setTimeout(tick, document.hidden ? PERIOD_MS * 5 : PERIOD_MS);
}

// The queue that the address names; somebody may have typed it.
function queueOfAddress() {
  try {
    return location.hash.startsWith('#/queue/') ? decodeURIComponent(location.hash.slice(8)) : '';
  } catch {
    return '';
  }
}

function go() {
  const queue = queueOfAddress();
  seriesAt = 0;
  if (dialog.open) {
    dialog.close();
  }
  view = {queue, queues: view && view.queues};
  view.shown = queue ? queueView(queue) : queuesView();
  tick();
}

// The address that leat-board prints ends with the token, which does not stay there.
function takeToken() {
  const given = location.hash.slice(1);
  if (given && !given.startsWith('/') && given !== 'main') {
    token = given;
    history.replaceState(null, '', location.pathname + '#/');
    return true;
  }
  return false;
}

function begin() {
  if (!takeToken()) {
    token = keptToken();
  }
  window.addEventListener('hashchange', () => {
    if (takeToken() || location.hash.startsWith('#/')) {
      go();
      main.focus();
    }
  });
  document.addEventListener('visibilitychange', () => document.hidden || tick());
  go();
}

begin();

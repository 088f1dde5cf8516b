"""The page of leat-board in a real browser: it shows what leat status tells, by itself, at every width, and
makes no markup of what tasks contain."""
import json
import os

import pytest

from harness import browser as browsers
from harness.functions.history import record
from harness.polling import wait_until

EVIL = '<img src=x onerror="document.title=\'owned\'"><script>document.title="owned"</script>'
TURNS = '\u061c\u200e\u200f\u202a\u202b\u202d\u202e\u2066\u2067\u2068'  # turn text around
NAMES = {'Ready': 'ready', 'Running': 'running', 'Delayed': 'delayed', 'Retrying': 'retrying',
         'Dead letters': 'dead'}


@pytest.fixture(scope='module')
def chromium(tmp_path_factory):
    try:
        one = browsers.Browser(tmp_path_factory.mktemp('chromium'))
    except browsers.NotHere as why:
        pytest.skip(str(why))
    yield one
    one.close()


@pytest.fixture
def page(chromium, board, queue):
    """The browser at the page of the queue emails, with the token of the log."""
    board.start()
    # the page of an earlier test may have asked its board, which is gone, until it was left
    chromium.open('about:blank')
    chromium.errors()
    chromium.open(board.url)
    wait_until(lambda: chromium.rows('Queues'), message=chromium.text)
    chromium.open(board.url.split('#')[0] + '#/queue/emails')
    wait_until(lambda: 'Ready' in chromium.figures() and 'Live' in chromium.text(), message=chromium.text)
    return chromium


def test_it_shows_what_leat_status_tells(page, leat, daemon, folder):
    """Under load the page follows by itself, and then shows the numbers of leat status --json, and its
    worker."""
    daemon({'queue': {'concurrency': 4}, 'retry': {'max_attempts': 1}}).wait_ready()
    lines = ''.join(f'true {i}\n' for i in range(150)) + 'exit 3\n' * 7
    assert leat('enqueue', '--lane', 'a', '--file', '-', input=lines).returncode == 0
    assert leat('enqueue', '--delay', '1h', 'later').returncode == 0
    assert leat('enqueue', f'while [ ! -e {folder}/go ]; do sleep 0.1; done').returncode == 0

    def told():
        return json.loads(leat('status', '--json').stdout)

    def shown():
        return {NAMES[name]: int(text.replace(',', '')) for name, text in page.figures().items()
                if name in NAMES and text != '–'}
    wait_until(lambda: told()['figures']['dead'] == 7 and told()['figures']['ready'] == 0, message=lambda: told())
    figures = told()['figures']
    wait_until(lambda: shown() == {name: figures[name] for name in NAMES.values()},
               message=lambda: (shown(), figures))
    assert shown()['running'] == 1 and shown()['delayed'] == 1
    wait_until(lambda: len(page.rows('Dead letters')) == 7)
    [worker] = page.rows('Workers')
    assert worker[1] == 'running' and worker[2] == '1 / 4' and '–' not in worker
    (folder / 'go').touch()
    wait_until(lambda: shown()['running'] == 0 and not page.rows('Running'), message=page.text)
    assert page.errors() == []


def test_hostile_texts_stay_text(page, queue):
    """Markup in commands, labels, lanes, fields, outputs and hosts is shown as text, on the page and in the
    task's window; control characters and those that turn text around are shown escaped."""
    queue.register('w1:1:a', heartbeat=json.dumps({'host': EVIL[:200], 'state': EVIL[:30], 'pid': 1, 'slots': 1}))
    queue.add({'command': EVIL + TURNS + '\x1b[2J', 'id': EVIL, 'lane': EVIL[:150], EVIL[:40]: EVIL,
               'payload': EVIL},
              {'command': EVIL})
    [first] = queue.begin('w1:1:a', 1)
    queue.finish('w1:1:a', first, 'dead', cause='exit', status='3', reason=EVIL, stderr=EVIL, stdout=EVIL)
    wait_until(lambda: page.rows('Dead letters') and page.rows('Waiting longest'), message=page.text)
    queue.redis.xadd(queue.history, {'r': record('1-0', **{name: EVIL + TURNS + '\x1b[2J' for name in (
        'outcome', 'cause', 'status', 'reason', 'worker', 'id', 'lane', 'command')})})
    queue.redis.hincrby(queue.stats, 'succeeded', 1)
    wait_until(lambda: page.rows('Ended tasks'), message=page.text)
    page.run('''document.querySelector('table[aria-label="Ended tasks"] button').click()''')
    wait_until(lambda: 'Attempts' in page.run('return document.getElementById("task").innerText'))
    assert EVIL in page.run('return document.getElementById("task").innerText')
    page.run('document.getElementById("task").close()')
    shown = page.text()
    assert '<script>' in shown and not set(TURNS + '\x1b') & set(shown)
    page.run('''document.querySelector('table[aria-label="Dead letters"] button').click()''')
    wait_until(lambda: 'End of stderr' in page.text(), message=page.text)
    assert EVIL in page.run('return document.getElementById("task").innerText')
    page.run('document.getElementById("task").close()')
    page.run('''document.querySelector('[role=search] input').value = arguments[0];
             document.querySelector('[role=search]').requestSubmit()''', '<img')
    wait_until(lambda: len(page.rows('Found tasks')) == 3, message=page.text)
    assert page.run('return document.querySelectorAll("img, script:not([src])").length') == 0
    assert page.run('return document.title') == 'leat: emails'
    assert page.errors() == []


def test_damaged_ids(page, queue):
    """The window of a task whose id is damaged offers no commands, which would be copied into a shell."""
    queue.register('w1:1:a')
    queue.redis.xadd(queue.history, {'1': record('--all $(id)')})
    queue.redis.xadd(queue.history, {'1': b''})
    queue.redis.hincrby(queue.stats, 'succeeded', 2)
    wait_until(lambda: len(page.rows('Ended tasks')) == 2, message=page.text)
    for number, title in enumerate(['', '--all $(id)']):
        page.run('''document.querySelectorAll('table[aria-label="Ended tasks"] button')[arguments[0]]
                 .click()''', number)
        wait_until(lambda: 'Attempts' in page.run('return document.getElementById("task").innerText'))
        assert page.run('return document.getElementById("task-title").innerText') == title
        assert 'leat -q' not in page.run('return document.getElementById("task").innerText')
        page.run('document.getElementById("task").close()')
    assert page.errors() == []


def test_commands_to_copy(page, leat):
    """leat takes each command that the page of a queue shows. The one that repeats for ever is run once."""
    shown = page.run("""return [...document.querySelectorAll('section[aria-label="Commands"] code')]
                        .map((one) => one.textContent)""")
    assert len(shown) >= 7 and all(line.startswith('leat -q emails ') for line in shown)
    for line in shown:
        done = leat(*[word for word in line.split()[3:] if word != '--watch'])
        assert done.returncode != os.EX_USAGE, (line, done.stderr)


def test_ended_tasks(page, queue, daemon, leat, latch):
    """Tasks that have ended show with their ends, the newest one first. One opens with what is known of it, also
    if it ended after the page had listed it as running; a dead letter opens with its output. The search finds
    them."""
    daemon({'queue': {'concurrency': 1}, 'retry': {'max_attempts': 1}}).wait_ready()
    leat('enqueue', '--id', 'order-17', '--lane', 'alice', 'echo ended well')
    leat('enqueue', 'echo why >&2; exit 3')
    wait_until(lambda: len(page.rows('Ended tasks')) == 2, message=page.text)
    died, good = page.rows('Ended tasks')
    assert died[0] == 'dead: exit 3' and died[1] == 'echo why >&2; exit 3' and good[0] == 'succeeded'
    assert good[2:4] == ['order-17', 'alice'] and good[5] == '1' and good[6].endswith(('s', 'm'))

    def opened(number):
        page.run('''document.querySelectorAll('table[aria-label="Ended tasks"] button')[arguments[0]]
                 .click()''', number)
        return shown('Attempts')

    def shown(text):
        wait_until(lambda: text in page.run('return document.getElementById("task").innerText'), message=page.text)
        return page.run('return document.getElementById("task").innerText')
    text = opened(1)
    assert all(word in text for word in ('succeeded', 'order-17', 'alice', 'Took', 'Ended', 'echo ended well',
                                         'leat -q emails explain '))
    page.run('document.getElementById("task").close()')
    assert 'End of stderr' in opened(0)
    page.run('document.getElementById("task").close()')

    tid = queue.add({'command': latch.command})[0]
    wait_until(lambda: page.rows('Running'), message=page.text)
    page.run('window.kept = document.querySelector("table[aria-label=Running] button")')
    latch.open()
    wait_until(lambda: len(page.rows('Ended tasks')) == 3 and not page.rows('Running'), message=page.text)
    page.run('window.kept.click()')
    assert tid in shown('Took')
    page.run('document.getElementById("task").close()')
    page.run('''document.querySelector('[role=search] input').value = arguments[0];
             document.querySelector('[role=search]').requestSubmit()''', tid)
    wait_until(lambda: [row[0] for row in page.rows('Found tasks')] == ['succeeded'], message=page.text)
    assert page.errors() == []


def test_it_works_at_every_width(page, queue):
    """At 320, 1024 and 2560 pixels, light and dark, nothing is wider than the page, and each panel is there."""
    queue.register('w1:1:a')
    queue.add(*[{'command': 'convert ' + 'x' * 300, 'lane': 'lane-' + 'y' * 100} for _ in range(5)])
    for number in range(20):
        queue.redis.xadd(queue.history, {'r': record(f'1-{number}', **{name: 'x' * 200 for name in (
            'id', 'lane', 'command', 'worker', 'cause', 'status')}, outcome='dead', duration_us='1')})
    queue.redis.hincrby(queue.stats, 'dead', 20)
    wait_until(lambda: page.rows('Waiting longest') and page.rows('Ended tasks'), message=page.text)
    grounds = set()
    for scheme in ('light', 'dark'):
        for width in (320, 1024, 2560):
            page.look(width, scheme)
            # the browser may not have laid the page out anew yet
            wait_until(lambda width=width: page.run('return document.documentElement.scrollWidth') <= width,
                       message=f'{width} {scheme}')
            wait_until(lambda: page.run('''return [...document.querySelectorAll('main .panel')].filter((one) =>
                one.scrollWidth > one.clientWidth + 1).map((one) => one.ariaLabel)''') == [],
                       message=f'{width} {scheme}')
            titles = page.run('''return [...document.querySelectorAll('main h2, .chart strong')].map(
                (one) => one.textContent)''')
            assert {'History', 'Ready', 'Ends per second', 'Waiting', 'Duration', 'Delayed and dead', 'Running',
                    'Workers', 'Waiting longest', 'Longest lanes', 'Newest dead letters',
                    'Ended last'} <= set(titles)
        grounds.add(page.run('return getComputedStyle(document.documentElement).backgroundColor'))
    assert len(grounds) == 2


def test_keyboard_and_names(page, queue):
    """The tab key reaches every control, which has a name; a task opens with Enter and closes with Escape; plots
    are read with the arrow keys."""
    queue.register('w1:1:a')
    queue.add({'command': 'one'})
    wait_until(lambda: page.rows('Waiting longest'), message=page.text)
    assert page.run('''return [...document.querySelectorAll('a, button, input, select, [tabindex="0"]')].filter(
        (one) => !(one.ariaLabel || one.textContent.trim()) || one.tabIndex < 0).length''') == 0
    page.run('''document.querySelector('table[aria-label="Waiting longest"] button').focus()''')
    page.press('ENTER')
    wait_until(lambda: page.run('return document.getElementById("task").open'))
    wait_until(lambda: 'leat -q emails cancel' in page.text(), message=page.text)
    page.press('ESCAPE')
    wait_until(lambda: not page.run('return document.getElementById("task").open'))
    page.run('document.querySelector("figure.chart").focus()')
    page.press('ARROW_LEFT')
    assert 'ago' in page.run('return document.querySelector("figure.chart").getAttribute("aria-label")')


def test_the_token_in_the_address(chromium, board, queue):
    """The page takes the token from the address and keeps it out of there; without one it asks for it."""
    board.start()
    bare = board.url.split('#')[0]
    chromium.open(bare)
    wait_until(lambda: 'Token needed' in chromium.text(), message=chromium.text)
    chromium.open('about:blank')
    chromium.open(board.url)
    wait_until(lambda: chromium.rows('Queues'), message=chromium.text)
    assert board.token not in chromium.run('return location.href')
    chromium.open('about:blank')
    chromium.open(bare + '#/queue/%')
    wait_until(lambda: chromium.rows('Queues'), message=chromium.text)


def test_a_wrong_token_in_the_address(chromium, board, queue):
    """A page elsewhere that opens the board with another text in the address logs nobody out."""
    board.start()
    bare = board.url.split('#')[0]
    chromium.open(board.url)
    wait_until(lambda: chromium.rows('Queues'), message=chromium.text)
    chromium.open(bare + '#text')
    wait_until(lambda: chromium.run('return location.hash') == '#/' and 'Live' in chromium.text(),
               message=chromium.text)
    for text in ('', '#text'):
        chromium.open('about:blank')
        chromium.open(bare + text)
        wait_until(lambda: chromium.rows('Queues'), message=chromium.text)


def test_the_board_goes_away_and_comes_back(page, board):
    """While the board does not answer, the page says so and keeps what it showed; then it goes on by itself."""
    board.process.kill()
    board.process.wait()
    wait_until(lambda: 'No answer' in page.text(), message=page.text)
    assert page.figures()
    port = board.url.split(':')[2].split('/')[0]
    board.argv = ['--listen', f'127.0.0.1:{port}']
    board.log_path.write_text('')
    board.start()
    wait_until(lambda: 'No answer' not in page.text() and 'Live' in page.text(), message=page.text)

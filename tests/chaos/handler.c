/* handler TRACE: a resident process of the chaos test. It reads tasks as JSON, and appends the
 * events of each to TRACE, as the task of task.c does. Fields are parameters, as there. HABIT is
 * what goes wrong in the first attempt of the task, when its time is over; see habits[]. Before
 * that, the process writes the event `break`, since it may cost other tasks in its hands an attempt
 * too.
 *
 * Before each report it writes a line to stdout that names the task, so that whoever reads the log
 * knows whose output it is. The event `read`, of no task, says with code 1 that the process may
 * have read a part of a record that it has not begun, and with code 0 that it has begun all of what
 * it has read. */
#include <errno.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "trace.h"

enum {
    MOST = 64,              /* tasks in hand */
    READ_SIZE = 65536,      /* as much as the pipe has */
    FLOOD_LINES = 1000,     /* less than may be written for a task */
    OVERFLOW_LINES = 40000, /* more than that */
    NONSENSE_LINES = 1500,  /* more than are ignored */
    TORN_MS = 20,
};

struct hand {
    unsigned long index;
    struct run run;
    long long due_ms;
    pid_t witness;
    int end, fails, code;
    char habit[16];
};

static struct hand hands[MOST];
static size_t count;
static unsigned long former; /* the task to report again */
static volatile sig_atomic_t asked_to_end;

static long long now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void on_term(int number)
{
    asked_to_end = number;
}

/* Writes all of it. Nobody reads it any longer if it fails, and then the process is about to die.
 */
static void put(int fd, const char *text)
{
    for (size_t left = strlen(text); left > 0;) {
        ssize_t size = write(fd, text, left);
        if (size < 0 && errno != EINTR) {
            return;
        }
        text += size > 0 ? size : 0;
        left -= size > 0 ? (size_t)size : 0;
    }
}

static void report(unsigned long index, const char *verdict)
{
    char line[64];
    (void)snprintf(line, sizeof line, "%lu %s\n", index, verdict);
    put(3, line);
}

static void print(const struct hand *hand, int lines)
{
    char line[128];
    (void)snprintf(line, sizeof line, "written for %s by %lld.\n", hand->run.task, hand->run.fence);
    for (int i = 0; i < lines; i++) {
        put(1, line);
    }
}

_Noreturn static void hang(void)
{
    for (;;) {
        (void)poll(NULL, 0, -1);
    }
}

/* ---- habits: what goes wrong before the report; the process goes on if they return ---- */

static void leave(struct hand *hand)
{
    _exit(hand->run.n % 2);
}

static void die(struct hand *hand)
{
    (void)kill(hand->run.pid, SIGKILL);
}

static void hang_here(struct hand *hand)
{
    (void)hand;
    hang();
}

static void be_stubborn(struct hand *hand)
{
    (void)hand;
    (void)signal(SIGTERM, SIG_IGN);
    hang();
}

static void stop_here(struct hand *hand)
{
    (void)hand;
    (void)raise(SIGSTOP);
    hang();
}

/* Reports success when the process is ended. If it can have one task only, that is because of this
 * task, so the report must not count. */
static void lie(struct hand *hand)
{
    const char *batch = getenv("LEAT_BATCH");
    if (batch && strcmp(batch, "1") != 0) {
        hang();
    }
    struct sigaction action = {.sa_handler = on_term};
    (void)sigaction(SIGTERM, &action, NULL);
    while (!asked_to_end) {
        (void)poll(NULL, 0, TORN_MS);
    }
    trace_say(&hand->run, "lie", 0);
    report(hand->index, "ok");
    hang();
}

static void tear(struct hand *hand)
{
    char line[32];
    (void)snprintf(line, sizeof line, "%lu o", hand->index);
    put(3, line);
    _exit(0);
}

static void babble(struct hand *hand)
{
    (void)hand;
    for (int i = 0; i < NONSENSE_LINES; i++) {
        put(3, "nonsense\n");
    }
    hang();
}

static void overflow(struct hand *hand)
{
    print(hand, OVERFLOW_LINES);
    hang();
}

static void shut_out(struct hand *hand)
{
    (void)hand;
    (void)close(3);
    hang();
}

static void shut_in(struct hand *hand)
{
    (void)hand;
    (void)close(0);
    hang();
}

static void flood(struct hand *hand)
{
    print(hand, FLOOD_LINES);
}

/* Reports that name no task in hand, or are none. */
static void stray(struct hand *hand)
{
    char lines[256];
    (void)snprintf(lines, sizeof lines,
                   "0 ok\n%lu ok\n99999999999999999999 ok\nok\n%lu\n%lu maybe\n-1 ok\nready\n\n",
                   hand->index + MOST, hand->index, hand->index);
    put(3, lines);
}

/* The line comes in two parts. */
static void part(struct hand *hand)
{
    char digits[24];
    (void)snprintf(digits, sizeof digits, "%lu", hand->index);
    digits[strlen(digits) - 1] = '\0';
    put(3, digits);
    (void)poll(NULL, 0, TORN_MS);
    hand->index %= 10; /* the last digit is what is missing */
}

/* ---- and after it ---- */

/* Reports it again at once, and when the process has its next task. */
static void repeat(struct hand *hand)
{
    former = hand->index;
    report(former, "ok");
}

/* Does not read what is handed over meanwhile, and exits. */
static void doze(struct hand *hand)
{
    (void)hand;
    (void)poll(NULL, 0, TORN_MS);
    _exit(0);
}

static const struct {
    const char *name;
    bool breaks; /* no task in hand need be reported */
    void (*before)(struct hand *hand);
    void (*after)(struct hand *hand);
} habits[] = {
    {"leave", true, leave, NULL},       {"die", true, die, NULL},
    {"hang", true, hang_here, NULL},    {"stubborn", true, be_stubborn, NULL},
    {"stop", true, stop_here, NULL},    {"lie", true, lie, NULL},
    {"tear", true, tear, NULL},         {"babble", true, babble, NULL},
    {"overflow", true, overflow, NULL}, {"shut-out", true, shut_out, NULL},
    {"shut-in", true, shut_in, NULL},   {"deaf", true, NULL, hang_here},
    {"flood", false, flood, NULL},      {"stray", false, stray, NULL},
    {"part", false, part, NULL},        {"twice", false, NULL, repeat},
    {"doze", true, NULL, doze},
};

static size_t habit_of(const struct hand *hand)
{
    size_t i = 0;
    while (i < sizeof habits / sizeof *habits &&
           (hand->run.attempt > 1 || strcmp(habits[i].name, hand->habit) != 0)) {
        i++;
    }
    return i;
}

/* ---- tasks ---- */

static void finish(size_t at)
{
    struct hand hand = hands[at];
    size_t i = habit_of(&hand);
    bool has_habit = i < sizeof habits / sizeof *habits;
    hands[at] = hands[--count];
    if (has_habit && habits[i].breaks && habits[i].before) {
        trace_say(&hand.run, "break", (int)i);
        habits[i].before(&hand);
    }

    trace_end(hand.witness, &hand.end, 1);
    char verdict[32] = "ok";
    int code = hand.run.attempt <= hand.fails ? hand.code : 0;
    if (code != 0) {
        (void)snprintf(verdict, sizeof verdict, "exit %d", code);
    }
    trace_say(&hand.run, "end", code);
    print(&hand, 1);

    unsigned long index = hand.index;
    if (has_habit && !habits[i].breaks && habits[i].before) {
        habits[i].before(&hand);
    }
    report(hand.index, verdict);
    hand.index = index;
    if (has_habit && habits[i].after) {
        if (habits[i].breaks) {
            trace_say(&hand.run, "break", (int)i);
        }
        habits[i].after(&hand);
    }
}

/* Returns a field as a number; 0 if there is none. */
static int field(const json_t *fields, const char *name)
{
    const char *value = json_string_value(json_object_get(fields, name));
    return value ? atoi(value) : 0;
}

static void begin(const char *line, size_t size, int trace)
{
    json_t *record = json_loadb(line, size, 0, NULL);
    if (!record || count == MOST) {
        _exit(98);
    }
    const json_t *fields = json_object_get(record, "fields");
    const char *tid = json_string_value(json_object_get(record, "tid"));
    const char *habit = json_string_value(json_object_get(fields, "HABIT"));
    struct hand *hand = &hands[count++];
    *hand =
        (struct hand){.index = (unsigned long)json_integer_value(json_object_get(record, "index")),
                      .run = {.trace = trace,
                              .pid = getpid(),
                              .n = field(fields, "N"),
                              .attempt = json_integer_value(json_object_get(record, "attempt")),
                              .fence = json_integer_value(json_object_get(record, "fence"))},
                      .due_ms = now_ms() + field(fields, "MS"),
                      .fails = field(fields, "FAILS"),
                      .code = field(fields, "CODE")};
    (void)snprintf(hand->run.task, sizeof hand->run.task, "%s", tid ? tid : "");
    (void)snprintf(hand->habit, sizeof hand->habit, "%s", habit ? habit : "");
    trace_say(&hand->run, "start", 0);
    hand->witness = trace_witness(&hand->run, 0, hand->run.n % 2, &hand->end);
    if (field(fields, "KILLS")) {
        trace_kill_worker(&hand->run);
    }
    if (former) {
        report(former, "ok");
        former = 0;
    }
    json_decref(record);
}

/* Reads what there is, and begins each whole record. Returns false at the end of the file. */
static bool read_records(int trace)
{
    static char *data;
    static size_t size, room;
    const struct run nobody = {.trace = trace, .pid = getpid(), .n = -1};
    if (room - size < READ_SIZE) {
        char *more = realloc(data, 2 * room + READ_SIZE);
        if (!more) {
            return false;
        }
        data = more;
        room = 2 * room + READ_SIZE;
    }
    if (size == 0) {
        trace_say(&nobody, "read", 1);
    }
    ssize_t got = read(0, data + size, READ_SIZE);
    if (got <= 0) {
        return got < 0 && errno == EINTR;
    }
    size += (size_t)got;

    char *line = data, *end;
    while ((end = memchr(line, '\n', size - (size_t)(line - data)))) {
        begin(line, (size_t)(end - line), trace);
        line = end + 1;
    }
    size -= (size_t)(line - data);
    memmove(data, line, size);
    if (size == 0) {
        trace_say(&nobody, "read", 0);
    }
    return true;
}

/* Ends the tasks whose time is over. Returns how long to wait for the next one, in ms; -1: there is
 * none. */
static int finish_due(void)
{
    long long now = now_ms(), first = -1;
    for (size_t i = 0; i < count;) {
        if (hands[i].due_ms <= now) {
            finish(i);
            i = 0;
            first = -1;
            continue;
        }
        first = first < 0 || hands[i].due_ms < first ? hands[i].due_ms : first;
        i++;
    }
    return first < 0 ? -1 : (int)(first - now);
}

int main(int argc, char **argv)
{
    int trace = argc == 2 ? trace_open(argv[1]) : -1;
    struct pollfd in = {.events = POLLIN};
    if (trace < 0) {
        return 99;
    }
    put(3, "ready\n");
    for (;;) {
        int left_ms = finish_due();
        if (left_ms < 0 && in.fd < 0) {
            return 0;
        }
        if (poll(&in, 1, left_ms) > 0 && !read_records(trace)) {
            in.fd = -1; /* no more tasks come */
        }
    }
}

/* The fields of a task that limit what its processes may use. */
#include "queue/task_bounds.h"

#include <string.h>

#include "base/units.h"
#include "queue/shared/task_fields.h"

/* With less, a process may not even start, which would look like a fault of the host. The config
 * allows no less either. */
#define LEAST_MEMORY (1 << 20)

static bool parse_memory(const char *text, int64_t *value)
{
    return !units_parse_size(text, value) && *value >= LEAST_MEMORY;
}

static bool parse_count(const char *text, int64_t *value)
{
    return !units_parse_integer(text, 1, INT64_C(1) << 30, value);
}

static bool parse_weight(const char *text, int64_t *value)
{
    return !units_parse_integer(text, 1, 10000, value);
}

static bool parse_share(const char *text, int64_t *value)
{
    return !units_parse_percent(text, value) && *value > 0;
}

#define NAME(name) #name,
static const char *const names[] = {TASK_BOUND_FIELDS(NAME)};
_Static_assert(sizeof names / sizeof *names == TASK_BOUNDS, "each bound has its field");

static const struct {
    bool (*parse)(const char *text, int64_t *value);
    const char *form;
} fields[TASK_BOUNDS] = {
    [TASK_MEMORY_MAX] = {parse_memory, "a size of at least 1M, such as 512M"},
    [TASK_MEMORY_HIGH] = {parse_memory, "a size of at least 1M, such as 512M"},
    [TASK_PIDS_MAX] = {parse_count, "a whole number of at least 1"},
    [TASK_CPU_MAX] = {parse_share, "a share of a CPU such as 50%"},
    [TASK_CPU_WEIGHT] = {parse_weight, "a number from 1 to 10000"},
    [TASK_IO_WEIGHT] = {parse_weight, "a number from 1 to 10000"},
};

const char *task_bound_name(size_t bound)
{
    return names[bound];
}

size_t task_bound_named(struct bytes name)
{
    size_t bound = 0;
    while (bound < TASK_BOUNDS && !bytes_equal(name, names[bound])) {
        bound++;
    }
    return bound;
}

bool task_is_bounded(const int64_t bounds[TASK_BOUNDS])
{
    for (size_t i = 0; i < TASK_BOUNDS; i++) {
        if (bounds[i] > 0) {
            return true;
        }
    }
    return false;
}

const char *task_bound_take(int64_t bounds[TASK_BOUNDS], size_t bound, const struct bytes *value)
{
    bool fine = value->size == 0 || (strlen(value->data) == value->size &&
                                     fields[bound].parse(value->data, &bounds[bound]));
    return fine ? NULL : fields[bound].form;
}

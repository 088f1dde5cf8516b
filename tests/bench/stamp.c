/* stamp FIFO: writes the CLOCK_MONOTONIC time of its start, in ns, as one line. Link it
 * statically, so that its first instruction comes right after exec. */
#include <fcntl.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (argc != 2) {
        return 2;
    }

    /* digits from the last to the first, before the newline */
    char line[24];
    size_t at = sizeof line;
    line[--at] = '\n';
    uint64_t ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    do {
        line[--at] = (char)('0' + ns % 10);
    } while ((ns /= 10) > 0);

    int fifo = open(argv[1], O_WRONLY | O_CLOEXEC);
    if (fifo < 0) {
        return 1;
    }
    ssize_t size = (ssize_t)(sizeof line - at);
    return write(fifo, line + at, (size_t)size) == size ? 0 : 1;
}

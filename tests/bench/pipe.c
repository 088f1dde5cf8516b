/* pipe PROGRAM [ARGUMENT …]: starts the program once for each byte on stdin, and waits for it:
 * the floor of the time from "there is work" to its first instruction. */
#include <err.h>
#include <sys/wait.h>
#include <unistd.h>

#include "start.h"

int main(int argc, char **argv)
{
    if (argc < 2) {
        errx(2, "usage: pipe PROGRAM [ARGUMENT ...]");
    }
    char byte;
    while (read(STDIN_FILENO, &byte, 1) == 1) {
        int status;
        if (waitpid(bench_start(argv + 1), &status, 0) < 0) {
            err(1, "waitpid");
        }
        if (status != 0) {
            errx(1, "the program failed: status %#x", (unsigned)status);
        }
    }
    return 0;
}

/* A program that does nothing. Linked statically and without the start of the C library, whose
 * CPUID instructions take long in virtual machines, it stands for tasks that start fast, or for
 * hosts with so many cores that leatd's one thread is the limit. */
#include <unistd.h>

void _start(void);

void _start(void)
{
    _exit(0);
}

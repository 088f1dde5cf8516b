/*
 * SIGINT and SIGTERM, noted for the next step of a command.
 */
#include "cli/lib/interrupt.h"

#include <signal.h>

static volatile sig_atomic_t came;

static void on_interrupt(int number)
{
    (void)number;
    came = 1;
}

void interrupt_catch(void)
{
    struct sigaction action = {.sa_handler = on_interrupt};

    /* no SA_RESTART: the signal has to interrupt a read of the input */
    action.sa_flags = (int)SA_RESETHAND;
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGINT, &action, NULL);
    (void)sigaction(SIGTERM, &action, NULL);
}

bool interrupt_came(void)
{
    return came != 0;
}

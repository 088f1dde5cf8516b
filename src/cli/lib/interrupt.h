/*
 * SIGINT and SIGTERM for commands of many steps: the command finishes its current step and prints
 * what it has done. A second signal kills it.
 */
#ifndef LEAT_CLI_LIB_INTERRUPT_H
#define LEAT_CLI_LIB_INTERRUPT_H

#include <stdbool.h>

#define INTERRUPT_STATUS 130 /* as shells report SIGINT */

/* Catches both signals from now on. They interrupt system calls that wait. */
void interrupt_catch(void);

bool interrupt_came(void);

#endif

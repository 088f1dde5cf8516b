/*
 * SIGINT and SIGTERM for commands that do many steps: the step under way ends, and the command says
 * what it has done. A second signal ends the program.
 */
#ifndef LEAT_CLI_LIB_INTERRUPT_H
#define LEAT_CLI_LIB_INTERRUPT_H

#include <stdbool.h>

#define INTERRUPT_STATUS 130 /* what a shell makes of SIGINT */

/* From now on; system calls that wait are ended. */
void interrupt_catch(void);

bool interrupt_came(void);

#endif

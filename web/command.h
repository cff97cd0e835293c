/* command: a command of dtrun that only reads, run here for who asks from another machine
 * (runner/relay/).
 *
 * GET /api/v1/command?word=list&word=--state&word=failed&columns=120&colour=1&unicode=1&terminal=1
 * The words are run by the same program on this server's store, and what it says comes as it is said:
 *
 *   o LENGTH\n bytes     of its stdout; LENGTH 0 now and then: it is still there
 *   e LENGTH\n bytes     of its stderr
 *   x CODE\n             its exit code; nothing follows. Without it the answer was broken off
 *
 * columns, rows, colour and terminal say what shows the bytes (runner/term/term.h), unicode that it
 * knows more than ASCII. Who is allowed is asked of the program that serves, by `check`.
 * Ends       who goes away takes its command along, at the latest with the next sign of life
 * Threads    each request's own
 */
#ifndef DT_WEB_COMMAND_H
#define DT_WEB_COMMAND_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/error.h"

#define DT_WEB_COMMAND_TYPE         "application/x-dtrun-command"
#define DT_WEB_COMMAND_FRAME_BYTES  ((size_t)16 << 10) /* LENGTH is at most this */
#define DT_WEB_COMMAND_SIGN_SECONDS 5.0                /* the longest silence */

typedef struct dt_web_command_rules {
    const char *program; /* NULL: nothing is run */
    /* argv[0] is the command's name; DT_ERR_USAGE what may not be run. One call at a time. */
    dt_status (*check)(int argc, char **argv, dt_error *err);
} dt_web_command_rules;

typedef struct dt_web_commands {
    dt_web_command_rules rules;
    pthread_mutex_t checking;
    atomic_int running;
    atomic_bool closing; /* all that run end */
} dt_web_commands;

#endif

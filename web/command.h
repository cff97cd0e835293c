/* command: runs a read-only dtrun command for a client on another machine (runner/relay/).
 *
 * GET /api/v1/command?word=list&word=--state&word=failed&columns=120&colour=1&unicode=1&terminal=1
 * The same program runs the words on this server's store, and its output is streamed:
 *
 *   o LENGTH\n bytes     of its stdout; LENGTH 0 is sent now and then to keep the connection alive
 *   e LENGTH\n bytes     of its stderr
 *   x CODE\n             its exit code, at the end. Without it the answer is incomplete
 *
 * columns, rows, colour and terminal describe the client's terminal (runner/term/term.h), unicode whether it shows
 * more than ASCII. The serving program decides which commands are allowed (`check`).
 * Ends       when the client disconnects its command is ended, at the latest at the next keep-alive
 * Threads    each request's own
 */
#ifndef DT_WEB_COMMAND_H
#define DT_WEB_COMMAND_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/error.h"

#define DT_WEB_COMMAND_TYPE         "application/x-dtrun-command"
#define DT_WEB_COMMAND_FRAME_BYTES  ((size_t)16 << 10) /* LENGTH is at most this */
#define DT_WEB_COMMAND_SIGN_SECONDS 5.0                /* keep-alive interval */

typedef struct dt_web_command_rules {
    const char *program; /* NULL: commands are disabled */
    /* argv[0] is the command's name. DT_ERR_USAGE: the command is not allowed. One call at a time. */
    dt_status (*check)(int argc, char **argv, dt_error *err);
} dt_web_command_rules;

typedef struct dt_web_commands {
    dt_web_command_rules rules;
    pthread_mutex_t checking;
    atomic_int running;
    atomic_bool closing; /* running commands are ended */
} dt_web_commands;

#endif

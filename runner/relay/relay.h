/* relay: runs a command on another machine's `dtrun serve`, and shows its output here.
 *
 * Purpose   commands that read runs work the same from another machine: the server runs the command (web/command.h),
 *           and its output is shown as that of a local command
 * Which     commands whose dt_command.runs is DT_RUNS_REMOTE: they only read the store
 * Token     DTRUN_TOKEN, or the file that DTRUN_TOKEN_FILE names, which other users must not be able to read. It is
 *           sent to the server only: redirections are not followed, and other machines require https
 * Trust     the server's output cannot control the terminal: of escape sequences only dtrun's own colours pass
 */
#ifndef DT_RUNNER_RELAY_H
#define DT_RUNNER_RELAY_H

#include "runner/cli/command.h"

/* Returns the server of a command, from --server or DTRUN_SERVER; NULL: run it here. DT_ERR_USAGE: DTRUN_SERVER is set,
 * but the command works on local runs only. */
dt_status dt_relay_server(const char **url, const dt_command *command, const dt_arguments *args,
                          dt_error *err);

/* Runs the command on the server and sets its exit code. DT_ERR_USAGE: malformed address or token; DT_ERR_BUSY: no
 * answer; DT_ERR_CORRUPT: the server is not dtrun. */
dt_status dt_relay_call(dt_call *call, const char *url, dt_error *err);

/* For the server: checks that clients may run a command (dt_web_command_rules.check). */
dt_status dt_relay_check(int argc, char **argv, dt_error *err);
/* Returns true if a server runs this process for a client. */
bool dt_relay_is_served(void);
/* Makes this process end with the server that runs it. */
void dt_relay_follow_server(void);

#endif

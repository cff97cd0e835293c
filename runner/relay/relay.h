/* relay: a command of another machine's runs, run by its `dtrun serve` and shown here.
 *
 * Purpose   whatever reads runs there reads them here in the same words: the server runs the command itself
 *           (web/command.h), and what it says is shown as if it had been said here
 * Which     commands with dt_command.remote_ok: they read the store and nothing else of a machine
 * Token     DTRUN_TOKEN, or a file that DTRUN_TOKEN_FILE names and that nobody else may read; it goes to the
 *           server alone: no redirection is followed, and beyond this machine it takes https
 * Trust     the server may show what it likes, but not steer the terminal: of escape sequences only our own
 *           colours pass
 */
#ifndef DT_RUNNER_RELAY_H
#define DT_RUNNER_RELAY_H

#include "runner/cli/command.h"

/* Where the command is to be run: --server, or DTRUN_SERVER; NULL: here. DT_ERR_USAGE where another machine
 * is meant by DTRUN_SERVER, and the command would look at runs of this one. */
dt_status dt_relay_server(const char **url, const dt_command *command, const dt_arguments *args,
                          dt_error *err);

/* Has it run there. DT_ERR_USAGE for an address or token that cannot be, DT_ERR_BUSY where nobody answers,
 * DT_ERR_CORRUPT where what answers is no dtrun; sets the exit code that the command had there. */
dt_status dt_relay_call(dt_call *call, const char *url, dt_error *err);

/* The other side: whether somebody elsewhere may have this run (dt_web_command_rules.check). */
dt_status dt_relay_check(int argc, char **argv, dt_error *err);
/* Whether this process is run by a server, for somebody elsewhere. */
bool dt_relay_is_served(void);
/* What is run for somebody elsewhere ends with its server. */
void dt_relay_follow_server(void);

#endif

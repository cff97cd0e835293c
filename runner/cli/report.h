/* report: prints results, notes and errors of commands.
 *
 * Results go to stdout, everything else to stderr. A failed write of a result is an error. All output
 * passes base/display.h here; commands print in no other way (unit.layers).
 */
#ifndef DT_RUNNER_REPORT_H
#define DT_RUNNER_REPORT_H

#include "base/json.h"
#include "base/strbuf.h"
#include "runner/cli/command.h"

/* {"version": 1}, the start of every object of --json. New reference. */
json_t *dt_report_object(void);
/* Prints `object` (takes its reference) as one line, or indented on a terminal. */
dt_status dt_report_json(json_t *object, dt_error *err);
dt_status dt_report_text(const dt_strbuf *text, dt_error *err);
/* The same, keeping the styles of dt_term_add; foreign text in it must have been added by dt_term_add. */
dt_status dt_report_styled(const dt_strbuf *text, dt_error *err);
/* Prints output of a model; unchanged unless stdout is a terminal. */
dt_status dt_report_data(const dt_strbuf *data, dt_error *err);
/* Prints stdout or stderr of a command that ran on another machine (runner/relay/): with our styles on a
 * terminal, else unchanged. */
dt_status dt_report_relayed(int fd, const dt_strbuf *text, dt_error *err);
/* Prints a line to stderr, also with --json. */
void dt_report_say(const char *fmt, ...) DT_PRINTF(1, 2);
/* Prints a line to stderr, unless --json is given. */
void dt_report_note(const dt_call *call, const char *fmt, ...) DT_PRINTF(2, 3);
/* Prints "dtrun launch: message" to stderr, and with `json` {"version", "error": {status, message}} to
 * stdout. Returns the exit code of the status. */
int dt_report_error(const dt_command *command, bool json, const dt_error *error);
int dt_report_exit_code(dt_status status);
/* Prints each problem with its place and source line: "dtrun launch: warning: gpt.yaml:3:1: ...". */
void dt_report_problems(const dt_command *command, dt_problems *problems);
/* dt_report_error for a recipe, with all of its problems; with --json "error" has them too. */
int dt_report_bad_recipe(const dt_call *call, const dt_error *error);

#endif

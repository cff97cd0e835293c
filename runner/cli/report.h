/* report: how commands speak.
 *
 * Results go to stdout, everything else to stderr. A failed write of a result is an error. All of
 * it passes base/display.h here, whoever composed it: commands print in no other way
 * (unit.layers).
 */
#ifndef DT_RUNNER_REPORT_H
#define DT_RUNNER_REPORT_H

#include "base/json.h"
#include "base/strbuf.h"
#include "runner/cli/command.h"

/* {"version": 1}: what every object of --json begins with. New reference. */
json_t *dt_report_object(void);
/* Prints `object` (takes its reference) as one line, or indented where a person reads it. */
dt_status dt_report_json(json_t *object, dt_error *err);
dt_status dt_report_text(const dt_strbuf *text, dt_error *err);
/* The same with the styles of dt_term_add: all that came from outside was added by that. */
dt_status dt_report_styled(const dt_strbuf *text, dt_error *err);
/* What a model wrote: as it is where no terminal reads it. */
dt_status dt_report_data(const dt_strbuf *data, dt_error *err);
/* What a command said to stdout or stderr of another machine (runner/relay/): in our styles where a terminal
 * shows it, else as it is. */
dt_status dt_report_relayed(int fd, const dt_strbuf *text, dt_error *err);
/* A line to stderr, whoever reads. */
void dt_report_say(const char *fmt, ...) DT_PRINTF(1, 2);
/* A line to stderr, unless the reader is a program. */
void dt_report_note(const dt_call *call, const char *fmt, ...) DT_PRINTF(2, 3);
/* "dtrun launch: message" to stderr, and with --json {"version", "error": {status, message}} to
 * stdout; returns the exit code that the status stands for. */
int dt_report_error(const dt_command *command, bool json, const dt_error *error);
int dt_report_exit_code(dt_status status);
/* Each with the line and the place: "dtrun launch: warning: gpt.yaml:3:1: ...". */
void dt_report_problems(const dt_command *command, const dt_problems *problems);
/* dt_report_error for a recipe with all of its problems, which with --json are in "error" too. */
int dt_report_bad_recipe(const dt_call *call, const dt_error *error);

#endif

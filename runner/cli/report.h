/* report: prints results, notes and errors of commands, and writes their output to stdout or atomically to
 * a file.
 *
 * Results go to stdout, everything else to stderr. A failed write of a result is an error. All output
 * passes base/display.h here; commands print in no other way (unit.layers).
 */
#ifndef DT_RUNNER_CLI_REPORT_H
#define DT_RUNNER_CLI_REPORT_H

#include "base/json.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "runner/cli/command.h"

/* {"version": 1}, the start of every object of --json. New reference. */
json_t *dt_report_object(void);
/* Prints `object` (takes its reference) as one line, or indented on a terminal. */
dt_status dt_report_json(json_t *object, dt_error *err);
/* Prints an array of objects as CSV: a line of the keys of `head`, then a line of each object. Texts are written by
 * dt_csv_add_text, null and a missing key as nothing, an array of texts with blanks between them. */
dt_status dt_report_csv(const json_t *head, const json_t *rows, dt_error *err);
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

/* output: writes the output of a command to stdout, or atomically to a file.
 *
 * A file is written under a temporary name and renamed once it is completely on disk: after an interruption (a full
 * disk, a signal) the previous file is intact.
 * Errors   DT_ERR_USAGE if the file exists and must not be replaced; DT_ERR_IO
 */

typedef struct dt_output {
    dt_strbuf text;               /* pending text; callers append to it */
    size_t passed;                /* bytes already written */
    const char *path, *temporary; /* NULL: stdout */
    int fd;
    bool replace; /* replace an existing file */
} dt_output;

/* path NULL: stdout. On failure nothing needs to be closed. */
dt_status dt_output_open(dt_output *out, const char *path, bool replace, dt_arena *arena,
                         dt_error *err);
/* Checks that the file can be written, and leaves none. path NULL: stdout. */
dt_status dt_output_check(const char *path, bool replace, dt_arena *arena, dt_error *err);
/* Writes the pending text if there is much; call it regularly. */
dt_status dt_output_pass(dt_output *out, dt_error *err);
/* Number of bytes written and pending. */
size_t dt_output_place(const dt_output *out);
/* Ends the output; call it once for each open output. st DT_OK: writes the rest and renames the
 * file; other values discard it. Returns st, or the error of closing. */
dt_status dt_output_close(dt_output *out, dt_status st, dt_error *err);
/* Writes the whole text to the file of --output, which --force replaces; nothing if the option is not given. */
dt_status dt_output_write_asked(const dt_strbuf *text, const dt_call *call, dt_error *err);

#endif

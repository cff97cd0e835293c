/* child: runs a program to its end and collects its output. */
#ifndef DT_RUNNER_CHILD_H
#define DT_RUNNER_CHILD_H

#include "base/error.h"
#include "base/strbuf.h"

/* Runs argv[0], a path, and waits for its end. *exit_code is the exit code, or 128 plus the signal that
 * ended the program. Its stdout and stderr are appended to the buffers. DT_ERR_IO if it cannot be run. */
dt_status dt_child_run(int *exit_code, dt_strbuf *out, dt_strbuf *errors, char *const *argv,
                       dt_error *err);
/* The same with a time limit, after which the program is killed (DT_ERR_TIMEOUT). */
dt_status dt_child_run_within(int *exit_code, dt_strbuf *out, dt_strbuf *errors, char *const *argv,
                              double seconds, dt_error *err);

/* The same, but stdout is passed to `take` as it arrives; an error of `take` ends the program. The program
 * is killed if the calling thread ends first: an engine that generates text occupies a GPU. */
typedef dt_status dt_child_take_fn(void *context, const char *bytes, size_t length, dt_error *err);
dt_status dt_child_stream(int *exit_code, dt_child_take_fn *take, void *context, dt_strbuf *errors,
                          char *const *argv, dt_error *err);

/* Returns the error message of a failed program: the last line of `errors` that starts with `name`,
 * without that prefix; else its last line. The text lives in the buffer, which is split into lines. */
const char *dt_child_complaint(dt_strbuf *errors, const char *name);
/* Converts the exit code of an engine to a status, with the engine's own message: DT_OK for 0, DT_ERR_USAGE
 * for 2, else DT_ERR_CORRUPT. DT_ERR_IO if it printed no message. The buffer is split as above. */
dt_status dt_child_engine_status(int exit_code, dt_strbuf *errors, dt_error *err);

#endif

/* child: running one program to its end and keeping what it said. */
#ifndef DT_RUNNER_CHILD_H
#define DT_RUNNER_CHILD_H

#include "base/error.h"
#include "base/strbuf.h"

/* argv[0] is the path. *exit_code is the program's, or 128 plus the signal that ended it. What it
 * writes to stdout and stderr is added to the buffers. DT_ERR_IO where it cannot be run. */
dt_status dt_child_run(int *exit_code, dt_strbuf *out, dt_strbuf *errors, char *const *argv,
                       dt_error *err);
/* The same; after so many seconds it is killed (DT_ERR_TIMEOUT). */
dt_status dt_child_run_within(int *exit_code, dt_strbuf *out, dt_strbuf *errors, char *const *argv,
                              double seconds, dt_error *err);

/* The same; what it writes to stdout goes to `take` as it comes, which ends it by an error. It is killed
 * where the calling thread ends first, whatever that died of: an engine that makes text holds a card. */
typedef dt_status dt_child_take_fn(void *context, const char *bytes, size_t length, dt_error *err);
dt_status dt_child_stream(int *exit_code, dt_child_take_fn *take, void *context, dt_strbuf *errors,
                          char *const *argv, dt_error *err);

/* What a program that failed said went wrong: the last line of `errors` with `name` in front, without
 * it; else whatever it said last. Lives in the buffer, which is cut into lines. */
const char *dt_child_complaint(dt_strbuf *errors, const char *name);
/* What an engine's end means, in its own words: DT_OK; DT_ERR_USAGE of its code 2, else DT_ERR_CORRUPT;
 * DT_ERR_IO where it said nothing. The buffer is cut as above. */
dt_status dt_child_engine_status(int exit_code, dt_strbuf *errors, dt_error *err);

#endif

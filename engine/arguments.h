/* arguments: parses the arguments that several dtrun-engine commands have. Errors are DT_ERR_USAGE
 * naming the argument. */
#ifndef DT_ENGINE_ARGUMENTS_H
#define DT_ENGINE_ARGUMENTS_H

#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"

/* `what` is "--tokens", for messages. */
dt_status dt_argument_whole(int64_t *out, const char *text, const char *what, int64_t low,
                            int64_t high, dt_error *err);
dt_status dt_argument_number(double *out, const char *text, const char *what, double low,
                             double high, dt_error *err);
/* Report an option that getopt does not know (`option` is its result), or a surplus argument (-1). */
dt_status dt_argument_refuse(char **argv, int option, dt_error *err);

/* Print the text and a line break to stdout. */
dt_status dt_print_line(const dt_strbuf *text, dt_error *err);

#endif

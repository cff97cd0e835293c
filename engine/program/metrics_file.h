/* metrics_file: follows a file that a program appends lines of metrics to.
 *
 * What the file has when the program starts is skipped: it is of an earlier run or attempt. A file that is replaced or
 * made shorter is read from its beginning.
 */
#ifndef DT_ENGINE_PROGRAM_METRICS_FILE_H
#define DT_ENGINE_PROGRAM_METRICS_FILE_H

#include <stdint.h>

#include "engine/program/output_metrics.h"

typedef struct dt_metrics_file {
    const char *path; /* NULL: none */
    int fd;           /* -1: the file does not exist yet */
    int64_t offset;   /* of the next byte */
} dt_metrics_file;

/* Borrows the path, relative to the current folder. */
void dt_metrics_file_open(dt_metrics_file *out, const char *path);
void dt_metrics_file_close(dt_metrics_file *file);
/* Reads what was appended. A file that cannot be read counts as missing; errors are those of the metrics. */
dt_status dt_metrics_file_read(dt_metrics_file *file, dt_output_metrics *metrics, dt_error *err);

#endif

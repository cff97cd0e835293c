/* metrics_file: follows a file that a program writes metrics to.
 *
 * Path      may have * and ? (glob(7)): the newest file that matches is followed
 * Lines     what the file has when the program starts is skipped: it is of an earlier run or attempt. A file that is
 *           replaced or made shorter is read from its beginning
 * .csv      as of Lightning: the first line has the names, of which one is `step`; cells may be empty. If the first line
 *           changes, the file is read again
 * trainer_state.json, of transformers' Trainer: its log_history is read whenever the file has changed
 */
#ifndef DT_ENGINE_PROGRAM_METRICS_FILE_H
#define DT_ENGINE_PROGRAM_METRICS_FILE_H

#include <stdint.h>
#include <time.h>

#include "base/strbuf.h"
#include "engine/program/output_metrics.h"

typedef struct dt_metrics_file {
    const char *path;             /* NULL: none */
    int fd;                       /* -1: the file does not exist yet */
    int64_t offset;               /* of the next byte */
    struct timespec opened, read; /* when the program started; change of the file that was read */
    dt_strbuf header, row;        /* of a .csv file */
} dt_metrics_file;

/* Borrows the path, relative to the current folder. */
void dt_metrics_file_open(dt_metrics_file *out, const char *path);
void dt_metrics_file_close(dt_metrics_file *file);
/* Reads what was appended. A file that cannot be read counts as missing; errors are those of the metrics. */
dt_status dt_metrics_file_read(dt_metrics_file *file, dt_output_metrics *metrics, dt_error *err);

#endif

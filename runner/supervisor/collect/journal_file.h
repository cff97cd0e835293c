/* journal_file: reads the lines of a journal whose agent is gone, without changing it.
 *
 * Valid lines come in order, each number once. Damaged lines and the hole that an agent made
 * (runner/agent/journal/trim.c) are skipped.
 */
#ifndef DT_COLLECT_JOURNAL_FILE_H
#define DT_COLLECT_JOURNAL_FILE_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/strbuf.h"

typedef struct dt_journal_file {
    int fd;
    const char *path; /* borrowed */
    int64_t at;       /* file offset after the buffer */
    dt_strbuf buffer;
    size_t taken; /* bytes of the buffer that were returned */
    int64_t last; /* number of the last valid line, -1: none */
} dt_journal_file;

/* DT_ERR_NOT_FOUND, DT_ERR_IO. */
dt_status dt_journal_file_open(dt_journal_file *out, const char *path, dt_error *err);
/* Returns the next valid line, which is valid until the next call; *line is NULL at the end. */
dt_status dt_journal_file_next(dt_journal_file *file, const char **line, size_t *length,
                               dt_error *err);
void dt_journal_file_close(dt_journal_file *file); /* accepts a file that could not be opened */

#endif

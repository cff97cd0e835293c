/* record_file: reads the record of a rank (engine/record/record.h has the format), and compares its lines with another's.
 *
 * Key        the step and its position in the data, since fp16 may try a step several times
 * Gaps       a line with bytes of zero was lost with the journal of its node: it is left out
 * Ownership  texts live in the arena
 */
#ifndef DT_RUNNER_VERIFY_RECORD_FILE_H
#define DT_RUNNER_VERIFY_RECORD_FILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"

/* The longest record of a rank that is read. */
#define DT_RECORD_FILE_MOST ((size_t)2 << 30)

typedef struct dt_record_line {
    int64_t step;
    const char *position; /* "EPOCH:SAMPLE" */
    const char *text;     /* what follows, fields with a space between them */
} dt_record_line;

typedef struct dt_record_file {
    const char *path;
    json_t *header; /* NULL: the file has no complete line */
    dt_record_line *lines;
    int64_t count; /* complete lines, in the order of the file */
} dt_record_file;

/* DT_ERR_NOT_FOUND: there is no such record; DT_ERR_CORRUPT names the line. */
dt_status dt_record_file_open(dt_record_file *out, const char *path, dt_arena *arena,
                              dt_error *err);
/* The same of a run; folder: runs/ID. */
dt_status dt_record_file_read(dt_record_file *out, const char *folder, int64_t attempt,
                              int64_t rank, dt_arena *arena, dt_error *err);
void dt_record_file_release(dt_record_file *file); /* accepts a zeroed struct */

/* The line with the same key; NULL: none. */
const dt_record_line *dt_record_file_find(const dt_record_file *file, const dt_record_line *like);
/* The first line of a step; NULL: none. */
const dt_record_line *dt_record_file_step(const dt_record_file *file, int64_t step);

/* What differs first in a step, in the order of cause and effect. */
typedef enum dt_difference_kind {
    DT_DIFFERENT_NOTHING,
    DT_DIFFERENT_INPUT,
    DT_DIFFERENT_LOSSES, /* of the rank: with equal inputs */
    DT_DIFFERENT_SENT,
    DT_DIFFERENT_GRADIENT, /* after the ranks have summed it */
    DT_DIFFERENT_NORM,
    DT_DIFFERENT_LOSS,
    DT_DIFFERENT_VALUE,
    DT_DIFFERENT_MOMENT,
} dt_difference_kind;

typedef struct dt_difference {
    dt_difference_kind kind;
    int64_t rank, step;
    const char *position;
    const char *name; /* of the parameter; "": of none */
    int64_t first, elems, moment;
} dt_difference;

/* Compares two lines of the same key. header: whose "rounds" names the pieces. Unknown fields equal everything. */
dt_status dt_record_line_compare(dt_difference *out, const dt_record_line *a,
                                 const dt_record_line *b, const json_t *header, dt_arena *arena,
                                 dt_error *err);

typedef struct dt_record_span {
    int64_t after, until; /* steps after the first, up to the second */
} dt_record_span;

typedef struct dt_records_compared {
    dt_difference first; /* kind DT_DIFFERENT_NOTHING: none */
    int64_t recorded,
        equal; /* lines of the record within the span, and how many a replay has with the same bits */
} dt_records_compared;

/* Compares the records of all ranks, [ranks] each. */
dt_status dt_records_compare(dt_records_compared *out, const dt_record_file *recorded,
                             const dt_record_file *replayed, int64_t ranks,
                             const dt_record_span *span, dt_arena *arena, dt_error *err);

/* Whether the headers are of ranks whose bits can be compared; if not, *why says what differs. */
bool dt_record_headers_match(const char **why, const json_t *a, const json_t *b, dt_arena *arena);

/* The difference in words: "step 12, rank 1: the input". */
const char *dt_difference_text(const dt_difference *difference, dt_arena *arena);

#endif

/* export: the formats of `dtrun export`, and what several of them share.
 *
 * Adding a format:
 *   1  runner/export/NAME.c defines `const dt_export_format dt_export_NAME`; NAME goes into
 *      DT_EXPORT_FORMATS below and into runner/export/CMakeLists.txt
 *   2  tests/cli/export.sh tests its output
 * The command, its help and its completion use the table.
 *
 * Active runs are exported up to one step: later points are left out.
 * Not finite   each format defines how NaN and infinities are written; none is dropped silently
 */
#ifndef DT_RUNNER_EXPORT_EXPORT_H
#define DT_RUNNER_EXPORT_EXPORT_H

#include <stdint.h>

#include "base/strbuf.h"
#include "runner/cli/command.h"
#include "store/curve.h"
#include "store/run.h"

/* In the order of the help. */
#define DT_EXPORT_FORMATS(X) \
    X(csv) X(jsonl) X(samples) X(tensorboard) X(html) X(parquet) X(hf) X(peft) X(gguf) X(mlflow)

typedef struct dt_export_job {
    dt_store *store;
    const dt_run *runs;
    size_t count;       /* at least one */
    const char *target; /* the file, folder or address; NULL: stdout */
    const char *metric; /* only this metric; NULL: all */
    const char *which;  /* hf: which checkpoint; NULL: the newest */
    bool replace;       /* replace an existing file */
    const dt_call *call;
} dt_export_job;

typedef struct dt_export_format {
    const char *name;   /* --to NAME */
    const char *target; /* "FILE", "DIR", "URL" */
    bool to_stdout;     /* writes to stdout without a target */
    size_t runs_most;   /* 0: any number */
    const char *help;   /* what it writes, at most 64 columns */
    dt_status (*write)(const dt_export_job *job, dt_error *err);
} dt_export_format;

#define DT_EXPORT_DECLARE(name) extern const dt_export_format dt_export_##name;
DT_EXPORT_FORMATS(DT_EXPORT_DECLARE)

extern const dt_export_format *const dt_export_formats[]; /* ends with NULL */
extern const char *const dt_export_names[];               /* their names, for --to */

/* --- export.c */
/* Passes each point of a run to `take`, ordered by name, then step. Points are read in blocks
 * before they are passed, so that a slow `take` does not lock the store. Stops at the first status
 * that is not DT_OK and returns it. */
typedef dt_status (*dt_export_take)(void *context, const dt_metric *point, dt_error *err);
dt_status dt_export_points(const dt_export_job *job, const dt_run *run, dt_export_take take,
                           void *context, dt_error *err);

/* thrift: writes structs in Thrift's compact protocol, which Parquet's headers use.
 *
 * Fields of a struct are added in rising order. Each begun struct must be ended.
 */

enum { DT_THRIFT_DEPTH = 8 };

typedef struct dt_thrift {
    dt_strbuf *out;
    int last[DT_THRIFT_DEPTH]; /* the previous field of each open struct */
    int depth;
} dt_thrift;

void dt_thrift_init(dt_thrift *thrift, dt_strbuf *out); /* inside the outermost struct */
void dt_thrift_add_i32(dt_thrift *thrift, int field, int32_t value);
void dt_thrift_add_i64(dt_thrift *thrift, int field, int64_t value);
void dt_thrift_add_text(dt_thrift *thrift, int field, const char *text);
void dt_thrift_begin(dt_thrift *thrift,
                     int field);       /* a struct as a field; 0: as an item of a list */
void dt_thrift_end(dt_thrift *thrift); /* of the struct begun last, or the outermost */

typedef enum dt_thrift_type {
    DT_THRIFT_I32 = 5,
    DT_THRIFT_TEXT = 8,
    DT_THRIFT_STRUCT = 12
} dt_thrift_type;
/* Begins a list of `count` items, added by the two functions below or by dt_thrift_begin(thrift, 0). */
void dt_thrift_begin_list(dt_thrift *thrift, int field, dt_thrift_type type, size_t count);
void dt_thrift_item_i32(dt_thrift *thrift, int32_t value);
void dt_thrift_item_text(dt_thrift *thrift, const char *text);

/* Adds a varint: seven bits a byte, the lowest first. */
void dt_varint_add(dt_strbuf *out, uint64_t value);

#endif

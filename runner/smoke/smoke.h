/* smoke: tests a recipe with scaled-down runs.
 *
 * A check has a name, a promise, a function that tests it, and a measured figure. Each recipe has its own state
 * folder (place.h), so that checks of different recipes are independent.
 * Errors  a failed check is a result, not an error; errors are problems that prevent testing
 *
 * Adding a check: write its function in one of the check_*.c files and declare it in smoke_int.h; add a row to
 * `training` or `of_command` (smoke.c) and a line to docs/smoke.md
 */
#ifndef DT_SMOKE_H
#define DT_SMOKE_H

#include "recipes/read/reader.h"
#include "runner/smoke/fault.h"
#include "runner/smoke/shrink.h"

typedef enum dt_smoke_verdict { DT_SMOKE_GOOD, DT_SMOKE_FAILED, DT_SMOKE_SKIPPED } dt_smoke_verdict;

typedef struct dt_smoke_result {
    const char *check, *promise; /* "resumes", "a killed rank costs no bit" */
    dt_smoke_verdict verdict;
    const char *figure; /* what was measured, or why it failed or was skipped */
    double seconds;
} dt_smoke_result;

typedef struct dt_smoke_wish {
    dt_shrink how;
    const dt_smoke_fault *faults; /* also to be tested */
    size_t faults_count;
    double limit_seconds; /* for each run */
    bool keep;            /* keep the folder in any case */
    /* called for each result as soon as it is known; may be NULL */
    void (*on_result)(void *context, const dt_smoke_result *result);
    void *context;
} dt_smoke_wish;

typedef struct dt_smoke_report {
    const char *path; /* of the recipe */
    dt_smoke_result *results;
    size_t count, failed;
    const char *folder; /* the kept folder; NULL: removed */
    double seconds;
    bool interrupted;
} dt_smoke_report;

/* Runs all checks of one recipe; the texts live in the arena. */
dt_status dt_smoke_recipe(dt_smoke_report *out, const dt_recipe *recipe,
                          const dt_recipe_source *source, const dt_smoke_wish *wish,
                          dt_arena *arena, dt_error *err);
/* Makes the report of a recipe that could not be read: one failed check. */
void dt_smoke_unread(dt_smoke_report *out, const char *path, const dt_error *why, dt_arena *arena);

#endif

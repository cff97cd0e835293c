/* smoke: whether a recipe does what will be asked of it, tried in small before it is run at length.
 *
 * A check is a promise with a name, a function that tries it, and what it measured. Each recipe has a
 * place of its own (place.h), so that no check sees what another recipe left.
 * Errors  a promise that is not kept is a result, and no error; an error is what keeps from trying
 *
 * Adding a check: its function beside its kind, declared in smoke_int.h; a row in `checks` (smoke.c); a
 * line in docs/smoke.md
 */
#ifndef DT_SMOKE_H
#define DT_SMOKE_H

#include "recipes/reader.h"
#include "runner/smoke/fault.h"
#include "runner/smoke/shrink.h"

typedef enum dt_smoke_verdict { DT_SMOKE_GOOD, DT_SMOKE_FAILED, DT_SMOKE_SKIPPED } dt_smoke_verdict;

typedef struct dt_smoke_result {
    const char *check,
        *promise; /* "resumes", "killed after a save, it continues to the same bits" */
    dt_smoke_verdict verdict;
    const char *figure; /* what was measured; why it failed or was left out */
    double seconds;
} dt_smoke_result;

typedef struct dt_smoke_wish {
    dt_shrink how;
    const dt_smoke_fault *faults; /* to be tried as well */
    size_t faults_count;
    double limit_seconds; /* for each run */
    bool keep;            /* the folder, whatever comes of it */
    void (*tell)(void *context, const dt_smoke_result *result); /* as each is known; MAY be NULL */
    void *context;
} dt_smoke_wish;

typedef struct dt_smoke_report {
    const char *path; /* of the recipe */
    dt_smoke_result *results;
    size_t count, failed;
    const char *folder; /* that was kept; NULL: it is gone */
    double seconds;
    bool interrupted;
} dt_smoke_report;

/* All checks of one recipe that was read; the texts live in the arena. */
dt_status dt_smoke_recipe(dt_smoke_report *out, const dt_recipe *recipe,
                          const dt_recipe_source *source, const dt_smoke_wish *wish,
                          dt_arena *arena, dt_error *err);
/* The report of one that could not be read: one check that failed. */
dt_status dt_smoke_unread(dt_smoke_report *out, const char *path, const dt_error *why,
                          dt_arena *arena, dt_error *err);

#endif

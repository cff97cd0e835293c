#include "runner/cli/find_weights.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "store/store.h"

/* The part after @: "best", "last", or a step. */
typedef struct choice {
    bool best, last;
    long long step;
} choice;

static dt_status read_choice(choice *out, const char *which, dt_error *err)
{
    char *end = NULL;

    *out = (choice){.best = strcmp(which, "best") == 0, .last = strcmp(which, "last") == 0};
    if (out->best || out->last)
        return DT_OK;
    out->step = strtoll(which, &end, 10);
    if (end == which || *end != '\0' || out->step < 0)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "unsupported checkpoint '%s' (expected a step, 'best' or 'last')", which);
    return DT_OK;
}

/* Returns the path of the wanted checkpoint, or NULL. "last" is the newest step of the newest attempt.
 * rows: newest step first. */
static const char *choose(const dt_store_checkpoint *rows, int64_t count, const choice *wanted)
{
    const dt_store_checkpoint *chosen = NULL;

    for (int64_t i = 0; i < count; i++) {
        const dt_store_checkpoint *row = &rows[i];
        bool fits;

        if (wanted->best)
            fits = !isnan(row->score) && (chosen == NULL || row->score < chosen->score);
        else if (wanted->last)
            fits = chosen == NULL || row->attempt > chosen->attempt;
        else
            fits = chosen == NULL && row->step == wanted->step;
        if (fits && dt_file_exists(row->path))
            chosen = row;
    }
    return chosen != NULL ? chosen->path : NULL;
}

static dt_status find_run(dt_run *out, dt_store *store, const char *ref, dt_arena *arena,
                          dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    dt_status st = dt_store_run_find(store, out, ref, arena, &problem);

    if (st == DT_OK)
        return DT_OK;
    return DT_FAIL(err, st == DT_ERR_NOT_FOUND || st == DT_ERR_USAGE ? DT_ERR_RECIPE : st, "%s",
                   problem.message);
}

dt_status dt_find_weights(const char **path, const char *name, dt_arena *arena, dt_error *err)
{
    const char *ref = name + strlen(DT_WEIGHTS_RUN), *at = strrchr(ref, '@');
    dt_store_checkpoint *rows;
    dt_store *store = NULL;
    dt_status st = DT_OK;
    choice wanted;
    int64_t count;
    dt_run run;

    DT_TRY(read_choice(&wanted, at != NULL ? at + 1 : "last", err));
    if (at != NULL)
        ref = dt_arena_strndup(arena, ref, (size_t)(at - ref));
    DT_TRY(dt_store_open_to_read(&store, NULL, err));
    DT_TRY(find_run(&run, store, ref, arena, err));
    DT_TRY(dt_store_checkpoint_list(store, &rows, &count, run.id, arena, err));
    *path = choose(rows, count, &wanted);
    if (*path == NULL)
        DT_THROW(err, DT_ERR_RECIPE, "run '%s' has no checkpoint '%s' (see 'dtrun checkpoints %s')",
                 run.id, at != NULL ? at + 1 : "last", run.id);
out:
    dt_store_close(store);
    return st;
}

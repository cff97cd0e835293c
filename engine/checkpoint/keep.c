#include "engine/checkpoint/checkpoint_int.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "engine/checkpoint/checkpoint.h"

/* Entries are newest first; stays[i] and is_best[i] belong to entries[i]. */
typedef struct pruning {
    dt_checkpoint_entry *entries;
    bool *stays, *is_best;
    int64_t count;
} pruning;

/* Keep the newest `limit` (0: all) checkpoints that were saved for one of `reasons`. A damaged one,
 * whose reasons are unknown, follows the rule for steps, and does not count towards the limit. */
static void keep_newest(pruning *run, unsigned reasons, int64_t limit)
{
    int64_t kept = 0;

    for (int64_t i = 0; i < run->count && (limit == 0 || kept < limit); i++) {
        const dt_checkpoint_entry *entry = &run->entries[i];
        bool counts = entry->opens && (entry->kept_for & reasons) != 0;

        if (counts || (entry->marked && !entry->opens && (reasons & DT_CHECKPOINT_STEPS)))
            run->stays[i] = true;
        if (counts)
            kept++;
    }
}

/* Best remaining checkpoint whose score measures `by`; of equals the newer. -1 if none remains. */
static int64_t next_best(const pruning *run, dt_best_by by)
{
    int64_t best = -1;

    for (int64_t i = 0; i < run->count; i++) {
        const dt_checkpoint_entry *entry = &run->entries[i];

        if (entry->opens && (entry->kept_for & DT_CHECKPOINT_BEST) && !run->is_best[i] &&
            entry->best_by == by && (best < 0 || entry->score < run->entries[best].score))
            best = i;
    }
    return best;
}

/* Keep the best by what the newest checkpoint measures, which can differ from older ones. */
static void keep_best(pruning *run, int64_t limit)
{
    int64_t newest = 0;

    while (newest < run->count && !run->entries[newest].opens)
        newest++;
    if (newest == run->count)
        return;
    for (int64_t kept = 0; kept < limit; kept++) {
        int64_t best = next_best(run, run->entries[newest].best_by);

        if (best < 0)
            return;
        run->stays[best] = run->is_best[best] = true;
    }
}

/* A locked checkpoint (for example, being copied to another machine) is removed by a later call. */
dt_status dt_checkpoint_remove_unheld(bool *removed, const char *path, dt_error *err)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    dt_status st = DT_OK;

    *removed = fd < 0 || flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (*removed)
        st = dt_checkpoint_remove(path, err);
    if (fd >= 0)
        close(fd);
    return st;
}

dt_status dt_checkpoint_beyond(const char ***paths, int64_t *count, const char *parent,
                               const dt_checkpoint_keep *keep, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    pruning run = {0};

    *count = 0;
    DT_TRY(dt_checkpoint_list(&run.entries, &run.count, parent, arena, err));
    run.stays = dt_arena_alloc_array(arena, (size_t)run.count + 1, sizeof(bool));
    run.is_best = dt_arena_alloc_array(arena, (size_t)run.count + 1, sizeof(bool));
    *paths = dt_arena_alloc_array(arena, (size_t)run.count + 1, sizeof((*paths)[0]));
    keep_newest(&run, ~0u, 1);
    keep_newest(&run, DT_CHECKPOINT_STEPS | DT_CHECKPOINT_END, keep->newest);
    keep_newest(&run, DT_CHECKPOINT_EPOCH, keep->epochs);
    keep_best(&run, keep->best);
    for (int64_t i = 0; i < run.count; i++)
        if (!run.stays[i])
            (*paths)[(*count)++] = run.entries[i].path;
out:
    return st;
}

dt_status dt_checkpoint_prune(const char *parent, const dt_checkpoint_keep *keep, dt_error *err)
{
    const char **paths;
    dt_status st, one;
    dt_arena arena;
    int64_t count;
    bool removed;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_checkpoint_beyond(&paths, &count, parent, keep, &arena, err));
    for (int64_t i = 0; i < count; i++) { /* continues after a failure; returns the first error */
        one = dt_checkpoint_remove_unheld(&removed, paths[i], err);
        st = st == DT_OK ? one : st;
    }
out:
    dt_arena_release(&arena);
    return st;
}

/* helpers: finds the processes that a supervisor started on this machine: bridges to nodes (dtrun-reach, ssh,
 * dtrun-agent connect) and file copies. They end with their supervisor, except paused ones (SIGSTOP). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/proc_end.h"
#include "runner/supervisor/client/client_int.h"
#include "runner/supervisor/supervisor.h"

#define END_SECONDS 5.0

typedef struct wanted {
    const char *mark; /* NAME=value */
    bool paused_only;
} wanted;

static bool carries_mark(const void *context, char state, const char *words, size_t length)
{
    const wanted *of = context;
    size_t step;

    if (of->paused_only && !dt_proc_is_paused(state))
        return false;
    for (size_t at = 0; at < length; at += step) {
        step = strnlen(words + at, length - at) + 1;
        if (strcmp(words + at, of->mark) == 0)
            return true;
    }
    return false;
}

/* Returns the mark of a run's helpers, in the arena, or NULL if it cannot be made. */
static const char *mark_of(const char *run, dt_arena *arena)
{
    const char *folder;

    if (dt_run_path(&folder, run, NULL, arena, NULL) != DT_OK)
        return NULL;
    return dt_arena_printf(arena, DT_SUPERVISOR_MARK "=%s", folder);
}

int64_t dt_supervisor_end_helpers(const char *run, bool paused_only)
{
    int64_t left = 0;
    const char *mark;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    mark = mark_of(run, &arena);
    if (mark != NULL)
        left = dt_proc_end_all("environ", carries_mark, &(wanted){mark, paused_only}, END_SECONDS);
    dt_arena_release(&arena);
    return left;
}

int64_t dt_helpers_find_paused(const char *run)
{
    int64_t found = 0;
    const char *mark;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    mark = mark_of(run, &arena);
    if (mark != NULL)
        found = dt_proc_find("environ", carries_mark, &(wanted){mark, true});
    dt_arena_release(&arena);
    return found;
}

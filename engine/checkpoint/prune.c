#include "engine/checkpoint/checkpoint_int.h"

#include "engine/checkpoint/list.h"

#include "base/banned.h"

/* A damaged one does not count among the kept; it goes once `keep` good ones stand. */
dt_status dt_checkpoint_prune(const char *parent, int64_t keep, dt_error *err)
{
    dt_status st = DT_OK;
    dt_checkpoint_entry *entries;
    dt_arena arena;
    int64_t count, kept = 0;

    dt_arena_init(&arena, 0);
    DT_TRY(dt_checkpoint_list(&entries, &count, parent, &arena, err));
    for (int64_t i = 0; i < count; i++) {
        bool surplus = keep > 0 && kept >= keep;

        if (!entries[i].marked || surplus) {
            /* goes on after a failure, and tells of the first */
            dt_status removed = dt_checkpoint_remove(entries[i].path, err);
            if (st == DT_OK)
                st = removed;
        } else if (entries[i].opens) {
            kept++;
        }
    }
out:
    dt_arena_release(&arena);
    return st;
}

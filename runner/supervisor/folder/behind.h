/* behind: how far the run store is behind what the run's folder says (kept.h).
 *
 *   the folder's newest attempt    the store
 *   is not there                   an older copy, or a new file
 *   has ended                      has all that the journals told of it: who wrote the two was ended in
 *                                  between, and nothing but the end is missing
 *   has ended                      has less than that: an older copy
 *
 * That the store has something is on its disk before the folder says so (session.c): a power loss
 * makes no older copy of it.
 */
#ifndef DT_FOLDER_BEHIND_H
#define DT_FOLDER_BEHIND_H

#include "base/arena.h"
#include "store/store.h"

typedef enum dt_behind_what {
    DT_BEHIND_NOTHING,
    DT_BEHIND_END,  /* the store knows all but that the attempt has ended */
    DT_BEHIND_ROWS, /* it is older, or was lost */
} dt_behind_what;

typedef struct dt_behind {
    dt_behind_what what;
    int64_t newest;    /* attempt that the folder knows; 0: none */
    int64_t stored;    /* that the store knows; 0: none */
    bool stored_ended; /* and that had ended there */
} dt_behind;

/* folder: runs/ID. */
dt_status dt_behind_look(dt_behind *out, dt_store *store, const char *run, const char *folder,
                         dt_arena *arena, dt_error *err);

#endif

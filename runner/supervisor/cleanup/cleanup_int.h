/* cleanup_int: cleanup.c does what list_folders.c finds that there is to do. */
#ifndef DT_CLEANUP_CLEANUP_INT_H
#define DT_CLEANUP_CLEANUP_INT_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "runner/node_setup/node_setup.h"
#include "runner/supervisor/cleanup/cleanup.h"

/* Beside the place of an attempt's node here: nothing is left of it there. */
#define DT_CLEANUP_DONE_FILE "tidied"

/* An attempt's folder on a node. */
typedef struct dt_cleanup_folder {
    dt_cleanup *cleanup;
    uv_work_t work; /* of the first errand of a node, which does the others too */
    dt_node_layout place;
    const char *here; /* attempt-N/node-K on this machine */
    dt_strbuf kept;   /* names that stay there, for the log */
    dt_error err;
} dt_cleanup_folder;

struct dt_cleanup {
    dt_cleanup_setup setup;
    dt_cleanup_calls calls;
    void *context;
    dt_arena arena;
    dt_strbuf home; /* names of checkpoints that are here too, or need not be */
    dt_cleanup_folder *folders;
    int64_t count, running;
    bool begun;
    double deadline; /* to begin an errand */
    atomic_bool cancelled;
};

/* --- list_folders.c */
dt_status dt_cleanup_list_folders(dt_cleanup *cleanup, dt_error *err);

#endif

/* cleanup_int: declares what list_folders.c finds and cleanup.c removes. */
#ifndef DT_CLEANUP_CLEANUP_INT_H
#define DT_CLEANUP_CLEANUP_INT_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "runner/node_setup/node_setup.h"
#include "runner/supervisor/cleanup/cleanup.h"

/* Marker in attempt-N/node-K on this machine: nothing of it is left on the node. */
#define DT_CLEANUP_DONE_FILE "tidied"

/* The folder of an attempt on a node. */
typedef struct dt_cleanup_folder {
    dt_cleanup *cleanup;
    uv_work_t work; /* used by the first folder of a node, whose thread handles the others too */
    dt_node_layout place;
    const char *here; /* attempt-N/node-K on this machine */
    dt_strbuf kept;   /* checkpoints that were kept there, for the log */
    dt_strbuf files;  /* files of the command that were kept there, for the log */
    dt_error err;
} dt_cleanup_folder;

struct dt_cleanup {
    dt_cleanup_setup setup;
    dt_cleanup_calls calls;
    void *context;
    dt_arena arena;
    /* names of checkpoints that may be removed: they are on this machine, or not needed */
    dt_strbuf home;
    dt_cleanup_folder *folders;
    int64_t count, running;
    bool begun;
    double deadline; /* latest start of a folder */
    atomic_bool cancelled;
};

/* --- list_folders.c */
dt_status dt_cleanup_list_folders(dt_cleanup *cleanup, dt_error *err);

#endif

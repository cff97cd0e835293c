/* nodes: how a recipe names machines.
 *
 *   [USER@]HOST [gpus=N] [first_gpu=N] [ranks=N] [slots=N]   an ssh destination, and its own share
 *   gpu-a gpus=2 first_gpu=4  of its GPUs the fifth and the sixth
 *   gpu[01-16,20]             ranges in brackets, zeros kept; several are crossed
 *   {host: gpu-a, gpus: 4}    the same as a map
 *   localhost, localhost#2    this machine; once more, to try several nodes on it
 *   slurm:4                   so many nodes of a Slurm cluster, alone in the list
 *   slurm                     all nodes of the Slurm job that dtrun runs in, alone in the list
 *
 * In a hostfile a line is such an item, and "slots" are devices where the node has some, else CPU
 * ranks; '#' starts a comment.
 * Ownership  results live in the arena
 * Errors     DT_ERR_RECIPE saying which item; the caller says where it stands
 */
#ifndef DT_RECIPES_NODES_H
#define DT_RECIPES_NODES_H

#include "base/arena.h"
#include "base/error.h"
#include "recipes/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_NODES_MAX 1024

typedef struct dt_node_spec {
    const char *destination; /* what the transport is given */
    int64_t gpus, ranks;     /* -1: as the recipe says for all */
    int64_t first_gpu;       /* from there on; 0 where it is not said */
    bool slots;              /* both are its slots: GPUs where it has some */
} dt_node_spec;

/* One item of an expanded list. */
dt_status dt_node_spec_parse(dt_node_spec *out, const char *item, dt_arena *arena, dt_error *err);

/* Every range becomes its machines; a destination that is listed twice is refused. */
dt_status dt_nodes_expand(dt_string_list *out, const dt_string_list *items, dt_arena *arena,
                          dt_error *err);

/* The items of a hostfile, not yet expanded. */
dt_status dt_nodes_read_hostfile(dt_string_list *out, const char *path, dt_arena *arena,
                                 dt_error *err);

/* localhost and its numbers, loopback addresses, this machine's host name. */
bool dt_node_is_here(const char *destination);

/* "slurm", all nodes of the Slurm job that dtrun runs in; or "slurm:N". */
bool dt_node_is_slurm(const char *destination);
/* N of "slurm:N", or 0. */
int64_t dt_node_slurm_count(const char *destination);

#ifdef __cplusplus
}
#endif
#endif

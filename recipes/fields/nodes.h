/* nodes: parses the machines of a recipe.
 *
 *   [USER@]HOST [gpus=N] [first_gpu=N] [ranks=N] [slots=N]   an ssh destination with settings of this node
 *   gpu-a gpus=2 first_gpu=4  GPUs 4 and 5 of nvidia-smi
 *   gpu[01-16,20]             ranges; several expand to all combinations; leading zeros are kept
 *   {host: gpu-a, gpus: 4}    the same as a map
 *   localhost, localhost#2    this machine; a second node on it, for tests
 *   slurm:4                   four nodes of a Slurm cluster; the only item
 *   slurm                     all nodes of the Slurm job that dtrun runs in; the only item
 *
 * In a hostfile each line is such an item, "slots" is the number of GPUs or, without GPUs, of CPU ranks,
 * and '#' starts a comment.
 * Ownership  results live in the arena
 * Errors     DT_ERR_RECIPE naming the item; the caller adds the position
 */
#ifndef DT_RECIPES_FIELDS_NODES_H
#define DT_RECIPES_FIELDS_NODES_H

#include "base/error.h"
#include "base/memory.h"
#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_NODES_MAX 1024

typedef struct dt_node_spec {
    const char *destination; /* destination for the transport */
    int64_t gpus, ranks;     /* -1: the recipe's value for all nodes */
    int64_t first_gpu;       /* first GPU to use; default 0 */
    bool slots;              /* gpus and ranks come from slots, which count GPUs if there are any */
} dt_node_spec;

/* Parses one item of an expanded list. */
dt_status dt_node_spec_parse(dt_node_spec *out, const char *item, dt_arena *arena, dt_error *err);

/* Returns the item with another first_gpu, in the arena; 0: without. */
const char *dt_node_item_from(const char *item, int64_t first_gpu, dt_arena *arena);

/* Expands every range; a destination that is listed twice is refused. On failure *wrong is the index of the refused
 * item; -1: the items cannot be combined. */
dt_status dt_nodes_expand(dt_string_list *out, int64_t *wrong, const dt_string_list *items,
                          dt_arena *arena, dt_error *err);

/* Reads the items of a hostfile, without expansion. */
dt_status dt_nodes_read_hostfile(dt_string_list *out, const char *path, dt_arena *arena,
                                 dt_error *err);

/* Returns whether it is localhost, localhost#N, a loopback address or this machine's host name. */
bool dt_node_is_here(const char *destination);

/* Returns whether the item, such as "slurm ranks=2", or the destination is "slurm" or "slurm:N". */
bool dt_node_is_slurm(const char *item);
/* Returns N of "slurm:N", or 0. */
int64_t dt_node_slurm_count(const char *item);

#ifdef __cplusplus
}
#endif
#endif

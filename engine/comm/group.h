/* group: describes some ranks of a run at equal distances: first, first + stride, first + 2 stride, ...
 *
 * Purpose    what a communicator connects: the whole run, or the ranks along one axis of its mesh
 *            (mesh.h). All ranks of a run are in groups of the same stride and size, so each rank
 *            knows all groups
 * Words      a *member* is counted within the group, a *rank* within the run
 */
#ifndef DT_ENGINE_COMM_GROUP_H
#define DT_ENGINE_COMM_GROUP_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_group {
    int64_t rank, size;    /* the caller's member number, and the number of members */
    int64_t first, stride; /* first rank of the group, and distance between its ranks */
    int64_t world_size;    /* size of the run, a multiple of stride * size */
} dt_group;

/* The group of rank `rank`, if groups of `size` members are `stride` apart:
 *   stride 1, size 2   0 1 | 2 3 | 4 5        stride 2, size 3   0 2 4 | 1 3 5 */
static inline dt_group dt_group_of(int64_t rank, int64_t stride, int64_t size, int64_t world_size)
{
    int64_t block = stride * size, within = rank % block;
    dt_group own = {within / stride, size, rank - within + within % stride, stride, world_size};

    return own;
}

/* The group of all ranks. */
static inline dt_group dt_group_all(int64_t rank, int64_t world_size)
{
    return dt_group_of(rank, 1, world_size, world_size);
}

/* Rank of a member within the run. */
static inline int64_t dt_group_rank(const dt_group *group, int64_t member)
{
    return group->first + member * group->stride;
}

#ifdef __cplusplus
}
#endif
#endif

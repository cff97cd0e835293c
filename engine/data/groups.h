/* groups: sentence pairs of like length together, so that little of a batch is padding.
 *
 * Length     of a pair: that of its longer side. Groups have so many pairs that their number times the
 *            longest of them is max_tokens at most, as fairseq's --max-tokens has it
 * Order      by length, of one length by the source's and then by the target's; of equal ones drawn from
 *            the seed. Cut from the shortest on; which group comes when the sampler says
 * The same   for every number of ranks, and in every epoch
 * Too long   a pair that is longer than `longest`, or than max_tokens, is in no group
 */
#ifndef DT_ENGINE_DATA_GROUPS_H
#define DT_ENGINE_DATA_GROUPS_H

#include "engine/data/sentences.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_group_limits {
    int64_t max_tokens, longest; /* of a group; of a pair */
} dt_group_limits;

typedef struct dt_groups {
    const dt_sentences *sentences; /* borrowed */
    int64_t count;
    int64_t *pairs;                       /* of all groups, one after another */
    int64_t *starts;                      /* (count+1), in `pairs` */
    int64_t *targets;                     /* (count), ids */
    int64_t kept, dropped, first_dropped; /* pairs */
} dt_groups;

/* Of the pairs first .. first+count. DT_ERR_NOMEM. */
dt_status dt_groups_make(dt_groups *out, const dt_sentences *sentences, int64_t first,
                         int64_t count, const dt_group_limits *limits, uint64_t seed,
                         dt_error *err);
void dt_groups_release(dt_groups *groups); /* accepts a zeroed one */

/* B, S and T of a batch (engine/data/data.h). */
typedef struct dt_pair_shape {
    int64_t samples, source, target;
} dt_pair_shape;

typedef struct dt_pair_ids {
    int32_t pad, end;
    int64_t source_limit, target_limit; /* ids are below */
} dt_pair_ids;

/* A group's source (B,S), previous (B,T) and targets (B,T). */
dt_status dt_group_fill(dt_pair_shape *shape, void *const inputs[], const dt_groups *groups,
                        int64_t group, const dt_pair_ids *ids, dt_error *err);
/* A pair of two empty sentences none of whose targets counts. */
void dt_group_blank(dt_pair_shape *shape, void *const inputs[], const dt_pair_ids *ids);

#ifdef __cplusplus
}
#endif
#endif

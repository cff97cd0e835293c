/* groups: groups sentence pairs of similar length into batches with little padding.
 *
 * Length     of a pair: that of its longer side. The number of pairs of a group times the longest
 *            of them is at most max_tokens, as in fairseq's --max-tokens
 * Order      by length, then by the source's length, then by the target's; ties in random order drawn from
 *            the seed. Groups are cut starting at the shortest; the sampler shuffles the groups
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
    int64_t max_tokens, longest; /* maximum padded tokens of a group; maximum length of a pair */
} dt_group_limits;

typedef struct dt_groups {
    const dt_sentences *sentences; /* all sentence pairs, borrowed */
    int64_t count;
    int64_t *pairs;   /* pairs of all groups, concatenated */
    int64_t *starts;  /* (count+1): where each group starts in `pairs` */
    int64_t *targets; /* (count): number of target ids in each group */
    /* numbers of grouped and dropped pairs; first dropped pair */
    int64_t kept, dropped, first_dropped;
} dt_groups;

/* Group the pairs first .. first+count. DT_ERR_NOMEM. */
dt_status dt_groups_make(dt_groups *out, const dt_sentences *sentences, int64_t first,
                         int64_t count, const dt_group_limits *limits, uint64_t seed,
                         dt_error *err);
void dt_groups_release(dt_groups *groups); /* accepts a zeroed value */

/* B, S and T of a batch of sentence pairs (engine/data/data.h). */
typedef struct dt_pair_shape {
    int64_t samples, source, target;
} dt_pair_shape;

typedef struct dt_pair_ids {
    int32_t pad, end;
    int64_t source_limit, target_limit; /* upper bounds of source and target ids */
} dt_pair_ids;

/* Fill a batch with a group's source (B,S), previous (B,T) and targets (B,T). */
dt_status dt_group_fill(dt_pair_shape *shape, void *const inputs[], const dt_groups *groups,
                        int64_t group, const dt_pair_ids *ids, dt_error *err);
/* Fill a batch with a pair of two empty sentences whose targets do not count. */
void dt_group_blank(dt_pair_shape *shape, void *const inputs[], const dt_pair_ids *ids);

#ifdef __cplusplus
}
#endif
#endif

/* sentences: sentence pairs as ids in one file, and the groups of similar length that become batches.
 *
 *   0    "DTPAIRS", and a byte 1: the version
 *   8    int64 pairs N, int64 ids of all sources A, int64 ids of all targets B
 *   32   int32 bytes of an id: 2 or 4; then zeros
 *   64   int64 (N+1) first id of each source, and A; the same of the targets, and B
 *        the A ids of the sources, then the B of the targets, unsigned
 *
 * All little-endian. Every sentence includes its end token, so it has at least one id.
 * Errors  DT_ERR_RECIPE naming the file: another format, cut off, of a later version
 */
#ifndef DT_ENGINE_DATA_SENTENCES_H
#define DT_ENGINE_DATA_SENTENCES_H

#include <stdint.h>

#include "base/strbuf.h"
#include "engine/data/files.h"
#include "engine/tokens/bpe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef enum dt_language { DT_SOURCE, DT_TARGET, DT_LANGUAGES } dt_language;

typedef struct dt_sentences {
    const char *path; /* path of the file, borrowed */
    dt_mapping mapping;
    int64_t count;
    int width_bytes;
    const int64_t *starts[DT_LANGUAGES];    /* (count+1): first id of each sentence */
    const unsigned char *ids[DT_LANGUAGES]; /* ids of all sentences, in the mapping */
} dt_sentences;

dt_status dt_sentences_open(dt_sentences *out, const char *path, dt_error *err);
void dt_sentences_close(dt_sentences *sentences); /* accepts a zeroed value */

static inline int64_t dt_sentence_length(const dt_sentences *sentences, dt_language language,
                                         int64_t pair)
{
    const int64_t *start = sentences->starts[language] + pair;

    return start[1] - start[0];
}

/* Read dt_sentence_length ids. DT_ERR_RECIPE naming file and pair if an id is not below `limit`. */
dt_status dt_sentence_read(int32_t *out, const dt_sentences *sentences, dt_language language,
                           int64_t pair, int64_t limit, dt_error *err);

/* Append the header, up to the ids. starts: as in dt_sentences. */
void dt_sentences_head(dt_strbuf *out, int64_t count, int width_bytes,
                       const int64_t *const starts[DT_LANGUAGES]);
/* Append ids in the given width. */
void dt_sentences_ids(dt_strbuf *out, int width_bytes, const int32_t *ids, int64_t count);

/* groups: groups sentence pairs of similar length into batches with little padding.
 *
 * Length     of a pair: that of its longer side. The number of pairs of a group times the longest
 *            of them is at most max_tokens, as in fairseq's --max-tokens
 * Order      by length, then by the source's length, then by the target's; ties in random order drawn from
 *            the seed. Groups are cut starting at the shortest; the sampler shuffles the groups
 * The same   for every number of ranks, and in every epoch
 * Too long   a pair that is longer than `longest`, or than max_tokens, is in no group
 */

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

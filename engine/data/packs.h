/* packs: a text cut where documents end, so that a sequence holds whole ones (data.pack).
 *
 * Filled     in the order of the text: a document that does not fit behind those that stand in a sequence
 *            begins the next one. One of more than T tokens begins a sequence too, and is cut every T of
 *            them; whole documents follow its last piece
 * Place      a sequence is a run of the text, up to T tokens, the rest of its T places padding: every token
 *            stands in one sequence. Which comes when is the sampler's shuffle; the cut is the same in every
 *            epoch and for every number of ranks
 * Cost       one look at every token when data are opened, and 8 bytes a sequence
 * Threads    any, once made
 */
#ifndef DT_ENGINE_DATA_PACKS_H
#define DT_ENGINE_DATA_PACKS_H

#include "engine/data/stream.h"
#include "recipes/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_packs {
    int64_t count;
    int64_t *starts; /* (count+1), tokens of the stream */
} dt_packs;

/* Where documents are not told apart the field has no effect. */
static inline bool dt_packs_asked(const dt_recipe *recipe)
{
    return recipe->data.pack && !recipe->data.cross_documents;
}

/* Of the tokens first .. first+count, in sequences of T = `tokens`. end: what stands behind a document. */
dt_status dt_packs_make(dt_packs *out, const dt_token_stream *stream, int64_t first, int64_t count,
                        int64_t tokens, int32_t end, dt_error *err);
void dt_packs_release(dt_packs *packs); /* accepts a zeroed one */

/* Tokens of a sequence. */
static inline int64_t dt_packs_length(const dt_packs *packs, int64_t index)
{
    return packs->starts[index + 1] - packs->starts[index];
}

#ifdef __cplusplus
}
#endif
#endif

/* packs: cuts a text at the ends of documents, so that sequences contain whole documents (data.pack).
 *
 * Filled     in the order of the text: a document that does not fit into the rest of a sequence starts the
 *            next one. A document of more than T tokens also starts a sequence, and is cut every T tokens;
 *            whole documents can follow its last piece
 * Place      a sequence is a contiguous range of up to T tokens, followed by padding: every token is in
 *            exactly one sequence. The sampler shuffles the sequences; the cuts are the same in every
 *            epoch and for every number of ranks
 * Cost       one pass over all tokens when data are opened, and 8 bytes per sequence
 * Threads    any, once made
 */
#ifndef DT_ENGINE_DATA_PACKS_H
#define DT_ENGINE_DATA_PACKS_H

#include "engine/data/stream.h"
#include "recipes/fields/recipe.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct dt_packs {
    int64_t count;
    int64_t *starts; /* (count+1): first token of each sequence */
} dt_packs;

/* Whether to pack; data.pack has no effect if documents are not separated. */
static inline bool dt_packs_asked(const dt_recipe *recipe)
{
    return recipe->data.pack && !recipe->data.cross_documents;
}

/* Pack the tokens first .. first+count into sequences of T = `tokens`. end: the token that ends
 * documents. */
dt_status dt_packs_make(dt_packs *out, const dt_token_stream *stream, int64_t first, int64_t count,
                        int64_t tokens, int32_t end, dt_error *err);
void dt_packs_release(dt_packs *packs); /* accepts a zeroed value */

/* Number of tokens of a sequence. */
static inline int64_t dt_packs_length(const dt_packs *packs, int64_t index)
{
    return packs->starts[index + 1] - packs->starts[index];
}

#ifdef __cplusplus
}
#endif
#endif

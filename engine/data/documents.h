/* documents: marks documents in samples so that their tokens do not see each other (data.cross_documents:
 * false).
 *
 * A document ends with its end-of-text token; the next token starts a new document. Positions
 * count from a document's first token, attention starts there, and the end-of-text token, which could only
 * predict the first token of the next document, has no target. The losses of documents that share a sample
 * are those of each alone (unit.model_documents).
 *
 * Threads    any
 */
#ifndef DT_ENGINE_DOCUMENTS_H
#define DT_ENGINE_DOCUMENTS_H

#include "engine/data/data.h"

#ifdef __cplusplus
extern "C" {
#endif

#define DT_DOCUMENTS_CROSSED (-1) /* special value: documents are not separated */

/* *out: the token that ends documents: data.end_of_text, or the tokenizer's (tokenizer can be
 * NULL), or DT_DOCUMENTS_CROSSED. vocab: vocabulary of the data, 0: unknown. DT_ERR_RECIPE if a
 * token is needed but not known, or is outside the vocabulary. */
dt_status dt_documents_end(int32_t *out, const dt_recipe *recipe, const dt_tokenizer *tokenizer,
                           int64_t vocab, dt_error *err);

/* For one sample: set targets of end-of-text tokens to -1; starts: index of the first token of each
 * token's document; positions: position within the document. All (count). */
void dt_documents_mark(int32_t *targets, int32_t *starts, int32_t *positions, const int32_t *tokens,
                       int64_t count, int32_t end);

#ifdef __cplusplus
}
#endif
#endif

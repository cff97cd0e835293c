/* documents: samples whose tokens see nothing of other documents (data.cross_documents: false).
 *
 * A document ends with its end-of-text token. What follows stands in a document of its own: positions
 * count from its first token, attention begins there, and the end-of-text token, which has only the
 * next document's first token to foretell, has no target. The losses of documents that share a sample
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

#define DT_DOCUMENTS_CROSSED (-1) /* documents are not told apart */

/* The token that ends documents, or DT_DOCUMENTS_CROSSED: data.end_of_text, or the tokenizer's (NULL:
 * none is known). vocab: of the data, 0: unknown. DT_ERR_RECIPE where there is none, or none such. */
dt_status dt_documents_end(int32_t *out, const dt_recipe *recipe, const dt_tokenizer *tokenizer,
                           int64_t vocab, dt_error *err);

/* Of one sample: targets of end-of-text become -1; starts: for each place that of its document's first
 * token; positions: those within the documents. All (count). */
void dt_documents_mark(int32_t *targets, int32_t *starts, int32_t *positions, const int32_t *tokens,
                       int64_t count, int32_t end);

#ifdef __cplusplus
}
#endif
#endif

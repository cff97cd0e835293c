#include "engine/data/documents.h"

dt_status dt_documents_end(int32_t *out, const dt_recipe *recipe, const dt_tokenizer *tokenizer,
                           int64_t vocab, dt_error *err)
{
    int64_t given = recipe->data.end_of_text;

    *out = DT_DOCUMENTS_CROSSED;
    if (recipe->data.cross_documents)
        return DT_OK;
    if (given >= 0 && vocab > 0 && given >= vocab)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "data.end_of_text is %lld, but the vocabulary has %lld tokens: set it to "
                       "the id of the token that ends documents",
                       (long long)given, (long long)vocab);
    if (given < 0 && tokenizer != NULL)
        given = dt_tokenizer_end_of_text(tokenizer);
    if (given < 0)
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "data.cross_documents is false, but it is unknown where documents end: set "
                       "data.end_of_text to the id of the token that ends each document, or set "
                       "data.tokenizer to a tokenizer that has such a token");
    *out = (int32_t)given;
    return DT_OK;
}

void dt_documents_mark(int32_t *targets, int32_t *starts, int32_t *positions, const int32_t *tokens,
                       int64_t count, int32_t end)
{
    int64_t start = 0;

    for (int64_t t = 0; t < count; t++) {
        starts[t] = (int32_t)start;
        positions[t] = (int32_t)(t - start);
        if (tokens[t] == end) {
            targets[t] = -1;
            start = t + 1;
        }
    }
}

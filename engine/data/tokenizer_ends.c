/* tokenizer_ends: the tokens that begin and end texts. */
#include <stdlib.h>
#include <string.h>

#include "engine/data/data.h"
#include "recipes/fields/values.h"

dt_status dt_tokenizer_ends(dt_ids *out, const dt_tokenizer *tokenizer, const dt_recipe *recipe,
                            dt_error *err)
{
    const dt_string_list *ids = &recipe->model.end_ids;
    int32_t end = dt_tokenizer_end_of_text(tokenizer);
    dt_status st = DT_OK;

    for (int64_t i = 0; i < ids->count && st == DT_OK; i++) {
        double id = -1; /* dt_rule_end_ids has validated the number */

        dt_text_number(&id, ids->items[i]);
        st = dt_ids_add(out, (int32_t)id, err);
    }
    if (ids->count == 0 && end >= 0)
        st = dt_ids_add(out, end, err);
    return st;
}

dt_status dt_tokenizer_first_tokens(int32_t **out, int64_t *count, const dt_tokenizer *tokenizer,
                                    dt_error *err)
{
    dt_bpe_around around = dt_tokenizer_around(tokenizer);
    int32_t end = dt_tokenizer_end_of_text(tokenizer);

    *out = NULL;
    *count = 0;
    if (around.before_count > 0) {
        *out = calloc(around.before_count, sizeof(**out));
        if (*out == NULL)
            return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a prompt");
        memcpy(*out, around.before, around.before_count * sizeof(**out));
        *count = (int64_t)around.before_count;
        return DT_OK;
    }
    if (end < 0 && dt_tokenizer_encode(out, count, tokenizer, "\n", 1, NULL) == DT_OK && *count > 0)
        return DT_OK;
    free(*out);
    *out = calloc(1, sizeof(**out));
    if (*out == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a prompt");
    **out = end >= 0 ? end : 0;
    *count = 1;
    return DT_OK;
}

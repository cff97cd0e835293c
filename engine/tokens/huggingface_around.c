/* huggingface_around: reads from the post_processor of a tokenizer.json the tokens that surround a text. */
#include <string.h>

#include "engine/tokens/bpe_int.h"

enum { DEEPEST = 8 }; /* nested Sequences, at most */

/* The ids that one step adds to each side of the text. */
typedef struct step {
    dt_ids before, after;
} step;

static dt_status add(dt_ids *to, const dt_bpe *bpe, const json_t *id, dt_error *err)
{
    json_int_t value = json_integer_value(id);

    if (!json_is_integer(id) || value < 0 || value >= bpe->vocab.size)
        return DT_FAIL(err, DT_ERR_CORRUPT,
                       "the post_processor has a special token whose id is not in the vocabulary");
    return dt_ids_add(to, (int32_t)value, err);
}

/* Reads {"id": "<s>", "type_id": 0}; the ids of "<s>" are in "special_tokens". */
static dt_status add_special(dt_ids *to, const dt_bpe *bpe, const json_t *token,
                             const json_t *table, dt_error *err)
{
    const char *name = json_string_value(json_object_get(token, "id"));
    const json_t *ids = name != NULL ? json_object_get(json_object_get(table, name), "ids") : NULL;
    dt_status st = DT_OK;

    if (!json_is_array(ids))
        return DT_FAIL(err, DT_ERR_CORRUPT,
                       "the post_processor names a special token '%.80s' that is not in its "
                       "'special_tokens'",
                       name != NULL ? name : "");
    for (size_t i = 0; i < json_array_size(ids) && st == DT_OK; i++)
        st = add(to, bpe, json_array_get(ids, i), err);
    return st;
}

/* Reads "single": special tokens, the sequence A once, special tokens. */
static dt_status read_template(step *out, const dt_bpe *bpe, const json_t *json, dt_error *err)
{
    const json_t *items = json_object_get(json, "single"), *item;
    const json_t *table = json_object_get(json, "special_tokens");
    dt_status st = DT_OK;
    bool seen = false;
    size_t i;

    if (!json_is_array(items))
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "'single' of the post_processor is not a list of tokens and a sequence");
    json_array_foreach((json_t *)items, i, item) {
        const json_t *token = json_object_get(item, "SpecialToken");

        if (token != NULL) {
            DT_TRY(add_special(seen ? &out->after : &out->before, bpe, token, table, err));
        } else if (json_object_get(item, "Sequence") != NULL && !seen) {
            seen = true;
        } else {
            DT_THROW(err, DT_ERR_UNSUPPORTED,
                     "'single' of the post_processor has item %zu, which is neither a special "
                     "token nor the first sequence",
                     i + 1);
        }
    }
    if (!seen)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "'single' of the post_processor has no sequence");
out:
    return st;
}

/* Reads a pair such as ["[CLS]", 101]. */
static dt_status read_pair(dt_ids *to, const dt_bpe *bpe, const json_t *json, const char *key,
                           dt_error *err)
{
    const json_t *pair = json_object_get(json, key);

    if (json_array_size(pair) != 2)
        return DT_FAIL(err, DT_ERR_CORRUPT, "'%s' of the post_processor is not a token and its id",
                       key);
    return add(to, bpe, json_array_get(pair, 1), err);
}

/* Puts the tokens of a step outside those that are already around the text. */
static dt_status wrap(dt_bpe *bpe, step *of, dt_error *err)
{
    dt_ids inner = bpe->before;
    dt_status st = DT_OK;

    bpe->before = of->before;
    of->before = inner;
    for (size_t i = 0; i < inner.count && st == DT_OK; i++)
        st = dt_ids_add(&bpe->before, inner.items[i], err);
    for (size_t i = 0; i < of->after.count && st == DT_OK; i++)
        st = dt_ids_add(&bpe->after, of->after.items[i], err);
    return st;
}

static dt_status read_one(dt_bpe *bpe, const json_t *json, int depth, dt_error *err)
{
    dt_status st = DT_OK;
    const json_t *item;
    const char *type;
    step own = {0};
    size_t i;

    DT_TRY(dt_bpe_get_type(&type, json, "post_processor", err));
    if (strcmp(type, "TemplateProcessing") == 0) {
        DT_TRY(read_template(&own, bpe, json, err));
    } else if (strcmp(type, "RobertaProcessing") == 0 || strcmp(type, "BertProcessing") == 0) {
        DT_TRY(read_pair(&own.before, bpe, json, "cls", err));
        DT_TRY(read_pair(&own.after, bpe, json, "sep", err));
    } else if (strcmp(type, "Sequence") == 0 && depth < DEEPEST) {
        json_array_foreach(json_object_get(json, "processors"), i, item)
            DT_TRY(read_one(bpe, item, depth + 1, err));
    } else if (strcmp(type, "ByteLevel") != 0) {
        DT_THROW(err, DT_ERR_UNSUPPORTED, "unsupported post_processor '%.80s'", type);
    }
    DT_TRY(wrap(bpe, &own, err));
out:
    dt_ids_release(&own.before);
    dt_ids_release(&own.after);
    return st;
}

dt_status dt_bpe_read_post_processor(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    return json == NULL || json_is_null(json) ? DT_OK : read_one(bpe, json, 0, err);
}

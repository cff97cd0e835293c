/* word_split: the names that llama.cpp has for the splits of byte-level tokenizers into words. */
#include <string.h>

#include "engine/gguf/gguf_int.h"
#include "engine/tokens/split.h"

/* The expression of a stage, in the spelling of engine/tokens/split.h; NULL: none. */
static const char *expression_of(const json_t *pre)
{
    const char *type = json_string_value(json_object_get(pre, "type"));

    if (type == NULL)
        return NULL;
    if (strcmp(type, "Digits") == 0)
        return json_is_true(json_object_get(pre, "individual_digits")) ? "\\p{N}" : "\\p{N}+";
    if (strcmp(type, "ByteLevel") == 0)
        return json_is_false(json_object_get(pre, "use_regex"))
                   ? NULL
                   : dt_split_expression(DT_SPLIT_GPT2);
    return json_string_value(json_object_get(json_object_get(pre, "pattern"), "Regex"));
}

static bool add_stage(dt_split *out, const json_t *pre, dt_arena *arena)
{
    const char *expression = expression_of(pre);

    return expression == NULL || dt_split_add(out, arena, expression, NULL) == DT_OK;
}

/* Whether pre ends with ByteLevel, and adds no space; its stages go to *out. */
static bool read_stages(dt_split *out, const json_t *pre, dt_arena *arena)
{
    const char *type = json_string_value(json_object_get(pre, "type"));
    const json_t *list = json_object_get(pre, "pretokenizers"), *last = pre, *item;
    size_t i;

    if (type == NULL)
        return false;
    if (strcmp(type, "Sequence") == 0) {
        json_array_foreach((json_t *)list, i, item) {
            if (!add_stage(out, item, arena))
                return false;
            last = item;
        }
    } else if (!add_stage(out, pre, arena)) {
        return false;
    }
    type = json_string_value(json_object_get(last, "type"));
    return type != NULL && strcmp(type, "ByteLevel") == 0 &&
           !json_is_true(json_object_get(last, "add_prefix_space"));
}

/* Whether merges make every token but the added ones and those of one symbol: then it does not matter whether a word that
 * is a token is merged. */
static bool merges_make_all(const json_t *tokenizer)
{
    const json_t *model = json_object_get(tokenizer, "model"), *item;
    json_t *left = json_object(), *vocab = json_object_get(model, "vocab"), *id;
    const char *text;
    dt_strbuf made;
    size_t i;
    bool all = true;

    dt_strbuf_init(&made);
    json_object_foreach(vocab, text, id) {
        size_t first = 1;

        while ((text[first] & 0xC0) == 0x80)
            first++;
        if (text[0] != '\0' && text[first] != '\0')
            json_object_set(left, text, id);
    }
    json_array_foreach(json_object_get(model, "merges"), i, item) {
        const char *pair = json_string_value(item), *blank;

        dt_strbuf_reset(&made);
        blank = pair != NULL ? strchr(pair, ' ') : NULL;
        if (blank != NULL) {
            dt_strbuf_add(&made, pair, (size_t)(blank - pair));
            dt_strbuf_add_str(&made, blank + 1);
        } else if (pair == NULL) {
            dt_strbuf_add_str(&made, json_string_value(json_array_get(item, 0)));
            dt_strbuf_add_str(&made, json_string_value(json_array_get(item, 1)));
        }
        (void)json_object_del(left, made.data);
    }
    json_array_foreach(json_object_get(tokenizer, "added_tokens"), i, item)
        (void)json_object_del(left, json_string_value(json_object_get(item, "content")));
    all = json_object_size(left) == 0;
    json_decref(left);
    dt_strbuf_release(&made);
    return all;
}

/* Whether the first two stages are those of DeepSeek-V3: numbers, and Chinese and Japanese letters. */
static bool is_deepseek(const dt_split *split)
{
    return split->count == 3 && split->stages[0].kind == DT_SPLIT_SET &&
           split->stages[1].kind == DT_SPLIT_SET && split->stages[2].kind == DT_SPLIT_DEEPSEEK;
}

static bool is_digits(const dt_split *split)
{
    return split->count == 2 && split->stages[0].kind == DT_SPLIT_SET &&
           dt_split_set_is_number(&split->stages[0].set) && split->stages[1].kind == DT_SPLIT_GPT2;
}

const char *dt_gguf_word_split(bool *ignores, const json_t *tokenizer, dt_arena *arena)
{
    static const struct {
        dt_split_kind kind;
        const char *name;
        bool ignores; /* merges, for a word that is a token */
    } names[] = {{DT_SPLIT_GPT2, "gpt-2", false},    {DT_SPLIT_LLAMA3, "llama-bpe", true},
                 {DT_SPLIT_LLAMA3, "dbrx", false},   {DT_SPLIT_QWEN, "qwen2", false},
                 {DT_SPLIT_QWEN35, "qwen35", false}, {DT_SPLIT_TEKKEN, "tekken", true},
                 {DT_SPLIT_O200K, "gpt-4o", false}};
    bool wanted =
        json_is_true(json_object_get(json_object_get(tokenizer, "model"), "ignore_merges"));
    const char *found = NULL, *other = NULL;
    dt_split split = {0};

    *ignores = wanted;
    if (!read_stages(&split, json_object_get(tokenizer, "pre_tokenizer"), arena))
        return NULL;
    if (is_digits(&split) || is_deepseek(&split))
        other = is_digits(&split) ? "smollm" : "deepseek-v3";
    found = !wanted ? other : NULL;
    for (size_t i = 0; split.count == 1 && i < sizeof(names) / sizeof(names[0]); i++) {
        if (names[i].kind != split.stages[0].kind)
            continue;
        other = names[i].name;
        if (names[i].ignores == wanted && found == NULL)
            found = other;
    }
    return found != NULL || other == NULL || !merges_make_all(tokenizer) ? found : other;
}

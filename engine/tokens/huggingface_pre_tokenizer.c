/* huggingface_pre_tokenizer: reads the pre_tokenizer of a tokenizer.json, which splits a text into words.
 * Supported: Split and Digits before ByteLevel; Metaspace, alone or after WhitespaceSplit, and before Digits;
 * BertPreTokenizer.
 */
#include <string.h>

#include "engine/tokens/tokens_int.h"

static const char pre[] = "pre_tokenizer";

static dt_status read_byte_level(dt_bpe *bpe, const json_t *json, bool alone, dt_error *err)
{
    static const char *const keys[] = {"type", "add_prefix_space", "trim_offsets", "use_regex",
                                       NULL};
    bool use_regex;
    dt_status st = DT_OK;

    DT_TRY(dt_bpe_check_keys(json, pre, keys, err));
    DT_TRY(dt_bpe_get_bool(&bpe->prefix_space, json, "add_prefix_space", true, pre, err));
    DT_TRY(dt_bpe_get_bool(&use_regex, json, "use_regex", true, pre, err));
    if (bpe->prefix_space && !alone)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "'%s': unsupported ByteLevel with 'add_prefix_space' in a sequence", pre);
    if (use_regex)
        DT_TRY(dt_split_add_kind(&bpe->split, DT_SPLIT_GPT2, err));
    bpe->byte_level = true;
out:
    return st;
}

/* Returns whether no normalized text has the character: the normalizer's last step replaces it. */
static bool is_replaced(const dt_bpe *bpe, const char *text)
{
    const dt_normal_step *last = bpe->step_count > 0 ? &bpe->steps[bpe->step_count - 1] : NULL;

    return last != NULL && last->kind == DT_NORMAL_REPLACE && strcmp(last->from, text) == 0 &&
           strstr(last->to, text) == NULL;
}

/* Reads a Split with MergedWithPrevious, as in Gemma's files, after whose normalizer it has no effect. */
static dt_status read_split_after(dt_bpe *bpe, const char *text, dt_error *err)
{
    size_t used = 0;
    uint32_t code = 0;

    if (text != NULL && text[0] != '\0')
        code = dt_code_at((const unsigned char *)text, &used);
    if (used == 0 || text[used] != '\0')
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "'%s': unsupported pattern of Split with MergedWithPrevious (expected a "
                       "'String' of one character)",
                       pre);
    return is_replaced(bpe, text) ? DT_OK : dt_split_add_after(&bpe->split, &bpe->arena, code, err);
}

static dt_status read_split(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    static const char *const keys[] = {"type", "pattern", "behavior", "invert", NULL};
    const char *expression =
        json_string_value(json_object_get(json_object_get(json, "pattern"), "Regex"));
    const char *behavior;
    dt_status st = DT_OK;
    bool invert;

    DT_TRY(dt_bpe_check_keys(json, pre, keys, err));
    DT_TRY(dt_bpe_get_text(&behavior, json, "behavior", pre, err));
    DT_TRY(dt_bpe_get_bool(&invert, json, "invert", false, pre, err));
    if (strcmp(behavior, "MergedWithPrevious") == 0 && !invert)
        return read_split_after(
            bpe, json_string_value(json_object_get(json_object_get(json, "pattern"), "String")),
            err);
    if (strcmp(behavior, "Isolated") != 0 || invert)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "'%s': unsupported Split with behavior '%.40s'%s (expected 'Isolated', or "
                 "'MergedWithPrevious' with a String)",
                 pre, behavior, invert ? " and 'invert'" : "");
    if (expression == NULL)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "'%s': unsupported pattern of Split (expected a 'Regex')",
                 pre);
    st = dt_split_add(&bpe->split, &bpe->arena, expression, err);
    if (st != DT_OK)
        dt_error_prefix(err, "'%s'", pre);
out:
    return st;
}

static dt_status read_digits(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    static const char *const keys[] = {"type", "individual_digits", NULL};
    dt_status st = DT_OK;
    bool individual;

    DT_TRY(dt_bpe_check_keys(json, pre, keys, err));
    DT_TRY(dt_bpe_get_bool(&individual, json, "individual_digits", false, pre, err));
    DT_TRY(dt_split_add(&bpe->split, &bpe->arena, individual ? "\\p{N}" : "\\p{N}+", err));
out:
    return st;
}

static dt_status read_scheme(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    const char *scheme = json_string_value(json_object_get(json, "prepend_scheme"));
    bool prefix = true;
    dt_status st = DT_OK;

    DT_TRY(dt_bpe_get_bool(&prefix, json, "add_prefix_space", true, pre, err));
    if (scheme == NULL)
        scheme = prefix ? "always" : "never";
    if (strcmp(scheme, "always") == 0)
        bpe->metaspace.prepend = DT_PREPEND_ALWAYS;
    else if (strcmp(scheme, "first") == 0)
        bpe->metaspace.prepend = DT_PREPEND_FIRST;
    else if (strcmp(scheme, "never") == 0)
        bpe->metaspace.prepend = DT_PREPEND_NEVER;
    else
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "'%s': unsupported prepend_scheme '%.40s' (expected always, first or never)", pre,
                 scheme);
out:
    return st;
}

static dt_status read_metaspace(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    static const char *const keys[] = {
        "type", "replacement", "prepend_scheme", "split", "str_rep", "add_prefix_space", NULL};
    const char *mark;
    dt_status st = DT_OK;

    DT_TRY(dt_bpe_check_keys(json, pre, keys, err));
    if (bpe->split.count > 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "'%s': unsupported Metaspace in a sequence (expected it alone or after "
                 "WhitespaceSplit)",
                 pre);
    DT_TRY(dt_bpe_get_text(&mark, json, "replacement", pre, err));
    if (mark[0] == '\0')
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': 'replacement' is empty", pre);
    bpe->metaspace.mark = dt_arena_strdup(&bpe->arena, mark);
    DT_TRY(read_scheme(bpe, json, err));
    DT_TRY(dt_bpe_get_bool(&bpe->metaspace.split, json, "split", true, pre, err));
out:
    return st;
}

static dt_status read_white_space(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    static const char *const keys[] = {"type", NULL};

    bpe->drops_spaces = true;
    return dt_bpe_check_keys(json, pre, keys, err);
}

/* Words end at white space, which is dropped, and before and after each punctuation, which has all signs of ASCII. */
static dt_status read_bert(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(read_white_space(bpe, json, err));
    DT_TRY(dt_split_add(&bpe->split, &bpe->arena, "[\\p{P}$+<=>^`|~]", err));
out:
    return st;
}

static dt_status read_pre(dt_bpe *bpe, const json_t *json, bool alone, dt_error *err)
{
    dt_status st = DT_OK;
    const char *type;

    DT_TRY(dt_bpe_get_type(&type, json, pre, err));
    if (bpe->metaspace.mark != NULL && strcmp(type, "Digits") == 0)
        return read_digits(bpe, json, err);
    if (bpe->byte_level || bpe->metaspace.mark != NULL)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "'%s': unsupported %.80s after %s", pre, type,
                 bpe->byte_level ? "ByteLevel" : "Metaspace");
    if (strcmp(type, "ByteLevel") == 0)
        return read_byte_level(bpe, json, alone, err);
    if (strcmp(type, "Split") == 0)
        return read_split(bpe, json, err);
    if (strcmp(type, "Digits") == 0)
        return read_digits(bpe, json, err);
    if (strcmp(type, "Metaspace") == 0)
        return read_metaspace(bpe, json, err);
    if (strcmp(type, "WhitespaceSplit") == 0 && bpe->split.count == 0)
        return read_white_space(bpe, json, err);
    if (strcmp(type, "BertPreTokenizer") == 0 && bpe->split.count == 0)
        return read_bert(bpe, json, err);
    DT_THROW(err, DT_ERR_UNSUPPORTED,
             "unsupported pre_tokenizer '%.80s' (expected ByteLevel, Split, Digits, Metaspace, or "
             "WhitespaceSplit or BertPreTokenizer first)",
             type);
out:
    return st;
}

dt_status dt_bpe_read_pre_tokenizer(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    return dt_bpe_read_each(bpe, json, pre, "pretokenizers", read_pre, err);
}

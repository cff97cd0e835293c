/* huggingface_decoder: reads the decoder of a tokenizer.json: the character that stands for a space in tokens,
 * and whether the first space is dropped.
 */
#include <string.h>

#include "engine/tokens/bpe_int.h"

static const char where[] = "decoder";

/* Sets the text that stands for a space in tokens. */
static dt_status set_space(dt_bpe *bpe, const char *text, dt_error *err)
{
    if (bpe->space != NULL)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "'%s': unsupported second Replace or Metaspace (expected one)", where);
    bpe->space = dt_arena_strdup(&bpe->arena, text);
    return DT_OK;
}

/* Reads a Replace of a String by a space; other kinds are unsupported. */
static dt_status read_replace(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    static const char *const keys[] = {"type", "pattern", "content", NULL};
    const char *from =
        json_string_value(json_object_get(json_object_get(json, "pattern"), "String"));
    dt_status st = DT_OK;
    const char *to;

    DT_TRY(dt_bpe_check_keys(json, where, keys, err));
    DT_TRY(dt_bpe_get_text(&to, json, "content", where, err));
    if (from == NULL || from[0] == '\0' || strcmp(to, " ") != 0)
        DT_THROW(
            err, DT_ERR_UNSUPPORTED,
            "'%s': unsupported Replace (expected a String as 'pattern' and a space as 'content')",
            where);
    DT_TRY(set_space(bpe, from, err));
out:
    return st;
}

/* Reads {"type": "Metaspace", "replacement": "_", "prepend_scheme": "always", "add_prefix_space":
 * true}. */
static dt_status read_metaspace(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    const char *scheme = json_string_value(json_object_get(json, "prepend_scheme")), *mark;
    dt_status st = DT_OK;
    bool prefix;

    DT_TRY(dt_bpe_get_text(&mark, json, "replacement", where, err));
    if (mark[0] == '\0')
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': 'replacement' is empty", where);
    if (scheme != NULL && strcmp(scheme, "always") != 0 && strcmp(scheme, "first") != 0 &&
        strcmp(scheme, "never") != 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "'%s': unsupported prepend_scheme '%.40s' (expected always, first or never)",
                 where, scheme);
    DT_TRY(set_space(bpe, mark, err));
    DT_TRY(dt_bpe_get_bool(&prefix, json, "add_prefix_space", true, where, err));
    bpe->drops_first_space = scheme != NULL ? strcmp(scheme, "never") != 0 : prefix;
out:
    return st;
}

/* Reads {"type": "Strip", "content": " ", "start": 1, "stop": 0}. */
static dt_status read_strip(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    dt_status st = DT_OK;
    const char *content;
    int64_t start, stop;

    DT_TRY(dt_bpe_get_text(&content, json, "content", where, err));
    DT_TRY(dt_json_get_int(&start, json, "start", where, err));
    DT_TRY(dt_json_get_int_or(&stop, json, "stop", 0, where, err));
    if (strcmp(content, " ") != 0 || start != 1 || stop != 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "'%s': unsupported Strip (expected one space from the start)", where);
    bpe->drops_first_space = true;
out:
    return st;
}

static dt_status read_one(dt_bpe *bpe, const json_t *json, bool alone, dt_error *err)
{
    static const char *const plain[] = {"ByteLevel", "ByteFallback", "Fuse"};
    dt_status st = DT_OK;
    const char *type;

    (void)alone;
    DT_TRY(dt_bpe_get_type(&type, json, where, err));
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        if (strcmp(type, plain[i]) == 0)
            return DT_OK;
    if (strcmp(type, "Replace") == 0)
        return read_replace(bpe, json, err);
    if (strcmp(type, "Strip") == 0)
        return read_strip(bpe, json, err);
    if (strcmp(type, "Metaspace") == 0)
        return read_metaspace(bpe, json, err);
    DT_THROW(err, DT_ERR_UNSUPPORTED,
             "unsupported decoder '%.80s' (expected ByteLevel, ByteFallback, Fuse, Strip, Replace, "
             "Metaspace, or "
             "a Sequence of them)",
             type);
out:
    return st;
}

dt_status dt_bpe_read_decoder(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    return dt_bpe_read_each(bpe, json, where, "decoders", read_one, err);
}

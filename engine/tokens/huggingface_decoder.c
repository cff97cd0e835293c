/* The decoder of a tokenizer.json, which says what stands for a space in a token. */
#include <string.h>

#include "engine/tokens/bpe_int.h"

#include "base/banned.h"

static const char where[] = "decoder";

/* Only a text becomes a space. */
static dt_status read_replace(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    const char *from = json_string_value(json_object_get(json_object_get(json, "pattern"), "String"));
    dt_status st = DT_OK;
    const char *to;

    DT_TRY(dt_bpe_get_text(&to, json, "content", where, err));
    if (from == NULL || from[0] == '\0' || strcmp(to, " ") != 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "'%s': unsupported Replace (expected a String as 'pattern' and a space as 'content')", where);
    DT_TRY(dt_bpe_copy_text(&bpe->space, bpe, from, err));
out:
    return st;
}

static dt_status read_one(dt_bpe *bpe, const json_t *json, bool alone, dt_error *err)
{
    static const char *const plain[] = {"ByteLevel", "ByteFallback", "Fuse", "Strip"};
    const char *type, *mark;
    dt_status st = DT_OK;

    (void)alone;
    DT_TRY(dt_bpe_get_type(&type, json, where, err));
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        if (strcmp(type, plain[i]) == 0)
            return DT_OK;
    if (strcmp(type, "Replace") == 0)
        return read_replace(bpe, json, err);
    if (strcmp(type, "Metaspace") != 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "unsupported decoder '%.80s' (expected ByteLevel, ByteFallback, Fuse, Strip, Replace, Metaspace, or "
                 "a Sequence of them)",
                 type);
    DT_TRY(dt_bpe_get_text(&mark, json, "replacement", where, err));
    DT_TRY(dt_bpe_copy_text(&bpe->space, bpe, mark, err));
out:
    return st;
}

dt_status dt_bpe_read_decoder(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    return dt_bpe_read_each(bpe, json, where, "decoders", read_one, err);
}

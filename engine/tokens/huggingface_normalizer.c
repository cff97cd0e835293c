/* huggingface_normalizer: reads the normalizer of a tokenizer.json, which changes a text before it
 * is split. */
#include <string.h>

#include "engine/tokens/base64.h"
#include "engine/tokens/bpe_int.h"

static const char where[] = "normalizer";

/* Reads {"type": "Replace", "pattern": {"String": " "}, "content": "_"}, or {"Regex": " {2,}"},
 * which files converted from SentencePiece have. */
static dt_status read_replace(dt_normal_step *out, dt_bpe *bpe, const json_t *json, dt_error *err)
{
    static const char *const keys[] = {"type", "pattern", "content", NULL};
    const json_t *pattern = json_object_get(json, "pattern");
    const char *regex = json_string_value(json_object_get(pattern, "Regex"));
    const char *from = json_string_value(json_object_get(pattern, "String"));
    dt_status st = DT_OK;

    DT_TRY(dt_bpe_check_keys(json, where, keys, err));
    DT_TRY(dt_bpe_get_text(&out->to, json, "content", where, err));
    out->to = dt_arena_strdup(&bpe->arena, out->to);
    if (regex != NULL && strcmp(regex, " {2,}") == 0) {
        out->kind = DT_NORMAL_REPLACE_SPACES;
        return DT_OK;
    }
    if (from == NULL || from[0] == '\0')
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "'%s': unsupported Replace of the Regex '%.80s' (expected a String, or the Regex "
                 "' {2,}')",
                 where, regex != NULL ? regex : "");
    out->kind = DT_NORMAL_REPLACE;
    out->from = dt_arena_strdup(&bpe->arena, from);
out:
    return st;
}

static dt_status read_prepend(dt_normal_step *out, dt_bpe *bpe, const json_t *json, dt_error *err)
{
    static const char *const keys[] = {"type", "prepend", NULL};
    dt_status st = DT_OK;

    DT_TRY(dt_bpe_check_keys(json, where, keys, err));
    DT_TRY(dt_bpe_get_text(&out->to, json, "prepend", where, err));
    out->to = dt_arena_strdup(&bpe->arena, out->to);
out:
    return st;
}

static dt_status read_strip(dt_normal_step *out, dt_bpe *bpe, const json_t *json, dt_error *err)
{
    static const char *const keys[] = {"type", "strip_left", "strip_right", NULL};
    dt_status st = DT_OK;

    (void)bpe;
    DT_TRY(dt_bpe_check_keys(json, where, keys, err));
    DT_TRY(dt_bpe_get_bool(&out->left, json, "strip_left", true, where, err));
    DT_TRY(dt_bpe_get_bool(&out->right, json, "strip_right", true, where, err));
out:
    return st;
}

static dt_status read_charsmap(dt_normal_step *out, dt_bpe *bpe, const json_t *json, dt_error *err)
{
    static const char *const keys[] = {"type", "precompiled_charsmap", NULL};
    dt_charsmap *map = dt_arena_alloc(&bpe->arena, sizeof(*map));
    dt_status st = DT_OK;
    const char *text;
    dt_strbuf bytes;
    char *kept;

    dt_strbuf_init(&bytes);
    DT_TRY(dt_bpe_check_keys(json, where, keys, err));
    DT_TRY(dt_bpe_get_text(&text, json, "precompiled_charsmap", where, err));
    if (!dt_base64_decode(&bytes, text, strlen(text)))
        DT_THROW(err, DT_ERR_CORRUPT,
                 "'%s': 'precompiled_charsmap' is %s: export the tokenizer again", where,
                 text[0] == '\0' ? "empty" : "not base64");
    kept = dt_arena_alloc(&bpe->arena, bytes.length + 1);
    memcpy(kept, bytes.data, bytes.length + 1);
    st = dt_charsmap_read(map, kept, bytes.length, err);
    if (st != DT_OK) {
        dt_error_prefix(err, "'%s': 'precompiled_charsmap' is damaged (export the tokenizer again)",
                        where);
        goto out;
    }
    out->charsmap = map;
out:
    dt_strbuf_release(&bytes);
    return st;
}

static dt_status read_plain(dt_normal_step *out, dt_bpe *bpe, const json_t *json, dt_error *err)
{
    static const char *const keys[] = {"type", NULL};

    (void)out;
    (void)bpe;
    return dt_bpe_check_keys(json, where, keys, err);
}

static const struct {
    const char *type;
    dt_status (*read)(dt_normal_step *out, dt_bpe *bpe, const json_t *json, dt_error *err);
    dt_normal_step step;
} known[] = {
    {"NFC", read_plain, {.kind = DT_NORMAL_FORM, .form = DT_FORM_NFC}},
    {"NFD", read_plain, {.kind = DT_NORMAL_FORM, .form = DT_FORM_NFD}},
    {"NFKC", read_plain, {.kind = DT_NORMAL_FORM, .form = DT_FORM_NFKC}},
    {"NFKD", read_plain, {.kind = DT_NORMAL_FORM, .form = DT_FORM_NFKD}},
    {"Nmt", read_plain, {.kind = DT_NORMAL_NMT}},
    {"Lowercase", read_plain, {.kind = DT_NORMAL_LOWERCASE}},
    {"StripAccents", read_plain, {.kind = DT_NORMAL_STRIP_ACCENTS}},
    {"Strip", read_strip, {.kind = DT_NORMAL_STRIP}},
    {"Prepend", read_prepend, {.kind = DT_NORMAL_PREPEND}},
    {"Replace", read_replace, {.kind = DT_NORMAL_REPLACE}},
    {"Precompiled", read_charsmap, {.kind = DT_NORMAL_CHARSMAP}},
};

#define KNOWN (sizeof(known) / sizeof(known[0]))

static dt_status read_step(dt_bpe *bpe, const json_t *json, bool alone, dt_error *err)
{
    dt_normal_step step;
    dt_status st = DT_OK;
    const char *type;
    size_t i = 0;

    (void)alone;
    DT_TRY(dt_bpe_get_type(&type, json, where, err));
    while (i < KNOWN && strcmp(known[i].type, type) != 0)
        i++;
    if (i == KNOWN)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "unsupported normalizer '%.80s' (expected NFC, NFD, NFKC, NFKD, Nmt, Lowercase, "
                 "StripAccents, Strip, "
                 "Prepend, Replace, Precompiled, or a Sequence of them)",
                 type);
    step = known[i].step;
    DT_TRY(known[i].read(&step, bpe, json, err));
    if (bpe->step_count == DT_BPE_STEPS)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "'%s': more than %d steps are not supported", where,
                 DT_BPE_STEPS);
    bpe->steps[bpe->step_count++] = step;
out:
    return st;
}

dt_status dt_bpe_read_normalizer(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    return dt_bpe_read_each(bpe, json, where, "normalizers", read_step, err);
}

/* huggingface_normalizer: reads what changes characters: the normalizer of a tokenizer.json, and the
 * decoder, which changes them back. */
#include <string.h>

#include "engine/tokens/tokens_int.h"

static const char where[] = "normalizer";

/* Returns whether no line break comes to the next step. */
static bool replaces_line_breaks(const dt_bpe *bpe)
{
    bool replaced = false;

    for (int i = 0; i < bpe->step_count; i++) {
        const dt_normal_step *step = &bpe->steps[i];

        replaced = replaced ||
                   (step->kind == DT_NORMAL_PATTERN && dt_pattern_has_line_breaks(step->pattern));
        if (step->kind == DT_NORMAL_CHARSMAP ||
            (step->to != NULL && strchr(step->to, '\n') != NULL))
            replaced = false;
    }
    return replaced;
}

static dt_status read_pattern(dt_normal_step *out, dt_bpe *bpe, const char *regex, dt_error *err)
{
    dt_pattern *pattern = dt_arena_alloc(&bpe->arena, sizeof(*pattern));
    bool good = dt_pattern_parse(pattern, &bpe->arena, regex);

    out->kind = DT_NORMAL_PATTERN;
    out->pattern = pattern;
    for (int i = 0; good && i < pattern->count; i++)
        good = !pattern->sequences[i].whole || replaces_line_breaks(bpe);
    if (good)
        return DT_OK;
    return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                   "'%s': unsupported Replace of the Regex '%.80s' (expected a String, or a Regex "
                   "of sets such as ' {2,}' or '[\\n\\t]')",
                   where, regex);
}

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
    if (regex != NULL)
        return read_pattern(out, bpe, regex, err);
    if (from == NULL || from[0] == '\0')
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': Replace has no pattern (expected a String or a Regex)",
                 where);
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

static dt_status add_step(dt_bpe *bpe, const dt_normal_step *step, dt_error *err)
{
    if (bpe->step_count == DT_BPE_STEPS)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED, "'%s': more than %d steps are not supported", where,
                       DT_BPE_STEPS);
    bpe->steps[bpe->step_count++] = *step;
    return DT_OK;
}

/* BertNormalizer: its steps in their order. Accents are stripped as the text is made lower case, unless the file says
 * otherwise. */
static dt_status read_bert(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    static const char *const keys[] = {"type",          "clean_text", "handle_chinese_chars",
                                       "strip_accents", "lowercase",  NULL};
    const dt_normal_step steps[] = {{.kind = DT_NORMAL_CLEAN},
                                    {.kind = DT_NORMAL_APART},
                                    {.kind = DT_NORMAL_FORM, .form = DT_FORM_NFD},
                                    {.kind = DT_NORMAL_NONSPACING},
                                    {.kind = DT_NORMAL_LOWERCASE}};
    bool wanted[5];
    dt_status st = DT_OK;

    DT_TRY(dt_bpe_check_keys(json, where, keys, err));
    DT_TRY(dt_bpe_get_bool(&wanted[0], json, "clean_text", true, where, err));
    DT_TRY(dt_bpe_get_bool(&wanted[1], json, "handle_chinese_chars", true, where, err));
    DT_TRY(dt_bpe_get_bool(&wanted[4], json, "lowercase", true, where, err));
    DT_TRY(dt_bpe_get_bool(&wanted[2], json, "strip_accents", wanted[4], where, err));
    wanted[3] = wanted[2];
    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++)
        if (wanted[i])
            DT_TRY(add_step(bpe, &steps[i], err));
out:
    return st;
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
    if (strcmp(type, "BertNormalizer") == 0)
        return read_bert(bpe, json, err);
    while (i < KNOWN && strcmp(known[i].type, type) != 0)
        i++;
    if (i == KNOWN)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "unsupported normalizer '%.80s' (expected NFC, NFD, NFKC, NFKD, Nmt, Lowercase, "
                 "StripAccents, Strip, Prepend, Replace, Precompiled, BertNormalizer, or a "
                 "Sequence of them)",
                 type);
    step = known[i].step;
    DT_TRY(known[i].read(&step, bpe, json, err));
    DT_TRY(add_step(bpe, &step, err));
out:
    return st;
}

dt_status dt_bpe_read_normalizer(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    return dt_bpe_read_each(bpe, json, where, "normalizers", read_step, err);
}

/* huggingface_decoder: reads the decoder of a tokenizer.json: the character that stands for a space in tokens,
 * and whether the first space is dropped.
 */

static const char decoder_where[] = "decoder";

/* Sets the text that stands for a space in tokens. */
static dt_status set_space(dt_bpe *bpe, const char *text, dt_error *err)
{
    if (bpe->space != NULL)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "'%s': unsupported second Replace or Metaspace (expected one)",
                       decoder_where);
    bpe->space = dt_arena_strdup(&bpe->arena, text);
    return DT_OK;
}

/* Reads a Replace of a String by a space; other kinds are unsupported. */
static dt_status read_decoder_replace(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    static const char *const keys[] = {"type", "pattern", "content", NULL};
    const char *from =
        json_string_value(json_object_get(json_object_get(json, "pattern"), "String"));
    dt_status st = DT_OK;
    const char *to;

    DT_TRY(dt_bpe_check_keys(json, decoder_where, keys, err));
    DT_TRY(dt_bpe_get_text(&to, json, "content", decoder_where, err));
    if (from == NULL || from[0] == '\0' || strcmp(to, " ") != 0)
        DT_THROW(
            err, DT_ERR_UNSUPPORTED,
            "'%s': unsupported Replace (expected a String as 'pattern' and a space as 'content')",
            decoder_where);
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

    DT_TRY(dt_bpe_get_text(&mark, json, "replacement", decoder_where, err));
    if (mark[0] == '\0')
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': 'replacement' is empty", decoder_where);
    if (scheme != NULL && strcmp(scheme, "always") != 0 && strcmp(scheme, "first") != 0 &&
        strcmp(scheme, "never") != 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "'%s': unsupported prepend_scheme '%.40s' (expected always, first or never)",
                 decoder_where, scheme);
    DT_TRY(set_space(bpe, mark, err));
    DT_TRY(dt_bpe_get_bool(&prefix, json, "add_prefix_space", true, decoder_where, err));
    bpe->drops_first_space = scheme != NULL ? strcmp(scheme, "never") != 0 : prefix;
out:
    return st;
}

/* Reads {"type": "Strip", "content": " ", "start": 1, "stop": 0}. */
static dt_status read_decoder_strip(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    dt_status st = DT_OK;
    const char *content;
    int64_t start, stop;

    DT_TRY(dt_bpe_get_text(&content, json, "content", decoder_where, err));
    DT_TRY(dt_json_get_int(&start, json, "start", decoder_where, err));
    DT_TRY(dt_json_get_int_or(&stop, json, "stop", 0, decoder_where, err));
    if (strcmp(content, " ") != 0 || start != 1 || stop != 0)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "'%s': unsupported Strip (expected one space from the start)", decoder_where);
    bpe->drops_first_space = true;
out:
    return st;
}

/* Reads {"type": "WordPiece", "prefix": "##", "cleanup": true}. */
static dt_status read_decoder_wordpiece(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    const char *prefix;
    dt_status st = DT_OK;

    DT_TRY(dt_bpe_get_text(&prefix, json, "prefix", decoder_where, err));
    DT_TRY(dt_bpe_get_bool(&bpe->cleans_up, json, "cleanup", true, decoder_where, err));
    bpe->continues = dt_arena_strdup(&bpe->arena, prefix);
    bpe->drops_first_space = true;
out:
    return st;
}

static dt_status read_one(dt_bpe *bpe, const json_t *json, bool alone, dt_error *err)
{
    static const char *const plain[] = {"ByteLevel", "ByteFallback", "Fuse"};
    dt_status st = DT_OK;
    const char *type;

    DT_TRY(dt_bpe_get_type(&type, json, decoder_where, err));
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        if (strcmp(type, plain[i]) == 0)
            return DT_OK;
    if (strcmp(type, "Replace") == 0)
        return read_decoder_replace(bpe, json, err);
    if (strcmp(type, "Strip") == 0)
        return read_decoder_strip(bpe, json, err);
    if (strcmp(type, "Metaspace") == 0)
        return read_metaspace(bpe, json, err);
    if (strcmp(type, "WordPiece") == 0 && alone)
        return read_decoder_wordpiece(bpe, json, err);
    DT_THROW(err, DT_ERR_UNSUPPORTED,
             "unsupported decoder '%.80s' (expected ByteLevel, ByteFallback, Fuse, Strip, Replace, "
             "Metaspace, or a Sequence of them, or WordPiece alone)",
             type);
out:
    return st;
}

dt_status dt_bpe_read_decoder(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    return dt_bpe_read_each(bpe, json, decoder_where, "decoders", read_one, err);
}

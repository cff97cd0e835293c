/* What a tokenizer.json does to text before and behind its model: normalizer, pre-tokenizer,
 * decoder. */
#include <string.h>

#include "engine/tokens/bpe_int.h"

#include "base/banned.h"

typedef dt_status read_fn(dt_bpe *bpe, const json_t *json, bool alone, dt_error *err);

/* One part, or those of a Sequence of them. `list` is the key of its list. */
static dt_status read_each(dt_bpe *bpe, const json_t *json, const char *where, const char *list,
                           read_fn *read, dt_error *err)
{
    const char *const keys[] = {"type", list, NULL};
    dt_status st = DT_OK;
    const json_t *part, *parts;
    const char *type;
    size_t i;

    if (json == NULL || json_is_null(json))
        return DT_OK;
    DT_TRY(dt_bpe_get_type(&type, json, where, err));
    if (strcmp(type, "Sequence") != 0)
        return read(bpe, json, true, err);
    DT_TRY(dt_bpe_check_keys(json, where, keys, err));
    parts = json_object_get(json, list);
    if (!json_is_array(parts))
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': '%s': expected a list", where, list);
    json_array_foreach((json_t *)parts, i, part)
        DT_TRY(read(bpe, part, json_array_size(parts) == 1, err));
out:
    return st;
}

static dt_status copy_text(const char **out, dt_bpe *bpe, const char *text, dt_error *err)
{
    *out = dt_arena_strdup(&bpe->arena, text);
    return *out != NULL ? DT_OK : DT_FAIL(err, DT_ERR_NOMEM, "no memory for a tokenizer");
}

/* {"type": "Replace", "pattern": {"String": " "}, "content": "_"} */
static dt_status read_replace(const char **from, const char **to, dt_bpe *bpe, const json_t *json,
                              const char *where, dt_error *err)
{
    static const char *const keys[] = {"type", "pattern", "content", NULL};
    const json_t *pattern = json_object_get(json, "pattern");
    dt_status st = DT_OK;

    DT_TRY(dt_bpe_check_keys(json, where, keys, err));
    *from = json_string_value(json_object_get(pattern, "String"));
    if (*from == NULL || (*from)[0] == '\0')
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "'%s': Replace is known here with a 'String' as its pattern, not with a Regex",
                 where);
    DT_TRY(dt_bpe_get_text(to, json, "content", where, err));
    DT_TRY(copy_text(from, bpe, *from, err));
    DT_TRY(copy_text(to, bpe, *to, err));
out:
    return st;
}

/* --- normalizer */

static dt_status read_normal(dt_bpe *bpe, const json_t *json, bool alone, dt_error *err)
{
    static const char where[] = "normalizer";
    static const char *const nfc_keys[] = {"type", NULL};
    static const char *const prepend_keys[] = {"type", "prepend", NULL};
    dt_normal_step step = {0};
    dt_status st = DT_OK;
    const char *type;

    (void)alone;
    DT_TRY(dt_bpe_get_type(&type, json, where, err));
    if (strcmp(type, "NFC") == 0) {
        step.kind = DT_NORMAL_NFC;
        DT_TRY(dt_bpe_check_keys(json, where, nfc_keys, err));
    } else if (strcmp(type, "Prepend") == 0) {
        step.kind = DT_NORMAL_PREPEND;
        DT_TRY(dt_bpe_check_keys(json, where, prepend_keys, err));
        DT_TRY(dt_bpe_get_text(&step.to, json, "prepend", where, err));
        DT_TRY(copy_text(&step.to, bpe, step.to, err));
    } else if (strcmp(type, "Replace") == 0) {
        step.kind = DT_NORMAL_REPLACE;
        DT_TRY(read_replace(&step.from, &step.to, bpe, json, where, err));
    } else {
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "the normalizer '%.80s' is not known here; NFC, Prepend, Replace and sequences of "
                 "them are",
                 type);
    }
    if (bpe->step_count == DT_BPE_STEPS)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "'normalizer' has more than %d steps", DT_BPE_STEPS);
    bpe->steps[bpe->step_count++] = step;
out:
    return st;
}

dt_status dt_bpe_read_normalizer(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    return read_each(bpe, json, "normalizer", "normalizers", read_normal, err);
}

/* --- pre-tokenizer: known are ByteLevel, Split or Digits before it, and Metaspace */

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
                 "'%s': ByteLevel with 'add_prefix_space' is known here alone, not in a sequence",
                 pre);
    if (use_regex && bpe->split.kind != DT_SPLIT_NONE)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "'%s': ByteLevel with 'use_regex' behind a Split is not known here", pre);
    if (use_regex)
        bpe->split.kind = DT_SPLIT_GPT2;
    bpe->byte_level = true;
out:
    return st;
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
    if (strcmp(behavior, "Isolated") != 0 || invert)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "'%s': Split with behavior '%.40s'%s is not known here; Isolated is", pre,
                 behavior, invert ? " and 'invert'" : "");
    if (bpe->split.kind != DT_SPLIT_NONE)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "'%s': a second Split is not known here", pre);
    if (expression == NULL || !dt_split_find(&bpe->split.kind, expression))
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "'%s': this pattern of Split is not known here (those of GPT-2, Llama 3 and Qwen "
                 "are): %.200s",
                 pre, expression != NULL ? expression : "no Regex");
out:
    return st;
}

static dt_status read_digits(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    static const char *const keys[] = {"type", "individual_digits", NULL};
    dt_status st = DT_OK;

    DT_TRY(dt_bpe_check_keys(json, pre, keys, err));
    DT_TRY(dt_bpe_get_bool(&bpe->split.digits, json, "individual_digits", false, pre, err));
    if (!bpe->split.digits || bpe->split.kind != DT_SPLIT_NONE)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "'%s': Digits is known here first and with 'individual_digits'", pre);
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
        DT_THROW(err, DT_ERR_UNSUPPORTED, "'%s': prepend_scheme '%.40s' is not known here", pre,
                 scheme);
out:
    return st;
}

static dt_status read_metaspace(dt_bpe *bpe, const json_t *json, bool alone, dt_error *err)
{
    static const char *const keys[] = {
        "type", "replacement", "prepend_scheme", "split", "str_rep", "add_prefix_space", NULL};
    const char *mark;
    dt_status st = DT_OK;

    DT_TRY(dt_bpe_check_keys(json, pre, keys, err));
    if (!alone)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "'%s': Metaspace in a sequence is not known here", pre);
    DT_TRY(dt_bpe_get_text(&mark, json, "replacement", pre, err));
    if (mark[0] == '\0')
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': 'replacement' is empty", pre);
    DT_TRY(copy_text(&bpe->metaspace.mark, bpe, mark, err));
    DT_TRY(read_scheme(bpe, json, err));
    DT_TRY(dt_bpe_get_bool(&bpe->metaspace.split, json, "split", true, pre, err));
out:
    return st;
}

static dt_status read_pre(dt_bpe *bpe, const json_t *json, bool alone, dt_error *err)
{
    dt_status st = DT_OK;
    const char *type;

    DT_TRY(dt_bpe_get_type(&type, json, pre, err));
    if (bpe->byte_level)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "'%s': %.80s behind ByteLevel is not known here", pre,
                 type);
    if (strcmp(type, "ByteLevel") == 0)
        return read_byte_level(bpe, json, alone, err);
    if (strcmp(type, "Split") == 0)
        return read_split(bpe, json, err);
    if (strcmp(type, "Digits") == 0)
        return read_digits(bpe, json, err);
    if (strcmp(type, "Metaspace") == 0)
        return read_metaspace(bpe, json, alone, err);
    DT_THROW(err, DT_ERR_UNSUPPORTED,
             "the pre_tokenizer '%.80s' is not known here; ByteLevel, Split, Digits and Metaspace "
             "are",
             type);
out:
    return st;
}

dt_status dt_bpe_read_pre_tokenizer(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    return read_each(bpe, json, pre, "pretokenizers", read_pre, err);
}

/* --- decoder: says what stands for a space in a token */

static dt_status read_back(dt_bpe *bpe, const json_t *json, bool alone, dt_error *err)
{
    static const char *const plain[] = {"ByteLevel", "ByteFallback", "Fuse", "Strip"};
    const char *type, *to;
    dt_status st = DT_OK;

    (void)alone;
    DT_TRY(dt_bpe_get_type(&type, json, "decoder", err));
    for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++)
        if (strcmp(type, plain[i]) == 0)
            return DT_OK;
    if (strcmp(type, "Metaspace") == 0) {
        DT_TRY(dt_bpe_get_text(&to, json, "replacement", "decoder", err));
        DT_TRY(copy_text(&bpe->space, bpe, to, err));
    } else if (strcmp(type, "Replace") == 0) {
        DT_TRY(read_replace(&bpe->space, &to, bpe, json, "decoder", err));
        if (strcmp(to, " ") != 0)
            DT_THROW(err, DT_ERR_UNSUPPORTED,
                     "'decoder': Replace is known here with a space as its content");
    } else {
        DT_THROW(err, DT_ERR_UNSUPPORTED, "the decoder '%.80s' is not known here", type);
    }
out:
    return st;
}

dt_status dt_bpe_read_decoder(dt_bpe *bpe, const json_t *json, dt_error *err)
{
    return read_each(bpe, json, "decoder", "decoders", read_back, err);
}

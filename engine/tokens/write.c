#include "engine/tokens/bpe.h"

#include <string.h>

#include "base/display.h"
#include "engine/tokens/tokens_int.h"

/* --- the tokens before training */

static dt_status add_special(dt_bpe_draft *draft, const char *text, dt_error *err)
{
    size_t length = strlen(text);

    if (length < 2)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "the special token '%s' is too short; give one that does not occur in text",
                       text);
    if (dt_vocab_find(&draft->vocab, text, length) >= 0)
        return DT_FAIL(err, DT_ERR_USAGE, "the special token '%s' is given twice", text);
    return dt_vocab_add(&draft->vocab, draft->vocab.size, text, length, true, err);
}

/* Adds the 256 bytes in the order of their characters in a byte-level vocabulary: first the bytes
 * that stand for themselves. */
static dt_status add_bytes(dt_bpe_draft *draft, dt_error *err)
{
    dt_status st = DT_OK;

    for (int pass = 0; pass < 2; pass++)
        for (int byte = 0; byte < 256; byte++) {
            char c = (char)byte;

            if ((dt_byte_map_code((unsigned char)byte) >= 256) == (pass == 1))
                DT_TRY(dt_vocab_add(&draft->vocab, draft->vocab.size, &c, 1, true, err));
        }
out:
    return st;
}

dt_status dt_bpe_draft_begin(dt_bpe_draft *out, const char *const *special, size_t special_count,
                             dt_split_kind split, dt_error *err)
{
    dt_status st = DT_OK;

    *out = (dt_bpe_draft){.special_count = (int64_t)special_count, .split = split};
    DT_TRY(dt_vocab_init(&out->vocab, err));
    for (size_t i = 0; i < special_count; i++)
        DT_TRY(add_special(out, special[i], err));
    DT_TRY(add_bytes(out, err));
out:
    return st;
}

void dt_bpe_draft_release(dt_bpe_draft *draft)
{
    dt_vocab_release(&draft->vocab);
    *draft = (dt_bpe_draft){0};
}

/* --- tokenizer.json */

static void add_mapped(dt_strbuf *out, const dt_bpe_draft *draft, int64_t id)
{
    size_t length;
    const char *bytes = dt_vocab_text(&draft->vocab, id, &length);
    char character[DT_UTF8_MAX];

    if (id < draft->special_count) {
        dt_strbuf_add(out, bytes, length);
        return;
    }
    for (size_t i = 0; i < length; i++)
        dt_strbuf_add(out, character,
                      dt_utf8_encode(character, dt_byte_map_code((unsigned char)bytes[i])));
}

static json_t *make_vocab(const dt_bpe_draft *draft)
{
    json_t *vocab = json_object();
    dt_strbuf text;

    dt_strbuf_init(&text);
    for (int64_t id = 0; id < draft->vocab.size; id++) {
        dt_strbuf_reset(&text);
        add_mapped(&text, draft, id);
        json_object_set_new(vocab, text.data, json_integer(id));
    }
    dt_strbuf_release(&text);
    return vocab;
}

/* Returns the merges as "a b", a form that every version of the library reads; tokens contain no
 * spaces here. */
static json_t *make_merges(const dt_bpe_draft *draft)
{
    json_t *merges = json_array();
    dt_strbuf text;

    dt_strbuf_init(&text);
    for (int64_t i = 0; i < draft->merge_count; i++) {
        dt_strbuf_reset(&text);
        add_mapped(&text, draft, draft->merges[i].first);
        dt_strbuf_add_char(&text, ' ');
        add_mapped(&text, draft, draft->merges[i].second);
        json_array_append_new(merges, json_stringn(text.data, text.length));
    }
    dt_strbuf_release(&text);
    return merges;
}

static json_t *make_added(const dt_bpe_draft *draft)
{
    json_t *added = json_array();

    for (int64_t id = 0; id < draft->special_count; id++) {
        size_t length;
        const char *text = dt_vocab_text(&draft->vocab, id, &length);

        json_array_append_new(added,
                              json_pack("{s:I, s:o, s:b, s:b, s:b, s:b, s:b}", "id", (json_int_t)id,
                                        "content", json_stringn(text, length), "single_word", 0,
                                        "lstrip", 0, "rstrip", 0, "normalized", 0, "special", 1));
    }
    return added;
}

static json_t *make_byte_level(bool splits)
{
    return json_pack("{s:s, s:b, s:b, s:b}", "type", "ByteLevel", "add_prefix_space", 0,
                     "trim_offsets", 1, "use_regex", splits);
}

static json_t *make_pre_tokenizer(dt_split_kind split)
{
    if (split == DT_SPLIT_GPT2)
        return make_byte_level(true);
    return json_pack("{s:s, s:[{s:s, s:{s:s}, s:s, s:b}, o]}", "type", "Sequence", "pretokenizers",
                     "type", "Split", "pattern", "Regex", dt_split_expression(split), "behavior",
                     "Isolated", "invert", 0, make_byte_level(false));
}

json_t *dt_bpe_draft_json(const dt_bpe_draft *draft)
{
    return json_pack("{s:s, s:n, s:n, s:o, s:n, s:o, s:o, s:o, s:{s:s, s:n, s:n, s:n, s:n, s:b, "
                     "s:b, s:b, s:o, s:o}}",
                     "version", "1.0", "truncation", "padding", "added_tokens", make_added(draft),
                     "normalizer", "pre_tokenizer", make_pre_tokenizer(draft->split),
                     "post_processor", make_byte_level(true), "decoder", make_byte_level(true),
                     "model", "type", "BPE", "dropout", "unk_token", "continuing_subword_prefix",
                     "end_of_word_suffix", "fuse_unk", 0, "byte_fallback", 0, "ignore_merges", 0,
                     "vocab", make_vocab(draft), "merges", make_merges(draft));
}

#include <string.h>

#include "engine/tokens/tokens_int.h"

#define MODEL           "model"
#define LONGEST_PREFIX  64 /* bytes; published: 2 */
#define MOST_CHARACTERS 1000000

/* --- the model */

/* Finds the longest piece, so that no longer one is searched. */
static size_t find_longest(const dt_vocab *vocab)
{
    size_t longest = 0, length;

    for (int64_t id = 0; id < vocab->size; id++)
        if (dt_vocab_text(vocab, id, &length) != NULL && length > longest)
            longest = length;
    return longest;
}

dt_status dt_wordpiece_read(dt_bpe *bpe, const json_t *model, dt_error *err)
{
    static const char *const keys[] = {
        "type",  "unk_token", "continuing_subword_prefix", "max_input_chars_per_word",
        "vocab", NULL};
    const char *prefix;
    dt_status st = DT_OK;

    DT_TRY(dt_bpe_check_keys(model, MODEL, keys, err));
    if (bpe->byte_level || bpe->metaspace.mark != NULL)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "'%s': unsupported WordPiece after the pre_tokenizer %s",
                 MODEL, bpe->byte_level ? "ByteLevel" : "Metaspace");
    DT_TRY(dt_bpe_get_text(&prefix, model, "continuing_subword_prefix", MODEL, err));
    if (strlen(prefix) > LONGEST_PREFIX)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "'%s': 'continuing_subword_prefix' has more than %d bytes", MODEL, LONGEST_PREFIX);
    DT_TRY(dt_json_get_int_or(&bpe->wordpiece.most, model, "max_input_chars_per_word", 100, MODEL,
                              err));
    if (bpe->wordpiece.most < 0 || bpe->wordpiece.most > MOST_CHARACTERS)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': 'max_input_chars_per_word': expected 0 to %d", MODEL,
                 MOST_CHARACTERS);
    DT_TRY(dt_bpe_read_vocab(bpe, json_object_get(model, "vocab"), err));
    DT_TRY(dt_bpe_read_unknown(bpe, model, err));
    bpe->wordpiece.prefix = dt_arena_strdup(&bpe->arena, prefix);
    bpe->wordpiece.longest = find_longest(&bpe->vocab);
out:
    return st;
}

/* --- words */

static int64_t count_characters(const unsigned char *word, size_t length)
{
    int64_t count = 0;

    for (size_t i = 0; i < length; i++)
        count += (word[i] & 0xc0) != 0x80;
    return count;
}

/* Finds the longest piece that the rest of a word begins with; `inside`: with the prefix. Returns its bytes, without
 * those of the prefix; 0: there is none. */
static size_t find_piece(int32_t *id, const dt_bpe *bpe, dt_strbuf *text, const unsigned char *at,
                         size_t left, bool inside)
{
    size_t prefix = inside ? strlen(bpe->wordpiece.prefix) : 0;
    size_t most = bpe->wordpiece.longest > prefix ? bpe->wordpiece.longest - prefix : 0;

    dt_strbuf_reset(text);
    dt_strbuf_add(text, bpe->wordpiece.prefix, prefix);
    for (size_t length = left < most ? left : most; length > 0; length--) {
        if (length < left && (at[length] & 0xc0) == 0x80)
            continue; /* inside a character */
        if (text->length == prefix)
            dt_strbuf_add(text, at, length);
        *id = dt_vocab_find(&bpe->vocab, text->data, prefix + length);
        if (*id >= 0)
            return length;
    }
    return 0;
}

dt_status dt_wordpiece_add(dt_ids *out, const dt_bpe *bpe, const unsigned char *word, size_t length,
                           dt_error *err)
{
    bool fits = count_characters(word, length) <= bpe->wordpiece.most;
    size_t first = out->count, used;
    dt_status st = DT_OK;
    dt_strbuf text;
    int32_t id;

    dt_strbuf_init(&text);
    for (size_t at = 0; at < length; at += used) {
        used = fits ? find_piece(&id, bpe, &text, word + at, length - at, at > 0) : 0;
        if (used > 0) {
            out->items[out->count++] = id;
            continue;
        }
        if (bpe->unknown < 0)
            DT_THROW(err, DT_ERR_USAGE, "the word '%.*s' has no token in this tokenizer",
                     (int)(length < 40 ? length : 40), (const char *)word);
        out->count = first;
        out->items[out->count++] = bpe->unknown;
        break;
    }
out:
    dt_strbuf_release(&text);
    return st;
}

/* --- back to text */

/* Returns whether the text that follows a space loses it, as English punctuation and contractions do. */
static bool is_joined(const char *text, size_t length)
{
    static const char *const starts[] = {".", "?", "!", ",", "n't", "'m", "'s", "'ve", "'re"};

    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++)
        if (length >= strlen(starts[i]) && memcmp(text, starts[i], strlen(starts[i])) == 0)
            return true;
    return false;
}

void dt_wordpiece_decode(dt_strbuf *out, const dt_bpe *bpe, const char *text, size_t length)
{
    size_t prefix = strlen(bpe->continues);

    if (length >= prefix && memcmp(text, bpe->continues, prefix) == 0) {
        dt_strbuf_add(out, text + prefix, length - prefix);
        return;
    }
    if (!bpe->cleans_up || !is_joined(text, length))
        dt_strbuf_add_char(out, ' ');
    dt_strbuf_add(out, text, length);
}

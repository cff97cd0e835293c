#include "engine/data/tokenizer_int.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {
    [DT_TOKENIZER_CHAR] = "char", [DT_TOKENIZER_BYTE] = "byte", [DT_TOKENIZER_IDS] = "ids",
    [DT_TOKENIZER_ROWS] = "rows", [DT_TOKENIZER_BPE] = "bpe",   [DT_TOKENIZER_PAIRS] = "pairs"};

#define KINDS (sizeof(kind_names) / sizeof(kind_names[0]))

const char *dt_tokenizer_kind_name(dt_tokenizer_kind kind)
{
    return kind_names[kind];
}

dt_status dt_tokenizer_make(dt_tokenizer **out, dt_tokenizer_kind kind, int64_t vocab,
                            bool characters, dt_error *err)
{
    dt_tokenizer *made = calloc(1, sizeof(*made));

    *out = NULL;
    if (made != NULL && characters)
        made->characters = calloc((size_t)vocab, sizeof(*made->characters));
    if (made == NULL || (characters && made->characters == NULL)) {
        free(made);
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a vocabulary of %lld", (long long)vocab);
    }
    dt_strbuf_init(&made->file);
    made->kind = kind;
    made->vocab = vocab;
    *out = made;
    return DT_OK;
}

static void index_ascii(dt_tokenizer *tokenizer)
{
    for (int code = 0; code < 128; code++)
        tokenizer->ascii[code] = -1;
    for (int64_t i = 0; i < tokenizer->vocab && tokenizer->characters[i] < 128; i++)
        tokenizer->ascii[tokenizer->characters[i]] = (int32_t)i;
}

dt_status dt_tokenizer_new_char(dt_tokenizer **out, const dt_char_set *set, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t count = dt_char_set_count(set);

    DT_ASSERT(count > 0);
    DT_TRY(dt_tokenizer_make(out, DT_TOKENIZER_CHAR, count, true, err));
    dt_char_set_list((*out)->characters, set);
    index_ascii(*out);
out:
    return st;
}

dt_status dt_tokenizer_new_byte(dt_tokenizer **out, dt_error *err)
{
    return dt_tokenizer_make(out, DT_TOKENIZER_BYTE, 256, false, err);
}

dt_status dt_tokenizer_new_ids(dt_tokenizer **out, int64_t vocab, dt_error *err)
{
    DT_ASSERT(vocab > 0 && vocab <= INT32_MAX);
    return dt_tokenizer_make(out, DT_TOKENIZER_IDS, vocab, false, err);
}

dt_status dt_tokenizer_new_rows(dt_tokenizer **out, dt_error *err)
{
    return dt_tokenizer_make(out, DT_TOKENIZER_ROWS, 1, false, err);
}

dt_status dt_tokenizer_copy(dt_tokenizer **out, const dt_tokenizer *from, dt_error *err)
{
    dt_status st = DT_OK;
    bool characters = from->characters != NULL;

    DT_TRY(dt_tokenizer_make(out, from->kind, from->vocab, characters, err));
    if (characters) {
        memcpy((*out)->characters, from->characters,
               (size_t)from->vocab * sizeof(*from->characters));
        index_ascii(*out);
    }
out:
    return st;
}

void dt_tokenizer_free(dt_tokenizer *tokenizer)
{
    if (tokenizer == NULL)
        return;
    dt_bpe_free(tokenizer->bpe);
    dt_sides_free(tokenizer->sides);
    dt_strbuf_release(&tokenizer->file);
    free(tokenizer->characters);
    free(tokenizer);
}

int64_t dt_tokenizer_vocab(const dt_tokenizer *tokenizer)
{
    return tokenizer->vocab;
}

int32_t dt_tokenizer_find(const dt_tokenizer *tokenizer, uint32_t code)
{
    int64_t low = 0, high = tokenizer->vocab - 1;

    if (code < 128)
        return tokenizer->ascii[code];
    while (low < high) {
        int64_t middle = (low + high) / 2;

        if (tokenizer->characters[middle] < code)
            low = middle + 1;
        else
            high = middle;
    }
    return tokenizer->characters[low] == code ? (int32_t)low : -1;
}

json_t *dt_tokenizer_to_json(const dt_tokenizer *tokenizer)
{
    json_t *out = json_pack("{s:s, s:I}", "kind", dt_tokenizer_kind_name(tokenizer->kind), "vocab",
                            (json_int_t)tokenizer->vocab);
    dt_strbuf text;

    if (dt_tokenizer_has_file(tokenizer))
        dt_tokenizer_bpe_to_json(out, tokenizer);
    if (tokenizer->kind != DT_TOKENIZER_CHAR)
        return out;
    dt_strbuf_init(&text);
    for (int64_t i = 0; i < tokenizer->vocab; i++)
        dt_tokenizer_decode(&text, tokenizer, (int32_t)i);
    json_object_set_new(out, "characters", json_stringn(text.data, text.length));
    dt_strbuf_release(&text);
    return out;
}

/* Parse the characters of the JSON form: valid UTF-8 (checked by the parser), ascending, each once. */
static dt_status char_from_json(dt_tokenizer **out, const json_t *json, int64_t vocab,
                                dt_error *err)
{
    dt_status st = DT_OK;
    const char *text;
    dt_char_set *set = NULL;
    size_t length, used;
    int64_t last = -1;

    DT_TRY(dt_json_get_string(&text, json, "characters", "tokenizer", err));
    length = json_string_length(json_object_get(json, "characters"));
    set = calloc(1, sizeof(*set));
    if (set == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a vocabulary");
    for (size_t at = 0; at < length; at += used) {
        uint32_t code = 0;

        used = dt_utf8_decode(&code, (const unsigned char *)text + at, length - at);
        if (used == 0 || (int64_t)code <= last)
            DT_THROW(err, DT_ERR_CORRUPT,
                     "tokenizer: 'characters': byte %zu is broken or out of order", at);
        last = code;
        dt_char_set_add(set, code);
    }
    if (length == 0 || dt_char_set_count(set) != vocab)
        DT_THROW(err, DT_ERR_CORRUPT, "tokenizer: 'characters' holds %lld, and 'vocab' says %lld",
                 (long long)dt_char_set_count(set), (long long)vocab);
    DT_TRY(dt_tokenizer_new_char(out, set, err));
out:
    free(set);
    return st;
}

dt_status dt_tokenizer_from_json(dt_tokenizer **out, const json_t *json, dt_error *err)
{
    dt_status st = DT_OK;
    const char *kind;
    int64_t vocab;
    size_t k = 0;

    *out = NULL;
    DT_TRY(dt_json_get_string(&kind, json, "kind", "tokenizer", err));
    DT_TRY(dt_json_get_int(&vocab, json, "vocab", "tokenizer", err));
    if (vocab <= 0 || vocab > INT32_MAX)
        DT_THROW(err, DT_ERR_CORRUPT, "tokenizer: 'vocab' is %lld; expected 1 to %d",
                 (long long)vocab, INT32_MAX);
    while (k < KINDS && strcmp(kind, kind_names[k]) != 0)
        k++;
    if (k == DT_TOKENIZER_CHAR)
        DT_TRY(char_from_json(out, json, vocab, err));
    else if (k == DT_TOKENIZER_BYTE && vocab == 256)
        DT_TRY(dt_tokenizer_new_byte(out, err));
    else if (k == DT_TOKENIZER_IDS)
        DT_TRY(dt_tokenizer_new_ids(out, vocab, err));
    else if (k == DT_TOKENIZER_ROWS)
        DT_TRY(dt_tokenizer_new_rows(out, err));
    else if (k == DT_TOKENIZER_BPE || k == DT_TOKENIZER_PAIRS)
        DT_TRY(dt_tokenizer_bpe_from_json(out, json, (dt_tokenizer_kind)k, vocab, err));
    else
        DT_THROW(err, DT_ERR_CORRUPT, "tokenizer: unsupported kind '%s' with a vocabulary of %lld",
                 kind, (long long)vocab);
out:
    return st;
}

static dt_status encode_chars(int32_t *tokens, int64_t *count, const dt_tokenizer *tokenizer,
                              const unsigned char *text, size_t length, dt_error *err)
{
    size_t used;

    for (size_t at = 0; at < length; at += used) {
        uint32_t code = 0;

        used = dt_utf8_decode(&code, text + at, length - at);
        if (used == 0)
            return DT_FAIL(err, DT_ERR_USAGE, "byte %zu of the text is not UTF-8 (0x%02x)", at,
                           text[at]);
        tokens[*count] = dt_tokenizer_find(tokenizer, code);
        if (tokens[(*count)++] < 0)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "the character '%.*s' (U+%04X) is not in the vocabulary: the model was "
                           "trained on text without it; leave it out",
                           (int)used, (const char *)text + at, code);
    }
    return DT_OK;
}

/* Parse ids written as numbers, "12 7 400". */
static dt_status encode_ids(int32_t *tokens, int64_t *count, const dt_tokenizer *tokenizer,
                            const char *text, dt_error *err)
{
    for (const char *at = text; *at != '\0';) {
        char *end;
        long long value;

        if (isspace((unsigned char)*at)) {
            at++;
            continue;
        }
        errno = 0;
        value = strtoll(at, &end, 10);
        if (end == at || errno != 0 || value < 0 || value >= tokenizer->vocab ||
            (*end != '\0' && !isspace((unsigned char)*end)))
            return DT_FAIL(err, DT_ERR_USAGE,
                           "'%.20s' is not a list of tokens: this model was trained on token ids; "
                           "give numbers from 0 to %lld with spaces between them",
                           at, (long long)tokenizer->vocab - 1);
        tokens[(*count)++] = (int32_t)value;
        at = end;
    }
    return DT_OK;
}

dt_status dt_tokenizer_encode(int32_t **tokens, int64_t *count, const dt_tokenizer *tokenizer,
                              const char *text, size_t length, dt_error *err)
{
    dt_status st = DT_OK;
    int32_t *made;
    dt_strbuf copy;

    *tokens = NULL;
    *count = 0;
    if (dt_tokenizer_has_file(tokenizer))
        return dt_tokenizer_bpe_encode(tokens, count, tokenizer, text, length, err);
    made = calloc(length + 1, sizeof(*made)); /* these kinds make at most one token per byte */
    dt_strbuf_init(&copy);
    if (made == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for %zu bytes of text", length);
    switch (tokenizer->kind) {
    case DT_TOKENIZER_CHAR:
        DT_TRY(encode_chars(made, count, tokenizer, (const unsigned char *)text, length, err));
        break;
    case DT_TOKENIZER_BYTE:
        for (size_t i = 0; i < length; i++)
            made[(*count)++] = (unsigned char)text[i];
        break;
    case DT_TOKENIZER_IDS:
        dt_strbuf_add(&copy, text, length); /* strtoll needs a terminated string */
        DT_TRY(encode_ids(made, count, tokenizer, copy.data, err));
        break;
    case DT_TOKENIZER_ROWS:
        DT_THROW(err, DT_ERR_USAGE,
                 "the model was trained on rows of numbers and cannot read text");
    case DT_TOKENIZER_BPE: /* handled above */
    case DT_TOKENIZER_PAIRS:
        break;
    }
    *tokens = made;
    made = NULL;
out:
    free(made);
    dt_strbuf_release(&copy);
    return st;
}

void dt_tokenizer_decode(dt_strbuf *out, const dt_tokenizer *tokenizer, int32_t token)
{
    char bytes[DT_UTF8_MAX];

    if (tokenizer->kind == DT_TOKENIZER_IDS || tokenizer->kind == DT_TOKENIZER_ROWS)
        dt_strbuf_add_fmt(out, "%d ", token);
    else if (tokenizer->kind == DT_TOKENIZER_BPE)
        dt_bpe_decode(out, tokenizer->bpe, token);
    else if (tokenizer->kind == DT_TOKENIZER_PAIRS)
        dt_side_decode(out, tokenizer->sides->target, token);
    else if (token < 0 ||
             token >= tokenizer->vocab) /* model.vocab can exceed the tokenizer's vocabulary */
        dt_strbuf_add_str(out, "\xef\xbf\xbd"); /* U+FFFD */
    else if (tokenizer->kind == DT_TOKENIZER_BYTE)
        dt_strbuf_add_char(out, (char)token);
    else
        dt_strbuf_add(out, bytes, dt_utf8_encode(bytes, tokenizer->characters[token]));
}

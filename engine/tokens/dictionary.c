#include "engine/tokens/fairseq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "engine/tokens/tokens_int.h"

static const char overwrite[] = "#fairseq:overwrite";
static const char *const specials[] = {"<s>", "<pad>", "</s>", "<unk>"};

/* --- the file */

typedef struct entry {
    const char *word;
    size_t length;
    bool overwrites; /* flagged: replaces an earlier line of the same word */
} entry;

static bool is_space(char c)
{
    return c != '\0' && strchr(" \t\r\v\f", c) != NULL;
}

static bool is_number(const char *text, size_t length)
{
    size_t i = length > 0 && text[0] == '-' ? 1 : 0;

    for (size_t digits = i; i < length; i++)
        if (text[i] < '0' || text[i] > '9' || i - digits > 18)
            return false;
    return length > 0 && text[length - 1] != '-';
}

/* The word can contain spaces: the last space precedes the count. */
static bool read_entry(entry *out, const char *line, size_t length)
{
    const size_t flag = sizeof(overwrite) - 1;
    size_t at;

    while (length > 0 && is_space(line[length - 1]))
        length--;
    out->overwrites = length > flag && line[length - flag - 1] == ' ' &&
                      memcmp(line + length - flag, overwrite, flag) == 0;
    if (out->overwrites)
        length -= flag + 1;
    for (at = length; at > 0 && line[at - 1] != ' '; at--)
        ;
    if (at == 0 || !is_number(line + at, length - at))
        return false;
    out->word = line;
    out->length = at - 1;
    return true;
}

static dt_status read_entries(entry **out, int64_t *count, const char *bytes, size_t length,
                              const char *name, dt_error *err)
{
    const char *end = bytes + length;
    int64_t lines = 0;

    *count = 0;
    for (const char *at = bytes; at < end; lines++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));

        at = stop != NULL ? stop + 1 : end;
    }
    *out = calloc((size_t)lines + 1, sizeof(**out));
    if (*out == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for the %lld lines of '%s'", (long long)lines,
                       name);
    for (const char *at = bytes, *next; at < end; at = next) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));

        next = stop != NULL ? stop + 1 : end;
        if (!read_entry(&(*out)[*count], at, (size_t)((stop != NULL ? stop : end) - at)))
            return DT_FAIL(err, DT_ERR_CORRUPT,
                           "'%s', line %lld: expected a word, a space and its count, as "
                           "fairseq-preprocess writes a dictionary",
                           name, (long long)*count + 1);
        ++*count;
    }
    return DT_OK;
}

/* Adds the lines from last to first, so that a word that occurs on several lines gets the id of the
 * last of them. DT_ERR_CORRUPT if that line has no overwrite flag. */
static dt_status add_entries(dt_dictionary *out, const entry *entries, int64_t count,
                             const char *name, dt_error *err)
{
    dt_status st = DT_OK;

    for (int64_t i = count - 1; i >= -DT_DICTIONARY_SPECIALS; i--) {
        const char *special = i < 0 ? specials[i + DT_DICTIONARY_SPECIALS] : NULL;
        const char *word = i < 0 ? special : entries[i].word;
        size_t length = i < 0 ? strlen(special) : entries[i].length;
        int32_t later = dt_vocab_find(&out->words, word, length);

        if (later >= 0 && !entries[later - DT_DICTIONARY_SPECIALS].overwrites)
            DT_THROW(err, DT_ERR_CORRUPT,
                     "'%s', line %lld: the word '%.*s' is %s already; remove one, or end the line "
                     "with ' %s'",
                     name, (long long)later - DT_DICTIONARY_SPECIALS + 1,
                     (int)(length < 80 ? length : 80), word,
                     i < 0 ? "in every dictionary" : "on a line above", overwrite);
        DT_TRY(dt_vocab_add(&out->words, i + DT_DICTIONARY_SPECIALS, word, length, later < 0, err));
    }
out:
    return st;
}

dt_status dt_dictionary_parse(dt_dictionary *out, const char *bytes, size_t length,
                              const char *name, dt_error *err)
{
    size_t good = dt_utf8_valid_length(bytes, length);
    entry *entries = NULL;
    dt_status st = DT_OK;
    int64_t count;

    *out = (dt_dictionary){.words = {.size = 0}};
    if (good < length)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': byte %zu is not UTF-8 (0x%02x)", name, good,
                 (unsigned char)bytes[good]);
    DT_TRY(read_entries(&entries, &count, bytes, length, name, err));
    if (count == 0)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' is empty; expected a dictionary", name);
    if (count > DT_VOCAB_MAX - DT_DICTIONARY_SPECIALS)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' has %lld words (expected at most %lld)", name,
                 (long long)count, (long long)DT_VOCAB_MAX - DT_DICTIONARY_SPECIALS);
    DT_TRY(dt_vocab_init(&out->words, err));
    DT_TRY(add_entries(out, entries, count, name, err));
out:
    free(entries);
    if (st != DT_OK)
        dt_dictionary_release(out);
    return st;
}

void dt_dictionary_release(dt_dictionary *dictionary)
{
    dt_vocab_release(&dictionary->words);
}

int64_t dt_dictionary_size(const dt_dictionary *dictionary)
{
    return dictionary->words.size;
}

/* --- text */

/* Like Python's str.isspace(): White_Space, and the four separators of ASCII. */
static bool splits(uint32_t code)
{
    return (code >= 0x1c && code <= 0x1f) || dt_code_class_of(code) == DT_CODE_SPACE;
}

static dt_status add_word(dt_ids *out, const dt_dictionary *dictionary, const char *word,
                          size_t length, dt_error *err)
{
    int32_t id = dt_vocab_find(&dictionary->words, word, length);

    return dt_ids_add(out, id >= 0 ? id : DT_DICTIONARY_UNKNOWN, err);
}

dt_status dt_dictionary_encode(dt_ids *out, const dt_dictionary *dictionary, const char *text,
                               size_t length, dt_error *err)
{
    size_t start = 0, used;
    dt_status st = DT_OK;

    for (size_t at = 0; at < length; at += used) {
        if (!splits(dt_code_at((const unsigned char *)text + at, &used)))
            continue;
        if (at > start)
            DT_TRY(add_word(out, dictionary, text + start, at - start, err));
        start = at + used;
    }
    if (length > start)
        DT_TRY(add_word(out, dictionary, text + start, length - start, err));
out:
    return st;
}

void dt_dictionary_decode(dt_strbuf *out, const dt_dictionary *dictionary, int32_t id)
{
    const size_t mark = sizeof(DT_WORD_CONTINUES) - 1;
    size_t length = 0;
    const char *word = dt_vocab_text(&dictionary->words, id, &length);

    if (id >= 0 && id < DT_DICTIONARY_UNKNOWN)
        return;
    if (word == NULL) {
        dt_strbuf_add_str(out, DT_UTF8_REPLACEMENT " ");
    } else if (length > mark && memcmp(word + length - mark, DT_WORD_CONTINUES, mark) == 0) {
        dt_strbuf_add(out, word, length - mark);
    } else {
        dt_strbuf_add(out, word, length);
        dt_strbuf_add_char(out, ' ');
    }
}

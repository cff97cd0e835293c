/* encode: encodes text as token ids, with a cache of words. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "base/display.h"
#include "base/error.h"
#include "engine/tokens/tokens_int.h"

/* word_cache: keeps the tokens of words, because most words of a text were in it before.
 *
 * Short     up to 15 bytes and 3 tokens, in slots of 32 bytes. Two slots share a cache line; a word is in the line
 *           of its hash, the word used last in the first slot
 * Long      up to 126 bytes and 16 tokens, in slots of 192 bytes, one for each hash
 * Memory    5 MB; pages are used when words are put there
 * Threads   a cache belongs to one thread
 */

#define DT_WORD_LINES_LOG    16
#define DT_WORD_SHORT        15 /* bytes */
#define DT_WORD_SHORT_TOKENS 3
#define DT_WORD_COPIED       (DT_WORD_SHORT_TOKENS + 1) /* a slot's ids with its count */
#define DT_WORD_LONG         126
#define DT_WORD_LONG_TOKENS  16

/* The bytes of a short word and zeros; the upper byte of `high` is its length. */
typedef struct dt_word_key {
    uint64_t low, high;
} dt_word_key;

typedef struct dt_word_slot {
    dt_word_key key; /* zeros: the slot is empty */
    int32_t ids[DT_WORD_SHORT_TOKENS];
    int32_t count;
} dt_word_slot;

typedef struct dt_word_line {
    dt_word_slot slots[2];
} dt_word_line;

typedef struct dt_long_word {
    uint8_t length, count; /* length 0: the slot is empty */
    unsigned char text[DT_WORD_LONG];
    int32_t ids[DT_WORD_LONG_TOKENS];
} dt_long_word;

typedef struct dt_word_cache {
    dt_word_line *lines;
    dt_long_word *longs;
    void *memory;
} dt_word_cache;

/* Returns the key of a word of at least one byte, which no slot has if the word is not short. `end`: that of
 * the text. */
static inline dt_word_key dt_word_key_of(const unsigned char *word, size_t length,
                                         const unsigned char *end)
{
    static const unsigned char keep[32] = {255, 255, 255, 255, 255, 255, 255, 255,
                                           255, 255, 255, 255, 255, 255, 255, 255};
    dt_word_key key = {0, UINT64_MAX}, mask;

    if (length > DT_WORD_SHORT)
        return key;
    if (end - word >= (ptrdiff_t)sizeof(key)) {
        memcpy(&key, word, sizeof(key));
        memcpy(&mask, keep + sizeof(keep) / 2 - length, sizeof(mask));
        key.low &= mask.low;
        key.high &= mask.high;
    } else {
        key.high = 0;
        memcpy(&key, word, length);
    }
    key.high |= (uint64_t)length << 56;
    return key;
}

static inline dt_word_line *dt_word_line_of(dt_word_line *lines, dt_word_key key)
{
    uint64_t hash = key.low * 0x9e3779b97f4a7c15ull + key.high * 0xc2b2ae3d27d4eb4full;

    return &lines[hash >> (64 - DT_WORD_LINES_LOG)];
}

static inline bool dt_word_key_equal(dt_word_key a, dt_word_key b)
{
    return ((a.low ^ b.low) | (a.high ^ b.high)) == 0;
}

/* Returns the slot of a short word in its line; NULL if the word is not there. */
static inline const dt_word_slot *dt_word_line_find(dt_word_line *line, dt_word_key key)
{
    dt_word_slot first = line->slots[0];

    if (dt_word_key_equal(first.key, key))
        return &line->slots[0];
    if (!dt_word_key_equal(line->slots[1].key, key))
        return NULL;
    line->slots[0] = line->slots[1];
    line->slots[1] = first;
    return &line->slots[0];
}

#define LINE      64 /* bytes of a cache line */
#define LINES     ((size_t)1 << DT_WORD_LINES_LOG)
#define LONGS_LOG 12
#define LONGS     ((size_t)1 << LONGS_LOG)

static dt_status word_cache_init(dt_word_cache *out, dt_error *err)
{
    size_t lines = LINES * sizeof(dt_word_line), longs = LONGS * sizeof(dt_long_word);
    uintptr_t start;

    *out = (dt_word_cache){.memory = calloc(1, LINE + lines + longs)};
    if (out->memory == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory to encode text");
    start = ((uintptr_t)out->memory + LINE - 1) / LINE * LINE;
    out->lines = (dt_word_line *)start;
    out->longs = (dt_long_word *)(start + lines);
    return DT_OK;
}

/* accepts a zeroed one */
static void word_cache_release(dt_word_cache *cache)
{
    free(cache->memory);
    *cache = (dt_word_cache){0};
}

/* Returns the slot that a word of 1 to DT_WORD_LONG bytes has among the long words. */
static dt_long_word *word_cache_long(const dt_word_cache *cache, const unsigned char *word,
                                     size_t length)
{
    return &cache->longs[XXH3_64bits(word, length) >> (64 - LONGS_LOG)];
}

/* --- encoding */

#define BATCH 64 /* words whose slots are prefetched before the first of them is read, at least */

/* Where a text begins: a mark is put before a text, not before a part that continues one. */
typedef enum dt_text_place { AT_START, AFTER_TOKEN, INSIDE } dt_text_place;

struct dt_bpe_encoder {
    const dt_bpe *bpe;
    dt_word_cache words;
    dt_merge_memory memory;
    dt_unigram_memory unigram;
    dt_strbuf normal, marked; /* a part of the text: normalized; with marks for spaces */

    dt_bpe_allow_fn *allow; /* NULL: all added tokens are recognised */
    void *context;
    const char *whole; /* the text that is encoded */
    const char *part;  /* the part of it that `normal` was made of */
    size_t part_length;
};

void dt_ids_release(dt_ids *ids)
{
    free(ids->items);
    *ids = (dt_ids){0};
}

static dt_status reserve(dt_ids *ids, size_t more, dt_error *err)
{
    int32_t *items;

    if (ids->count + more <= (size_t)ids->capacity) /* the usual case, without a call */
        return DT_OK;
    items = dt_array_try_room(ids->items, ids->count + more, &ids->capacity, sizeof(*items));
    if (items == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for %zu tokens", ids->count + more);
    ids->items = items;
    return DT_OK;
}

dt_status dt_ids_add(dt_ids *ids, int32_t id, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(reserve(ids, 1, err));
    ids->items[ids->count++] = id;
out:
    return st;
}

/* --- words */

static dt_status add_bytes(dt_ids *out, const dt_bpe *bpe, const unsigned char *word, size_t length,
                           dt_error *err)
{
    for (size_t i = 0; i < length; i++) {
        int32_t id = bpe->bytes[word[i]];

        if (id < 0)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "the byte 0x%02x of '%.*s' has no token in this tokenizer", word[i],
                           (int)(length < 40 ? length : 40), (const char *)word);
        out->items[out->count++] = id;
    }
    return DT_OK;
}

static bool add_fallback(dt_ids *out, const dt_bpe *bpe, const unsigned char *text, size_t length)
{
    if (!bpe->byte_fallback)
        return false;
    for (size_t i = 0; i < length; i++)
        if (bpe->bytes[text[i]] < 0)
            return false;
    for (size_t i = 0; i < length; i++)
        out->items[out->count++] = bpe->bytes[text[i]];
    return true;
}

/* Adds the token of each character. An unknown token is added only when a known character follows,
 * or at the end of the word, as in the library. */
static dt_status add_characters(dt_ids *out, const dt_bpe *bpe, const unsigned char *word,
                                size_t length, dt_error *err)
{
    bool held = false;
    size_t used;

    for (size_t at = 0; at < length; at += used) {
        int32_t id;

        dt_code_at(word + at, &used);
        id = word[at] < 128 ? bpe->ascii[word[at]] : dt_vocab_find(&bpe->vocab, word + at, used);
        if (id < 0 && add_fallback(out, bpe, word + at, used))
            continue;
        if (id < 0 && bpe->unknown < 0)
            return DT_FAIL(err, DT_ERR_USAGE, "the character '%.*s' has no token in this tokenizer",
                           (int)used, (const char *)word + at);
        if (held && (id >= 0 || !bpe->fuse_unknown))
            out->items[out->count++] = bpe->unknown;
        held = id < 0;
        if (id >= 0)
            out->items[out->count++] = id;
    }
    if (held)
        out->items[out->count++] = bpe->unknown;
    return DT_OK;
}

static void reverse(int32_t *ids, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        int32_t id = ids[i];

        ids[i] = ids[count - 1 - i];
        ids[count - 1 - i] = id;
    }
}

/* Adds a token for unknown characters in a row, which together may be a piece of the vocabulary.
 * Fallback bytes are added in reverse order: the caller goes from the end of the word to its start. */
static dt_status add_unknown(dt_ids *out, const dt_bpe *bpe, const unsigned char *text,
                             size_t length, dt_error *err)
{
    int32_t id = dt_vocab_find(&bpe->vocab, text, length);
    size_t first = out->count;

    if (id < 0 && add_fallback(out, bpe, text, length)) {
        reverse(out->items + first, length);
        return DT_OK;
    }
    if (id < 0 && bpe->unknown < 0)
        return DT_FAIL(err, DT_ERR_USAGE, "'%.*s' has no token in this tokenizer",
                       (int)(length < 40 ? length : 40), (const char *)text);
    out->items[out->count++] = id >= 0 ? id : bpe->unknown;
    return DT_OK;
}

/* Adds the most probable pieces of a word. The search result leads from the last byte back to the
 * first. */
static dt_status add_pieces(dt_bpe_encoder *e, dt_ids *out, const unsigned char *word,
                            size_t length, dt_error *err)
{
    const dt_bpe *bpe = e->bpe;
    const dt_unigram_place *places;
    size_t first = out->count, end = length;
    dt_status st = DT_OK;

    DT_TRY(dt_unigram_segment(&e->unigram, &bpe->unigram, word, length, err));
    places = e->unigram.places;
    while (end > 0) {
        size_t start = end;

        while (start > 0 && (places[start].id < 0 || places[start].id == bpe->unknown))
            start -= places[start].length;
        if (start < end) {
            DT_TRY(add_unknown(out, bpe, word + start, end - start, err));
        } else {
            out->items[out->count++] = places[end].id;
            start = end - places[end].length;
        }
        end = start;
    }
    reverse(out->items + first, out->count - first);
out:
    return st;
}

static dt_status merge_word(dt_bpe_encoder *e, dt_ids *out, const unsigned char *word,
                            size_t length, dt_error *err)
{
    const dt_bpe *bpe = e->bpe;
    size_t first = out->count, count;
    dt_status st = DT_OK;

    if (bpe->is_unigram)
        return add_pieces(e, out, word, length, err);
    if (bpe->wordpiece.prefix != NULL)
        return dt_wordpiece_add(out, bpe, word, length, err);
    if (bpe->ignore_merges) {
        int32_t whole = dt_vocab_find(&bpe->vocab, word, length);

        if (whole >= 0) {
            out->items[out->count++] = whole;
            return DT_OK;
        }
    }
    DT_TRY(bpe->byte_level ? add_bytes(out, bpe, word, length, err)
                           : add_characters(out, bpe, word, length, err));
    count = out->count - first;
    DT_TRY(dt_merge(out->items + first, &count, &bpe->merges, &e->memory, err));
    out->count = first + count;
out:
    return st;
}

/* A word of the text, which ends where the next one starts, and its line in the cache. */
typedef struct cut_word {
    dt_word_key key;
    dt_word_line *line;
    const unsigned char *at;
} cut_word;

static inline cut_word cut_word_of(dt_word_line *lines, const unsigned char *at,
                                   const unsigned char *next, const unsigned char *end)
{
    cut_word word = {.key = dt_word_key_of(at, (size_t)(next - at), end), .at = at};

    word.line = dt_word_line_of(lines, word.key);
    __builtin_prefetch(word.line);
    return word;
}

/* Keeps the tokens of a word, unless it is too long. */
static void keep(const cut_word *word, size_t length, dt_long_word *slot, const int32_t *ids,
                 size_t count)
{
    if (length <= DT_WORD_SHORT && count <= DT_WORD_SHORT_TOKENS) {
        word->line->slots[1] = word->line->slots[0];
        word->line->slots[0] = (dt_word_slot){.key = word->key, .count = (int32_t)count};
        memcpy(word->line->slots[0].ids, ids, count * sizeof(*ids));
    } else if (slot != NULL && count <= DT_WORD_LONG_TOKENS) {
        slot->length = (uint8_t)length;
        slot->count = (uint8_t)count;
        memcpy(slot->text, word->at, length);
        memcpy(slot->ids, ids, count * sizeof(*ids));
    }
}

/* Adds a word that is not among the short ones of the cache. */
static dt_status add_word(dt_bpe_encoder *e, dt_ids *out, const cut_word *word, dt_error *err)
{
    size_t length = (size_t)(word[1].at - word->at), first;
    dt_long_word *slot =
        length <= DT_WORD_LONG ? word_cache_long(&e->words, word->at, length) : NULL;
    dt_status st = DT_OK;

    DT_TRY(reserve(out, length + DT_WORD_LONG_TOKENS, err));
    first = out->count;
    if (slot != NULL && slot->length == length && memcmp(slot->text, word->at, length) == 0) {
        memcpy(out->items + first, slot->ids, sizeof(slot->ids));
        out->count += slot->count;
        return DT_OK;
    }
    DT_TRY(merge_word(e, out, word->at, length, err));
    keep(word, length, slot, out->items + first, out->count - first);
out:
    return st;
}

/* Adds the tokens of words[at .. count - 1] as far as the words are in the lines of the cache. Returns the
 * first word that is not. A slot is copied with its count: the list must have room for DT_WORD_COPIED ids a
 * word. */
static inline size_t add_known(dt_ids *out, const cut_word *words, size_t at, size_t count)
{
    int32_t *to = out->items + out->count;

    for (; at < count; at++) {
        const dt_word_slot *slot = dt_word_line_find(words[at].line, words[at].key);

        if (slot == NULL)
            break;
        memcpy(to, slot->ids, DT_WORD_COPIED * sizeof(*to));
        to += slot->count;
    }
    out->count = (size_t)(to - out->items);
    return at;
}

/* words[count] has the end of the last word. */
static dt_status add_batch(dt_bpe_encoder *e, dt_ids *out, const cut_word *words, size_t count,
                           dt_error *err)
{
    dt_status st = DT_OK;
    size_t at = 0;

    for (;;) {
        DT_TRY(reserve(out, (count - at) * DT_WORD_COPIED, err));
        at = add_known(out, words, at, count);
        if (at == count)
            break;
        DT_TRY(add_word(e, out, &words[at++], err));
    }
out:
    return st;
}

/* --- normalized text between added tokens */

static dt_status add_words(dt_bpe_encoder *e, dt_ids *out, const char *text, size_t length,
                           dt_error *err)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    dt_word_line *lines = e->words.lines;
    dt_status st = DT_OK;
    dt_splitter splitter;

    dt_splitter_begin(&splitter, &e->bpe->split, text, length);
    while (at < end) {
        cut_word words[BATCH + DT_SPLIT_BLOCK + 1], *word = words;

        while (word < words + BATCH && at < end) {
            uint64_t ends = dt_bpe_uses_joints(e->bpe) ? dt_joints_block(&e->bpe->joints, at, end)
                                                       : dt_splitter_block(&splitter, at);
            const unsigned char *start = at, *next;

            for (; ends != 0; ends &= ends - 1, at = next) {
                next = start + __builtin_ctzll(ends);
                *word++ = cut_word_of(lines, at, next, end);
            }
            if (at > start)
                continue;
            next = dt_bpe_uses_joints(e->bpe) ? dt_joints_next(&e->bpe->joints, at, end)
                                              : dt_splitter_next(&splitter, at);
            *word++ = cut_word_of(lines, at, next, end);
            at = next;
        }
        word->at = at;
        DT_TRY(add_batch(e, out, words, (size_t)(word - words), err));
    }
out:
    return st;
}

/* Adds the words of the marked text: each mark starts a word. */
static dt_status add_marked(dt_bpe_encoder *e, dt_ids *out, dt_error *err)
{
    const char *mark = e->bpe->metaspace.mark, *at = e->marked.data;
    const char *end = at + e->marked.length;
    size_t mark_length = strlen(mark);
    dt_status st = DT_OK;

    while (at < end) {
        const char *next = e->bpe->metaspace.split && at + 1 < end
                               ? memmem(at + 1, (size_t)(end - at) - 1, mark, mark_length)
                               : NULL;

        if (next == NULL)
            next = end;
        DT_TRY(add_words(e, out, at, (size_t)(next - at), err));
        at = next;
    }
out:
    return st;
}

/* Adds the words of the text with a space before it. */
static dt_status add_after_space(dt_bpe_encoder *e, dt_ids *out, const char *text, size_t length,
                                 dt_error *err)
{
    dt_strbuf_reset(&e->marked);
    dt_strbuf_add_char(&e->marked, ' ');
    dt_strbuf_add(&e->marked, text, length);
    return add_words(e, out, e->marked.data, e->marked.length, err);
}

static dt_status add_metaspace(dt_bpe_encoder *e, dt_ids *out, const char *text, size_t length,
                               dt_text_place place, dt_error *err)
{
    const dt_metaspace *meta = &e->bpe->metaspace;
    size_t mark_length = strlen(meta->mark);
    bool begins =
        text[0] == ' ' || (length >= mark_length && memcmp(text, meta->mark, mark_length) == 0);
    bool prepends = !begins && place != INSIDE &&
                    (meta->prepend == DT_PREPEND_ALWAYS ||
                     (meta->prepend == DT_PREPEND_FIRST && place == AT_START));

    if (e->bpe->keeps_spaces)
        return prepends ? add_after_space(e, out, text, length, err)
                        : add_words(e, out, text, length, err);
    dt_strbuf_reset(&e->marked);
    if (prepends)
        dt_strbuf_add_str(&e->marked, meta->mark);
    for (const char *end = text + length; text < end;) {
        const char *space = memchr(text, ' ', (size_t)(end - text));
        const char *stop = space != NULL ? space : end;

        dt_strbuf_add(&e->marked, text, (size_t)(stop - text));
        if (space != NULL)
            dt_strbuf_add_str(&e->marked, meta->mark);
        text = space != NULL ? space + 1 : end;
    }
    return add_marked(e, out, err);
}

static dt_status add_part(dt_bpe_encoder *e, dt_ids *out, const char *text, size_t length,
                          dt_text_place place, dt_error *err)
{
    if (length == 0)
        return DT_OK;
    if (e->bpe->metaspace.mark != NULL)
        return add_metaspace(e, out, text, length, place, err);
    if (!e->bpe->prefix_space || text[0] == ' ')
        return add_words(e, out, text, length, err);
    return add_after_space(e, out, text, length, err);
}

static size_t space_length(const char *at)
{
    size_t used;

    return dt_code_class_of(dt_code_at((const unsigned char *)at, &used)) == DT_CODE_SPACE ? used
                                                                                           : 0;
}

static dt_status add_stretch(dt_bpe_encoder *e, dt_ids *out, const char *text, size_t length,
                             dt_text_place place, dt_error *err)
{
    dt_status st = DT_OK;
    size_t start = 0, used;

    if (!e->bpe->drops_spaces)
        return add_part(e, out, text, length, place, err);
    for (size_t at = 0; at < length; at += used) {
        size_t space = space_length(text + at);

        used = space;
        if (space == 0) {
            (void)dt_code_at((const unsigned char *)text + at, &used);
            continue;
        }
        DT_TRY(add_part(e, out, text + start, at - start, start == 0 ? place : AFTER_TOKEN, err));
        start = at + space;
    }
    DT_TRY(add_part(e, out, text + start, length - start, start == 0 ? place : AFTER_TOKEN, err));
out:
    return st;
}

/* --- added tokens */

typedef dt_status add_fn(dt_bpe_encoder *e, dt_ids *out, const char *text, size_t length,
                         dt_text_place place, dt_error *err);

/* Asks whether an added token at text[start] .. text[end - 1] may be recognised. In a normalized text its place is the
 * one where it occurs as often before it in the text as it was written; if there is none, it is asked for the whole
 * part. */
static bool is_allowed(const dt_bpe_encoder *e, const char *text, size_t start, size_t end,
                       int32_t id)
{
    bool written = text != e->normal.data || e->normal.length == 0;
    const char *from = written ? text + start : NULL, *to = text + end;

    if (!written) {
        from = dt_bpe_find_written(&to, e->bpe, id, e->part, e->part_length, text, start, end);
    } else {
        while (from < to && space_length(from) > 0) /* which the token drops */
            from += space_length(from);
        while (from < to && strchr(" \t\r\n", to[-1]) != NULL)
            to--;
    }
    return e->allow(e->context, id, (size_t)(from - e->whole), (size_t)(to - e->whole));
}

/* Cuts the text at the tokens of `added`, and calls `add` for the text between them. */
static dt_status cut(dt_bpe_encoder *e, dt_ids *out, const dt_added *added, add_fn *add,
                     const char *text, size_t length, dt_text_place place, dt_error *err)
{
    size_t from = 0, search = 0, start, end;
    dt_status st = DT_OK;
    int32_t id;

    while (dt_added_next(added, text, length, search, &start, &end, &id)) {
        if (e->allow != NULL && !is_allowed(e, text, start, end, id)) {
            search = start + 1;
            continue;
        }
        DT_TRY(add(e, out, text + from, start - from, from == 0 ? place : AFTER_TOKEN, err));
        DT_TRY(reserve(out, 1, err));
        out->items[out->count++] = id;
        from = search = end;
    }
    DT_TRY(add(e, out, text + from, length - from, from == 0 ? place : AFTER_TOKEN, err));
out:
    return st;
}

static dt_status add_raw(dt_bpe_encoder *e, dt_ids *out, const char *text, size_t length,
                         dt_text_place place, dt_error *err)
{
    const dt_bpe *bpe = e->bpe;
    dt_status st = DT_OK;

    if (length == 0)
        return DT_OK;
    if (bpe->step_count > 0 && (bpe->step_count > 1 || bpe->steps[0].kind != DT_NORMAL_FORM ||
                                !dt_form_holds(bpe->steps[0].form, text, length))) {
        dt_strbuf_reset(&e->normal);
        e->part = text;
        e->part_length = length;
        DT_TRY(dt_bpe_normalize(&e->normal, bpe, text, length, place != INSIDE, err));
        text = e->normal.data;
        length = e->normal.length;
    }
    DT_TRY(cut(e, out, &bpe->normalized, add_stretch, text, length, place, err));
out:
    return st;
}

dt_status dt_bpe_check_text(const char *text, size_t length, dt_error *err)
{
    size_t at = dt_utf8_valid_length(text, length);

    if (at < length)
        return DT_FAIL(err, DT_ERR_USAGE, "byte %zu of the text is not UTF-8 (0x%02x)", at,
                       (unsigned char)text[at]);
    return DT_OK;
}

static dt_status encode(dt_ids *out, dt_bpe_encoder *encoder, const char *text, size_t length,
                        dt_text_place place, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_bpe_check_text(text, length, err));
    DT_TRY(cut(encoder, out, &encoder->bpe->raw, add_raw, text, length, place, err));
out:
    return st;
}

dt_status dt_bpe_encode(dt_ids *out, dt_bpe_encoder *encoder, const char *text, size_t length,
                        dt_error *err)
{
    return encode(out, encoder, text, length, AT_START, err);
}

dt_status dt_bpe_encode_allowed(dt_ids *out, dt_bpe_encoder *encoder, const char *text,
                                size_t length, dt_bpe_allow_fn *allow, void *context, dt_error *err)
{
    dt_status st;

    encoder->allow = allow;
    encoder->context = context;
    encoder->whole = text;
    st = encode(out, encoder, text, length, AT_START, err);
    encoder->allow = NULL;
    return st;
}

/* If lines are separate, each part is as a text of its own: its first word has its mark. */
dt_status dt_bpe_encode_rest(dt_ids *out, dt_bpe_encoder *encoder, const char *text, size_t length,
                             dt_error *err)
{
    return encode(out, encoder, text, length, encoder->bpe->separates_lines ? AT_START : INSIDE,
                  err);
}

dt_status dt_bpe_encoder_open(dt_bpe_encoder **out, const dt_bpe *bpe, dt_error *err)
{
    dt_bpe_encoder *made = calloc(1, sizeof(*made));

    *out = NULL;
    if (made == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory to encode text");
    if (word_cache_init(&made->words, err) != DT_OK) {
        free(made);
        return DT_ERR_NOMEM;
    }
    made->bpe = bpe;
    dt_strbuf_init(&made->normal);
    dt_strbuf_init(&made->marked);
    *out = made; /* caller owns *out */
    return DT_OK;
}

void dt_bpe_encoder_close(dt_bpe_encoder *encoder)
{
    if (encoder == NULL)
        return;
    dt_merge_release(&encoder->memory);
    dt_unigram_memory_release(&encoder->unigram);
    dt_strbuf_release(&encoder->normal);
    dt_strbuf_release(&encoder->marked);
    word_cache_release(&encoder->words);
    free(encoder);
}

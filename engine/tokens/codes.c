#include "engine/tokens/fairseq.h"

#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "engine/tokens/tokens_int.h"

static const char version_line[] = "#version: ";
static const char word_end[] = "</w>";

#define WORD_END_BYTES (sizeof(word_end) - 1)

/* --- the file */

typedef struct merge_line {
    const char *first, *second;
    size_t first_length, second_length;
} merge_line;

/* Reads "a b", or "a b count" of fastBPE. Returns false for another form. */
static bool read_merge(merge_line *out, const char *line, size_t length)
{
    const char *end = line + length, *space = memchr(line, ' ', length), *count;

    if (space == NULL || space == line)
        return false;
    out->first = line;
    out->first_length = (size_t)(space - line);
    out->second = space + 1;
    count = memchr(out->second, ' ', (size_t)(end - out->second));
    out->second_length = (size_t)((count != NULL ? count : end) - out->second);
    if (out->second_length == 0)
        return false;
    for (const char *at = count != NULL ? count + 1 : end; at < end; at++)
        if (*at < '0' || *at > '9')
            return false;
    return count == NULL || count + 1 < end;
}

static dt_status add_symbol(int32_t *id, dt_codes *codes, const char *text, size_t length,
                            dt_error *err)
{
    *id = dt_vocab_find(&codes->symbols, text, length);
    if (*id >= 0)
        return DT_OK;
    *id = (int32_t)codes->symbols.size;
    return dt_vocab_add(&codes->symbols, *id, text, length, true, err);
}

/* Adds a merge. If a line occurs twice, the earlier one counts. */
static dt_status add_merge(dt_codes *codes, const merge_line *line, uint32_t rank,
                           dt_strbuf *joined, dt_error *err)
{
    int32_t first, second, both;
    dt_status st = DT_OK;

    dt_strbuf_reset(joined);
    dt_strbuf_add(joined, line->first, line->first_length);
    dt_strbuf_add(joined, line->second, line->second_length);
    DT_TRY(add_symbol(&first, codes, line->first, line->first_length, err));
    DT_TRY(add_symbol(&second, codes, line->second, line->second_length, err));
    DT_TRY(add_symbol(&both, codes, joined->data, joined->length, err));
    if (dt_pairs_get(&codes->merges, first, second)->rank == DT_PAIR_NONE)
        DT_TRY(dt_pairs_put(&codes->merges, first, second, rank, both, err));
out:
    return st;
}

static dt_status read_version(dt_codes *out, const char *line, size_t length, const char *name,
                              dt_error *err)
{
    const size_t mark = sizeof(version_line) - 1;

    if (length == mark + 3 && memcmp(line + mark, "0.1", 3) == 0)
        out->end_apart = true;
    else if (length != mark + 3 || memcmp(line + mark, "0.2", 3) != 0)
        return DT_FAIL(err, DT_ERR_CORRUPT,
                       "'%s', line 1: unsupported version '%.*s' of codes (expected 0.1 or 0.2)",
                       name, (int)(length - mark < 20 ? length - mark : 20), line + mark);
    return DT_OK;
}

static size_t trimmed(const char *line, size_t length)
{
    while (length > 0 && strchr(" \r\n", line[length - 1]) != NULL && line[length - 1] != '\0')
        length--;
    return length;
}

static dt_status read_lines(dt_codes *out, const char *bytes, size_t length, const char *name,
                            dt_strbuf *joined, dt_error *err)
{
    const char *end = bytes + length;
    bool counted = false; /* the lines have fastBPE's counts */
    int64_t line = 1, merges = 0;
    dt_status st = DT_OK;
    merge_line merge;

    out->end_apart = true;
    for (const char *at = bytes, *next; at < end; at = next, line++) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        size_t size = trimmed(at, (size_t)((stop != NULL ? stop : end) - at));

        next = stop != NULL ? stop + 1 : end;
        if (line == 1 && size >= sizeof(version_line) - 1 &&
            memcmp(at, version_line, sizeof(version_line) - 1) == 0) {
            out->end_apart = false;
            DT_TRY(read_version(out, at, size, name, err));
            continue;
        }
        if (!read_merge(&merge, at, size))
            DT_THROW(err, DT_ERR_CORRUPT,
                     "'%s', line %lld: expected two symbols with a space between them, as "
                     "subword-nmt's learn_bpe writes codes",
                     name, (long long)line);
        if (merge.second + merge.second_length < at + size)
            counted = true;
        DT_TRY(add_merge(out, &merge, (uint32_t)merges++, joined, err));
    }
    if (merges == 0)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' is empty; expected codes of subword-nmt", name);
    if (counted)
        out->end_apart = false;
out:
    return st;
}

dt_status dt_codes_parse(dt_codes *out, const char *bytes, size_t length, const char *name,
                         dt_error *err)
{
    size_t good = dt_utf8_valid_length(bytes, length);
    dt_status st = DT_OK;
    dt_strbuf joined;

    *out = (dt_codes){.end_apart = false};
    dt_strbuf_init(&joined);
    if (good < length)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s': byte %zu is not UTF-8 (0x%02x)", name, good,
                 (unsigned char)bytes[good]);
    DT_TRY(dt_vocab_init(&out->symbols, err));
    DT_TRY(dt_pairs_init(&out->merges, 1024, err));
    DT_TRY(read_lines(out, bytes, length, name, &joined, err));
out:
    dt_strbuf_release(&joined);
    if (st != DT_OK)
        dt_codes_release(out);
    return st;
}

void dt_codes_release(dt_codes *codes)
{
    dt_vocab_release(&codes->symbols);
    dt_pairs_release(&codes->merges);
}

/* --- a word */

/* A piece of a word: its bytes from `start` to the next piece. id: its symbol; -1 if no merge
 * contains it. The last piece includes the end-of-word mark. */
typedef struct piece {
    size_t start;
    int32_t id;
} piece;

typedef struct word {
    piece *pieces;
    size_t count;
    int64_t room;
} word;

static dt_status add_piece(word *w, size_t start, int32_t id, dt_error *err)
{
    piece *pieces = dt_array_try_room(w->pieces, w->count + 1, &w->room, sizeof(*pieces));

    if (pieces == NULL)
        return DT_FAIL(err, DT_ERR_NOMEM, "no memory for a word of %zu characters", w->count + 1);
    w->pieces = pieces;
    w->pieces[w->count++] = (piece){start, id};
    return DT_OK;
}

/* Splits a word into one piece per character. In `text`, the end-of-word mark follows the word. */
static dt_status cut(word *w, const dt_codes *codes, const char *text, size_t length, dt_error *err)
{
    size_t used;
    dt_status st = DT_OK;

    w->count = 0;
    for (size_t at = 0; at < length; at += used) {
        size_t bytes;

        (void)dt_code_at((const unsigned char *)text + at, &used);
        bytes = used;
        if (at + used == length && !codes->end_apart)
            bytes += WORD_END_BYTES;
        DT_TRY(add_piece(w, at, dt_vocab_find(&codes->symbols, text + at, bytes), err));
    }
    if (codes->end_apart)
        DT_TRY(add_piece(w, length, dt_vocab_find(&codes->symbols, word_end, WORD_END_BYTES), err));
out:
    return st;
}

static const dt_pair *earliest(const word *w, const dt_codes *codes)
{
    const dt_pair *best = NULL;

    for (size_t i = 0; i + 1 < w->count; i++) {
        const dt_pair *pair;

        if (w->pieces[i].id < 0 || w->pieces[i + 1].id < 0)
            continue;
        pair = dt_pairs_get(&codes->merges, w->pieces[i].id, w->pieces[i + 1].id);
        if (pair->rank != DT_PAIR_NONE && (best == NULL || pair->rank < best->rank))
            best = pair;
    }
    return best;
}

static void join(word *w, const dt_pair *pair)
{
    size_t kept = 0;

    for (size_t i = 0; i < w->count; kept++) {
        bool both = i + 1 < w->count && w->pieces[i].id >= 0 && w->pieces[i + 1].id >= 0 &&
                    dt_pair_key(w->pieces[i].id, w->pieces[i + 1].id) == pair->key;

        w->pieces[kept] = w->pieces[i];
        if (both)
            w->pieces[kept].id = pair->id;
        i += both ? 2 : 1;
    }
    w->count = kept;
}

/* Appends the pieces of a word, joined as the merges say. */
static dt_status apply_word(dt_strbuf *out, word *w, const dt_codes *codes, dt_strbuf *marked,
                            const char *text, size_t length, dt_error *err)
{
    const dt_pair *pair;
    dt_status st = DT_OK;

    dt_strbuf_reset(marked);
    dt_strbuf_add(marked, text, length);
    dt_strbuf_add_str(marked, word_end);
    DT_TRY(cut(w, codes, marked->data, length, err));
    while ((pair = earliest(w, codes)) != NULL)
        join(w, pair);
    if (w->pieces[w->count - 1].start == length) /* only the end-of-word mark is left */
        w->count--;
    for (size_t i = 0; i < w->count; i++) {
        size_t stop = i + 1 < w->count ? w->pieces[i + 1].start : length;

        dt_strbuf_add(out, text + w->pieces[i].start, stop - w->pieces[i].start);
        if (i + 1 < w->count)
            dt_strbuf_add_str(out, DT_WORD_CONTINUES " ");
    }
out:
    return st;
}

dt_status dt_codes_apply(dt_strbuf *out, const dt_codes *codes, const char *text, size_t length,
                         dt_error *err)
{
    const char *end = text + length;
    word w = {.count = 0};
    bool any = false;
    dt_status st = DT_OK;
    dt_strbuf marked;

    dt_strbuf_init(&marked);
    for (const char *at = text; at < end;) {
        const char *space = memchr(at, ' ', (size_t)(end - at));
        size_t size = (size_t)((space != NULL ? space : end) - at);

        if (size > 0 && any)
            dt_strbuf_add_char(out, ' ');
        if (size > 0)
            DT_TRY(apply_word(out, &w, codes, &marked, at, size, err));
        any = any || size > 0;
        at += size + 1;
    }
out:
    free(w.pieces);
    dt_strbuf_release(&marked);
    return st;
}

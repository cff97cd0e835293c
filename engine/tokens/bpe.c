#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "engine/tokens/tokens_int.h"

/* Returns an empty tokenizer with initialized parts. */
static dt_status bpe_new(dt_bpe **out, dt_error *err)
{
    dt_bpe *made = calloc(1, sizeof(*made));
    dt_status st = DT_OK;

    *out = NULL;
    if (made == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for a tokenizer");
    dt_arena_init(&made->arena, 0);
    dt_strbuf_init(&made->warnings);
    made->unknown = made->end_of_text = -1;
    DT_TRY(dt_vocab_init(&made->vocab, err));
    DT_TRY(dt_pairs_init(&made->merges, 1024, err));
    DT_TRY(dt_added_init(&made->raw, err));
    DT_TRY(dt_added_init(&made->normalized, err));
    *out = made; /* caller owns *out */
    made = NULL;
out:
    dt_bpe_free(made);
    return st;
}

void dt_bpe_free(dt_bpe *bpe)
{
    if (bpe == NULL)
        return;
    dt_vocab_release(&bpe->vocab);
    dt_pairs_release(&bpe->merges);
    dt_joints_release(&bpe->joints);
    dt_unigram_release(&bpe->unigram);
    dt_added_release(&bpe->raw);
    dt_added_release(&bpe->normalized);
    dt_ids_release(&bpe->before);
    dt_ids_release(&bpe->after);
    dt_strbuf_release(&bpe->warnings);
    dt_arena_release(&bpe->arena);
    free(bpe);
}

dt_status dt_bpe_parse(dt_bpe **out, const char *bytes, size_t length, const char *name,
                       dt_error *err)
{
    dt_status st = DT_OK;
    json_t *json = NULL;
    dt_bpe *bpe = NULL;
    size_t spaces = 0;

    *out = NULL;
    while (spaces < length && memchr(" \t\r\n", bytes[spaces], 4) != NULL)
        spaces++;
    if (spaces == length)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' is empty; expected a tokenizer", name);
    DT_TRY(bpe_new(&bpe, err));
    if (bytes[spaces] == '{')
        DT_TRY(dt_json_parse(&json, bytes, length, name, err));
    st = json != NULL ? dt_bpe_read_huggingface(bpe, json, err)
                      : dt_bpe_read_tiktoken(bpe, bytes, length, name, err);
    if (st != DT_OK) {
        dt_error_prefix(err, "'%s'", name);
        goto out;
    }
    *out = bpe; /* caller owns *out */
    bpe = NULL;
out:
    dt_bpe_free(bpe);
    json_decref(json);
    return st;
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* Returns whether the normalizer gives the same result line by line: no step depends on the start
 * or the end of the text, or writes or matches one of `breaks`. */
static bool keeps_lines(const dt_bpe *bpe, const char *breaks)
{
    for (int i = 0; i < bpe->step_count; i++) {
        const dt_normal_step *step = &bpe->steps[i];
        bool plain = step->kind == DT_NORMAL_FORM || step->kind == DT_NORMAL_STRIP_ACCENTS ||
                     step->kind == DT_NORMAL_LOWERCASE || step->kind == DT_NORMAL_APART ||
                     step->kind == DT_NORMAL_NONSPACING ||
                     (step->kind == DT_NORMAL_PREPEND && dt_bpe_uses_joints(bpe)) ||
                     (step->kind == DT_NORMAL_REPLACE && strpbrk(step->from, breaks) == NULL &&
                      strpbrk(step->to, breaks) == NULL);

        if (!plain)
            return false;
    }
    return true;
}

/* Returns whether no word spans a line break between printable ASCII and an ASCII letter. The splits look at white
 * space before a word. With joints only the line break itself counts, but the text must go on after it: where an
 * added token drops the line break, the next line begins a stretch, before which the normalizer can put a mark. */
static bool cuts_lines(const dt_bpe *bpe)
{
    if (dt_bpe_uses_joints(bpe))
        return bpe->joints.ends_at_breaks && !bpe->drops_spaces && !bpe->drops_breaks &&
               keeps_lines(bpe, "\n");
    return dt_split_cuts_lines(&bpe->split) && !bpe->prefix_space && !bpe->drops_spaces &&
           bpe->metaspace.mark == NULL && keeps_lines(bpe, " \t\r\n");
}

/* Cuts between a line break and a letter. A word ends there if the previous line is not blank and
 * the text is split by lines; only an added token could span the cut (reaches_over_breaks). */
size_t dt_bpe_cut(const dt_bpe *bpe, const char *text, size_t length, size_t from)
{
    if (bpe->reaches_over_breaks || !(cuts_lines(bpe) || bpe->separates_lines))
        return length;
    for (size_t at = from < 2 ? 2 : from; at < length; at++) {
        const char *found = memchr(text + at - 1, '\n', length - at);

        if (found == NULL)
            break;
        at = (size_t)(found - text) + 1;
        if (is_letter(text[at]) && text[at - 2] > ' ' && text[at - 2] < 0x7f)
            return at;
    }
    return length;
}

int64_t dt_bpe_vocab(const dt_bpe *bpe)
{
    return bpe->vocab.size;
}

int32_t dt_bpe_end_of_text(const dt_bpe *bpe)
{
    return bpe->end_of_text;
}

int32_t dt_bpe_unknown(const dt_bpe *bpe)
{
    return bpe->unknown;
}

bool dt_bpe_set_end_of_text(dt_bpe *bpe, int64_t id)
{
    size_t length;

    if (dt_vocab_text(&bpe->vocab, id, &length) == NULL)
        return false;
    bpe->end_of_text = (int32_t)id;
    return true;
}

const char *dt_bpe_warnings(const dt_bpe *bpe)
{
    return bpe->warnings.data;
}

dt_bpe_around dt_bpe_get_around(const dt_bpe *bpe)
{
    return (dt_bpe_around){bpe->before.items, bpe->after.items, bpe->before.count,
                           bpe->after.count};
}

bool dt_bpe_drops_first_space(const dt_bpe *bpe)
{
    return bpe->drops_first_space;
}

bool dt_bpe_ignores_limits(const dt_bpe *bpe)
{
    return bpe->ignores_limits;
}

/* Returns the byte of a token such as "<0x0A>", if the tokenizer uses byte fallback; -1 for other
 * tokens. */
static int fallback_byte(const dt_bpe *bpe, int32_t id, const char *text, size_t length)
{
    char digits[3] = {0};
    char *end;
    long byte;

    if (!bpe->byte_fallback || length != 6 || memcmp(text, "<0x", 3) != 0)
        return -1;
    memcpy(digits, text + 3, 2);
    byte = strtol(digits, &end, 16);
    return *end == '\0' && byte >= 0 && bpe->bytes[byte] == id ? (int)byte : -1;
}

void dt_bpe_decode(dt_strbuf *out, const dt_bpe *bpe, int32_t id)
{
    size_t length = 0, mark = bpe->space != NULL ? strlen(bpe->space) : 0;
    const char *text = dt_vocab_text(&bpe->vocab, id, &length);
    int byte = text != NULL ? fallback_byte(bpe, id, text, length) : -1;

    if (text == NULL)
        dt_strbuf_add_str(out, DT_UTF8_REPLACEMENT);
    if (text != NULL && bpe->continues != NULL) {
        dt_wordpiece_decode(out, bpe, text, length);
        return;
    }
    if (byte >= 0)
        dt_strbuf_add_char(out, (char)byte);
    for (size_t at = 0; text != NULL && byte < 0 && at < length;) {
        bool is_space = mark > 0 && length - at >= mark && memcmp(text + at, bpe->space, mark) == 0;

        dt_strbuf_add_char(out, is_space ? ' ' : text[at]);
        at += is_space ? mark : 1;
    }
}

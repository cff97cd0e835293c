#include <string.h>
#include <utf8proc.h>

#include "base/utf8.h"
#include "engine/tokens/bpe_int.h"
#include "engine/tokens/unicode.h"

static void replace(dt_strbuf *out, const char *text, size_t length, const char *from,
                    const char *to)
{
    size_t from_length = strlen(from), to_length = strlen(to), start = 0;

    for (size_t at = 0; at + from_length <= length;) {
        const char *hit = memchr(text + at, from[0], length - from_length + 1 - at);

        if (hit == NULL)
            break;
        at = (size_t)(hit - text);
        if (memcmp(hit, from, from_length) != 0) {
            at++;
            continue;
        }
        dt_strbuf_add(out, text + start, at - start);
        dt_strbuf_add(out, to, to_length);
        at += from_length;
        start = at;
    }
    dt_strbuf_add(out, text + start, length - start);
}

/* Replaces two or more spaces in a row by `to`. */
static void replace_spaces(dt_strbuf *out, const char *text, size_t length, const char *to)
{
    for (const char *end = text + length; text < end;) {
        const char *space = memchr(text, ' ', (size_t)(end - text)), *behind;

        if (space == NULL)
            space = end;
        for (behind = space; behind < end && *behind == ' ';)
            behind++;
        dt_strbuf_add(out, text, (size_t)(space - text));
        if (behind - space > 1)
            dt_strbuf_add_str(out, to);
        else
            dt_strbuf_add(out, space, (size_t)(behind - space));
        text = behind;
    }
}

static bool is_space(const char *at)
{
    size_t used;

    return dt_code_class_of(dt_code_at((const unsigned char *)at, &used)) == DT_CODE_SPACE;
}

static void strip(dt_strbuf *out, const char *text, size_t length, bool left, bool right)
{
    const char *end = text + length, *last;
    size_t used;

    for (; left && text < end && is_space(text); text += used)
        (void)dt_code_at((const unsigned char *)text, &used);
    for (; right && text < end; end = last) {
        for (last = end - 1; last > text && (*last & 0xc0) == 0x80;)
            last--;
        if (!is_space(last))
            break;
    }
    dt_strbuf_add(out, text, (size_t)(end - text));
}

/* Appends the replacement of one character. */
typedef void code_fn(dt_strbuf *out, uint32_t code);

static void add_code(dt_strbuf *out, uint32_t code)
{
    char bytes[DT_UTF8_MAX];

    dt_strbuf_add(out, bytes, dt_utf8_encode(bytes, code));
}

/* Appends the lower case of a code point. Only U+0130 becomes two code points: an i and a dot
 * above. */
static void add_lower(dt_strbuf *out, uint32_t code)
{
    if (code == 0x130)
        dt_strbuf_add_str(out, "i\xcc\x87");
    else
        add_code(out, (uint32_t)utf8proc_tolower((utf8proc_int32_t)code));
}

static void add_unless_mark(dt_strbuf *out, uint32_t code)
{
    if (dt_code_class_of(code) != DT_CODE_MARK)
        add_code(out, code);
}

/* Applies SentencePiece's "nmt" rules: drops control characters, and turns all kinds of space into
 * one. */
static void add_nmt(dt_strbuf *out, uint32_t code)
{
    static const uint32_t spaces[] = {'\t',   '\n',   '\f',   '\r',   0x1680,
                                      0x200b, 0x200c, 0x200d, 0x200e, 0x200f,
                                      0x2028, 0x2029, 0x2581, 0xfeff, 0xfffd};

    for (size_t i = 0; i < sizeof(spaces) / sizeof(spaces[0]); i++)
        if (code == spaces[i]) {
            dt_strbuf_add_char(out, ' ');
            return;
        }
    if ((code >= ' ' && code != 0x7f && code != 0x8f && code != 0x9f) || code == 0)
        add_code(out, code);
}

static void each_code(dt_strbuf *out, const char *text, size_t length, code_fn *add)
{
    const unsigned char *at = (const unsigned char *)text, *end = at + length;
    size_t used;

    for (; at < end; at += used) {
        uint32_t code = dt_code_at(at, &used);

        add(out, code);
    }
}

static dt_status apply(dt_strbuf *out, const dt_normal_step *step, const char *text, size_t length,
                       bool begins, dt_error *err)
{
    switch (step->kind) {
    case DT_NORMAL_FORM:
        return dt_form_add(out, step->form, text, length, err);
    case DT_NORMAL_PREPEND:
        if (length > 0 && begins)
            dt_strbuf_add_str(out, step->to);
        dt_strbuf_add(out, text, length);
        break;
    case DT_NORMAL_REPLACE:
        replace(out, text, length, step->from, step->to);
        break;
    case DT_NORMAL_REPLACE_SPACES:
        replace_spaces(out, text, length, step->to);
        break;
    case DT_NORMAL_STRIP:
        strip(out, text, length, step->left, step->right);
        break;
    case DT_NORMAL_STRIP_ACCENTS:
        each_code(out, text, length, add_unless_mark);
        break;
    case DT_NORMAL_LOWERCASE:
        each_code(out, text, length, add_lower);
        break;
    case DT_NORMAL_NMT:
        each_code(out, text, length, add_nmt);
        break;
    case DT_NORMAL_CHARSMAP:
        dt_charsmap_add(out, step->charsmap, text, length);
        break;
    }
    return DT_OK;
}

dt_status dt_bpe_normalize(dt_strbuf *out, const dt_bpe *bpe, const char *text, size_t length,
                           bool begins, dt_error *err)
{
    size_t most = (64 << 20) + 64 * length;
    dt_status st = DT_OK;
    dt_strbuf made[2];

    dt_strbuf_init(&made[0]);
    dt_strbuf_init(&made[1]);
    if (bpe->step_count == 0)
        dt_strbuf_add(out, text, length);
    for (int i = 0; i < bpe->step_count; i++) {
        const dt_normal_step *step = &bpe->steps[i];
        dt_strbuf *next = i + 1 < bpe->step_count ? &made[i % 2] : out;

        if (step->kind == DT_NORMAL_REPLACE &&
            length / strlen(step->from) > most / (strlen(step->to) + 1))
            DT_THROW(err, DT_ERR_UNSUPPORTED,
                     "'normalizer': Replace would make the text more than 64 times as long");
        if (next != out)
            dt_strbuf_reset(next);
        DT_TRY(apply(next, step, text, length, begins, err));
        text = next->data;
        length = next->length;
    }
out:
    dt_strbuf_release(&made[0]);
    dt_strbuf_release(&made[1]);
    return st;
}

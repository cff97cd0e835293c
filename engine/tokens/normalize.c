#include <string.h>

#include "engine/tokens/bpe_int.h"
#include "engine/tokens/nfc.h"

#include "base/banned.h"

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

static dt_status apply(dt_strbuf *out, const dt_normal_step *step, const char *text, size_t length,
                       dt_error *err)
{
    switch (step->kind) {
    case DT_NORMAL_NFC:
        if (!dt_nfc_is(text, length))
            return dt_nfc_add(out, text, length, err);
        dt_strbuf_add(out, text, length);
        break;
    case DT_NORMAL_PREPEND:
        if (length > 0)
            dt_strbuf_add_str(out, step->to);
        dt_strbuf_add(out, text, length);
        break;
    case DT_NORMAL_REPLACE:
        replace(out, text, length, step->from, step->to);
        break;
    }
    return DT_OK;
}

dt_status dt_bpe_normalize(dt_strbuf *out, const dt_bpe *bpe, const char *text, size_t length,
                           dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf now, next, empty;

    dt_strbuf_init(&now);
    dt_strbuf_init(&next);
    dt_strbuf_add(&now, text, length);
    for (int i = 0; i < bpe->step_count; i++) {
        dt_strbuf_reset(&next);
        DT_TRY(apply(&next, &bpe->steps[i], now.data, now.length, err));
        empty = now;
        now = next;
        next = empty;
    }
    dt_strbuf_add(out, now.data, now.length);
out:
    dt_strbuf_release(&now);
    dt_strbuf_release(&next);
    return st;
}

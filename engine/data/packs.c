#include "engine/data/packs.h"

#include <stdlib.h>
#include <string.h>

#define AT_ONCE ((int64_t)1 << 14) /* tokens read from the stream at once */

typedef struct packing {
    dt_packs *out;
    int64_t room;               /* capacity of out->starts */
    int64_t tokens;             /* T: maximum tokens of a sequence */
    int64_t sequence, document; /* start of the current sequence and of the current document */
} packing;

/* Add the sequence that starts where the last one ends. */
static dt_status add(packing *p, int64_t end, dt_error *err)
{
    dt_packs *out = p->out;
    int64_t *larger;

    if (out->count + 2 > p->room) {
        larger = realloc(out->starts, (size_t)p->room * 2 * sizeof(*larger));
        if (larger == NULL)
            return DT_FAIL(err, DT_ERR_NOMEM, "no memory to pack %lld sequences",
                           (long long)out->count);
        out->starts = larger;
        p->room *= 2;
    }
    out->starts[++out->count] = end;
    p->sequence = end;
    return DT_OK;
}

/* Place the document that ends before token `end` in the sequence where it fits. */
static dt_status place(packing *p, int64_t end, dt_error *err)
{
    dt_status st = DT_OK;

    if (end - p->sequence > p->tokens && p->sequence < p->document)
        DT_TRY(add(p, p->document, err));
    while (end - p->sequence > p->tokens)
        DT_TRY(add(p, p->sequence + p->tokens, err));
    p->document = end;
out:
    return st;
}

dt_status dt_packs_make(dt_packs *out, const dt_token_stream *stream, int64_t first, int64_t count,
                        int64_t tokens, int32_t end, dt_error *err)
{
    packing p = {.out = out, .room = 64, .tokens = tokens, .sequence = first, .document = first};
    int32_t *read = malloc((size_t)AT_ONCE * sizeof(*read));
    dt_status st = DT_OK;

    *out = (dt_packs){.starts = malloc((size_t)p.room * sizeof(*out->starts))};
    if (read == NULL || out->starts == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory to pack documents");
    out->starts[0] = first;
    for (int64_t at = 0, some; at < count; at += some) {
        some = count - at < AT_ONCE ? count - at : AT_ONCE;
        dt_token_stream_read(read, stream, first + at, some);
        for (int64_t i = 0; i < some; i++)
            if (read[i] == end)
                DT_TRY(place(&p, first + at + i + 1, err));
    }
    DT_TRY(place(&p, first + count, err)); /* text after the last end of a document */
    if (p.sequence < first + count)
        DT_TRY(add(&p, first + count, err));
out:
    free(read);
    return st;
}

void dt_packs_release(dt_packs *packs)
{
    free(packs->starts);
    memset(packs, 0, sizeof(*packs));
}

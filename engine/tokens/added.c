#include "engine/tokens/added.h"

#include <stdlib.h>
#include <string.h>

#include "engine/tokens/unicode.h"

static dt_status add_node(int32_t *out, dt_added *added, dt_error *err)
{
    if (added->count == added->capacity) {
        size_t wider = added->capacity == 0 ? 64 : added->capacity * 2;
        dt_added_token *nodes =
            wider <= INT32_MAX ? realloc(added->nodes, wider * sizeof(*nodes)) : NULL;

        if (nodes == NULL)
            return DT_FAIL(err, DT_ERR_NOMEM, "no memory for added tokens");
        added->nodes = nodes;
        added->capacity = wider;
    }
    added->nodes[added->count] = (dt_added_token){.id = -1};
    *out = (int32_t)added->count++;
    return DT_OK;
}

dt_status dt_added_init(dt_added *out, dt_error *err)
{
    dt_status st = DT_OK;
    int32_t root;

    *out = (dt_added){0};
    DT_TRY(dt_pairs_init(&out->edges, 64, err));
    DT_TRY(add_node(&root, out, err));
out:
    return st;
}

void dt_added_release(dt_added *added)
{
    dt_pairs_release(&added->edges);
    free(added->nodes);
    *added = (dt_added){0};
}

bool dt_added_is_empty(const dt_added *added)
{
    return added->count == 1; /* the root */
}

dt_status dt_added_put(dt_added *added, const char *text, size_t length,
                       const dt_added_token *token, dt_error *err)
{
    dt_status st = DT_OK;
    int32_t node = 0, next;

    DT_ASSERT(length > 0);
    if (memchr(added->first, text[0], (size_t)added->first_count) == NULL)
        added->first[added->first_count++] = (unsigned char)text[0];
    for (size_t i = 0; i < length; i++) {
        const dt_pair *edge = dt_pairs_get(&added->edges, node, (unsigned char)text[i]);

        next = edge->id;
        if (edge->rank == DT_PAIR_NONE) {
            DT_TRY(add_node(&next, added, err));
            DT_TRY(dt_pairs_put(&added->edges, node, (unsigned char)text[i], 0, next, err));
        }
        node = next;
    }
    added->nodes[node] = *token;
out:
    return st;
}

/* Returns the length of the longest added token at `text`; 0 if there is none. */
static size_t longest(dt_added_token *token, const dt_added *added, const unsigned char *text,
                      size_t length)
{
    size_t best = 0;
    int32_t node = 0;

    for (size_t i = 0; i < length; i++) {
        const dt_pair *edge = dt_pairs_get(&added->edges, node, text[i]);

        if (edge->rank == DT_PAIR_NONE)
            break;
        node = edge->id;
        if (added->nodes[node].id >= 0) {
            *token = added->nodes[node];
            best = i + 1;
        }
    }
    return best;
}

static size_t spaces_before(const unsigned char *text, size_t from, size_t at)
{
    size_t used;

    while (at > from) {
        size_t start = at - 1;

        while (start > from && (text[start] & 0xc0) == 0x80)
            start--;
        if (dt_code_class_of(dt_code_at(text + start, &used)) != DT_CODE_SPACE)
            break;
        at = start;
    }
    return at;
}

static size_t spaces_behind(const unsigned char *text, size_t at, size_t length)
{
    size_t used;

    for (; at < length; at += used)
        if (dt_code_class_of(dt_code_at(text + at, &used)) != DT_CODE_SPACE)
            break;
    return at;
}

/* Returns the first byte at or after text[from] that a token begins with; `length` if there is none. Each byte is
 * searched for only as far as another was found, and in windows, so that a rare one costs little. */
static size_t next_first(const dt_added *added, const unsigned char *text, size_t length,
                         size_t from)
{
    enum { WINDOW = 1024 };

    if (added->first_count == 0)
        return length;
    for (size_t at = from; at < length; at += WINDOW) {
        size_t window = length - at < WINDOW || added->first_count == 1 ? length - at : WINDOW;
        size_t most = window;

        for (int i = 0; i < added->first_count; i++) {
            const unsigned char *found = memchr(text + at, added->first[i], most);

            if (found != NULL)
                most = (size_t)(found - text - at);
        }
        if (most < window)
            return at + most;
        if (window == length - at)
            return length;
    }
    return length;
}

bool dt_added_next(const dt_added *added, const char *text, size_t length, size_t from,
                   size_t *start, size_t *end, int32_t *id)
{
    const unsigned char *bytes = (const unsigned char *)text;
    dt_added_token token;

    for (size_t at = from; (at = next_first(added, bytes, length, at)) < length; at++) {
        size_t found = longest(&token, added, bytes + at, length - at);

        if (found == 0)
            continue;
        *start = token.lstrip ? spaces_before(bytes, from, at) : at;
        *end = token.rstrip ? spaces_behind(bytes, at + found, length) : at + found;
        *id = token.id;
        return true;
    }
    return false;
}

/* text: strings that know the origin of their bytes: building, cutting, searching. */
#include <string.h>

#include "base/jinja/jinja_int.h"

/* --- building */

dt_status dt_sink_add(dt_jinja_run *run, dt_jinja_sink *sink, const char *data, size_t length,
                      uint32_t origin)
{
    if (length == 0 && origin == DT_JINJA_TEMPLATE)
        return DT_OK;
    if ((int64_t)length > run->bytes)
        return dt_jinja_fail(run, "the template takes too much memory");
    sink->data =
        dt_jinja_room(run, sink->data, (int64_t)(sink->length + length), &sink->capacity, 1);
    if (length > 0)
        memcpy(sink->data + sink->length, data, length);
    sink->length += length;
    if (sink->piece_count == 0 || sink->pieces[sink->piece_count - 1].origin != origin) {
        sink->pieces = dt_jinja_room(run, sink->pieces, (int64_t)sink->piece_count + 1,
                                     &sink->piece_capacity, sizeof(*sink->pieces));
        sink->pieces[sink->piece_count++].origin = origin;
    }
    sink->pieces[sink->piece_count - 1].end = (uint32_t)sink->length;
    return DT_OK;
}

dt_status dt_sink_add_part(dt_jinja_run *run, dt_jinja_sink *sink, const dt_jinja_text *text,
                           size_t from, size_t to)
{
    dt_status st = DT_OK;
    size_t start = 0;

    if (text->piece_count == 0)
        return dt_sink_add(run, sink, text->data + from, to - from, text->origin);
    for (size_t i = 0; i < text->piece_count && start <= to; start = text->pieces[i++].end) {
        size_t end = text->pieces[i].end, first = start > from ? start : from;
        size_t last = end < to ? end : to;

        if (first < last || (start == end && start >= from)) /* also an empty piece */
            DT_TRY(
                dt_sink_add(run, sink, text->data + first, last - first, text->pieces[i].origin));
    }
out:
    return st;
}

dt_status dt_sink_add_text(dt_jinja_run *run, dt_jinja_sink *sink, const dt_jinja_text *text)
{
    return dt_sink_add_part(run, sink, text, 0, text->length);
}

static uint32_t count_codes(const char *data, size_t length)
{
    uint32_t count = 0;

    for (size_t i = 0; i < length; i++)
        count += ((unsigned char)data[i] & 0xc0) != 0x80;
    return count;
}

const dt_jinja_text *dt_sink_text(dt_jinja_run *run, const dt_jinja_sink *sink)
{
    dt_jinja_text *text = dt_jinja_alloc(run, sizeof(*text));

    text->data = sink->data != NULL ? sink->data : "";
    text->length = (uint32_t)sink->length;
    text->codes = count_codes(text->data, sink->length);
    if (sink->piece_count == 1) {
        text->origin = sink->pieces[0].origin;
    } else {
        text->pieces = sink->pieces;
        text->piece_count = (uint32_t)sink->piece_count;
    }
    return text;
}

void dt_sink_mark(dt_jinja_run *run, dt_jinja_sink *sink, size_t from, uint32_t mark)
{
    size_t first = 0, start;

    while (first < sink->piece_count && sink->pieces[first].end <= from)
        first++;
    if (first == sink->piece_count)
        return;
    start = first > 0 ? sink->pieces[first - 1].end : 0;
    if (start < from) { /* the piece is cut in two */
        sink->pieces = dt_jinja_room(run, sink->pieces, (int64_t)sink->piece_count + 1,
                                     &sink->piece_capacity, sizeof(*sink->pieces));
        memmove(sink->pieces + first + 1, sink->pieces + first,
                (sink->piece_count - first) * sizeof(*sink->pieces));
        sink->piece_count++;
        sink->pieces[first++].end = (uint32_t)from;
    }
    for (size_t i = first; i < sink->piece_count; i++)
        sink->pieces[i].origin |= mark;
}

const dt_jinja_text *dt_jinja_new_text(dt_arena *arena, const char *data, size_t length,
                                       uint32_t origin)
{
    dt_jinja_text *text = dt_arena_alloc(arena, sizeof(*text));

    *text = (dt_jinja_text){.data = data, .length = (uint32_t)length, .origin = origin};
    text->codes = count_codes(data, length);
    return text;
}

/* --- names */

dt_jinja_name dt_jinja_intern(dt_jinja *jinja, const char *data, size_t length, bool add)
{
    for (int64_t i = 0; i < jinja->name_count; i++)
        if (jinja->names[i]->length == length && memcmp(jinja->names[i]->data, data, length) == 0)
            return jinja->names[i];
    if (!add)
        return NULL;
    jinja->names = dt_arena_array_room(&jinja->arena, jinja->names, jinja->name_count + 1,
                                       &jinja->name_capacity, sizeof(dt_jinja_text *));
    jinja->names[jinja->name_count] = dt_jinja_new_text(
        &jinja->arena, dt_arena_strndup(&jinja->arena, data, length), length, DT_JINJA_TEMPLATE);
    return jinja->names[jinja->name_count++];
}

/* --- cutting */

/* Returns the index of the piece that has the byte. */
static size_t piece_at(const dt_jinja_text *text, size_t at)
{
    size_t low = 0, high = text->piece_count - 1;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (text->pieces[middle].end > at)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

uint32_t dt_text_origin_at(const dt_jinja_text *text, size_t at)
{
    return text->piece_count == 0 ? text->origin : text->pieces[piece_at(text, at)].origin;
}

const dt_jinja_text *dt_text_part(dt_jinja_run *run, const dt_jinja_text *text, size_t from,
                                  size_t to)
{
    size_t first, count = 1;
    dt_jinja_piece *pieces;
    dt_jinja_text *part;

    if (from == 0 && to == text->length)
        return text;
    part = dt_jinja_alloc(run, sizeof(*part));
    part->data = text->data + from;
    part->length = (uint32_t)(to - from);
    part->codes =
        text->codes == text->length ? part->length : count_codes(part->data, part->length);
    if (text->piece_count == 0 || from == to) {
        part->origin = text->piece_count == 0 ? text->origin : DT_JINJA_TEMPLATE;
        return part;
    }
    first = piece_at(text, from);
    while (text->pieces[first + count - 1].end < to)
        count++;
    if (count == 1) {
        part->origin = text->pieces[first].origin;
        return part;
    }
    pieces = dt_jinja_alloc_array(run, count, sizeof(*pieces));
    for (size_t i = 0; i < count; i++) {
        pieces[i] = text->pieces[first + i];
        pieces[i].end = (uint32_t)((pieces[i].end < to ? pieces[i].end : to) - from);
    }
    part->pieces = pieces;
    part->piece_count = (uint32_t)count;
    return part;
}

size_t dt_text_byte_of(const dt_jinja_text *text, int64_t index)
{
    size_t at = 0;

    if (text->codes == text->length)
        return index < (int64_t)text->length ? (size_t)index : text->length;
    for (; at < text->length; at++)
        if (((unsigned char)text->data[at] & 0xc0) != 0x80 && index-- == 0)
            break;
    return at;
}

int64_t dt_text_index_of(const dt_jinja_text *text, size_t byte)
{
    return text->codes == text->length ? (int64_t)byte : count_codes(text->data, byte);
}

/* --- searching */

int64_t dt_text_find(const dt_jinja_text *text, const dt_jinja_text *part, size_t from, size_t to)
{
    const char *found;

    if (from > to)
        return -1;
    if (part->length == 0)
        return (int64_t)from;
    found = memmem(text->data + from, to - from, part->data, part->length);
    return found != NULL ? found - text->data : -1;
}

int64_t dt_text_find_last(const dt_jinja_text *text, const dt_jinja_text *part, size_t from,
                          size_t to)
{
    if (from > to || to - from < part->length)
        return -1;
    for (size_t at = to - part->length;; at--) {
        if (memcmp(text->data + at, part->data, part->length) == 0)
            return (int64_t)at;
        if (at == from)
            return -1;
    }
}

bool dt_text_equal(const dt_jinja_text *a, const dt_jinja_text *b)
{
    return a == b || (a->length == b->length && memcmp(a->data, b->data, a->length) == 0);
}

/* The order of bytes is the order of code points. */
int dt_text_compare(const dt_jinja_text *a, const dt_jinja_text *b)
{
    size_t least = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->data, b->data, least);

    return order != 0 ? order : (a->length > b->length) - (a->length < b->length);
}

bool dt_text_is(const dt_jinja_text *text, const char *literal)
{
    return strlen(literal) == text->length && memcmp(text->data, literal, text->length) == 0;
}

/* --- white space */

size_t dt_space_at(const char *data, size_t length, size_t at)
{
    const unsigned char *c = (const unsigned char *)data + at;
    size_t left = length - at;

    if (c[0] < 0x80)
        return (c[0] >= '\t' && c[0] <= '\r') || (c[0] >= 0x1c && c[0] <= ' ') ? 1 : 0;
    if (left >= 2 && c[0] == 0xc2)
        return c[1] == 0x85 || c[1] == 0xa0 ? 2 : 0;
    if (left < 3)
        return 0;
    if (c[0] == 0xe1)
        return c[1] == 0x9a && c[2] == 0x80 ? 3 : 0; /* U+1680 */
    if (c[0] == 0xe2 && c[1] == 0x80)                /* U+2000 to U+200A, U+2028, U+2029, U+202F */
        return c[2] <= 0x8a || c[2] == 0xa8 || c[2] == 0xa9 || c[2] == 0xaf ? 3 : 0;
    if (c[0] == 0xe2)
        return c[1] == 0x81 && c[2] == 0x9f ? 3 : 0;             /* U+205F */
    return c[0] == 0xe3 && c[1] == 0x80 && c[2] == 0x80 ? 3 : 0; /* U+3000 */
}

size_t dt_space_before(const char *data, size_t at)
{
    size_t from = at > 0 ? at - 1 : 0;

    if (at == 0)
        return 0;
    while (from > 0 && at - from < 3 && ((unsigned char)data[from] & 0xc0) == 0x80)
        from--;
    return dt_space_at(data, at, from) == at - from ? at - from : 0;
}

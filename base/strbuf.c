/* strbuf: a string that grows, and references to the environment in a text. */
#include "base/strbuf.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

/* --- the string */

#define FORMAT_ROOM 64 /* most formatted texts fit into this room, and are formatted only once */

static char empty[1]; /* the data of an unused buffer; never written */

void dt_strbuf_init(dt_strbuf *buf)
{
    buf->data = empty;
    buf->length = buf->capacity = 0;
}

void dt_strbuf_release(dt_strbuf *buf)
{
    if (buf->capacity != 0)
        free(buf->data);
    dt_strbuf_init(buf);
}

void dt_strbuf_reset(dt_strbuf *buf)
{
    buf->length = 0;
    if (buf->capacity != 0)
        buf->data[0] = '\0';
}

static void reserve(dt_strbuf *buf, size_t extra)
{
    size_t need = buf->length + extra + 1, capacity = buf->capacity;

    DT_ASSERT(extra < SIZE_MAX / 4);
    if (need <= capacity)
        return;
    capacity = capacity < 64 ? 64 : capacity * 2;
    if (capacity < need)
        capacity = need;
    buf->data = dt_realloc(buf->capacity != 0 ? buf->data : NULL, capacity, 1);
    buf->capacity = capacity;
}

char *dt_strbuf_extend(dt_strbuf *buf, size_t length)
{
    char *at;

    reserve(buf, length);
    at = buf->data + buf->length;
    buf->length += length;
    buf->data[buf->length] = '\0';
    return at;
}

void dt_strbuf_add(dt_strbuf *buf, const void *bytes, size_t length)
{
    char *at = dt_strbuf_extend(buf, length);

    if (length != 0)
        memcpy(at, bytes, length);
}

void dt_strbuf_add_str(dt_strbuf *buf, const char *text)
{
    dt_strbuf_add(buf, text, strlen(text));
}

void dt_strbuf_add_char(dt_strbuf *buf, char c)
{
    reserve(buf, 1);
    buf->data[buf->length++] = c;
    buf->data[buf->length] = '\0';
}

void dt_strbuf_add_fmt(dt_strbuf *buf, const char *fmt, ...)
{
    size_t room;
    va_list args;
    int length;

    reserve(buf, FORMAT_ROOM);
    room = buf->capacity - buf->length;
    va_start(args, fmt);
    length = vsnprintf(buf->data + buf->length, room, fmt, args);
    va_end(args);
    DT_ASSERT(length >= 0);
    if ((size_t)length >= room) { /* formats again, with enough room */
        reserve(buf, (size_t)length);
        va_start(args, fmt);
        vsnprintf(buf->data + buf->length, (size_t)length + 1, fmt, args);
        va_end(args);
    }
    buf->length += (size_t)length;
}

void dt_strbuf_remove_front(dt_strbuf *buf, size_t length)
{
    DT_ASSERT(length <= buf->length);
    if (length == 0)
        return;
    memmove(buf->data, buf->data + length, buf->length - length + 1);
    buf->length -= length;
}

char *dt_strbuf_detach(dt_strbuf *buf)
{
    char *text;

    reserve(buf, 0);
    buf->data[buf->length] = '\0';
    text = buf->data;
    dt_strbuf_init(buf);
    return text;
}

/* --- references to the environment */

static dt_status expand_one(dt_strbuf *out, const char *reference, size_t length, dt_error *err)
{
    const char *fallback = memmem(reference, length, ":-", 2), *value;
    size_t name_length = fallback != NULL ? (size_t)(fallback - reference) : length;
    char name[128];

    if (name_length == 0 || name_length >= sizeof(name))
        return DT_FAIL(err, DT_ERR_RECIPE, "'${env:...}' does not name a variable");
    memcpy(name, reference, name_length);
    name[name_length] = '\0';
    value = getenv(name);
    if (value != NULL && value[0] != '\0')
        dt_strbuf_add_str(out, value);
    else if (fallback != NULL)
        dt_strbuf_add(out, fallback + 2, length - name_length - 2);
    else
        return DT_FAIL(err, DT_ERR_RECIPE,
                       "the variable '%s' is not set where the run is supervised: export it before "
                       "'dtrun launch'",
                       name);
    return DT_OK;
}

dt_status dt_env_expand(dt_strbuf *out, const char *text, dt_error *err)
{
    static const char opening[] = "${env:";
    const char *found, *end;
    dt_status st = DT_OK;

    dt_strbuf_reset(out);
    while ((found = strstr(text, opening)) != NULL) {
        dt_strbuf_add(out, text, (size_t)(found - text));
        found += strlen(opening);
        end = strchr(found, '}');
        if (end == NULL)
            DT_THROW(err, DT_ERR_RECIPE, "'${env:' has no '}'");
        DT_TRY(expand_one(out, found, (size_t)(end - found), err));
        text = end + 1;
    }
    dt_strbuf_add_str(out, text);
out:
    return st;
}

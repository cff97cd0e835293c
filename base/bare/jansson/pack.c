/* json_pack: values as a format says. A bad one is noted and the rest is read all the same, so that
 * every reference that was handed over is taken. A bad format is a bug. */
#include <stdarg.h>
#include <string.h>

#include "base/bare/jansson/jansson_int.h"
#include "base/error.h"

#include "base/banned.h"

typedef struct packer {
    const char *format;
    va_list args;
    bool bad;
} packer;

static json_t *pack_value(packer *p);

/* The next letter of the format; 0 at its end. */
static char next(packer *p)
{
    p->format += strspn(p->format, " \t\n,:");
    return *p->format != '\0' ? *p->format++ : '\0';
}

static bool skip(packer *p, char letter)
{
    if (*p->format != letter)
        return false;
    p->format++;
    return true;
}

static json_t *pack_string(packer *p)
{
    const char *text = va_arg(p->args, const char *);

    if (skip(p, '%'))
        return json_stringn(text, va_arg(p->args, size_t));
    if (skip(p, '?') && text == NULL)
        return json_null();
    return json_string(text);
}

static json_t *pack_array(packer *p)
{
    json_t *array = json_array();

    while (next(p) != ']') {
        p->format--;
        if (json_array_append_new(array, pack_value(p)) != 0)
            p->bad = true;
    }
    return array;
}

static json_t *pack_object(packer *p)
{
    json_t *object = json_object();
    char letter;

    while ((letter = next(p)) != '}') {
        const char *key = va_arg(p->args, const char *);

        DT_ASSERT(letter == 's');
        if (json_object_set_new(object, key, pack_value(p)) != 0)
            p->bad = true;
    }
    return object;
}

static json_t *pack_value(packer *p)
{
    switch (next(p)) {
    case '{':
        return pack_object(p);
    case '[':
        return pack_array(p);
    case 's':
        return pack_string(p);
    case 'n':
        return json_null();
    case 'b':
        return json_boolean(va_arg(p->args, int));
    case 'i':
        return json_integer(va_arg(p->args, int));
    case 'I':
        return json_integer(va_arg(p->args, json_int_t));
    case 'f':
        return json_real(va_arg(p->args, double));
    case 'o':
        return va_arg(p->args, json_t *);
    case 'O':
        return json_incref(va_arg(p->args, json_t *));
    default:
        DT_ASSERT(!"a format that is not in jansson.h");
        return NULL;
    }
}

json_t *json_pack(const char *format, ...)
{
    packer p = {.format = format};
    json_t *json;

    va_start(p.args, format);
    json = pack_value(&p);
    va_end(p.args);
    DT_ASSERT(next(&p) == '\0');
    if (!p.bad)
        return json;
    json_decref(json);
    return NULL;
}

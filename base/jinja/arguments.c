/* arguments: the arguments of calls, in the order of parameters. */
#include <string.h>

#include "base/jinja/jinja_int.h"

/* Returns the place of a name in "old, new, count"; -1: not there. */
static int place_of(const char *params, const dt_jinja_text *name)
{
    int place = 0;

    for (const char *at = params; *at != '\0'; place++) {
        size_t length = strcspn(at, ",");

        if (length == name->length && memcmp(at, name->data, length) == 0)
            return place;
        at += length;
        at += strspn(at, ", ");
    }
    return -1;
}

static int count_params(const char *params)
{
    int count = params[0] != '\0';

    for (; *params != '\0'; params++)
        count += *params == ',';
    return count;
}

dt_status dt_jinja_bind(dt_jinja_value out[DT_JINJA_PARAMS], const dt_jinja_run *run,
                        const dt_jinja_call *call, const char *what, const char *params, int least)
{
    int most = count_params(params);

    if (call->count > most)
        return dt_jinja_fail(run, "'%s' takes at most %d arguments", what, most);
    for (int i = 0; i < DT_JINJA_PARAMS; i++)
        out[i] = i < call->count ? call->positional[i] : dt_jinja_missing();
    for (int64_t i = 0; i < call->keyword_count; i++) {
        const dt_jinja_text *name = dt_text_of(call->keywords[i].key);
        int place = place_of(params, name);

        if (place < 0 || out[place].kind != DT_JINJA_MISSING)
            return dt_jinja_fail(run, "'%s' got an unexpected argument '%.*s'", what,
                                 name->length < 40 ? (int)name->length : 40, name->data);
        out[place] = call->keywords[i].value;
    }
    for (int i = 0; i < least; i++)
        if (out[i].kind == DT_JINJA_MISSING)
            return dt_jinja_fail(run, "'%s' misses an argument: it takes (%s)", what, params);
    return DT_OK;
}

dt_status dt_call_integer(int64_t *out, const dt_jinja_run *run, dt_jinja_value argument,
                          int64_t fallback, const char *what)
{
    *out = fallback;
    if (argument.kind == DT_JINJA_MISSING || argument.kind == DT_JINJA_NONE)
        return DT_OK;
    if (argument.kind == DT_JINJA_UNDEFINED)
        return dt_value_refuse_undefined(run, argument);
    if (argument.kind != DT_JINJA_INTEGER && argument.kind != DT_JINJA_BOOL)
        return dt_jinja_fail(run, "'%s': a %s cannot be interpreted as an integer", what,
                             dt_value_type(argument));
    *out = argument.kind == DT_JINJA_BOOL ? argument.as.truth : argument.as.integer;
    return DT_OK;
}

dt_status dt_call_text(const dt_jinja_text **out, const dt_jinja_run *run, dt_jinja_value argument,
                       const dt_jinja_text *fallback, const char *what)
{
    *out = fallback;
    if (argument.kind == DT_JINJA_STRING)
        *out = dt_text_of(argument);
    else if (argument.kind == DT_JINJA_UNDEFINED)
        return dt_value_refuse_undefined(run, argument);
    else if (argument.kind != DT_JINJA_MISSING && argument.kind != DT_JINJA_NONE)
        return dt_jinja_fail(run, "'%s': expected str, got %s", what, dt_value_type(argument));
    return DT_OK;
}

#include "base/env_expand.h"

#include <stdlib.h>
#include <string.h>

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

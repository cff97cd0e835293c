#include "recipes/version.h"

#include <string.h>

#include "base/log.h"
#include "recipes/text.h"

#include "base/banned.h"

dt_status dt_version_read(int64_t *out, const json_t *document, const char *key, int64_t newest,
                          const char *where, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_json_get_int_or(out, document, key, 1, where, err));
    if (*out < 1)
        DT_THROW(err, DT_ERR_CORRUPT, "%s: '%s' is %lld: versions begin at 1", where, key,
                 (long long)*out);
    if (*out > newest)
        DT_THROW(
            err, DT_ERR_UNSUPPORTED,
            "%s: a newer dtrun wrote it (version %lld, this program knows up to %lld): use that "
            "dtrun",
            where, (long long)*out, (long long)newest);
out:
    return st;
}

static bool is_needed(const json_t *document, const char *path)
{
    const json_t *needs = json_object_get(document, DT_VERSION_NEEDS);

    for (size_t i = 0; i < json_array_size(needs); i++) {
        const char *name = json_string_value(json_array_get(needs, i));

        if (name != NULL && strcmp(name, path) == 0)
            return true;
    }
    return false;
}

dt_status dt_version_unknown_key(const json_t *document, const char *path, const char *where,
                                 dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf shown;

    dt_strbuf_init(&shown);
    dt_text_show(&shown, path);
    if (is_needed(document, path))
        DT_THROW(
            err, DT_ERR_UNSUPPORTED,
            "%s: a newer dtrun wrote %s, without which it means something else: use that dtrun",
            where, shown.data);
    dt_log_warn("%s: unknown key %s is passed over: a newer dtrun wrote it, or it is damaged",
                where, shown.data);
out:
    dt_strbuf_release(&shown);
    return st;
}

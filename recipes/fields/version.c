#include "recipes/fields/version.h"

#include "recipes/fields/text.h"

dt_status dt_version_check(const json_t *document, const char *key, int64_t version,
                           const char *where, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t found;

    DT_TRY(dt_json_get_int_or(&found, document, key, 1, where, err));
    if (found < 1)
        DT_THROW(err, DT_ERR_CORRUPT, "%s: '%s' is %lld (expected a version, from 1)", where, key,
                 (long long)found);
    if (found != version)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "%s: another dtrun wrote it (version %lld, this program reads version %lld): use "
                 "that dtrun",
                 where, (long long)found, (long long)version);
out:
    return st;
}

dt_status dt_version_unknown_key(const char *path, const char *where, dt_error *err)
{
    dt_strbuf shown;

    dt_strbuf_init(&shown);
    dt_text_show(&shown, path);
    DT_FAIL(err, DT_ERR_CORRUPT, "%s: unknown key %s", where, shown.data);
    dt_strbuf_release(&shown);
    return DT_ERR_CORRUPT;
}

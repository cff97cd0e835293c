#include "store/why.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

#include "base/file.h"
#include "base/strbuf.h"

#define WHY_BYTES ((size_t)8 << 20)

json_t *dt_why_read(const char *folder, int64_t attempt)
{
    json_t *why = NULL;
    char path[PATH_MAX];
    dt_strbuf text;

    snprintf(path, sizeof(path), "%s/attempt-%" PRId64 "/" DT_WHY_FILE, folder, attempt);
    dt_strbuf_init(&text);
    if (dt_file_read(&text, path, WHY_BYTES, NULL) == DT_OK &&
        dt_json_parse(&why, text.data, text.length, path, NULL) == DT_OK && !json_is_object(why)) {
        json_decref(why);
        why = NULL;
    }
    dt_strbuf_release(&text);
    return why;
}

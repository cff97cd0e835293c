/* export_templates: copies the named chat templates of the folder that a run started from into an export. */
#include <dirent.h>
#include <string.h>

#include "base/file.h"
#include "engine/weights/weights_int.h"

#define FOLDER        "additional_chat_templates" /* as transformers saves them */
#define TEMPLATE_MOST ((size_t)16 << 20)

static dt_status copy(const dt_weights_exporter *e, const char *from, const char *name,
                      dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf path, text;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&path, "%s/%s", from, name);
    DT_TRY(dt_file_read(&text, path.data, TEMPLATE_MOST, err));
    dt_strbuf_reset(&path);
    dt_strbuf_add_fmt(&path, "%s/" FOLDER "/%s", e->folder.data, name);
    DT_TRY(dt_file_write_atomic(path.data, text.data, text.length, 0666, err));
out:
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_weights_export_templates(dt_weights_exporter *e, dt_error *err)
{
    const char *from, *into;
    const struct dirent *entry;
    DIR *entries;
    dt_status st = DT_OK;

    if (e->options->origin == NULL)
        return DT_OK;
    from = dt_arena_printf(&e->arena, "%s/" FOLDER, e->options->origin);
    into = dt_arena_printf(&e->arena, "%s/" FOLDER, e->folder.data);
    entries = opendir(from);
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        size_t length = strlen(entry->d_name);

        if (length < 7 || strcmp(entry->d_name + length - 6, ".jinja") != 0)
            continue;
        DT_TRY(dt_file_make_dirs(into, 0777, err));
        DT_TRY(copy(e, from, entry->d_name, err));
    }
out:
    if (entries != NULL)
        closedir(entries);
    return st;
}

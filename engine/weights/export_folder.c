/* export_folder: writes files into the folder of an export, and copies the named chat templates of another folder. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "engine/weights/weights.h"
#include "engine/weights/weights_int.h"

/* Create a file in the folder; the caller owns fd until dt_weights_export_close. */
dt_status dt_weights_export_open(int *fd, dt_weights_exporter *e, const char *name, dt_error *err)
{
    dt_strbuf_reset(&e->path);
    dt_strbuf_add_fmt(&e->path, "%s/%s", e->folder.data, name);
    *fd = open(e->path.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (*fd < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot make '%s': %s", e->path.data, strerror(errno));
    return DT_OK;
}

dt_status dt_weights_export_close(int fd, const dt_weights_exporter *e, dt_error *err)
{
    int failed = fsync(fd);

    if (close(fd) != 0 || failed != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot write '%s': %s", e->path.data, strerror(errno));
    return DT_OK;
}

dt_status dt_weights_export_put(dt_weights_exporter *e, const char *name, const char *bytes,
                                size_t length, dt_error *err)
{
    int fd = -1;
    dt_status st = DT_OK, closed;

    DT_TRY(dt_weights_export_open(&fd, e, name, err));
    st = dt_file_write_all(fd, bytes, length, err);
    closed = dt_weights_export_close(fd, e, st == DT_OK ? err : NULL);
    st = st == DT_OK ? closed : st;
out:
    return st;
}

dt_status dt_weights_export_put_json(dt_weights_exporter *e, const char *name, const json_t *json,
                                     dt_error *err)
{
    dt_strbuf whole, text;
    dt_status st;

    dt_strbuf_init(&whole);
    dt_strbuf_init(&text);
    dt_json_write_pretty(&whole, json);
    dt_json_shorten(&text, whole.data);
    dt_strbuf_add_char(&text, '\n');
    st = dt_weights_export_put(e, name, text.data, text.length, err);
    dt_strbuf_release(&whole);
    dt_strbuf_release(&text);
    return st;
}

/* --- named chat templates */

#define TEMPLATES     "additional_chat_templates" /* NAME.jinja each, as transformers saves them */
#define TEMPLATE_MOST ((size_t)16 << 20)

static dt_status copy_template(const char *from, const char *into, const char *name, mode_t mode,
                               dt_error *err)
{
    dt_strbuf path, text;
    dt_status st = DT_OK;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&path, "%s/%s", from, name);
    DT_TRY(dt_file_read(&text, path.data, TEMPLATE_MOST, err));
    dt_strbuf_reset(&path);
    dt_strbuf_add_fmt(&path, "%s/%s", into, name);
    DT_TRY(dt_file_write_atomic(path.data, text.data, text.length, mode, err));
out:
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_weights_copy_templates(const char *from, const char *into, mode_t folder_mode,
                                    mode_t file_mode, dt_error *err)
{
    dt_strbuf source, target;
    const struct dirent *entry;
    dt_status st = DT_OK;
    DIR *entries;

    dt_strbuf_init(&source);
    dt_strbuf_init(&target);
    dt_strbuf_add_fmt(&source, "%s/" TEMPLATES, from);
    dt_strbuf_add_fmt(&target, "%s/" TEMPLATES, into);
    entries = opendir(source.data);
    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        size_t length = strlen(entry->d_name);

        if (length < 7 || strcmp(entry->d_name + length - 6, ".jinja") != 0)
            continue;
        DT_TRY(dt_file_make_dirs(target.data, folder_mode, err));
        DT_TRY(copy_template(source.data, target.data, entry->d_name, file_mode, err));
    }
out:
    if (entries != NULL)
        closedir(entries);
    dt_strbuf_release(&source);
    dt_strbuf_release(&target);
    return st;
}

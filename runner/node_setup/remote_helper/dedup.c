/* dedup: finds files of a new bundle that another bundle in the cache already has.
 *
 * A new version of dtrun is a new bundle, but CUDA's libraries, which are nearly all of its bytes,
 * rarely change: `receive` links them instead of storing them again. The header of each bundle is
 * kept in its file `files`.
 */
#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "runner/node_setup/remote_helper/remote_helper.h"

/* Returns true if the other bundle's header lists the same file, and the file exists with the right
 * size. Its content is not read. */
static bool has(const json_t *files, const json_t *wanted, const char *bundle)
{
    const char *name = json_string_value(json_object_get(wanted, "name"));
    const json_t *file;
    struct stat info;
    dt_strbuf path;
    bool same = false;
    size_t i;

    json_array_foreach((json_t *)files, i, file)
        same = same ||
               (json_equal(json_object_get(file, "name"), json_object_get(wanted, "name")) &&
                json_equal(json_object_get(file, "bytes"), json_object_get(wanted, "bytes")) &&
                json_equal(json_object_get(file, "digest"), json_object_get(wanted, "digest")));
    if (!same || name == NULL)
        return false;
    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/%s", bundle, name);
    same = lstat(path.data, &info) == 0 && S_ISREG(info.st_mode) &&
           info.st_size == json_integer_value(json_object_get(wanted, "bytes"));
    dt_strbuf_release(&path);
    return same;
}

/* Prints "NAME BUNDLE" for each file that the bundle has; told[i]: file i was already found in another bundle. */
static void look(bool *told, const json_t *wanted, const char *bundles, const char *bundle)
{
    json_t *header = NULL;
    const json_t *file;
    dt_strbuf path;
    size_t i;

    dt_strbuf_init(&path);
    dt_strbuf_add_fmt(&path, "%s/%s/" DT_REMOTE_HELPER_FILES, bundles, bundle);
    if (dt_json_read(&header, path.data, DT_REMOTE_HELPER_HEADER_BYTES, NULL) == DT_OK) {
        path.data[strlen(path.data) - strlen("/" DT_REMOTE_HELPER_FILES)] = '\0';
        json_array_foreach((json_t *)wanted, i, file)
            if (i < DT_REMOTE_HELPER_FILES_MAX && !told[i] &&
                has(json_object_get(header, "files"), file, path.data)) {
                told[i] = true;
                printf("%s %s\n", json_string_value(json_object_get(file, "name")), bundle);
            }
    }
    json_decref(header);
    dt_strbuf_release(&path);
}

static dt_status read_header(json_t **out, dt_error *err)
{
    dt_strbuf text;
    char bytes[8192];
    dt_status st = DT_OK;
    ssize_t got;

    dt_strbuf_init(&text);
    while ((got = read(STDIN_FILENO, bytes, sizeof(bytes))) > 0) {
        dt_strbuf_add(&text, bytes, (size_t)got);
        if (text.length > DT_REMOTE_HELPER_HEADER_BYTES)
            DT_THROW(err, DT_ERR_CORRUPT, "the bundle's header has no end");
    }
    DT_TRY(dt_json_parse(out, text.data, text.length, "the bundle's header", err));
out:
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_remote_helper_dedup(dt_error *err)
{
    bool told[DT_REMOTE_HELPER_FILES_MAX] = {false};
    json_t *header = NULL, *files;
    dt_strbuf cache, bundles;
    struct dirent *entry;
    dt_status st = DT_OK;
    DIR *all = NULL;

    dt_strbuf_init(&cache);
    dt_strbuf_init(&bundles);
    DT_TRY(read_header(&header, err));
    DT_TRY(dt_json_get_array(&files, header, "files", "the bundle's header", err));
    DT_TRY(dt_remote_helper_cache(&cache, err));
    dt_strbuf_add_fmt(&bundles, "%s/bundles", cache.data);
    all = opendir(bundles.data);
    while (all != NULL && (entry = readdir(all)) != NULL)
        if (entry->d_name[0] != '.')
            look(told, files, bundles.data, entry->d_name);
out:
    if (all != NULL)
        closedir(all);
    json_decref(header);
    dt_strbuf_release(&cache);
    dt_strbuf_release(&bundles);
    return st;
}

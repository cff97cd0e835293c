/* receive: stores a bundle from stdin in the cache; which of its files other bundles have; and the zstd
 * stream that it comes in.
 *
 * The input is one zstd stream without a checksum, since each file has a digest. It begins with a
 * line of JSON,
 *   {"files": [{"name": "bin/dtrun-engine", "bytes": 1, "mode": 493, "digest": "..."}, ...]}
 * followed by the contents of the files. A file with the key "bundle" is not in the stream: it is
 * linked from that bundle in the cache. Files are written below
 * CACHE/bundles/.new-XXXXXX, checked and synced; then the folder is renamed, so that bundles/HASH
 * is always complete. If two launches send the same bundle, the later one removes its own copy.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/file.h"
#include "base/memory.h"
#include "engine/checkpoint/digest.h"
#include "runner/node_setup/remote_helper/remote_helper.h"
#include "runner/node_setup/workdir/contents.h"

/* unpack: decompresses the zstd stream that the launch machine sends (transfer/upload.c). */

#define PIECE_BYTES 131072

struct dt_unpacker {
    const char *what;
    ZSTD_DStream *stream;
    ZSTD_inBuffer in;
    char raw[PIECE_BYTES];
};

dt_status dt_unpacker_new(dt_unpacker **out, const char *what, dt_error *err)
{
    *out = dt_calloc(1, sizeof(**out));
    (*out)->what = what;
    (*out)->stream = ZSTD_createDStream();
    return (*out)->stream != NULL ? DT_OK : DT_FAIL(err, DT_ERR_NOMEM, "no memory");
}

dt_status dt_unpacker_take(dt_unpacker *from, void *bytes, size_t length, dt_error *err)
{
    ZSTD_outBuffer out = {bytes, length, 0};

    while (out.pos < out.size) {
        size_t before = out.pos, code;

        if (from->in.pos == from->in.size) {
            ssize_t got = read(STDIN_FILENO, from->raw, sizeof(from->raw));

            if (got < 0 && errno == EINTR)
                continue;
            if (got <= 0)
                return DT_FAIL(err, DT_ERR_PEER, "the transfer of %s was interrupted", from->what);
            from->in = (ZSTD_inBuffer){from->raw, (size_t)got, 0};
        }
        code = ZSTD_decompressStream(from->stream, &out, &from->in);
        if (ZSTD_isError(code) || (code == 0 && out.pos == before))
            return DT_FAIL(err, DT_ERR_CORRUPT, "%s was damaged in transfer: %s", from->what,
                           ZSTD_isError(code) ? ZSTD_getErrorName(code) : "it is truncated");
    }
    return DT_OK;
}

void dt_unpacker_free(dt_unpacker *from)
{
    if (from != NULL)
        ZSTD_freeDStream(from->stream);
    free(from);
}

/* dedup: finds files of a new bundle that another bundle in the cache already has.
 *
 * A new version of dtrun is a new bundle, but CUDA's libraries, which are nearly all of its bytes,
 * rarely change: `receive` links them instead of storing them again. The header of each bundle is
 * kept in its file `files`.
 */

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
    DIR *directory = NULL;

    dt_strbuf_init(&cache);
    dt_strbuf_init(&bundles);
    DT_TRY(read_header(&header, err));
    DT_TRY(dt_json_get_array(&files, header, "files", "the bundle's header", err));
    DT_TRY(dt_remote_helper_cache(&cache, err));
    dt_strbuf_add_fmt(&bundles, "%s/bundles", cache.data);
    directory = opendir(bundles.data);
    while (directory != NULL && (entry = readdir(directory)) != NULL)
        if (entry->d_name[0] != '.')
            look(told, files, bundles.data, entry->d_name);
out:
    if (directory != NULL)
        closedir(directory);
    json_decref(header);
    dt_strbuf_release(&cache);
    dt_strbuf_release(&bundles);
    return st;
}

#define PIECE_BYTES 131072
#define SPARE_BYTES ((int64_t)16 << 20) /* the journal and the logs must fit too */

static dt_status take_header(json_t **out, dt_unpacker *from, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf line;
    char c;

    dt_strbuf_init(&line);
    for (;;) {
        DT_TRY(dt_unpacker_take(from, &c, 1, err));
        if (c == '\n')
            break;
        if (line.length == DT_REMOTE_HELPER_HEADER_BYTES)
            DT_THROW(err, DT_ERR_CORRUPT, "the bundle's header has no end");
        dt_strbuf_add_char(&line, c);
    }
    DT_TRY(dt_json_parse(out, line.data, line.length, "the bundle's header", err));
out:
    dt_strbuf_release(&line);
    return st;
}

/* Accepts bin/NAME and lib/NAME, without a path that leads elsewhere. */
static bool is_good_name(const char *name)
{
    static const char letters[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-";

    return (strncmp(name, "bin/", 4) == 0 || strncmp(name, "lib/", 4) == 0) && name[4] != '\0' &&
           name[4] != '.' && strlen(name) < 200 && name[4 + strspn(name + 4, letters)] == '\0';
}

static dt_status take_file(dt_unpacker *from, const char *folder, const json_t *item, dt_error *err)
{
    char piece[PIECE_BYTES], hex[DT_DIGEST_SIZE];
    const char *name, *wanted;
    dt_digest *digest = NULL;
    dt_status st = DT_OK;
    int64_t bytes, mode;
    dt_strbuf path;
    int fd = -1;

    dt_strbuf_init(&path);
    DT_TRY(dt_json_get_string(&name, item, "name", "file", err));
    DT_TRY(dt_json_get_string(&wanted, item, "digest", "file", err));
    DT_TRY(dt_json_get_int(&bytes, item, "bytes", "file", err));
    DT_TRY(dt_json_get_int(&mode, item, "mode", "file", err));
    if (!is_good_name(name) || bytes < 0 || (mode != 0700 && mode != 0600))
        DT_THROW(err, DT_ERR_CORRUPT, "the bundle's header is malformed");
    dt_strbuf_add_fmt(&path, "%s/%s", folder, name);
    fd = open(path.data, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, (mode_t)mode);
    if (fd < 0)
        DT_THROW(err, DT_ERR_IO, "cannot make '%s': %s", path.data, strerror(errno));
    DT_TRY(dt_digest_new(&digest, err));
    while (bytes > 0) {
        size_t now = bytes < PIECE_BYTES ? (size_t)bytes : PIECE_BYTES;

        if (!dt_remote_helper_is_heard())
            DT_THROW(err, DT_ERR_PEER, "the sender of the bundle is gone");
        DT_TRY(dt_unpacker_take(from, piece, now, err));
        dt_digest_add(digest, piece, now);
        DT_TRY(dt_file_write_all(fd, piece, now, err));
        bytes -= (int64_t)now;
    }
    dt_digest_get(hex, digest);
    if (strcmp(hex, wanted) != 0)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' was damaged in transfer", name);
    if (fsync(fd) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", path.data, strerror(errno));
out:
    if (fd >= 0 && close(fd) != 0 && st == DT_OK)
        st = DT_FAIL(err, DT_ERR_IO, "cannot write '%s': %s", path.data, strerror(errno));
    dt_digest_free(digest);
    dt_strbuf_release(&path);
    return st;
}

static bool is_hash(const char *name)
{
    return name[0] != '\0' && strspn(name, "0123456789abcdef") == strlen(name);
}

static bool is_heard(void *context, int64_t bytes)
{
    return dt_remote_helper_is_heard();
}

static dt_status link_file(const char *bundles, const char *folder, const json_t *item,
                           dt_error *err)
{
    const char *bundle, *name, *wanted;
    char hex[DT_DIGEST_SIZE];
    dt_strbuf from, to;
    dt_status st = DT_OK;
    struct stat info;
    int64_t bytes;

    dt_strbuf_init(&from);
    dt_strbuf_init(&to);
    DT_TRY(dt_json_get_string(&name, item, "name", "file", err));
    DT_TRY(dt_json_get_string(&bundle, item, "bundle", "file", err));
    DT_TRY(dt_json_get_string(&wanted, item, "digest", "file", err));
    DT_TRY(dt_json_get_int(&bytes, item, "bytes", "file", err));
    if (!is_good_name(name) || !is_hash(bundle))
        DT_THROW(err, DT_ERR_CORRUPT, "the bundle's header is malformed");
    dt_strbuf_add_fmt(&from, "%s/%s/%s", bundles, bundle, name);
    dt_strbuf_add_fmt(&to, "%s/%s", folder, name);
    if (lstat(from.data, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size != bytes ||
        link(from.data, to.data) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot link '%s'", from.data);
    DT_TRY(dt_content_digest(hex, to.data, NULL, NULL, is_heard, NULL, err));
    if (strcmp(hex, wanted) != 0)
        DT_THROW(err, DT_ERR_CORRUPT, "'%s' is damaged", from.data);
out:
    dt_strbuf_release(&from);
    dt_strbuf_release(&to);
    return st;
}

static bool is_linked(const json_t *item)
{
    return json_object_get(item, "bundle") != NULL;
}

/* Keeps the header, which later bundles are compared with. */
static dt_status write_header(const json_t *header, const char *folder, dt_error *err)
{
    dt_strbuf path, text;
    dt_status st;

    dt_strbuf_init(&path);
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&path, "%s/" DT_REMOTE_HELPER_FILES, folder);
    dt_json_write(&text, header);
    st = dt_file_write_atomic(path.data, text.data, text.length, 0600, err);
    dt_strbuf_release(&path);
    dt_strbuf_release(&text);
    return st;
}

static void name_part(dt_strbuf *out, const char *folder, int part)
{
    dt_strbuf_reset(out);
    dt_strbuf_add_fmt(out, "%s/%s", folder, part == 0 ? "bin" : "lib");
}

/* Stores all files. Links come first, because the pruning could remove the bundles that they link
 * to. */
static dt_status take_files(dt_unpacker *from, const char *cache, const char *bundles,
                            const char *folder, dt_error *err)
{
    json_t *header = NULL, *files, *item;
    dt_status st = DT_OK;
    int64_t total = SPARE_BYTES, bytes;
    dt_strbuf below;
    size_t i;

    dt_strbuf_init(&below);
    DT_TRY(take_header(&header, from, err));
    DT_TRY(dt_json_get_array(&files, header, "files", "the bundle's header", err));
    json_array_foreach(files, i, item) {
        DT_TRY(dt_json_get_int(&bytes, item, "bytes", "file", err));
        if (bytes < 0 || total > INT64_MAX - bytes)
            DT_THROW(err, DT_ERR_CORRUPT, "the bundle's header is malformed");
        total += is_linked(item) ? 0 : bytes;
    }
    for (int part = 0; part < 2; part++) {
        name_part(&below, folder, part);
        DT_TRY(dt_file_make_dirs(below.data, 0700, err));
    }
    json_array_foreach(files, i, item)
        if (is_linked(item))
            DT_TRY(link_file(bundles, folder, item, err));
    dt_remote_helper_prune(cache);
    DT_TRY(dt_remote_helper_check_space(folder, total, err));
    json_array_foreach(files, i, item)
        if (!is_linked(item))
            DT_TRY(take_file(from, folder, item, err));
    DT_TRY(write_header(header, folder, err));
    for (int part = 0; part < 2; part++) { /* syncing the folders makes the links durable */
        name_part(&below, folder, part);
        DT_TRY(dt_file_sync_dir(below.data, err));
    }
    DT_TRY(dt_file_sync_dir(folder, err));
out:
    json_decref(header);
    dt_strbuf_release(&below);
    return st;
}

dt_status dt_remote_helper_receive(const char *bundle, dt_error *err)
{
    dt_strbuf cache, bundles, new_folder, last;
    dt_unpacker *from = NULL;
    dt_status st = DT_OK;
    bool made = false;

    dt_strbuf_init(&cache);
    dt_strbuf_init(&bundles);
    dt_strbuf_init(&new_folder);
    dt_strbuf_init(&last);
    DT_TRY(dt_unpacker_new(&from, "the bundle", err));
    if (!is_hash(bundle))
        DT_THROW(err, DT_ERR_USAGE, "'%s' is not a bundle's hash", bundle);
    DT_TRY(dt_remote_helper_cache(&cache, err));
    dt_strbuf_add_fmt(&bundles, "%s/bundles", cache.data);
    dt_strbuf_add_fmt(&new_folder, "%s/.new-XXXXXX", bundles.data);
    dt_strbuf_add_fmt(&last, "%s/%s", bundles.data, bundle);
    DT_TRY(dt_file_make_dirs(bundles.data, 0700, err));
    if (mkdtemp(new_folder.data) == NULL)
        DT_THROW(err, DT_ERR_IO, "cannot make a folder in '%s': %s", bundles.data, strerror(errno));
    made = true;
    DT_TRY(take_files(from, cache.data, bundles.data, new_folder.data, err));
    if (rename(new_folder.data, last.data) == 0)
        made = false;
    else if (errno != EEXIST && errno != ENOTEMPTY)
        DT_THROW(err, DT_ERR_IO, "cannot rename '%s': %s", new_folder.data, strerror(errno));
    DT_TRY(dt_file_sync_dir(bundles.data, err));
out:
    if (made)
        (void)dt_file_remove_tree(new_folder.data, NULL);
    dt_unpacker_free(from);
    dt_strbuf_release(&cache);
    dt_strbuf_release(&bundles);
    dt_strbuf_release(&new_folder);
    dt_strbuf_release(&last);
    return st;
}

/* fetch: manages the cache of downloads (fetch.h). */
#include "runner/fetch/fetch.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dirs.h"
#include "base/file.h"
#include "base/memory.h"
#include "base/strbuf.h"
#include "runner/fetch/fetch_int.h"

#define TRIES                8
#define TRIES_FIRST          3 /* without a single byte: a wrong host name is reported soon */
#define PAUSE_FIRST_SECONDS  1.0
#define PAUSE_RESUME_SECONDS 0.2 /* after a try that made progress */
#define PAUSE_MOST_SECONDS   30.0
#define NAP_SECONDS          0.1
#define PIECE_BYTES          ((size_t)1 << 18)
#define NAME_BYTES           100

static dt_status check_cancelled(const dt_fetch_progress *progress, dt_error *err)
{
    if (progress->cancelled != NULL && atomic_load(progress->cancelled))
        return DT_FAIL(err, DT_ERR_BUSY, "cancelled");
    return DT_OK;
}

static dt_status nap(double seconds, const dt_fetch_progress *progress, dt_error *err)
{
    double until = dt_clock_monotonic_seconds() + seconds;
    dt_status st = check_cancelled(progress, err);

    while (st == DT_OK && dt_clock_monotonic_seconds() < until) {
        dt_clock_sleep_seconds(NAP_SECONDS);
        st = check_cancelled(progress, err);
    }
    return st;
}

/* --- the URL */

static bool take_digest(char *digest, const char *fragment)
{
    static const char key[] = "sha256=";

    if (fragment == NULL || strncmp(fragment, key, sizeof(key) - 1) != 0)
        return false;
    fragment += sizeof(key) - 1;
    if (strlen(fragment) != 64)
        return false;
    for (int i = 0; i < 64; i++) {
        if (!isxdigit((unsigned char)fragment[i]))
            return false;
        digest[i] = (char)tolower((unsigned char)fragment[i]);
    }
    digest[64] = '\0';
    return true;
}

/* Returns the last component of the URL's path, as a name that is valid for a file. */
static const char *name_of(const char *path, dt_arena *arena)
{
    const char *slash = strrchr(path, '/');
    char name[NAME_BYTES + 1];
    size_t length;

    path = slash != NULL ? slash + 1 : path;
    length = strlen(path);
    if (length > NAME_BYTES) /* keep the end, which has the file name extension */
        path += length - NAME_BYTES;
    snprintf(name, sizeof(name), "%s", path[0] != '\0' ? path : "data");
    for (char *p = name; *p != '\0'; p++)
        if (!isalnum((unsigned char)*p) && strchr("._-", *p) == NULL)
            *p = '_';
    if (name[0] == '.')
        name[0] = '_';
    return dt_arena_strdup(arena, name);
}

static dt_status parse(dt_fetch_url *out, const char *text, dt_arena *arena, dt_error *err)
{
    char *scheme = NULL, *host = NULL, *port = NULL, *path = NULL, *fragment = NULL;
    char *user = NULL, *ask = NULL;
    CURLU *url = curl_url();
    dt_status st = DT_OK;

    if (url == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for libcurl");
    if (curl_url_set(url, CURLUPART_URL, text, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_PATH, &path, CURLU_URLDECODE) != CURLUE_OK ||
        (strcmp(scheme, "https") != 0 && strcmp(scheme, "http") != 0))
        DT_THROW(err, DT_ERR_RECIPE, "unsupported URL '%.200s' (expected https:// or http://)",
                 text);
    if (curl_url_get(url, CURLUPART_PORT, &port, 0) != CURLUE_OK)
        port = NULL;
    out->shown = dt_arena_printf(arena, "%s://%s%s%s%.300s", scheme, host, port != NULL ? ":" : "",
                                 port != NULL ? port : "", path);
    if (curl_url_get(url, CURLUPART_USER, &user, 0) == CURLUE_OK)
        DT_THROW(
            err, DT_ERR_RECIPE,
            "'%s' has a name or password, which a recipe must not contain: put them into ~/.netrc",
            out->shown);
    if (curl_url_get(url, CURLUPART_FRAGMENT, &fragment, 0) != CURLUE_OK ||
        !take_digest(out->digest, fragment))
        DT_THROW(err, DT_ERR_RECIPE,
                 "'%s' has no digest: add '#sha256=' and the 64 digits that its publisher names, "
                 "or that 'sha256sum' prints for a copy you trust",
                 out->shown);
    if (curl_url_set(url, CURLUPART_FRAGMENT, NULL, 0) != CURLUE_OK ||
        curl_url_get(url, CURLUPART_URL, &ask, 0) != CURLUE_OK)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for libcurl");
    out->ask = dt_arena_strdup(arena, ask);
    out->name = name_of(path, arena);
out:
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_free(path);
    curl_free(fragment);
    curl_free(user);
    curl_free(ask);
    curl_url_cleanup(url);
    return st;
}

/* --- the part */

static dt_status digest_of(char *hex, int fd, const char *path, const dt_fetch_progress *progress,
                           dt_error *err)
{
    unsigned char *piece = dt_malloc(PIECE_BYTES), sum[SHA256_DIGEST_SIZE];
    struct sha256_ctx context;
    dt_status st = DT_OK;
    off_t at = 0;
    ssize_t got;

    sha256_init(&context);
    while ((got = pread(fd, piece, PIECE_BYTES, at)) > 0) {
        DT_TRY(check_cancelled(progress, err));
        sha256_update(&context, (size_t)got, piece);
        at += got;
    }
    if (got < 0)
        DT_THROW(err, DT_ERR_IO, "cannot read '%s': %s", path, strerror(errno));
    sha256_digest(&context, sizeof(sum), sum);
    for (size_t i = 0; i < sizeof(sum); i++)
        snprintf(hex + 2 * i, 3, "%02x", sum[i]);
out:
    free(piece);
    return st;
}

static dt_status open_part(dt_fetch_part *part, const char *etag_path, dt_error *err)
{
    struct stat info;
    dt_strbuf text;

    part->fd = open(part->path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (part->fd < 0 || fstat(part->fd, &info) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot write to '%s': %s", part->path, strerror(errno));
    part->have_bytes = (int64_t)info.st_size;
    dt_strbuf_init(&text);
    if (part->have_bytes > 0 &&
        dt_file_read(&text, etag_path, sizeof(part->etag) - 1, NULL) == DT_OK &&
        text.data[0] == '"' && text.data[strcspn(text.data, "\r\n")] == '\0')
        snprintf(part->etag, sizeof(part->etag), "%s", text.data);
    dt_strbuf_release(&text);
    return DT_OK;
}

/* Repeats the transfer as long as tries make progress. Saves the ETag of the part, with which a
 * later launch resumes the download. */
static dt_status get_all(dt_fetch_part *part, const char *etag_path, const dt_fetch_url *url,
                         const dt_fetch_progress *progress, dt_error *err)
{
    double pause = PAUSE_FIRST_SECONDS;
    dt_error problem = DT_ERROR_INIT;
    dt_status st = DT_OK;
    int fruitless = 0, most = TRIES_FIRST;
    bool again;

    for (;;) {
        int64_t before = part->have_bytes;

        dt_error_clear(&problem);
        st = dt_fetch_get(part, &again, url, progress, &problem);
        if (part->etag[0] != '\0')
            (void)dt_file_write_atomic(etag_path, part->etag, strlen(part->etag), 0600, NULL);
        else
            unlink(etag_path);
        if (st == DT_OK)
            return DT_OK;
        if (part->have_bytes > before) {
            fruitless = 0;
            most = TRIES;
            pause = PAUSE_RESUME_SECONDS;
        }
        if (!again || ++fruitless >= most)
            return DT_FAIL(err, st, "%s", problem.message);
        if (progress->progress != NULL)
            progress->progress(progress->context, problem.message);
        DT_TRY(nap(pause, progress, err));
        pause = pause * 2 < PAUSE_MOST_SECONDS ? pause * 2 : PAUSE_MOST_SECONDS;
    }
out:
    return st;
}

static dt_status start_over(dt_fetch_part *part, dt_error *err)
{
    part->have_bytes = 0;
    part->etag[0] = '\0';
    return ftruncate(part->fd, 0) == 0
               ? DT_OK
               : DT_FAIL(err, DT_ERR_IO, "cannot empty '%s': %s", part->path, strerror(errno));
}

/* Downloads the part and checks its digest. If a part left by an earlier launch turns out wrong,
 * downloads the whole file once. */
static dt_status fill(dt_fetch_part *part, const char *etag_path, const dt_fetch_url *url,
                      const dt_fetch_progress *progress, dt_error *err)
{
    bool resumed = part->have_bytes > 0;
    dt_status st = DT_OK;
    char hex[65];

    for (;;) {
        DT_TRY(get_all(part, etag_path, url, progress, err));
        DT_TRY(digest_of(hex, part->fd, part->path, progress, err));
        if (strcmp(hex, url->digest) == 0)
            break;
        DT_TRY(start_over(part, err));
        if (!resumed) {
            unlink(part->path);
            DT_THROW(err, DT_ERR_RECIPE,
                     "'%s' does not match its digest: its sha256 is %s, expected %s: check the URL "
                     "and the digest with its publisher",
                     url->shown, hex, url->digest);
        }
        resumed = false;
    }
    if (fsync(part->fd) != 0)
        DT_THROW(err, DT_ERR_IO, "cannot write '%s': %s", part->path, strerror(errno));
out:
    return st;
}

/* --- all of it */

typedef struct places {
    const char *folder, *file, *part, *etag, *lock;
} places;

static dt_status find_places(places *out, const dt_fetch_url *url, dt_arena *arena, dt_error *err)
{
    const char *cache, *data;
    dt_status st;

    DT_TRY(dt_dir_make(&cache, DT_DIR_CACHE, arena, err));
    data = dt_arena_printf(arena, "%s/data", cache);
    out->folder = dt_arena_printf(arena, "%s/data/sha256-%s", cache, url->digest);
    out->file = dt_arena_printf(arena, "%s/data/sha256-%s/%s", cache, url->digest, url->name);
    out->part = dt_arena_printf(arena, "%s/data/sha256-%s.part", cache, url->digest);
    out->etag = dt_arena_printf(arena, "%s/data/sha256-%s.etag", cache, url->digest);
    out->lock = dt_arena_printf(arena, "%s/data/sha256-%s.lock", cache, url->digest);
    DT_TRY(dt_file_make_dirs(data, 0700, err));
out:
    return st;
}

/* Takes the lock of the file. Another launch may be fetching it: then it is usually complete after
 * the wait. */
static dt_status lock_it(int *fd, const places *at, const dt_fetch_url *url,
                         const dt_fetch_progress *progress, dt_error *err)
{
    dt_error problem = DT_ERROR_INIT;
    bool told = false;
    char text[400];
    dt_status st;

    while ((st = dt_file_lock(fd, at->lock, &problem)) == DT_ERR_BUSY) {
        if (!told && progress->progress != NULL) {
            snprintf(text, sizeof(text), "waiting for another launch that fetches %.300s",
                     url->shown);
            progress->progress(progress->context, text);
        }
        told = true;
        dt_error_clear(&problem);
        DT_TRY(nap(NAP_SECONDS, progress, err));
    }
    if (st != DT_OK)
        DT_THROW(err, st, "%s", problem.message);
out:
    return st;
}

dt_status dt_fetch(const char **path, const char *url, const dt_fetch_progress *progress,
                   dt_arena *arena, dt_error *err)
{
    dt_fetch_part part = {.fd = -1};
    dt_fetch_url parsed;
    dt_status st = DT_OK;
    int lock = -1;
    places at;

    *path = NULL;
    DT_TRY(parse(&parsed, url, arena, err));
    DT_TRY(find_places(&at, &parsed, arena, err));
    DT_TRY(lock_it(&lock, &at, &parsed, progress, err));
    if (!dt_file_exists(at.file)) {
        part.path = at.part;
        DT_TRY(open_part(&part, at.etag, err));
        DT_TRY(fill(&part, at.etag, &parsed, progress, err));
        DT_TRY(dt_file_make_dirs(at.folder, 0700, err));
        if (fchmod(part.fd, 0400) != 0 || rename(at.part, at.file) != 0)
            DT_THROW(err, DT_ERR_IO, "cannot rename '%s': %s", at.part, strerror(errno));
        unlink(at.etag);
        DT_TRY(dt_file_sync_dir(at.folder, err));
    }
    (void)utimensat(AT_FDCWD, at.folder, NULL, 0); /* marks it as used (remote_helper/cache.c) */
    *path = at.file;
out:
    if (part.fd >= 0)
        close(part.fd);
    if (lock >= 0)
        close(lock);
    return st;
}

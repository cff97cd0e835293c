/* fetch_transfer: runs one transfer with libcurl into a part, which it resumes if it has bytes. */
#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "runner/fetch/fetch_int.h"

#define CONNECT_SECONDS 15L
#define STALL_SECONDS   30L /* abort after this time without a byte */
#define REDIRECTS_MOST  5L
#define TELL_SECONDS    2.0
#define MB(bytes)       ((long long)((bytes) >> 20))

enum { HTTP_OK = 200, HTTP_PART = 206, HTTP_NOT_THAT_FAR = 416 };

typedef struct transfer {
    CURL *curl;
    dt_fetch_part *part;
    const dt_fetch_url *url;
    const dt_fetch_progress *progress;
    long answer; /* HTTP status of the last response */
    char etag[256];
    int64_t range_from; /* first byte of a 206 response; -1: not stated */
    bool begun;         /* the first byte of a successful response was received */
    double told_seconds;
    dt_status st; /* error on this side, such as a full disk */
    dt_error *err;
} transfer;

/* --- receiving */

static bool take_header(char *out, size_t size, const char *line, size_t length, const char *name)
{
    size_t key = strlen(name);

    if (length <= key || strncasecmp(line, name, key) != 0)
        return false;
    line += key;
    length -= key;
    while (length > 0 && (*line == ' ' || *line == '\t')) {
        line++;
        length--;
    }
    while (length > 0 && (unsigned char)line[length - 1] <= ' ')
        length--;
    snprintf(out, size, "%.*s", (int)length, line);
    return length < size;
}

static size_t on_header(char *line, size_t size, size_t count, void *context)
{
    transfer *t = context;
    size_t length = size * count;
    char text[256];

    if (length > 5 && strncmp(line, "HTTP/", 5) == 0) {
        t->etag[0] = '\0'; /* a new response: forget the headers of a redirect */
        t->range_from = -1;
    } else if (take_header(text, sizeof(text), line, length, "etag:")) {
        /* A weak ETag ("W/...") promises an equivalent file, not the same bytes. */
        if (text[0] == '"')
            memcpy(t->etag, text, sizeof(text));
    } else if (take_header(text, sizeof(text), line, length, "content-range:")) {
        if (strncasecmp(text, "bytes ", 6) == 0 && text[6] >= '0' && text[6] <= '9')
            t->range_from = strtoll(text + 6, NULL, 10);
    }
    return length;
}

static bool fails(transfer *t, dt_status st, const char *what)
{
    t->st = DT_FAIL(t->err, st, "cannot fetch '%s': %s", t->url->shown, what);
    return false;
}

static dt_status full_disk(transfer *t)
{
    return DT_FAIL(t->err, DT_ERR_IO,
                   "cannot fetch '%s': no space is left for '%s': free some, or set XDG_CACHE_HOME "
                   "to a larger disk; the part that was fetched is kept",
                   t->url->shown, t->part->path);
}

static bool has_room(transfer *t, int64_t more_bytes)
{
    struct statvfs info;
    long long need = MB(more_bytes), have;

    if (more_bytes <= 0 || fstatvfs(t->part->fd, &info) != 0 ||
        info.f_bavail >= (uint64_t)more_bytes / info.f_frsize + 1)
        return true;
    have = (long long)(info.f_bavail * info.f_frsize >> 20);
    t->st = DT_FAIL(t->err, DT_ERR_IO,
                    "cannot fetch '%s': %lld MB are needed for '%s', and %lld MB are free: free "
                    "some, or set XDG_CACHE_HOME to a larger disk",
                    t->url->shown, need + 1, t->part->path, have);
    return false;
}

/* Handles the first bytes of an answer: either the rest of the part, or the whole file again. */
static bool begin(transfer *t)
{
    curl_off_t more = -1;

    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &t->answer);
    curl_easy_getinfo(t->curl, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &more);
    if (t->answer == HTTP_PART && t->range_from != t->part->have_bytes)
        return fails(t, DT_ERR_IO, "the server sends another range than requested");
    if (t->answer == HTTP_OK) { /* the server does not support ranges, or the file has changed */
        t->part->have_bytes = 0;
        if (ftruncate(t->part->fd, 0) != 0)
            return fails(t, DT_ERR_IO, strerror(errno));
    }
    memcpy(t->part->etag, t->etag, sizeof(t->etag));
    if (!has_room(t, (int64_t)more))
        return false;
    t->begun = true;
    return true;
}

static size_t on_bytes(char *bytes, size_t size, size_t count, void *context)
{
    transfer *t = context;
    size_t length = size * count, done = 0;

    curl_easy_getinfo(t->curl, CURLINFO_RESPONSE_CODE, &t->answer);
    if (t->answer != HTTP_OK && t->answer != HTTP_PART)
        return length; /* ignore the body of an error page */
    if (!t->begun && !begin(t))
        return 0;
    while (done < length) {
        ssize_t got = pwrite(t->part->fd, bytes + done, length - done, (off_t)t->part->have_bytes);

        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0 && (errno == ENOSPC || errno == EDQUOT)) {
            t->st = full_disk(t);
            return 0;
        }
        if (got < 0 && errno == EFBIG) {
            t->st = DT_FAIL(t->err, DT_ERR_IO,
                            "cannot fetch '%s': '%s' has reached the limit on file sizes: raise it "
                            "with 'ulimit -f'; the part that was fetched is kept",
                            t->url->shown, t->part->path);
            return 0;
        }
        if (got < 0) {
            fails(t, DT_ERR_IO, strerror(errno));
            return 0;
        }
        done += (size_t)got;
        t->part->have_bytes += got;
    }
    return length;
}

static int on_progress(void *context, curl_off_t whole, curl_off_t now, curl_off_t a, curl_off_t b)
{
    transfer *t = context;
    double seconds = dt_clock_monotonic_seconds();
    char text[512];

    if (t->progress->cancelled != NULL && atomic_load(t->progress->cancelled)) {
        t->st = DT_FAIL(t->err, DT_ERR_BUSY, "cancelled");
        return 1;
    }
    if (!t->begun || seconds - t->told_seconds < TELL_SECONDS || t->progress->progress == NULL)
        return 0;
    t->told_seconds = seconds;
    if (whole > 0)
        snprintf(text, sizeof(text), "fetching %.300s: %lld of %lld MB", t->url->shown,
                 MB(t->part->have_bytes), MB(t->part->have_bytes + (int64_t)(whole - now)));
    else
        snprintf(text, sizeof(text), "fetching %.300s: %lld MB", t->url->shown,
                 MB(t->part->have_bytes));
    t->progress->progress(t->progress->context, text);
    return 0;
}

/* --- the request */

static void set_protocols(CURL *curl, bool secure)
{
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, secure ? "https" : "http,https");
#else
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS, (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
    curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS,
                     secure ? (long)CURLPROTO_HTTPS : (long)(CURLPROTO_HTTP | CURLPROTO_HTTPS));
#endif
}

/* Uses the variables that the curl program reads, but libcurl does not. */
static void set_certificates(CURL *curl)
{
    static const char *const names[] = {"CURL_CA_BUNDLE", "SSL_CERT_FILE"};
    const char *folder = getenv("SSL_CERT_DIR");

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *path = getenv(names[i]);

        if (path != NULL && path[0] != '\0') {
            curl_easy_setopt(curl, CURLOPT_CAINFO, path);
            return;
        }
    }
    if (folder != NULL && folder[0] != '\0')
        curl_easy_setopt(curl, CURLOPT_CAPATH, folder);
}

static dt_status set_up(transfer *t, struct curl_slist **headers, dt_error *err)
{
    char range[64], line[320];

    curl_easy_setopt(t->curl, CURLOPT_URL, t->url->ask);
    curl_easy_setopt(t->curl, CURLOPT_USERAGENT, "dtrun");
    curl_easy_setopt(t->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(t->curl, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(t->curl, CURLOPT_MAXREDIRS, REDIRECTS_MOST);
    curl_easy_setopt(t->curl, CURLOPT_NETRC, (long)CURL_NETRC_OPTIONAL);
    curl_easy_setopt(t->curl, CURLOPT_CONNECTTIMEOUT, CONNECT_SECONDS);
    curl_easy_setopt(t->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
    curl_easy_setopt(t->curl, CURLOPT_LOW_SPEED_TIME, STALL_SECONDS);
    curl_easy_setopt(t->curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(t->curl, CURLOPT_HEADERDATA, t);
    curl_easy_setopt(t->curl, CURLOPT_WRITEFUNCTION, on_bytes);
    curl_easy_setopt(t->curl, CURLOPT_WRITEDATA, t);
    curl_easy_setopt(t->curl, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(t->curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(t->curl, CURLOPT_XFERINFODATA, t);
    set_protocols(t->curl, strncasecmp(t->url->ask, "https:", 6) == 0);
    set_certificates(t->curl);
    if (t->part->have_bytes == 0)
        return DT_OK;
    snprintf(range, sizeof(range), "%lld-", (long long)t->part->have_bytes);
    curl_easy_setopt(t->curl, CURLOPT_RANGE, range); /* libcurl copies the string */
    if (t->part->etag[0] == '\0')
        return DT_OK; /* without an ETag, the digest shows whether the rest belongs to the part */
    snprintf(line, sizeof(line), "If-Range: %s", t->part->etag);
    *headers = curl_slist_append(*headers, line);
    curl_easy_setopt(t->curl, CURLOPT_HTTPHEADER, *headers);
    return *headers != NULL ? DT_OK : DT_FAIL(err, DT_ERR_NOMEM, "no memory");
}

/* --- the result */

static dt_status judge_answer(transfer *t, bool *again, dt_error *err)
{
    const char *remedy = "look at the server's log";

    if (t->answer == HTTP_OK || t->answer == HTTP_PART)
        return DT_OK;
    if (t->answer == HTTP_NOT_THAT_FAR && t->part->have_bytes > 0)
        return DT_OK; /* nothing is missing, or the digest check will fail */
    *again = t->answer >= 500 || t->answer == 408 || t->answer == 429;
    if (t->answer == 404 || t->answer == 410)
        remedy = "check the URL in the recipe";
    else if (t->answer == 401 || t->answer == 403)
        remedy = "it requires a name and password (~/.netrc), or the URL has expired";
    else if (*again)
        remedy = "try again later: the part that was fetched is kept";
    return DT_FAIL(err, *again ? DT_ERR_IO : DT_ERR_RECIPE,
                   "cannot fetch '%s': the server answers %ld: %s", t->url->shown, t->answer,
                   remedy);
}

static dt_status judge_failure(transfer *t, CURLcode code, const char *detail, bool *again,
                               dt_error *err)
{
    const char *words = detail[0] != '\0' ? detail : curl_easy_strerror(code), *remedy = NULL;

    switch (code) {
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
        remedy = "this machine does not trust its certificate: name the authority's file in "
                 "CURL_CA_BUNDLE, or install it (ca-certificates)";
        break;
    case CURLE_UNSUPPORTED_PROTOCOL:
        remedy = "it redirects to a URL that is not https: give that URL";
        break;
    case CURLE_TOO_MANY_REDIRECTS:
        remedy = "it redirects without end: check the URL";
        break;
    case CURLE_URL_MALFORMAT:
        remedy = "check the URL in the recipe";
        break;
    default:
        break;
    }
    *again = remedy == NULL;
    if (remedy != NULL)
        return DT_FAIL(err, DT_ERR_RECIPE, "cannot fetch '%s': %s (%s)", t->url->shown, remedy,
                       words);
    return DT_FAIL(err, DT_ERR_IO,
                   "cannot fetch '%s': %s: is the network up, and the name right? The part that "
                   "was fetched is kept, and the next launch resumes it",
                   t->url->shown, words);
}

dt_status dt_fetch_get(dt_fetch_part *part, bool *again, const dt_fetch_url *url,
                       const dt_fetch_progress *progress, dt_error *err)
{
    transfer t = {.part = part, .url = url, .progress = progress, .range_from = -1, .err = err};
    struct curl_slist *headers = NULL;
    char detail[CURL_ERROR_SIZE] = "";
    dt_status st = DT_OK;
    CURLcode code;

    *again = false;
    t.curl = curl_easy_init();
    if (t.curl == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for libcurl");
    DT_TRY(set_up(&t, &headers, err));
    curl_easy_setopt(t.curl, CURLOPT_ERRORBUFFER, detail);
    code = curl_easy_perform(t.curl);
    if (t.st != DT_OK) {
        st = t.st;
        goto out;
    }
    curl_easy_getinfo(t.curl, CURLINFO_RESPONSE_CODE, &t.answer);
    if (code == CURLE_OK && !t.begun && t.answer == HTTP_OK && !begin(&t)) { /* an empty file */
        st = t.st;
        goto out;
    }
    DT_TRY(code == CURLE_OK ? judge_answer(&t, again, err)
                            : judge_failure(&t, code, detail, again, err));
out:
    curl_slist_free_all(headers);
    curl_easy_cleanup(t.curl);
    return st;
}

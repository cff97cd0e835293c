/* fetch: downloads files that a recipe names by URL into the cache, and sends requests to REST services.
 *
 *   https://HOST/PATH#sha256=64 hexadecimal digits
 *
 * Where    CACHE/data/sha256-DIGEST/NAME, the cache that also holds files from other launch machines. The file gets
 *          this name only when its digest is right; DIGEST.part and .etag belong to an interrupted download, which
 *          the next try, of this launch or another, resumes
 * Trust    depends on the digest alone, so http is as good as https; https never redirects to http.
 *          CURL_CA_BUNDLE or SSL_CERT_FILE name other certificates, ~/.netrc has names and passwords, http_proxy and
 *          similar variables are used
 * Tries    3 if no byte ever comes, else 8 in a row without progress; pauses of 1 to 30 s
 * Threads  any; two launches that need the same file wait for each other
 * Errors   name the URL without its query, which can be a secret. DT_ERR_RECIPE: the URL or digest is wrong;
 *          DT_ERR_IO: network, server, disk; DT_ERR_BUSY: cancelled
 */
#ifndef DT_RUNNER_FETCH_FETCH_H
#define DT_RUNNER_FETCH_FETCH_H

#include <stdatomic.h>

#include "base/error.h"
#include "base/json.h"
#include "base/memory.h"

/* rest: sends requests to a JSON server over HTTP, one after the other over one connection.
 *
 * Tries   temporary failures (no connection, 408, 429, 5xx) are retried up to 4 times, with pauses of 0.5 to 4 s, or
 *         the server's Retry-After. No retry if that is more than a minute, or if the time of a try (120 s) is over
 * Access  a token, or a name and password; certificates and proxies as in libcurl. An address with a password is
 *         refused, because addresses are shown and stored. Redirections are not followed
 * Errors  DT_ERR_BUSY: temporary; DT_ERR_NOT_FOUND: 404; DT_ERR_USAGE: any other 4xx, and a malformed address;
 *         DT_ERR_CORRUPT: an answer that is not JSON, or is larger than 64 MB. With the server's message, if any
 */

typedef struct dt_rest dt_rest;

typedef struct dt_rest_access {
    const char *token;           /* as "Authorization: Bearer"; NULL: none */
    const char *name, *password; /* likewise */
    const char *remedy;          /* shown if the server refuses them; NULL: none */
    int tries;                   /* 0: as above */
    double try_seconds;          /* 0: as above */
} dt_rest_access;

/* base: "http://host:port/path"; the paths of requests are appended to it. */
dt_status dt_rest_open(dt_rest **out, const char *base, const dt_rest_access *access,
                       dt_error *err);
void dt_rest_close(dt_rest *rest); /* accepts NULL */

/* GET; new reference. */
dt_status dt_rest_get(dt_rest *rest, json_t **answer, const char *path, dt_error *err);
/* POST; steals `body`. *answer: new reference. */
dt_status dt_rest_post(dt_rest *rest, json_t **answer, const char *path, json_t *body,
                       dt_error *err);
/* As dt_rest_post without retries: after DT_ERR_BUSY the server may or may not have carried out the
 * request. */
dt_status dt_rest_post_once(dt_rest *rest, json_t **answer, const char *path, json_t *body,
                            dt_error *err);
/* Sleeps before another try; false, without a pause, if there were enough tries. */
bool dt_rest_pause(const dt_rest *rest, int tries);
/* Appends text for a query; special characters become %XX. */
void dt_rest_escape(dt_strbuf *out, const char *text);

typedef struct dt_fetch_progress {
    void (*progress)(void *context, const char *text); /* "fetching https://...: 3 of 12 MB" */
    void *context;
    const atomic_bool *cancelled; /* NULL: never */
} dt_fetch_progress;

/* Returns the path of the file in the cache; does not use the network if the file is already there. */
dt_status dt_fetch(const char **path, const char *url, const dt_fetch_progress *progress,
                   dt_arena *arena, dt_error *err);

#endif

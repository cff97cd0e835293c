/* fetch: downloads data that a recipe names by URL into the cache of this machine, and checks its digest.
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
#include "base/memory.h"

typedef struct dt_fetch_progress {
    void (*progress)(void *context, const char *text); /* "fetching https://...: 3 of 12 MB" */
    void *context;
    const atomic_bool *cancelled; /* NULL: never */
} dt_fetch_progress;

/* Returns the path of the file in the cache; does not use the network if the file is already there. */
dt_status dt_fetch(const char **path, const char *url, const dt_fetch_progress *progress,
                   dt_arena *arena, dt_error *err);

#endif

/* fetch: data that a recipe names by URL, put into the cache of this machine and checked.
 *
 *   https://HOST/PATH#sha256=64 hexadecimal digits
 *
 * Where    CACHE/data/sha256-DIGEST/NAME, beside what other launch machines have sent here. A file
 *          is there only once all of it has the digest; DIGEST.part and .etag are of one that broke
 *          off: the next try, of this launch or another, resumes from there
 * Trust    the digest alone says what is good, so http is no worse than https; from https nothing
 *          leads back to http. CURL_CA_BUNDLE or SSL_CERT_FILE name other certificates, ~/.netrc
 *          has names and passwords, http_proxy and its like are heeded
 * Tries    3 where nothing comes at all, else 8 in a row without a byte more; pauses of 1 to 30 s
 * Threads  any; two launches that want the same file wait for each other
 * Errors   naming the URL without its query, which may be a secret: DT_ERR_RECIPE what only another
 *          URL or digest helps against; DT_ERR_IO network, server, disk; DT_ERR_BUSY cancelled
 */
#ifndef DT_RUNNER_FETCH_FETCH_H
#define DT_RUNNER_FETCH_FETCH_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/error.h"

typedef struct dt_fetch_progress {
    void (*progress)(void *context, const char *text); /* "fetching https://...: 3 of 12 MB" */
    void *context;
    const atomic_bool *cancelled; /* NULL: never */
} dt_fetch_progress;

/* *path is the file in the cache; nothing is asked of the network where it is there already. */
dt_status dt_fetch(const char **path, const char *url, const dt_fetch_progress *progress,
                   dt_arena *arena, dt_error *err);

#endif

/* fetch_int: declares what fetch.c (the cache) and fetch_transfer.c (one transfer) share. */
#ifndef DT_RUNNER_FETCH_FETCH_INT_H
#define DT_RUNNER_FETCH_FETCH_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "runner/fetch/fetch.h"

/* Lives in an arena. */
typedef struct dt_fetch_url {
    const char *ask;   /* the URL without the digest */
    const char *shown; /* the URL without the query, for messages */
    const char *name;  /* name of the file in the cache */
    char digest[65];   /* lower case */
} dt_fetch_url;

typedef struct dt_fetch_part {
    int fd;
    const char *path;
    int64_t have_bytes;
    char etag[256]; /* of the file that `have_bytes` belong to; "": unknown */
} dt_fetch_part;

/* Downloads the missing bytes of the part. DT_OK: the server says that the part is complete. *again:
 * another try can get more. The part keeps the received bytes also after a failure. */
dt_status dt_fetch_get(dt_fetch_part *part, bool *again, const dt_fetch_url *url,
                       const dt_fetch_progress *progress, dt_error *err);

#endif

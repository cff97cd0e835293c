/* fetch_int: what fetch.c (the cache) and fetch_transfer.c (one transfer) share. */
#ifndef DT_RUNNER_FETCH_FETCH_INT_H
#define DT_RUNNER_FETCH_FETCH_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "runner/fetch/fetch.h"

/* Lives in an arena. */
typedef struct dt_fetch_url {
    const char *ask;   /* without the digest */
    const char *shown; /* without query: for people */
    const char *name;  /* of the file */
    char digest[65];   /* lower case */
} dt_fetch_url;

typedef struct dt_fetch_part {
    int fd;
    const char *path;
    int64_t have_bytes;
    char etag[256]; /* of what `have_bytes` are a part; "" not known */
} dt_fetch_part;

/* Adds what is missing to the part. *again: another try may bring more. DT_OK: the server says that
 * it is all there. The part holds what came, whatever happens. */
dt_status dt_fetch_get(dt_fetch_part *part, bool *again, const dt_fetch_url *url,
                       const dt_fetch_progress *progress, dt_error *err);

#endif

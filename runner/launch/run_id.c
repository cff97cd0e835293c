#define _GNU_SOURCE
#include "runner/launch/run_id.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/banned.h"

static const char letters[] = "abcdefghjkmnpqrstuvwxyz23456789";
enum { LETTERS = sizeof(letters) - 1 };

dt_status dt_run_id_draw(char *out, dt_error *err)
{
    unsigned char byte;
    int filled = 0;

    while (filled < DT_RUN_ID_SIZE - 1) {
        if (getrandom(&byte, 1, 0) != 1)
            return DT_FAIL(err, DT_ERR_IO, "cannot draw a run id: %s", strerror(errno));
        if (byte < 256 / LETTERS * LETTERS) /* the rest would favour the first letters */
            out[filled++] = letters[byte % LETTERS];
    }
    out[filled] = '\0';
    return DT_OK;
}

/* fuzz_chats: any bytes as a file of conversations. It is refused with its name, or all of its conversations can be
 * placed in rows and read.
 *
 * Corpus     tests/golden/chat/: weights of 0 and 1, and fractional ones
 */
#include <stdlib.h>
#include <string.h>

#include "engine/data/chats.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

enum { TOKENS = 20 };

static void fill(const dt_chat_rows *rows)
{
    int32_t ids[TOKENS], targets[TOKENS], starts[TOKENS], positions[TOKENS];
    float weights[TOKENS];
    void *inputs[] = {ids, targets, starts, positions, weights};

    for (int64_t r = -1; r < rows->count; r++) {
        dt_chat_row_fill(inputs, 0, rows, r);
        for (int t = 0; t < TOKENS; t++)
            DT_ASSERT(positions[t] == t - starts[t] && (weights[t] != 0) == (targets[t] >= 0));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    dt_error err = DT_ERROR_INIT;
    dt_chats chats;
    dt_status st = dt_chats_take(&chats, "fuzz.chats", bytes, size, &err);

    if (st != DT_OK)
        DT_ASSERT(st == DT_ERR_RECIPE && strstr(err.message, "fuzz.chats") != NULL);
    for (int k = 0; k < 4 && st == DT_OK; k++) {
        dt_chat_limits limits = {.tokens = TOKENS,
                                 .too_long = k % 2 ? DT_TOO_LONG_CUT : DT_TOO_LONG_DROP,
                                 .pack = k / 2 == 1,
                                 .mean = k % 2 ? DT_MEAN_OF_CONVERSATIONS : DT_MEAN_OF_TOKENS};
        dt_chat_rows rows;

        if (dt_chat_rows_make(&rows, &chats, 0, chats.count, &limits, "data", &err) == DT_OK)
            fill(&rows);
        else
            dt_error_clear(&err);
        dt_chat_rows_release(&rows);
    }
    dt_chats_close(&chats);
    return 0;
}

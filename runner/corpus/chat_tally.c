/* chat_tally: counts conversations, and writes and reads the counts in the facts of a part or of all. */
#include <stddef.h>
#include <string.h>

#include "runner/corpus/corpus_int.h"

static const struct {
    const char *name;
    size_t offset;
} names[] = {
    {"documents", offsetof(dt_chat_tally, conversations)},
    {"tokens", offsetof(dt_chat_tally, tokens)},
    {"trained", offsetof(dt_chat_tally, trained)},
    {"bytes", offsetof(dt_chat_tally, bytes)},
    {"field_bytes", offsetof(dt_chat_tally, field_bytes)},
    {"dropped_bytes", offsetof(dt_chat_tally, dropped_bytes)},
    {"messages", offsetof(dt_chat_tally, forms[DT_CHAT_MESSAGES])},
    {"sharegpt", offsetof(dt_chat_tally, forms[DT_CHAT_SHAREGPT])},
    {"alpaca", offsetof(dt_chat_tally, forms[DT_CHAT_ALPACA])},
};

#define NAMES (sizeof(names) / sizeof(names[0]))

void dt_chat_tally_to_json(json_t *facts, const dt_chat_tally *tally)
{
    int64_t count;

    for (size_t i = 0; i < NAMES; i++) {
        memcpy(&count, (const char *)tally + names[i].offset, sizeof(count));
        json_object_set_new(facts, names[i].name, json_integer(count));
    }
}

dt_status dt_chat_tally_add(dt_chat_tally *tally, const json_t *facts, const char *path,
                            dt_error *err)
{
    int64_t count, sum;
    dt_status st = DT_OK;

    for (size_t i = 0; i < NAMES; i++) {
        char *at = (char *)tally + names[i].offset;

        DT_TRY(dt_json_get_int(&count, facts, names[i].name, path, err));
        memcpy(&sum, at, sizeof(sum));
        sum += count;
        memcpy(at, &sum, sizeof(sum));
    }
out:
    return st;
}

dt_chat_counts dt_chat_counts_of(const dt_chat_tally *tally)
{
    dt_chat_counts out = {.trained = tally->trained,
                          .field_bytes = tally->field_bytes,
                          .dropped_bytes = tally->dropped_bytes};

    memcpy(out.forms, tally->forms, sizeof(out.forms));
    return out;
}

#include "runner/launch/fetch_inputs.h"

#include <string.h>

#include "runner/cli/report.h"
#include "runner/fetch/fetch.h"

static void tell(void *context, const char *text)
{
    dt_report_say("%s", text);
}

static dt_status fetch_list(dt_string_list *list, dt_arena *arena, dt_error *err)
{
    static const dt_fetch_progress progress = {.progress = tell};
    const char **items = dt_arena_alloc_array(arena, (size_t)list->count + 1, sizeof(items[0]));
    dt_status st = DT_OK;

    for (int64_t i = 0; i < list->count; i++) {
        items[i] = list->items[i];
        if (strstr(items[i], "://") != NULL)
            DT_TRY(dt_fetch(&items[i], items[i], &progress, arena, err));
    }
    list->items = items;
out:
    return st;
}

dt_status dt_fetch_recipe(dt_recipe *out, const dt_recipe *recipe, dt_arena *arena, dt_error *err)
{
    dt_status st;

    *out = *recipe;
    DT_TRY(fetch_list(&out->data.train, arena, err));
    DT_TRY(fetch_list(&out->data.validation, arena, err));
out:
    return st;
}

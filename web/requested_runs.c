#include "web/requested_runs.h"

#include <string.h>

/* Adds the runs of a list like "a,b,last" to the ids, each once. */
static dt_status named(const char **ids, int64_t *count, dt_web_request *request, const char *list,
                       dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;

    for (size_t length; *list != '\0'; list += length + (list[length] == ',')) {
        bool known = false;
        dt_run run;

        length = strcspn(list, ",");
        if (*count == DT_WEB_REQUESTED_RUNS_MAX)
            DT_THROW(err, DT_ERR_USAGE, "'runs': at most %d", DT_WEB_REQUESTED_RUNS_MAX);
        request->run = dt_arena_strndup(request->arena, list, length);
        DT_TRY(dt_web_run(&run, request, err));
        for (int64_t i = 0; i < *count; i++)
            known = known || strcmp(ids[i], run.id) == 0;
        if (!known)
            ids[(*count)++] = dt_arena_strdup(arena, run.id);
    }
out:
    return st;
}

dt_status dt_web_requested_runs(const char ***ids, int64_t *count, dt_web_request *request,
                                dt_arena *arena, dt_error *err)
{
    const char *group = dt_web_argument(request, "group"), *list = dt_web_argument(request, "runs");

    *count = 0;
    if ((group == NULL) == (list == NULL))
        return DT_FAIL(err, DT_ERR_USAGE, "one of 'runs' and 'group' is required");
    if (list == NULL)
        return dt_store_group_runs(request->store, ids, count, group, arena, err);
    *ids = dt_arena_alloc_array(arena, DT_WEB_REQUESTED_RUNS_MAX, sizeof(**ids));
    return named(*ids, count, request, list, arena, err);
}

#define LIMIT_DEFAULT 200

/* Parses a sort key: "loss" or "-loss". The minus sign sorts by descending values (largest or newest first). */
static void read_sort(dt_run_search *search, const char *text)
{
    if (text == NULL)
        return;
    search->rising = text[0] != '-';
    search->sort = text + (text[0] == '-');
}

dt_status dt_web_requested_search(dt_run_search *out, dt_web_request *request, int64_t limit_most,
                                  dt_error *err)
{
    const char *wanted = dt_web_argument(request, "state");
    dt_status st = DT_OK;
    dt_run_state state;

    *out = (dt_run_search){.state = -1, .words = dt_web_argument(request, "q")};
    DT_TRY(dt_web_argument_int(&out->limit, request, "limit", LIMIT_DEFAULT, 1, limit_most, err));
    DT_TRY(dt_web_argument_int(&out->offset, request, "offset", 0, 0, INT32_MAX, err));
    if (wanted != NULL && strcmp(wanted, "active") == 0)
        out->state = DT_RUN_SEARCH_ACTIVE;
    else if (wanted != NULL && !dt_run_state_parse(&state, wanted))
        DT_THROW(err, DT_ERR_USAGE, "'state': '%.32s' is not a state of a run", wanted);
    else if (wanted != NULL)
        out->state = (int)state;
    read_sort(out, dt_web_argument(request, "sort"));
out:
    return st;
}

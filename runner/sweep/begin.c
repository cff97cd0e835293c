#include "runner/sweep/begin.h"

#include <string.h>

#include "base/child.h"
#include "base/dirs.h"
#include "base/exit.h"
#include "base/json.h"

enum { TAGS_MAX = 64 };
#define LAUNCH_SECONDS 600.0 /* the launch may have to fetch data */

/* Builds: launch POINT --detach --json --group G --set nodes=[...] --tag a --tag b */
static dt_status words_of(const char **argv, const dt_sweep_group *group, int64_t index,
                          const dt_place *place, dt_arena *arena, dt_error *err)
{
    char *tags = dt_arena_strdup(arena, group->tags), *rest = tags;
    int count = 0;
    dt_status st = DT_OK;

    DT_TRY(dt_dir_program(&argv[count++], "dtrun", NULL, arena, err));
    argv[count++] = "launch";
    argv[count++] =
        dt_arena_printf(arena, "%s/point-%lld.yaml", group->folder, (long long)index + 1);
    argv[count++] = "--detach";
    argv[count++] = "--json";
    argv[count++] = "--group";
    argv[count++] = group->name;
    if (place->nodes != NULL) {
        argv[count++] = "--set";
        argv[count++] = place->nodes;
    }
    for (char *tag; (tag = strsep(&rest, " ")) != NULL && count < 9 + 2 * TAGS_MAX;) {
        if (tag[0] == '\0')
            continue;
        argv[count++] = "--tag";
        argv[count++] = tag;
    }
    argv[count] = NULL;
out:
    return st;
}

/* Takes the run id or the problem from the launch's output. A problem of one point does not stop
 * the others. */
static dt_status take_answer(dt_sweep_point *point, bool *missing, const dt_strbuf *said,
                             const dt_strbuf *errors, int exit_code, dt_arena *arena, dt_error *err)
{
    char end[DT_EXIT_WORDS_BYTES];
    const char *run, *message, *status;
    json_t *answer = NULL, *error;

    if (said->length > 0)
        (void)dt_json_parse(&answer, said->data, said->length, "dtrun launch", NULL);
    run = json_string_value(json_object_get(answer, "run"));
    error = json_object_get(answer, "error");
    message = json_string_value(json_object_get(error, "message"));
    status = json_string_value(json_object_get(error, "status"));
    *missing = status != NULL && strcmp(status, dt_status_name(DT_ERR_NOT_FOUND)) == 0;
    if (run != NULL)
        point->run = dt_arena_strdup(arena, run);
    else if (message != NULL)
        point->problem = dt_arena_strdup(arena, message);
    else
        point->problem =
            dt_arena_printf(arena, "dtrun %s%s%.500s", dt_exit_words_of_shell(end, exit_code),
                            errors->length > 0 ? ": " : ", without a message", errors->data);
    json_decref(answer);
    return DT_OK;
}

/* Runs dtrun. *missing: the run or checkpoint does not exist. */
static dt_status call(dt_sweep_point *point, bool *missing, const char *const *argv,
                      dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf said, errors;
    int exit_code = 0;

    dt_strbuf_init(&said);
    dt_strbuf_init(&errors);
    DT_TRY(dt_child_run(
        &exit_code,
        &(dt_child_call){.argv = argv, .out = &said, .errors = &errors, .seconds = LAUNCH_SECONDS},
        err));
    DT_TRY(take_answer(point, missing, &said, &errors, exit_code, arena, err));
out:
    dt_strbuf_release(&said);
    dt_strbuf_release(&errors);
    return st;
}

dt_status dt_point_begin(dt_sweep_point *point, const dt_sweep_group *group, int64_t index,
                         const dt_place *place, dt_arena *arena, dt_error *err)
{
    const char *argv[10 + 2 * TAGS_MAX];
    bool missing;
    dt_status st;

    DT_TRY(words_of(argv, group, index, place, arena, err));
    DT_TRY(call(point, &missing, argv, arena, err));
out:
    return st;
}

dt_status dt_point_resume(dt_sweep_point *point, const dt_sweep_group *group, int64_t index,
                          const dt_place *place, dt_arena *arena, dt_error *err)
{
    const char *argv[] = {NULL,     "resume", point->run,   "--detach",
                          "--json", "--set",  place->nodes, NULL};
    bool missing;
    dt_status st;

    if (place->nodes == NULL)
        argv[5] = NULL;
    DT_TRY(dt_dir_program(&argv[0], "dtrun", NULL, arena, err));
    DT_TRY(call(point, &missing, argv, arena, err));
    if (missing) {
        point->problem = "";
        DT_TRY(dt_point_begin(point, group, index, place, arena, err));
    }
    point->again = false;
out:
    return st;
}

dt_status dt_points_find(dt_sweep_group *group, dt_store *store, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    int64_t count;
    dt_run *runs;

    DT_TRY(dt_store_run_list(store, &runs, &count, -1, 0, arena, err));
    for (int64_t i = 0; i < group->count; i++) {
        dt_sweep_point *point = &group->points[i];

        if ((point->run[0] != '\0' && !point->again) || point->problem[0] != '\0')
            continue;
        for (int64_t j = 0; j < count; j++) {
            if (strcmp(runs[j].group, group->name) != 0 || strcmp(runs[j].name, point->name) != 0)
                continue;
            point->again = point->again && strcmp(point->run, runs[j].id) == 0;
            point->run = runs[j].id;
            break; /* the newest, because a point to be resumed may have been launched again */
        }
    }
out:
    return st;
}

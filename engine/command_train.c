#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/channel/events.h"
#include "engine/commands.h"
#include "engine/task/task.h"
#include "engine/train/train.h"

static dt_status parse_train(const char **plan, int argc, char **argv, dt_error *err)
{
    static const struct option options[] = {{"plan", required_argument, NULL, 'p'},
                                            {NULL, 0, NULL, 0}};
    int option;

    *plan = NULL;
    while ((option = getopt_long(argc, argv, ":", options, NULL)) == 'p')
        *plan = optarg;
    if (option != -1 || optind < argc)
        return dt_argument_refuse(argv, option, err);
    if (*plan == NULL)
        return DT_FAIL(err, DT_ERR_USAGE, "--plan is missing");
    return DT_OK;
}

/* --- a task */

/* Parse the arguments of a task, preceded by those that the plan itself determines. */
static dt_status read_how(dt_task_how *out, const dt_plan *plan, dt_arena *arena, dt_error *err)
{
    const char *const before[] = {"task", "--checkpoint", plan->resume_from, "--input",
                                  plan->task.input};
    const int fixed = (int)(sizeof(before) / sizeof(before[0]));
    int argc = fixed + (int)plan->task.arguments.count;
    char **argv = dt_arena_alloc_array(arena, (size_t)argc + 1, sizeof(*argv));
    dt_generate_arguments *given = dt_arena_alloc(arena, sizeof(*given));
    dt_score_arguments scored;
    dt_status st = DT_OK;

    for (int i = 0; i < argc; i++)
        argv[i] = (char *)(i < fixed ? before[i] : plan->task.arguments.items[i - fixed]);
    argv[argc] = NULL;
    optind = 0; /* glibc: restart getopt, which has parsed the command's own arguments */
    if (plan->recipe.task == DT_TASK_EVALUATE) {
        out->precision = plan->recipe.precision.kind == DT_PRECISION_BF16 ? DT_BF16 : DT_F32;
        return DT_OK;
    }
    if (plan->recipe.task == DT_TASK_SCORE)
        return dt_score_arguments_parse(&scored, argc, argv, err);
    DT_TRY(dt_generate_arguments_parse(given, argc, argv, err));
    *out = (dt_task_how){.rules = given->options.rules,
                         .batch = given->batch,
                         .precision = given->options.precision};
out:
    return st;
}

static dt_status run(const dt_plan *plan, int64_t rank, dt_events *events, dt_arena *arena,
                     dt_error *err)
{
    dt_task_how how = {.batch = 1};
    dt_status st = DT_OK;

    if (plan->recipe.task == DT_TASK_COMMAND)
        return DT_FAIL(err, DT_ERR_UNSUPPORTED,
                       "the plan has a command: dtrun-agent starts it, not the engine");
    if (plan->recipe.task == DT_TASK_TRAIN)
        return dt_train(plan, rank, events, err);
    DT_TRY(read_how(&how, plan, arena, err));
    DT_TRY(dt_task_run(plan, rank, &how, events, err));
out:
    return st;
}

dt_status dt_engine_train(int argc, char **argv, dt_error *err)
{
    const char *path, *rank_text = getenv("RANK");
    dt_events *events = NULL;
    int64_t rank = 0;
    dt_arena arena;
    dt_plan plan;
    char who[32];
    dt_status st = DT_OK;

    dt_arena_init(&arena, 0);
    DT_TRY(parse_train(&path, argc, argv, err));
    DT_TRY(dt_plan_read(&plan, path, &arena, err));
    if (rank_text != NULL)
        DT_TRY(dt_argument_whole(&rank, rank_text, "RANK", 0, plan.world_size - 1, err));
    dt_stop_block();
    snprintf(who, sizeof(who), "engine[%lld]", (long long)rank);
    dt_log_init(who);
    DT_TRY(dt_events_open(&events, rank, plan.world_size, err));
    DT_TRY(run(&plan, rank, events, &arena, err));
out:
    dt_events_close(events);
    dt_arena_release(&arena);
    return st;
}

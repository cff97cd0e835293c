#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "engine/arguments.h"
#include "engine/channel/stop.h"
#include "engine/commands.h"
#include "engine/train/train.h"

#include "base/banned.h"

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
    DT_TRY(dt_train(&plan, rank, events, err));
out:
    dt_events_close(events);
    dt_arena_release(&arena);
    return st;
}

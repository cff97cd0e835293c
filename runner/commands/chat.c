/* dtrun chat: talks with a checkpoint of a run. */
#include "runner/cli/command.h"
#include "runner/launch/existing_run.h"
#include "runner/view/runs/runs.h"

static dt_status chat(dt_call *call, dt_error *err)
{
    const char *checkpoint, *ref, *which;
    dt_store *store = NULL;
    dt_status st = DT_OK;
    dt_run run;

    DT_TRY(dt_from_checkpoint_ref(&ref, &which, call->args->operands[0], true, call, err));
    DT_TRY(dt_runs_open(&store, &run, ref, call, err));
    DT_TRY(dt_from_checkpoint_find(&checkpoint, store, &run, which, call, err));
    DT_TRY(dt_from_checkpoint_talk(&run, checkpoint, call, err));
out:
    dt_store_close(store);
    return st;
}

static const dt_option options[] = {
    {.name = "system",
     .kind = DT_OPTION_TEXT,
     .value = "TEXT",
     .help = "begin the conversation with this message of the system"},
    {.name = "chat-template",
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "use this template instead of the run's"},
    {.name = "tokens",
     .letter = 'n',
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "1000",
     .low = 1,
     .high = 1000000,
     .help = "maximum number of tokens of an answer"},
    {.name = "stop", .kind = DT_OPTION_LIST, .value = "TEXT", .help = "end before this text"},
    DT_SAMPLING_OPTIONS,
    {.name = "seed",
     .kind = DT_OPTION_INT,
     .value = "S",
     .fallback = "1337",
     .low = 0,
     .high = 9007199254740992.0,
     .help = "seed of the sampling; answer i, counted from 0, has the seed S + i"},
    DT_FROM_CHECKPOINT_OPTIONS,
    DT_PRECISION_OPTION,
    {0},
};

const dt_command dt_command_chat = {
    .name = "chat",
    .summary = "talk with a checkpoint of a run",
    .operands = "RUN[@STEP|@best]",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_LOCAL,
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =
        "Each line is a message; the answer is printed as it is generated, and ends where the\n"
        "template of the run ends a turn. The conversation is kept: when it no longer fits into\n"
        "the context of the model, the oldest messages are left out, which is reported. Ctrl-C\n"
        "ends an answer, Ctrl-D the conversation. The template is the one that the run was\n"
        "trained with, or that came with its weights (docs/finetuning.md).\n"
        "Without a terminal, the messages are the lines of stdin. --json prints an object for\n"
        "each answer, one a line: role, content, tokens and ended (end_of_text, tokens, stop or\n"
        "interrupted).\n",
    .run = chat,
};

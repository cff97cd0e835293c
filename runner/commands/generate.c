/* dtrun generate: text from a checkpoint; the engine does the work. */
#include <string.h>

#include "base/file.h"
#include "engine/checkpoint/checkpoint.h"
#include "runner/cli/child.h"
#include "runner/cli/command.h"
#include "runner/cli/program.h"
#include "runner/cli/report.h"
#include "runner/supervisor/supervisor.h"
#include "runner/view/runs.h"

#include "base/banned.h"

static dt_status checkpoint_of_step(const char **path, int64_t step, dt_store *store,
                                    const dt_run *run, dt_arena *arena, dt_error *err)
{
    dt_store_checkpoint *all;
    dt_status st = DT_OK;
    dt_strbuf steps;
    int64_t count;

    dt_strbuf_init(&steps);
    DT_TRY(dt_store_checkpoint_list(store, &all, &count, run->id, arena, err));
    for (int64_t i = 0; i < count; i++) {
        if (!dt_file_exists(all[i].path))
            continue;
        *path = all[i].path;
        if (all[i].step == step)
            goto out;
        dt_strbuf_add_fmt(&steps, "%s%lld", steps.length > 0 ? ", " : "", (long long)all[i].step);
    }
    DT_THROW(err, DT_ERR_NOT_FOUND, "run '%s' has no checkpoint of step %lld (it has %s)", run->id,
             (long long)step, steps.length > 0 ? steps.data : "none");
out:
    dt_strbuf_release(&steps);
    return st;
}

static dt_status newest_checkpoint(const char **path, const dt_run *run, dt_arena *arena,
                                   dt_error *err)
{
    const char *parent;
    dt_status st = DT_OK;

    DT_TRY(dt_run_path(&parent, run->id, "checkpoints", arena, err));
    DT_TRY(dt_checkpoint_find_newest(path, parent, arena, err));
    if (*path == NULL)
        DT_THROW(err, DT_ERR_NOT_FOUND,
                 "run '%s' has no whole checkpoint: it is %s, and one is saved every"
                 " checkpoint.every steps and at the end",
                 run->id, dt_run_state_name(run->state));
out:
    return st;
}

static dt_status call_engine(dt_strbuf *out, const char *checkpoint, const dt_call *call,
                             dt_error *err)
{
    static const char *const passed[] = {"prompt", "tokens", "temperature", "top-k", "seed"};
    const char *argv[2 + 2 + 2 * sizeof(passed) / sizeof(passed[0]) + 2];
    dt_status st = DT_OK;
    dt_strbuf errors;
    int argc = 0, exit_code = 0;

    dt_strbuf_init(&errors);
    DT_TRY(dt_program_engine(&argv[argc++], call->arena, err));
    argv[argc++] = "generate";
    argv[argc++] = "--checkpoint";
    argv[argc++] = checkpoint;
    for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++) {
        argv[argc] = dt_arena_printf(call->arena, "--%s", passed[i]);
        if (argv[argc++] == NULL)
            DT_THROW(err, DT_ERR_NOMEM, "no memory");
        argv[argc++] = dt_arguments_get(call->args, passed[i])->text;
    }
    if (call->json)
        argv[argc++] = "--json";
    argv[argc] = NULL;
    DT_TRY(dt_child_run(&exit_code, out, &errors, (char *const *)argv, err));
    if (exit_code != 0 && errors.length > 0)
        st = DT_FAIL(err, exit_code == 2 ? DT_ERR_USAGE : DT_ERR_CORRUPT, "%s",
                     dt_child_complaint(&errors, "dtrun-engine: "));
    else if (exit_code != 0)
        st = DT_FAIL(err, DT_ERR_IO, "dtrun-engine ended with code %d without saying why",
                     exit_code);
out:
    dt_strbuf_release(&errors);
    return st;
}

static dt_status print_json(const dt_strbuf *text, const dt_run *run, dt_error *err)
{
    json_t *object = dt_report_object(), *from_engine = NULL;
    dt_status st = DT_OK;

    DT_TRY(dt_json_parse(&from_engine, text->data, text->length, "dtrun-engine", err));
    json_object_set_new(object, "run", json_string(run->id));
    json_object_update_missing(object, from_engine);
    DT_TRY(dt_report_json(json_incref(object), err));
out:
    json_decref(object);
    json_decref(from_engine);
    return st;
}

static dt_status generate(dt_call *call, dt_error *err)
{
    const dt_value *step = dt_arguments_get(call->args, "checkpoint");
    const char *checkpoint;
    dt_store *store = NULL;
    dt_status st = DT_OK;
    dt_strbuf text;
    dt_run run;

    dt_strbuf_init(&text);
    DT_TRY(dt_runs_open(&store, &run, call->args->operands[0], call, err));
    DT_TRY(step->given
               ? checkpoint_of_step(&checkpoint, step->integer, store, &run, call->arena, err)
               : newest_checkpoint(&checkpoint, &run, call->arena, err));
    DT_TRY(call_engine(&text, checkpoint, call, err));
    DT_TRY(call->json ? print_json(&text, &run, err) : dt_report_data(&text, err));
out:
    dt_store_close(store);
    dt_strbuf_release(&text);
    return st;
}

static const dt_option options[] = {
    {.name = "prompt",
     .letter = 'p',
     .kind = DT_OPTION_TEXT,
     .value = "TEXT",
     .fallback = "",
     .help = "what the text begins with"},
    {.name = "tokens",
     .letter = 'n',
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "300",
     .low = 1,
     .high = 1000000,
     .help = "how many tokens are added"},
    {.name = "temperature",
     .letter = 't',
     .kind = DT_OPTION_NUMBER,
     .value = "X",
     .fallback = "0.8",
     .low = 0,
     .high = 100,
     .help = "0 always takes the likeliest token, 1 draws as learned"},
    {.name = "top-k",
     .letter = 'k',
     .kind = DT_OPTION_INT,
     .value = "K",
     .fallback = "0",
     .low = 0,
     .high = 1 << 24,
     .help = "draw among the K likeliest only; 0 for all"},
    {.name = "seed",
     .kind = DT_OPTION_INT,
     .value = "S",
     .fallback = "1337",
     .low = 0,
     .high = 9007199254740992.0,
     .help = "of the drawing: the same seed gives the same text"},
    {.name = "checkpoint",
     .letter = 'c',
     .kind = DT_OPTION_INT,
     .value = "STEP",
     .low = 0,
     .high = 1e15,
     .help = "the checkpoint of this step instead of the newest"},
    {0},
};

const dt_command dt_command_generate = {
    .name = "generate",
    .summary = "text from a checkpoint of a run",
    .operands = "RUN",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =
        "Prints the prompt and what the model adds to it. With --json: run, checkpoint, step,\n"
        "prompt, text. A model of token ids has no text: it takes and gives numbers, as in\n"
        "--prompt \"12 7 400\".\n",
    .run = generate,
};

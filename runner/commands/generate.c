/* dtrun generate: text from a checkpoint; the engine does the work. */
#include <string.h>

#include "engine/checkpoint/checkpoint.h"
#include "runner/cli/child.h"
#include "runner/cli/command.h"
#include "runner/cli/program.h"
#include "runner/cli/report.h"
#include "runner/launch/existing_run.h"
#include "runner/supervisor/supervisor.h"
#include "runner/view/runs.h"

#include "base/banned.h"

/* --- the engine */

static dt_status list_arguments(const char ***out, const char *checkpoint, const dt_call *call,
                                dt_error *err)
{
    static const char *const passed[] = {
        "input", "beam",  "length-penalty",     "prompt", "prompt-file", "tokens", "temperature",
        "top-k", "top-p", "repetition-penalty", "seed",   "device",      "threads"};
    enum { PASSED = sizeof(passed) / sizeof(passed[0]) };
    const dt_value *stops = dt_arguments_get(call->args, "stop");
    const char **argv =
        dt_arena_alloc_array(call->arena, 8 + 2 * (PASSED + stops->items_count), sizeof(*argv));
    dt_status st = DT_OK;
    size_t argc = 0;

    if (argv == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    DT_TRY(dt_program_engine(&argv[argc++], call->arena, err));
    argv[argc++] = "generate";
    argv[argc++] = "--checkpoint";
    argv[argc++] = checkpoint;
    for (size_t i = 0; i < PASSED; i++) {
        const dt_value *value = dt_arguments_get(call->args, passed[i]);

        if (value->text == NULL)
            continue;
        argv[argc] = dt_arena_printf(call->arena, "--%s", passed[i]);
        if (argv[argc++] == NULL)
            DT_THROW(err, DT_ERR_NOMEM, "no memory");
        argv[argc++] = value->text;
    }
    for (size_t i = 0; i < stops->items_count; i++) {
        argv[argc++] = "--stop";
        argv[argc++] = stops->items[i];
    }
    if (dt_arguments_flag(call->args, "past-end"))
        argv[argc++] = "--past-end";
    if (call->json)
        argv[argc++] = "--json";
    *out = argv; /* in the arena, ends with NULL */
out:
    return st;
}

static dt_status show(void *context, const char *bytes, size_t length, dt_error *err)
{
    dt_strbuf *text = context;

    dt_strbuf_reset(text);
    dt_strbuf_add(text, bytes, length);
    return dt_report_data(text, err);
}

static dt_status keep(void *context, const char *bytes, size_t length, dt_error *err)
{
    (void)err;
    dt_strbuf_add(context, bytes, length);
    return DT_OK;
}

/* Text is shown as it comes; JSON is whole at the end, in `out`. */
static dt_status call_engine(dt_strbuf *out, const char *checkpoint, const dt_call *call,
                             dt_error *err)
{
    const char **argv = NULL;
    dt_status st = DT_OK;
    dt_strbuf errors;
    int exit_code = 0;

    dt_strbuf_init(&errors);
    DT_TRY(list_arguments(&argv, checkpoint, call, err));
    DT_TRY(dt_child_stream(&exit_code, call->json ? keep : show, out, &errors, (char *const *)argv,
                           err));
    st = dt_child_engine_status(exit_code, &errors, err);
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

/* "-" is stdin, of either option; a prompt that is that alone is given by a file. */
static dt_status check_prompt(const dt_call *call, dt_error *err)
{
    if (dt_arguments_get(call->args, "prompt")->given &&
        dt_arguments_get(call->args, "prompt-file")->given)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "--prompt and --prompt-file are both given; leave one out");
    return DT_OK;
}

static dt_status find_checkpoint(const char **path, dt_store *store, const dt_run *run,
                                 const dt_call *call, dt_error *err)
{
    const char *which = dt_arguments_get(call->args, "checkpoint")->text;
    const char *parent, *newest = "";
    dt_status st = DT_OK;

    if (which == NULL) {
        DT_TRY(dt_run_path(&parent, run->id, "checkpoints", call->arena, err));
        DT_TRY(dt_checkpoint_find_newest(&newest, parent, call->arena, err));
    }
    if (newest == NULL)
        DT_THROW(err, DT_ERR_NOT_FOUND,
                 "run '%s' has no whole checkpoint: it is %s, and one is saved every"
                 " checkpoint.every steps and at the end",
                 run->id, dt_run_state_name(run->state));
    DT_TRY(dt_existing_run_checkpoint_path(path, store, run, which, call->arena, err));
out:
    return st;
}

static dt_status generate(dt_call *call, dt_error *err)
{
    const char *checkpoint;
    dt_store *store = NULL;
    dt_status st = DT_OK;
    dt_strbuf text;
    dt_run run;

    dt_strbuf_init(&text);
    DT_TRY(check_prompt(call, err));
    DT_TRY(dt_runs_open(&store, &run, call->args->operands[0], call, err));
    DT_TRY(find_checkpoint(&checkpoint, store, &run, call, err));
    DT_TRY(call_engine(&text, checkpoint, call, err));
    if (call->json)
        DT_TRY(print_json(&text, &run, err));
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
     .help = "what the text begins with; - reads it from stdin"},
    {.name = "prompt-file",
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "the same from a file, without the line break at its end"},
    {.name = "input",
     .letter = 'i',
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "translate its lines, each to a line; - reads them from stdin"},
    {.name = "beam",
     .letter = 'b',
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "1",
     .low = 1,
     .high = 256,
     .help = "with --input: search so many translations side by side; 1 takes the likeliest token"},
    {.name = "length-penalty",
     .kind = DT_OPTION_NUMBER,
     .value = "A",
     .fallback = "1",
     .low = 0,
     .high = 10,
     .help = "with --input: their log-probability is divided by length^A"},
    {.name = "tokens",
     .letter = 'n',
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "300",
     .low = 1,
     .high = 1000000,
     .help = "how many tokens are added at most"},
    {.name = "stop",
     .kind = DT_OPTION_LIST,
     .value = "TEXT",
     .help = "end before this text, as often as needed"},
    {.name = "past-end",
     .kind = DT_OPTION_FLAG,
     .help = "go on where the model says that the text ends"},
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
    {.name = "top-p",
     .kind = DT_OPTION_NUMBER,
     .value = "P",
     .fallback = "1",
     .low = 0,
     .high = 1,
     .help = "draw among the likeliest whose chances add up to P; 1 for all"},
    {.name = "repetition-penalty",
     .kind = DT_OPTION_NUMBER,
     .value = "R",
     .fallback = "1",
     .low = 0.01,
     .high = 100,
     .help = "over 1: tokens that the text has become less likely"},
    {.name = "seed",
     .kind = DT_OPTION_INT,
     .value = "S",
     .fallback = "1337",
     .low = 0,
     .high = 9007199254740992.0,
     .help = "of the drawing: the same seed gives the same text"},
    {.name = "checkpoint",
     .letter = 'c',
     .kind = DT_OPTION_TEXT,
     .value = "STEP|best|DIR",
     .help = "the one of this step, of the lowest validation loss, or a folder (with a '/'), "
             "instead of "
             "the newest"},
    {.name = "device",
     .kind = DT_OPTION_TEXT,
     .value = "NAME",
     .fallback = "cpu",
     .help = "cpu, or cuda:N of this machine"},
    {.name = "threads",
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "0",
     .low = 0,
     .high = 1024,
     .help = "of the cpu; 0 for all cores"},
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
        "Prints the prompt and what the model adds to it, as it comes, until there are so many\n"
        "tokens, a stop text, or the end of the text where the tokenizer has a token for it.\n"
        "With --json: run, checkpoint, step, prompt, text, tokens, ended (tokens, stop or\n"
        "end_of_text), seed. A model of token ids has no text: it takes and gives numbers, as\n"
        "in --prompt \"12 7 400\".\n"
        "With --input, of a run on sentence pairs, each line is translated, in its order: --beam,\n"
        "as fairseq searches, with the score log-probability / length^A; the end counts in both.\n"
        "With --json: run, checkpoint, and of each of lines text and score.\n",
    .run = generate,
};

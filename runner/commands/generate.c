/* dtrun generate: generates or translates text with a checkpoint, in an engine or on the ranks of a run. */
#include <string.h>

#include "base/file.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/launch/existing_run.h"
#include "runner/launch/task.h"
#include "runner/view/compare/compare.h"
#include "runner/view/follow/follow.h"
#include "runner/view/runs/runs.h"

/* Both options read stdin for "-"; a prompt that is a single "-" needs --prompt-file. */
static dt_status check_prompt(const dt_call *call, dt_error *err)
{
    if (dt_arguments_get(call->args, "prompt")->given &&
        dt_arguments_get(call->args, "prompt-file")->given)
        return DT_FAIL(err, DT_ERR_USAGE, "--prompt and --prompt-file cannot be combined");
    return DT_OK;
}

/* Refuses options that do not apply to conversations. */
static dt_status check_chat(const dt_call *call, dt_error *err)
{
    static const char *const others[] = {"prompt",     "prompt-file", "input", "reference", "beam",
                                         "no-special", "ranks",       "nodes", "gpus"};
    bool chat = dt_arguments_get(call->args, "chat")->given;

    if (!chat && dt_arguments_get(call->args, "chat-template")->given)
        return DT_FAIL(err, DT_ERR_USAGE, "--chat-template needs --chat");
    for (size_t i = 0; chat && i < sizeof(others) / sizeof(others[0]); i++)
        if (dt_arguments_get(call->args, others[i])->given)
            return DT_FAIL(err, DT_ERR_USAGE, "--chat and --%s cannot be combined", others[i]);
    return DT_OK;
}

/* Checks before the work that --output can be written. ranks: a run writes the file, so --json is allowed. */
static dt_status check_output(const dt_call *call, bool ranks, dt_error *err)
{
    const char *path = dt_arguments_get(call->args, "output")->text;

    if (path == NULL)
        return DT_OK;
    if (!dt_arguments_get(call->args, "input")->given)
        return DT_FAIL(err, DT_ERR_USAGE, "--output needs --input");
    if (call->json && !ranks)
        return DT_FAIL(err, DT_ERR_USAGE, "--output and --json cannot be combined");
    return dt_output_check(path, dt_arguments_flag(call->args, "force"), call->arena, err);
}

static dt_status check_reference(const dt_call *call, dt_error *err)
{
    const dt_value *reference = dt_arguments_get(call->args, "reference");

    if (reference->given && !dt_arguments_get(call->args, "input")->given)
        return DT_FAIL(err, DT_ERR_USAGE, "--reference needs --input");
    if (reference->given && !dt_file_exists(reference->text))
        return DT_FAIL(err, DT_ERR_USAGE, "--reference: no file '%s'", reference->text);
    if (reference->given)
        return dt_bleu_expect(dt_arguments_get(call->args, "input")->text, reference->text, err);
    return DT_OK;
}

/* Prints BLEU of the output against --reference, or adds it to `object`. */
static dt_status compare(const dt_strbuf *text, dt_call *call, json_t *object, dt_error *err)
{
    const char *path = dt_arguments_get(call->args, "reference")->text;
    const char *names[] = {"the translation", NULL};
    dt_bleu_report report;
    dt_status st = DT_OK;
    dt_strbuf reference, out;

    if (path == NULL)
        return DT_OK;
    dt_strbuf_init(&reference);
    dt_strbuf_init(&out);
    names[1] = dt_arena_printf(call->arena, "'%s'", path);
    DT_TRY(dt_file_read(&reference, path, DT_BLEU_FILE_MOST, err));
    DT_TRY(dt_bleu_compare(&report, text, &reference, names,
                           dt_arguments_get(call->args, "tokenize")->text, call->arena, err));
    if (object != NULL) {
        json_t *bleu = json_object();

        dt_bleu_add_json(bleu, &report);
        json_object_set_new(object, "bleu", bleu);
    } else {
        dt_bleu_add_text(&out, &report);
        out.data[--out.length] = '\0';
        dt_report_note(call, "%s", out.data);
    }
out:
    dt_strbuf_release(&reference);
    dt_strbuf_release(&out);
    return st;
}

/* Joins the lines of an answer to one text, as it would be printed. */
static void join_lines(dt_strbuf *out, const json_t *object)
{
    static const char *const keys[] = {"prompt", "text"};
    const json_t *line, *text;
    size_t i;

    json_array_foreach(json_object_get(object, "lines"), i, line) {
        for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
            text = json_object_get(line, keys[k]);
            if (text != NULL)
                dt_strbuf_add(out, json_string_value(text), json_string_length(text));
        }
        dt_strbuf_add_char(out, '\n');
    }
}

/* Refuses options of sampling with a beam search, which would ignore them. Temperature 0 does not sample either. */
static dt_status check_beam(const dt_call *call, dt_error *err)
{
    static const char *const others[] = {"stop", "repetition-penalty", "top-k", "top-p",
                                         "temperature"};

    if (dt_arguments_get(call->args, "beam")->integer <= 1)
        return DT_OK;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        const dt_value *value = dt_arguments_get(call->args, others[i]);

        if (value->given && !(strcmp(others[i], "temperature") == 0 && value->number == 0))
            return DT_FAIL(err, DT_ERR_USAGE, "--beam and --%s cannot be combined", others[i]);
    }
    return DT_OK;
}

static dt_status check_run(bool *ranks, const dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_task_is_wanted(ranks, call, err));
    if (!*ranks)
        return DT_OK;
    if (dt_arguments_get(call->args, "prompt")->given ||
        dt_arguments_get(call->args, "prompt-file")->given)
        DT_THROW(err, DT_ERR_USAGE, "--input cannot be combined with --prompt or --prompt-file");
    if (dt_arguments_flag(call->args, "detach") && dt_arguments_get(call->args, "reference")->given)
        DT_THROW(err, DT_ERR_USAGE, "--reference and --detach cannot be combined");
out:
    return st;
}

static dt_status generate(dt_call *call, dt_error *err)
{
    const char *checkpoint, *ref, *which, *task;
    dt_store *store = NULL;
    json_t *object = NULL;
    dt_status st = DT_OK;
    dt_strbuf text;
    bool ranks;
    dt_run run;

    dt_strbuf_init(&text);
    DT_TRY(check_prompt(call, err));
    DT_TRY(check_chat(call, err));
    DT_TRY(check_beam(call, err));
    DT_TRY(check_reference(call, err));
    DT_TRY(check_run(&ranks, call, err));
    DT_TRY(check_output(call, ranks, err));
    DT_TRY(dt_from_checkpoint_ref(&ref, &which, call->args->operands[0], true, call, err));
    DT_TRY(dt_runs_open(&store, &run, ref, call, err));
    DT_TRY(dt_from_checkpoint_find(&checkpoint, store, &run, which, call, err));
    if (ranks) {
        DT_TRY(dt_task_launch(&task, &run, checkpoint, call, err));
        DT_TRY(dt_task_follow(&text, &object, store, task, call, err));
    } else {
        DT_TRY(dt_from_checkpoint_call(&object, &text, &run, checkpoint,
                                       dt_arguments_get(call->args, "output")->given, call, err));
        DT_TRY(dt_output_write_asked(&text, call, err));
        if (object != NULL)
            join_lines(&text, object);
    }
    if (call->exit_code == 0 && !dt_arguments_flag(call->args, "detach"))
        DT_TRY(compare(&text, call, object, err));
    if (object != NULL)
        DT_TRY(dt_report_json(json_incref(object), err));
out:
    json_decref(object);
    dt_strbuf_release(&text);
    dt_store_close(store);
    return st;
}

static const dt_option options[] = {
    {.name = "prompt",
     .letter = 'p',
     .kind = DT_OPTION_TEXT,
     .value = "TEXT",
     .help = "start of the text; - reads it from stdin"},
    {.name = "prompt-file",
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "read the prompt from a file, without its last line break"},
    {.name = "input",
     .letter = 'i',
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "translate each line, or with a run on texts continue each line; - reads stdin"},
    {.name = "chat",
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "answer each conversation of a file, a JSON object a line; - reads stdin"},
    {.name = "chat-template",
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "with --chat: use this template instead of the run's"},
    {.name = "batch",
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "16",
     .low = 1,
     .high = 1024,
     .help = "with --input and --chat: decode this many lines together"},
    {.name = "output",
     .letter = 'o',
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "with --input: write the lines to this file, once all are done"},
    {.name = "force", .kind = DT_OPTION_FLAG, .help = "with --output: replace an existing file"},
    {.name = "beam",
     .letter = 'b',
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "1",
     .low = 1,
     .high = 256,
     .help = "beam search of this width; with 1, translations take the likeliest token and texts "
             "are sampled"},
    {.name = "length-penalty",
     .kind = DT_OPTION_NUMBER,
     .value = "A",
     .fallback = "1",
     .low = 0,
     .high = 10,
     .help = "with --beam: divide log-probabilities by length^A"},
    {.name = "reference",
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "with --input: reference translations; prints BLEU against them"},
    {.name = "tokenize",
     .kind = DT_OPTION_CHOICE,
     .value = "HOW",
     .fallback = "13a",
     .choices = dt_bleu_tokenizers,
     .help = "with --reference: tokenizer of BLEU"},
    {.name = "tokens",
     .letter = 'n',
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "300",
     .low = 1,
     .high = 1000000,
     .help = "maximum number of new tokens"},
    {.name = "stop", .kind = DT_OPTION_LIST, .value = "TEXT", .help = "end before this text"},
    {.name = "past-end", .kind = DT_OPTION_FLAG, .help = "continue after the end-of-text token"},
    {.name = "no-special",
     .kind = DT_OPTION_FLAG,
     .help = "do not add the tokenizer's special tokens (\"<s>\") before a prompt"},
    DT_SAMPLING_OPTIONS,
    {.name = "seed",
     .kind = DT_OPTION_INT,
     .value = "S",
     .fallback = "1337",
     .low = 0,
     .high = 9007199254740992.0,
     .help = "seed of the sampling: the same seed gives the same text"},
    DT_FROM_CHECKPOINT_OPTIONS,
    DT_PRECISION_OPTION,
    DT_TASK_OPTIONS,
    {0},
};

const dt_command dt_command_generate = {
    .name = "generate",
    .summary = "generate or translate text with a checkpoint of a run",
    .operands = "RUN[@STEP|@best]",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_LOCAL,
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =

        "Prints the prompt and the new text as it is generated, until --tokens are reached, a\n"
        "--stop text, or a token that ends texts: one of model.end_ids, or else the tokenizer's\n"
        "end-of-text token.\n"
        "--json prints run, checkpoint, step, prompt, text, tokens, ended (tokens, stop or\n"
        "end_of_text) and seed. A model on token ids has no text: prompt and output are numbers,\n"
        "as in --prompt \"12 7 400\", and a prompt is required.\n"
        "With --input and a run on texts, each line is a prompt. Prints the lines with what the\n"
        "model adds to them; line breaks become spaces. Line i, counted from 0, gets the text of\n"
        "--prompt with the seed S + i; on a CPU bit for bit, for every --batch up to 16.\n"
        "--json prints run, checkpoint, step, seed and lines, each with prompt, text, tokens and\n"
        "ended.\n"
        "With --beam nothing is sampled: prints the likeliest text of at most --tokens that the\n"
        "search finds, as in transformers (early_stopping); --json adds its score.\n"
        "With --input and a run on sentence pairs, each line is translated, in order. --beam\n"
        "searches as in fairseq; the score is log-probability / length^A, and the end token\n"
        "counts in both. On a CPU the translation of a line is the same bit for bit for every\n"
        "--batch: fewer lines are decoded together if lines times beams exceed 64. With\n"
        "--past-end each translation is as long as the run's batch.tokens allows.\n"
        "--json prints run, checkpoint and lines, each with text and score. --reference prints\n"
        "BLEU, as in `dtrun score`, on stderr or as bleu.\n"
        "\n"
        "With --chat, the template of the run makes a prompt of each conversation (docs/\n"
        "finetuning.md), and the model answers until its turn ends. A conversation whose last\n"
        "message is the assistant's is continued. Prints an answer a line, with line breaks as\n"
        "spaces; of a file that is one JSON object, the answer as it is. --json prints run,\n"
        "checkpoint, step, seed and lines, each with text, tokens and ended.\n"
        "\n"
        "With --ranks, --nodes or --gpus the ranks of a new run share the lines. The run is\n"
        "followed, stopped, resumed, shown and restarted like any other; the lines of a lost rank\n"
        "are generated again. The output is the same for every number of ranks, in the order of\n"
        "the lines. The supervisor of the run writes it to --output, or it is printed at the end.\n"
        "--json then prints the object of `launch`, and bleu.\n",
    .run = generate,
};

/* dtrun generate: text from a checkpoint; the engine does the work. */
#include "base/file.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/export/output.h"
#include "runner/launch/from_checkpoint.h"
#include "runner/launch/task.h"
#include "runner/view/bleu.h"
#include "runner/view/runs.h"
#include "runner/view/task_end.h"

#include "base/banned.h"

/* "-" is stdin, of either option; a prompt that is that alone is given by a file. */
static dt_status check_prompt(const dt_call *call, dt_error *err)
{
    if (dt_arguments_get(call->args, "prompt")->given &&
        dt_arguments_get(call->args, "prompt-file")->given)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "--prompt and --prompt-file are both given; leave one out");
    return DT_OK;
}

/* That it can be written is found out before there is something to write. */
/* ranks: a run makes it, of which JSON tells. */
static dt_status check_output(const dt_call *call, bool ranks, dt_error *err)
{
    const char *path = dt_arguments_get(call->args, "output")->text;
    dt_output output;
    dt_status st = DT_OK;

    if (path == NULL)
        return DT_OK;
    if (!dt_arguments_get(call->args, "input")->given)
        DT_THROW(err, DT_ERR_USAGE, "--output is for the lines of a file: give them (--input)");
    if (call->json && !ranks)
        DT_THROW(err, DT_ERR_USAGE, "--output and --json are both given; leave one out");
    DT_TRY(dt_output_open(&output, path, dt_arguments_flag(call->args, "force"), call->arena, err));
    (void)dt_output_close(&output, DT_ERR_USAGE, NULL); /* nothing is left of it */
out:
    return st;
}

static dt_status write_output(const dt_strbuf *text, const dt_call *call, dt_error *err)
{
    const char *path = dt_arguments_get(call->args, "output")->text;
    dt_output output;
    dt_status st = DT_OK;

    if (path == NULL)
        return DT_OK;
    DT_TRY(dt_output_open(&output, path, dt_arguments_flag(call->args, "force"), call->arena, err));
    dt_strbuf_add(&output.text, text->data, text->length);
    st = dt_output_close(&output, DT_OK, err);
out:
    return st;
}

static dt_status check_reference(const dt_call *call, dt_error *err)
{
    const dt_value *reference = dt_arguments_get(call->args, "reference");

    if (reference->given && !dt_arguments_get(call->args, "input")->given)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "--reference is of the lines of a file: give them (--input)");
    if (reference->given && !dt_file_exists(reference->text))
        return DT_FAIL(err, DT_ERR_USAGE, "--reference: there is no '%s'", reference->text);
    if (reference->given)
        return dt_bleu_expect(dt_arguments_get(call->args, "input")->text, reference->text, err);
    return DT_OK;
}

/* What was translated, against the reference. */
static dt_status compare(const dt_strbuf *text, dt_call *call, json_t *object, dt_error *err)
{
    const char *path = dt_arguments_get(call->args, "reference")->text;
    const char *names[] = {"what was translated", NULL};
    dt_bleu_report report;
    dt_status st = DT_OK;
    dt_strbuf theirs, out;

    if (path == NULL)
        return DT_OK;
    dt_strbuf_init(&theirs);
    dt_strbuf_init(&out);
    names[1] = dt_arena_printf(call->arena, "'%s'", path);
    if (names[1] == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    DT_TRY(dt_file_read(&theirs, path, DT_BLEU_FILE_MOST, err));
    DT_TRY(dt_bleu_compare(&report, text, &theirs, names,
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
    dt_strbuf_release(&theirs);
    dt_strbuf_release(&out);
    return st;
}

/* What an answer has made of each line, as it would be printed but for line breaks. */
static void join_lines(dt_strbuf *out, const json_t *object)
{
    const json_t *line, *prompt;
    size_t i;

    json_array_foreach(json_object_get(object, "lines"), i, line) {
        prompt = json_object_get(line, "prompt");
        if (prompt != NULL)
            dt_strbuf_add_str(out, json_string_value(prompt));
        dt_strbuf_add_str(out, json_string_value(json_object_get(line, "text")));
        dt_strbuf_add_char(out, '\n');
    }
}

/* Of the options, those that the engine is not told. */
#define OURS                                                                                      \
    "reference", "tokenize", "output", "force", "ranks", "nodes", "gpus", "name", "tag", "group", \
        "note", "wait", "detach"

/* By the ranks of a run. */
static dt_status generate_on_ranks(dt_store *store, const dt_run *parent, const char *checkpoint,
                                   dt_call *call, dt_error *err)
{
    static const char *const here[] = {OURS,     "prompt",  "prompt-file", "input",
                                       "device", "threads", NULL};
    json_t *object = NULL;
    dt_status st = DT_OK;
    const char *run;
    dt_strbuf text;

    dt_strbuf_init(&text);
    DT_TRY(dt_task_launch(&run, parent, checkpoint, here, call, err));
    DT_TRY(dt_task_follow(&text, &object, store, run, call, err));
    if (call->exit_code == 0 && !dt_arguments_flag(call->args, "detach"))
        DT_TRY(compare(&text, call, object, err));
    if (object != NULL)
        DT_TRY(dt_report_json(json_incref(object), err));
out:
    json_decref(object);
    dt_strbuf_release(&text);
    return st;
}

/* By one engine on this machine. */
static dt_status generate_here(const dt_run *run, const char *checkpoint, dt_call *call,
                               dt_error *err)
{
    static const char *const here[] = {OURS, NULL};
    json_t *object = NULL;
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    DT_TRY(dt_from_checkpoint_call(&object, &text, run, checkpoint, here,
                                   dt_arguments_get(call->args, "output")->given, call, err));
    DT_TRY(write_output(&text, call, err));
    if (object != NULL)
        join_lines(&text, object);
    DT_TRY(compare(&text, call, object, err));
    if (object != NULL)
        DT_TRY(dt_report_json(json_incref(object), err));
out:
    json_decref(object);
    dt_strbuf_release(&text);
    return st;
}

static dt_status check_run(bool *ranks, const dt_call *call, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_task_is_wanted(ranks, call, err));
    if (!*ranks)
        return DT_OK;
    if (dt_arguments_get(call->args, "prompt")->given ||
        dt_arguments_get(call->args, "prompt-file")->given)
        DT_THROW(err, DT_ERR_USAGE, "--input and a prompt are both given; leave one out");
    if (dt_arguments_get(call->args, "beam")->integer > 1 &&
        dt_arguments_get(call->args, "stop")->given)
        DT_THROW(err, DT_ERR_USAGE, "--beam and --stop are both given; leave one out");
    if (dt_arguments_flag(call->args, "detach") && dt_arguments_get(call->args, "reference")->given)
        DT_THROW(err, DT_ERR_USAGE,
                 "--reference is compared with once the lines are there: leave out --detach");
out:
    return st;
}

static dt_status generate(dt_call *call, dt_error *err)
{
    const char *checkpoint, *ref, *which;
    dt_store *store = NULL;
    dt_status st = DT_OK;
    bool ranks;
    dt_run run;

    DT_TRY(check_prompt(call, err));
    DT_TRY(check_reference(call, err));
    DT_TRY(check_run(&ranks, call, err));
    DT_TRY(check_output(call, ranks, err));
    DT_TRY(dt_from_checkpoint_ref(&ref, &which, call->args->operands[0], true, call, err));
    DT_TRY(dt_runs_open(&store, &run, ref, call, err));
    DT_TRY(dt_from_checkpoint_find(&checkpoint, store, &run, which, call, err));
    DT_TRY(ranks ? generate_on_ranks(store, &run, checkpoint, call, err)
                 : generate_here(&run, checkpoint, call, err));
out:
    dt_store_close(store);
    return st;
}

static const char *const precisions[] = {"fp32", "bf16", NULL};

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
     .help =
         "translate its lines, each to a line, or of a run on texts continue each; - reads them "
         "from stdin"},
    {.name = "batch",
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "16",
     .low = 1,
     .high = 1024,
     .help = "with --input: so many lines grow side by side"},
    {.name = "output",
     .letter = 'o',
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "with --input: write the lines there, once all of them are done"},
    {.name = "force",
     .kind = DT_OPTION_FLAG,
     .help = "with --output: replace a file that is there"},
    {.name = "beam",
     .letter = 'b',
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "1",
     .low = 1,
     .high = 256,
     .help = "search so many translations or texts side by side for the likeliest; 1: translations "
             "take the likeliest token, texts are drawn"},
    {.name = "length-penalty",
     .kind = DT_OPTION_NUMBER,
     .value = "A",
     .fallback = "1",
     .low = 0,
     .high = 10,
     .help = "of a search: log-probabilities are divided by length^A"},
    {.name = "reference",
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help =
         "with --input: reference translations of its lines; prints the BLEU of ours against them"},
    {.name = "tokenize",
     .kind = DT_OPTION_CHOICE,
     .value = "HOW",
     .fallback = "13a",
     .choices = dt_bleu_tokenizers,
     .help = "with --reference: what a word of BLEU is"},
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
     .help = "continue where the model says that the text ends"},
    {.name = "no-special",
     .kind = DT_OPTION_FLAG,
     .help = "do not put the tokenizer's special tokens (\"<s>\") before a prompt"},
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
     .low = 1e-9,
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
    {.name = "precision",
     .kind = DT_OPTION_CHOICE,
     .value = "P",
     .fallback = "fp32",
     .choices = precisions,
     .help = "of weights and activations: fp32, or bf16, which reads half as many bytes a token"},
    DT_TASK_OPTIONS,
    {0},
};

const dt_command dt_command_generate = {
    .name = "generate",
    .summary = "text from a checkpoint of a run",
    .operands = "RUN[@STEP|@best]",
    .operands_min = 1,
    .operands_max = 1,
    .options = options,
    .notes =
        "Prints the prompt and what the model adds to it, as it comes, until there are so many\n"
        "tokens, a stop text, or a token that ends texts: one of model.end_ids, or else the\n"
        "tokenizer's end-of-text token.\n"
        "With --json: run, checkpoint, step, prompt, text, tokens, ended (tokens, stop or\n"
        "end_of_text), seed. A model of token ids has no text: it takes and gives numbers, as\n"
        "in --prompt \"12 7 400\".\n"
        "With --input, of a run on texts, each line is a prompt: printed are the lines and what\n"
        "the model adds to them, line breaks as spaces. Line i, counted from 0, has the text that\n"
        "--prompt and the seed S + i give; on a CPU to the bit, whatever the --batch up to 16.\n"
        "With --json: run, checkpoint, step, seed, and of each of lines prompt, text, tokens,\n"
        "ended.\n"
        "With --beam nothing is drawn: of the texts of at most --tokens that a search finds, the\n"
        "likeliest, as transformers searches (early_stopping); with --json its score.\n"
        "With --input, of a run on sentence pairs, each line is translated, in its order: --beam,\n"
        "as fairseq searches, with the score log-probability / length^A; the end counts in both.\n"
        "On a CPU a line has the same translation to the bit, whatever the --batch: fewer grow\n"
        "side by side where they and their beams are more than 16.\n"
        "With --json: run, checkpoint, and of each of lines text and score. With --reference,\n"
        "BLEU as `dtrun score` has it, on stderr or as bleu.\n"
        "\n"
        "With --ranks or --nodes the lines are shared out to the ranks of a run, which is\n"
        "followed, stopped, resumed, shown and restarted like any other: a lost rank's lines\n"
        "are made again. What it makes is the same for every number of ranks, in the order\n"
        "of the lines: the file of --output, written by the supervisor of the run, or printed\n"
        "at its end. With --json what `launch` has, and bleu.\n",
    .run = generate,
};

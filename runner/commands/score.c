/* dtrun score: computes the likelihood of lines under the model of a run, or BLEU of translations. */
#include <string.h>

#include "base/file.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/launch/existing_run.h"
#include "runner/launch/task.h"
#include "runner/view/compare/compare.h"
#include "runner/view/follow/follow.h"
#include "runner/view/runs/runs.h"

/* --- a run and lines; the engine does the work */

static dt_status check_lines(bool *ranks, const dt_call *call, dt_error *err)
{
    static const char *const of_files[] = {"hypothesis", "reference", "tokenize", NULL};
    const dt_value *output = dt_arguments_get(call->args, "output");
    dt_status st = DT_OK;

    if (!dt_arguments_get(call->args, "input")->given)
        DT_THROW(err, DT_ERR_USAGE, "--input is missing: the file with the lines to score");
    for (size_t i = 0; of_files[i] != NULL; i++)
        if (dt_arguments_get(call->args, of_files[i])->given)
            DT_THROW(err, DT_ERR_USAGE, "--%s cannot be combined with RUN", of_files[i]);
    DT_TRY(dt_task_is_wanted(ranks, call, err));
    if (!*ranks && output->given)
        DT_THROW(err, DT_ERR_USAGE, "--output needs --ranks, --nodes or --gpus");
    if (output->given)
        DT_TRY(dt_output_check(output->text, dt_arguments_flag(call->args, "force"), call->arena,
                               err));
out:
    return st;
}

static dt_status score_lines(dt_call *call, dt_error *err)
{
    const char *checkpoint, *ref, *which, *task;
    dt_store *store = NULL;
    json_t *object = NULL;
    dt_status st = DT_OK;
    dt_strbuf text;
    bool ranks;
    dt_run run;

    dt_strbuf_init(&text);
    DT_TRY(check_lines(&ranks, call, err));
    DT_TRY(dt_from_checkpoint_ref(&ref, &which, call->args->operands[0], true, call, err));
    DT_TRY(dt_runs_open(&store, &run, ref, call, err));
    DT_TRY(dt_from_checkpoint_find(&checkpoint, store, &run, which, call, err));
    if (ranks) {
        DT_TRY(dt_task_launch(&task, &run, checkpoint, call, err));
        DT_TRY(dt_task_follow(&text, &object, store, task, call, err));
    } else {
        DT_TRY(dt_from_checkpoint_call(&object, &text, &run, checkpoint, false, call, err));
    }
    if (object != NULL)
        DT_TRY(dt_report_json(json_incref(object), err));
out:
    json_decref(object);
    dt_strbuf_release(&text);
    dt_store_close(store);
    return st;
}

/* --- two files */

static dt_status read_file(dt_strbuf *out, const char *path, dt_error *err)
{
    return dt_file_read(out, strcmp(path, "-") == 0 ? "/dev/stdin" : path, DT_BLEU_FILE_MOST, err);
}

static dt_status check_files(const char *const paths[2], const dt_call *call, dt_error *err)
{
    if (dt_arguments_get(call->args, "input")->given ||
        dt_arguments_get(call->args, "target")->given)
        return DT_FAIL(err, DT_ERR_USAGE, "RUN is missing: the run whose model scores the lines");
    if (paths[0] == NULL || paths[1] == NULL)
        return DT_FAIL(err, DT_ERR_USAGE, "--%s is missing: expected the file of the %s",
                       paths[0] == NULL ? "hypothesis" : "reference",
                       paths[0] == NULL ? "translations" : "references");
    if (strcmp(paths[0], "-") == 0 && strcmp(paths[1], "-") == 0)
        return DT_FAIL(err, DT_ERR_USAGE, "--hypothesis and --reference cannot both be stdin");
    return DT_OK;
}

static dt_status score_files(dt_call *call, dt_error *err)
{
    const char *const paths[] = {dt_arguments_get(call->args, "hypothesis")->text,
                                 dt_arguments_get(call->args, "reference")->text};
    const char *names[2];
    dt_bleu_report report;
    dt_strbuf texts[2], out;
    dt_status st = DT_OK;
    json_t *object;

    dt_strbuf_init(&texts[0]);
    dt_strbuf_init(&texts[1]);
    dt_strbuf_init(&out);
    DT_TRY(check_files(paths, call, err));
    for (int i = 0; i < 2; i++) {
        names[i] = dt_arena_printf(call->arena, "'%s'", paths[i]);
        DT_TRY(read_file(&texts[i], paths[i], err));
    }
    DT_TRY(dt_bleu_compare(&report, &texts[0], &texts[1], names,
                           dt_arguments_get(call->args, "tokenize")->text, call->arena, err));
    if (call->json) {
        object = dt_report_object();
        dt_bleu_add_json(object, &report);
        DT_TRY(dt_report_json(object, err));
    } else {
        dt_bleu_add_text(&out, &report);
        DT_TRY(dt_report_text(&out, err));
    }
out:
    dt_strbuf_release(&texts[0]);
    dt_strbuf_release(&texts[1]);
    dt_strbuf_release(&out);
    return st;
}

static dt_status score(dt_call *call, dt_error *err)
{
    return call->args->operands_count > 0 ? score_lines(call, err) : score_files(call, err);
}

static const dt_option options[] = {
    {.name = "input",
     .letter = 'i',
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "with RUN: score the lines of this file; - reads stdin"},
    {.name = "target",
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "with a run on sentence pairs: score these lines as translations of --input"},
    DT_FROM_CHECKPOINT_OPTIONS,
    {.name = "hypothesis",
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "without RUN: translations, one a line; - reads stdin"},
    {.name = "reference",
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "without RUN: reference translations, one a line"},
    {.name = "tokenize",
     .kind = DT_OPTION_CHOICE,
     .value = "HOW",
     .fallback = "13a",
     .choices = dt_bleu_tokenizers,
     .help = "without RUN: tokenizer of BLEU"},
    {.name = "output",
     .letter = 'o',
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "with --ranks, --nodes or --gpus: write the scores to this file, once all are known"},
    {.name = "force", .kind = DT_OPTION_FLAG, .help = "with --output: replace an existing file"},
    DT_TASK_OPTIONS,
    {0},
};

const dt_command dt_command_score = {
    .name = "score",
    .summary = "compute likelihoods of lines, or BLEU of translations",
    .operands = "[RUN[@STEP|@best]]",
    .takes = DT_OPERAND_RUN,
    .runs = DT_RUNS_LOCAL,
    .operands_min = 0,
    .operands_max = 1,
    .options = options,
    .notes =

        "With RUN: prints the natural log-likelihood and token count of each line, then the\n"
        "totals, with the loss a token and its perplexity. A line counts as a document: if the\n"
        "tokenizer has an end-of-text token, that is predicted too. A line starts with the\n"
        "tokenizer's begin token, else with its end-of-text token; with characters, with a line\n"
        "break. A model on token ids predicts the ids after a line's first, as in validation.\n"
        "With a run on sentence pairs, scores the lines of --target given those of --input.\n"
        "--json prints run, checkpoint, lines, each with log_likelihood and tokens, and the\n"
        "totals log_likelihood, tokens, loss and perplexity.\n"
        "With --ranks, --nodes or --gpus the ranks of a new run share the lines, as in `dtrun\n"
        "generate`; --json then prints the object of `launch`.\n"
        "Without RUN: prints corpus BLEU of two files as sacreBLEU computes it: n-grams of one to\n"
        "four words, one reference a line, with case, `exp` smoothing; its signature is printed\n"
        "before the score. --json prints bleu, precisions, brevity_penalty, ratio,\n"
        "hypothesis_words, reference_words, lines and signature.\n"
        "  dtrun generate RUN -i IN | dtrun score --hypothesis - --reference OUT\n",
    .run = score,
};

/* dtrun data: tokenizes the data of a recipe before a run, and trains tokenizers. */
#include <string.h>

#include "base/file.h"
#include "engine/data/files.h"
#include "runner/cli/command.h"
#include "runner/cli/read_recipe.h"
#include "runner/cli/report.h"
#include "runner/commands/data_show.h"
#include "runner/corpus/corpus.h"
#include "runner/launch/preflight.h"
#include "runner/term/term.h"

static void report_progress(const char *text)
{
    dt_report_say("%s", text);
}

static void add_json(json_t *object, const char *key, const dt_prepared *made)
{
    const dt_prepared_facts *facts = &made->facts;
    json_t *files;

    if (made->files.count == 0)
        return;
    files = json_array();
    for (int64_t i = 0; i < made->files.count; i++)
        json_array_append_new(files, dt_json_text(made->files.items[i]));
    json_object_set_new(object, key,
                        json_pack("{s:I, s:I, s:I, s:I, s:b, s:o}", "documents",
                                  (json_int_t)facts->documents, "tokens", (json_int_t)facts->tokens,
                                  "bytes", (json_int_t)facts->bytes, "broken",
                                  (json_int_t)facts->broken, "found", made->found, "files", files));
}

static void add_text(dt_strbuf *out, const char *name, const dt_prepared *made)
{
    if (made->files.count == 0)
        return;
    dt_strbuf_add_fmt(out, "%s: ", name);
    dt_prepared_describe(out, made);
    dt_strbuf_add_fmt(out, ", %s in the cache\n", made->found ? "already" : "now");
}

static dt_status prepare(dt_call *call, dt_error *err)
{
    dt_prepared train, validation;
    dt_recipe recipe, here;
    dt_recipe_source source;
    json_t *object;
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    DT_TRY(dt_read_training_recipe(&recipe, &source, call->args->operands[1], call, err));
    if (!dt_tokenizer_is_file(&recipe) && recipe.data.source[0] == '\0')
        DT_THROW(err, DT_ERR_RECIPE,
                 "data.tokenizer is not a file: characters and bytes need no preparation");
    DT_TRY(dt_fetch_recipe(&here, &recipe, call->arena, err));
    DT_TRY(dt_prepare_recipe(&here, true, report_progress, &train, &validation, call->arena, err));
    if (train.files.count == 0)
        DT_THROW(err, DT_ERR_RECIPE, "data.train has tokens already: there is nothing to prepare");
    if (call->json) {
        object = dt_report_object();
        json_object_set_new(object, "vocab", json_integer(train.vocab));
        json_object_set_new(object, "tokenizer", dt_json_text(here.data.tokenizer));
        add_json(object, "train", &train);
        add_json(object, "validation", &validation);
        DT_TRY(dt_report_json(object, err));
        goto out;
    }
    add_text(&text, "data.train", &train);
    add_text(&text, "data.validation", &validation);
    DT_TRY(dt_report_text(&text, err));
out:
    dt_strbuf_release(&text);
    return st;
}

/* --- train-tokenizer */

static const char *const splits[] = {"gpt2", "llama3", "qwen", NULL};

static dt_status find_files(dt_data_files *out, const dt_arguments *args, dt_arena *arena,
                            dt_error *err)
{
    dt_string_list paths = {(const char **)&args->operands[1], args->operands_count - 1};

    if (paths.count == 0)
        return DT_FAIL(err, DT_ERR_USAGE, "expected train-tokenizer FILE...");
    return dt_data_files_find(out, &paths, DT_TOKENS_BYTE, "FILE", arena, err);
}

static dt_status write_tokenizer(const char *path, const json_t *tokenizer, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_json_write_pretty(&text, tokenizer);
    dt_strbuf_add_char(&text, '\n');
    DT_TRY(dt_file_write_atomic(path, text.data, text.length, 0644, err));
out:
    dt_strbuf_release(&text);
    return st;
}

static dt_status report_learned(const dt_call *call, const dt_learned *learned, const char *path,
                                int64_t wanted, dt_error *err)
{
    char bytes[DT_FORMAT_SIZE];
    dt_status st = DT_OK;
    dt_strbuf text;

    if (call->json) {
        json_t *object = dt_report_object();

        json_object_update_new(
            object, json_pack("{s:I, s:I, s:I, s:I, s:I, s:o}", "vocab", (json_int_t)learned->vocab,
                              "documents", (json_int_t)learned->documents, "bytes",
                              (json_int_t)learned->bytes, "words", (json_int_t)learned->words,
                              "broken", (json_int_t)learned->broken, "file", dt_json_text(path)));
        return dt_report_json(object, err);
    }
    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(
        &text, "%s: %lld tokens, learned from %lld documents of %s (%lld different words)\n", path,
        (long long)learned->vocab, (long long)learned->documents,
        dt_format_bytes(bytes, sizeof(bytes), (double)learned->bytes), (long long)learned->words);
    DT_TRY(dt_report_text(&text, err));
    if (learned->broken > 0)
        dt_report_say("left out %lld lines without text", (long long)learned->broken);
    if (learned->vocab < wanted)
        dt_report_say("this is less than --vocab %lld: no other pair occurs often enough",
                      (long long)wanted);
out:
    dt_strbuf_release(&text);
    return st;
}

static dt_status train_tokenizer(dt_call *call, dt_error *err)
{
    const dt_arguments *args = call->args;
    const dt_value *special = dt_arguments_get(args, "special");
    const char *path = dt_arguments_get(args, "output")->text;
    static const char *const end_of_text[] = {"<|endoftext|>"};
    static const dt_split_kind kinds[] = {DT_SPLIT_GPT2, DT_SPLIT_LLAMA3, DT_SPLIT_QWEN};
    dt_learned_options options = {
        .vocab = dt_arguments_get(args, "vocab")->integer,
        .least_count = dt_arguments_get(args, "least-count")->integer,
        .split = kinds[dt_arguments_get(args, "split")->choice],
        .special = special->given ? special->items : end_of_text,
        .special_count = special->given ? special->items_count : 1,
        .field = dt_arguments_get(args, "field")->text,
        .tell = report_progress,
    };
    dt_learned learned = {0};
    dt_data_files files;
    dt_status st = DT_OK;

    DT_TRY(find_files(&files, args, call->arena, err));
    if (!dt_arguments_flag(args, "force") && dt_file_exists(path))
        DT_THROW(err, DT_ERR_USAGE, "'%s' exists; name another file, or replace it with --force",
                 path);
    DT_TRY(dt_learn_tokenizer(&learned, &files, &options, err));
    DT_TRY(write_tokenizer(path, learned.tokenizer, err));
    DT_TRY(report_learned(call, &learned, path, options.vocab, err));
out:
    json_decref(learned.tokenizer);
    return st;
}

/* Refuses the options of the other subcommand. */
static dt_status check_options(const dt_arguments *args, const char *what,
                               const char *const *others, dt_error *err)
{
    for (; *others != NULL; others++)
        if (dt_arguments_get(args, *others)->given)
            return DT_FAIL(err, DT_ERR_USAGE, "--%s does not apply to 'dtrun data %s'", *others,
                           what);
    return DT_OK;
}

static dt_status data(dt_call *call, dt_error *err)
{
    static const char *const of_recipe[] = {"layer", "set", "strict", NULL};
    static const char *const of_show[] = {"from", "tokens", NULL};
    static const char *const of_train[] = {"vocab",       "output",  "field", "split",
                                           "least-count", "special", "force", NULL};
    const char *what = call->args->operands[0];
    dt_status st = DT_OK;

    if (strcmp(what, "prepare") == 0) {
        DT_TRY(check_options(call->args, what, of_train, err));
        DT_TRY(check_options(call->args, what, of_show, err));
        if (call->args->operands_count != 2)
            DT_THROW(err, DT_ERR_USAGE, "expected prepare RECIPE");
        DT_TRY(prepare(call, err));
    } else if (strcmp(what, "show") == 0) {
        DT_TRY(check_options(call->args, what, of_train, err));
        if (call->args->operands_count < 2)
            DT_THROW(err, DT_ERR_USAGE, "expected show RECIPE [N]");
        DT_TRY(dt_data_show(call, err));
    } else if (strcmp(what, "train-tokenizer") == 0) {
        DT_TRY(check_options(call->args, what, of_recipe, err));
        DT_TRY(check_options(call->args, what, of_show, err));
        DT_TRY(train_tokenizer(call, err));
    } else {
        DT_THROW(err, DT_ERR_USAGE,
                 "'%s': expected prepare RECIPE, show RECIPE [N] or train-tokenizer FILE...", what);
    }
out:
    return st;
}

static const dt_option options[] = {
    DT_RECIPE_OPTIONS("override a recipe value"),
    {.name = "from",
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "1",
     .low = 1,
     .high = 1e15,
     .help = "show: begin with the Nth conversation"},
    {.name = "tokens",
     .kind = DT_OPTION_FLAG,
     .help = "show: print a line for each token, with its id and its weight"},
    {.name = "vocab",
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "8192",
     .low = 257,
     .high = 1e7,
     .help = "train-tokenizer: size of the vocabulary"},
    {.name = "output",
     .letter = 'o',
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .fallback = "tokenizer.json",
     .help = "train-tokenizer: write the tokenizer to this file"},
    {.name = "field",
     .kind = DT_OPTION_TEXT,
     .value = "NAME",
     .fallback = "text",
     .help = "train-tokenizer: field of .jsonl and column of .csv that holds the text"},
    {.name = "split",
     .kind = DT_OPTION_CHOICE,
     .value = "KIND",
     .choices = splits,
     .fallback = "gpt2",
     .help = "train-tokenizer: rule that splits text into words"},
    {.name = "least-count",
     .kind = DT_OPTION_INT,
     .value = "N",
     .fallback = "2",
     .low = 1,
     .high = 1e15,
     .help = "train-tokenizer: merge only pairs that occur at least N times"},
    {.name = "special",
     .kind = DT_OPTION_LIST,
     .value = "TEXT",
     .help = "train-tokenizer: add this special token instead of <|endoftext|>"},
    {.name = "force", .kind = DT_OPTION_FLAG, .help = "train-tokenizer: replace an existing file"},
    {0},
};

const dt_command dt_command_data = {
    .name = "data",
    .summary = "tokenize or show data, or train a tokenizer",
    .operands = "prepare RECIPE | show RECIPE [N] | train-tokenizer FILE...",
    .takes = DT_OPERAND_FILE,
    .operands_min = 1,
    .operands_max = -1,
    .options = options,
    .notes =
        "prepare tokenizes data.train and data.validation with the recipe's data.tokenizer and\n"
        "keeps the token files in the cache. A text file is one document; a .jsonl file has one\n"
        "document a line, in data.field; a .csv file has one a record, in that column. Each\n"
        "document is followed by the tokenizer's end-of-text token. 'dtrun launch' prepares\n"
        "automatically. An interrupted preparation resumes. Data that are in the cache already,\n"
        "compared by the contents of files and tokenizer, are not prepared again. Lines without\n"
        "text are reported; more than one in a thousand (and more than 10) are an error.\n"
        "--json prints vocab, tokenizer, train and validation, the last two with documents,\n"
        "tokens, bytes, broken, found and files.\n"
        "\n"
        "show prints the first N conversations (3) of a recipe with data.format chat, as the\n"
        "template of the model writes them. The text that is trained is green and underlined;\n"
        "without colours, it has ~ under it. --json prints an object for each conversation, one a\n"
        "line, with file, line, form, messages, tokens, text, ids, trained (0 or 1 for each id),\n"
        "weights if they are not 0 and 1, cut (longer than batch.tokens) and left_out.\n"
        "\n"
        "train-tokenizer learns byte pairs from the files (globs work; text, .jsonl, .csv) and\n"
        "writes a tokenizer.json for data.tokenizer and for Hugging Face's libraries. Their\n"
        "trainer makes the same file. The same text gives the same tokenizer on every machine.\n"
        "--json prints vocab, documents, bytes, words, broken and file.\n",
    .run = data,
};

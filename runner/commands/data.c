/* dtrun data: text made into tokens before a run, and a tokenizer learned from text. */
#include <string.h>

#include "engine/data/files.h"
#include "runner/cli/command.h"
#include "runner/cli/read_recipe.h"
#include "runner/cli/report.h"
#include "runner/corpus/prepared.h"
#include "runner/launch/fetch_inputs.h"
#include "runner/term/format.h"

#include "base/banned.h"

static void tell(const char *text)
{
    dt_report_say("%s", text);
}

static void add_json(json_t *object, const char *key, const dt_prepared *made)
{
    const dt_prepared_facts *facts = &made->facts;
    json_t *files = json_array();

    if (made->files.count == 0)
        return;
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
    char tokens[DT_FORMAT_SIZE], bytes[DT_FORMAT_SIZE];
    const dt_prepared_facts *facts = &made->facts;

    if (made->files.count == 0)
        return;
    dt_strbuf_add_fmt(out,
                      "%s: %lld documents of %s, %s tokens of %lld (%.2f bytes a token), %s in the "
                      "cache\n",
                      name, (long long)facts->documents,
                      dt_format_bytes(bytes, sizeof(bytes), (double)facts->bytes),
                      dt_format_count(tokens, sizeof(tokens), (double)facts->tokens),
                      (long long)made->vocab, (double)facts->bytes / (double)facts->tokens,
                      made->found ? "already" : "now");
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
    DT_TRY(dt_read_recipe(&recipe, &source, call->args->operands[1], call, err));
    if (!dt_tokenizer_is_file(&recipe))
        DT_THROW(err, DT_ERR_RECIPE,
                 "data.tokenizer names no file: characters and bytes need no preparation");
    DT_TRY(dt_fetch_recipe(&here, &recipe, call->arena, err));
    DT_TRY(dt_prepare_recipe(&here, true, tell, &train, &validation, call->arena, err));
    if (train.files.count == 0)
        DT_THROW(err, DT_ERR_RECIPE, "data.train are tokens already: there is nothing to prepare");
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

static dt_status data(dt_call *call, dt_error *err)
{
    const char *what = call->args->operands[0];

    if (strcmp(what, "prepare") != 0)
        return DT_FAIL(err, DT_ERR_USAGE, "'%s': expected prepare RECIPE", what);
    return prepare(call, err);
}

static const dt_option options[] = {
    DT_RECIPE_OPTIONS("change a value of the recipe, as often as needed"),
    {0},
};

const dt_command dt_command_data = {
    .name = "data",
    .summary = "make tokens of a recipe's text once, before a run",
    .operands = "prepare RECIPE",
    .operands_min = 2,
    .operands_max = 2,
    .options = options,
    .notes = "The text of data.train and data.validation becomes token files in the cache, by\n"
             "the recipe's data.tokenizer: a file of text is one document, a .jsonl file has\n"
             "one a line, under data.field, a .csv file one a record, in that column; the\n"
             "tokenizer's end-of-text token stands behind each. 'dtrun launch' does the same by\n"
             "itself where it is not done yet. What was cut short is taken up again; what is\n"
             "there already, by the contents of files and tokenizer, is not made again. Lines\n"
             "without a text are named, and refused where they are more than one in a thousand\n"
             "(and more than 10). With --json: vocab, tokenizer, train, validation, each with\n"
             "documents, tokens, bytes, broken, found, files.\n",
    .run = data,
};

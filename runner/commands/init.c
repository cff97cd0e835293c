/* dtrun init: writes a recipe for given data files. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "runner/cli/command.h"
#include "runner/cli/report.h"
#include "runner/init/init.h"

/* Makes paths absolute: relative paths of a recipe start at its folder, which may not be this one. */
static dt_status make_absolute(dt_string_list *paths, dt_arena *arena, dt_error *err)
{
    for (int64_t i = 0; i < paths->count; i++) {
        char *whole = realpath(paths->items[i], NULL);

        if (whole == NULL)
            return DT_FAIL(err, DT_ERR_USAGE, "cannot read '%s': %s", paths->items[i],
                           strerror(errno));
        paths->items[i] = dt_arena_strdup(arena, whole);
        free(whole);
    }
    return DT_OK;
}

/* Writes a new file. DT_ERR_USAGE if it exists. */
static dt_status write_new(const char *path, const dt_strbuf *text, dt_error *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    dt_status st = DT_OK;

    if (fd < 0 && errno == EEXIST)
        return DT_FAIL(err, DT_ERR_USAGE, "'%s' exists; name another file", path);
    if (fd < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot create '%s': %s", path, strerror(errno));
    st = dt_file_write_all(fd, text->data, text->length, err);
    if (close(fd) != 0 && st == DT_OK)
        st = DT_FAIL(err, DT_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    if (st != DT_OK)
        unlink(path);
    return st;
}

static dt_status report_done(const char *path, const dt_strbuf *text, const dt_call *call,
                             dt_error *err)
{
    json_t *object;

    if (!call->json && path == NULL)
        return dt_report_text(text, err);
    if (!call->json) {
        dt_report_note(call, "wrote '%s'; test it with 'dtrun smoke %s'", path, path);
        return DT_OK;
    }
    object = dt_report_object();
    json_object_set_new(object, "path", path != NULL ? dt_json_text(path) : json_null());
    json_object_set_new(object, "recipe", dt_json_text(text->data));
    return dt_report_json(object, err);
}

/* Takes the folder of weights out of the operands, and leaves the data. */
static dt_status take_weights(const char **weights, char **data, int *count, const dt_call *call,
                              dt_error *err)
{
    const dt_arguments *args = call->args;

    *weights = NULL;
    *count = 0;
    for (int i = 0; i < args->operands_count; i++) {
        const char *path = dt_arena_printf(call->arena, "%s/config.json", args->operands[i]);

        if (!dt_file_exists(path)) {
            data[(*count)++] = args->operands[i];
            continue;
        }
        if (*weights != NULL)
            return DT_FAIL(err, DT_ERR_USAGE, "'%s' and '%s' both have weights: name one folder",
                           *weights, args->operands[i]);
        *weights = args->operands[i];
    }
    return DT_OK;
}

static dt_status init(dt_call *call, dt_error *err)
{
    char **data =
        dt_arena_alloc_array(call->arena, (size_t)call->args->operands_count + 1, sizeof(*data));
    const dt_value *output = dt_arguments_get(call->args, "output");
    const dt_value *tokenizer = dt_arguments_get(call->args, "tokenizer");
    const char *path = output->text;
    dt_look look;
    dt_init_wish wish = {.look = &look,
                         .nodes = dt_arguments_get(call->args, "nodes")->text,
                         .gpus_as = dt_arguments_get(call->args, "gpus-as")->text,
                         .path = path != NULL ? path : "recipe.yaml",
                         .mix = dt_arguments_get(call->args, "mix")->text};
    dt_status st = DT_OK;
    dt_strbuf text;
    int count;

    dt_strbuf_init(&text);
    if (wish.nodes != NULL && wish.nodes[0] == '\0')
        DT_THROW(err, DT_ERR_USAGE, "--nodes is empty: leave it out for this machine");
    if (path != NULL && dt_file_exists(path))
        DT_THROW(err, DT_ERR_USAGE, "'%s' exists; name another file", path);
    DT_TRY(take_weights(&wish.weights, data, &count, call, err));
    DT_TRY(dt_look_at(&look, data, count, call->arena, err));
    DT_TRY(dt_init_check_mix(&wish, err));
    wish.tokenizer = tokenizer->given ? tokenizer->text : look.tokenizer;
    if (path != NULL && strchr(path, '/') != NULL) {
        dt_string_list one = {&wish.tokenizer, wish.tokenizer != NULL ? 1 : 0};
        dt_string_list from = {&wish.weights, wish.weights != NULL ? 1 : 0};

        DT_TRY(make_absolute(&look.train, call->arena, err));
        DT_TRY(make_absolute(&look.validation, call->arena, err));
        DT_TRY(make_absolute(&one, call->arena, err));
        DT_TRY(make_absolute(&from, call->arena, err));
    }
    DT_TRY(dt_init_recipe(&text, &wish, call->arena, err));
    if (path != NULL)
        DT_TRY(write_new(path, &text, err));
    DT_TRY(report_done(path, &text, call, err));
out:
    dt_strbuf_release(&text);
    return st;
}

static const dt_option options[] = {
    {.name = "output",
     .letter = 'o',
     .kind = DT_OPTION_TEXT,
     .value = "FILE",
     .help = "write to this new file (default: stdout)"},
    {.name = "tokenizer",
     .kind = DT_OPTION_TEXT,
     .value = "DIR",
     .help = "tokenizer.json, or its folder, for text and documents"},
    {.name = "mix",
     .kind = DT_OPTION_TEXT,
     .value = "W,W...",
     .help = "draw from the training files by these weights (docs/data.md)"},
    {.name = "nodes",
     .kind = DT_OPTION_TEXT,
     .value = "NODES",
     .help = "nodes to run on, as in the recipe key 'nodes'; they are not contacted"},
    DT_GPUS_AS_OPTION(""),
    {0},
};

const dt_command dt_command_init = {
    .name = "init",
    .summary = "write a recipe for your data",
    .operands = "[WEIGHTS] [DATA...]",
    .takes = DT_OPERAND_FILE,
    .operands_min = 0,
    .operands_max = -1,
    .options = options,
    .notes =

        "DATA are files or folders; without DATA, the files of the current folder. Text, JSON\n"
        "lines, CSV, .npy rows and .bin token files are recognised by their first bytes; large\n"
        "files are not read further. Files called val, valid, validation, dev or eval are used\n"
        "for validation. With WEIGHTS, a folder with a config.json, and .jsonl files of\n"
        "conversations (messages, ShareGPT or Alpaca), the recipe tunes the weights on them\n"
        "(docs/finetuning.md). Otherwise the model is sized for the data and the memory of this\n"
        "machine, and the recipe says how long training will take. Every value can be changed\n"
        "(docs/recipe.md).\n",
    .run = init,
};

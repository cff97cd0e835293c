#include "runner/launch/evaluate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/file.h"
#include "recipes/fields/fields.h"
#include "recipes/foreign/weights.h"
#include "recipes/read/reader.h"
#include "runner/cli/program.h"
#include "runner/cli/report.h"

#define NOTE_SECONDS 10.0

/* --- a folder */

/* The tokens that the model can read at once, as config.json has them; 0: it does not say. */
static dt_status find_context(int64_t *out, const dt_weights_files *files, dt_error *err)
{
    static const char *const keys[] = {"n_positions", "max_position_embeddings", "n_ctx"};
    json_t *config = NULL;
    dt_status st = DT_OK;

    *out = 0;
    DT_TRY(dt_weights_describe(&config, files, err));
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && *out <= 0; i++) {
        const json_t *value = json_object_get(config, keys[i]);

        if (value == NULL)
            value = json_object_get(json_object_get(config, "text_config"), keys[i]);
        *out = json_integer_value(value);
    }
out:
    json_decref(config);
    return st;
}

dt_status dt_evaluated_folder(dt_evaluated_model *out, const char *folder, dt_arena *arena,
                              dt_error *err)
{
    char absolute[4096];
    dt_recipe_source source = {.path = folder, .unwritten = true};
    dt_weights_files files;
    dt_status st = DT_OK;
    int64_t context;
    dt_strbuf text;
    json_t *path;

    dt_strbuf_init(&text);
    *out = (dt_evaluated_model){.checkpoint = ""};
    if (realpath(folder, absolute) == NULL)
        DT_THROW(err, DT_ERR_USAGE, "cannot open the folder '%s': %s", folder, strerror(errno));
    DT_TRY(dt_weights_find(&files, absolute, arena, err));
    if (files.kind == DT_WEIGHTS_CHECKPOINT) {
        out->checkpoint = dt_arena_strdup(arena, absolute);
        goto out;
    }
    if (files.kind != DT_WEIGHTS_HUGGINGFACE)
        DT_THROW(err, DT_ERR_USAGE,
                 "'%s' is neither a folder with config.json, weights and tokenizer.json, nor a "
                 "checkpoint",
                 folder);
    path = dt_json_text(absolute);
    dt_strbuf_add_str(&text, "model: {from: ");
    dt_json_write(&text, path);
    dt_strbuf_add_str(&text, "}\ndata: {train: unused.txt}\nschedule: {steps: 1}\n");
    json_decref(path);
    DT_TRY(find_context(&context, &files, err));
    if (context > 0)
        dt_strbuf_add_fmt(&text, "batch: {tokens: %lld}\n", (long long)context);
    source.text = text.data;
    DT_TRY(dt_recipe_read(&out->recipe, &source, arena, err));
    if (out->recipe.data.tokenizer[0] == '\0')
        DT_THROW(err, DT_ERR_USAGE, "'%s' has no tokenizer.json: the tasks cannot be tokenized",
                 folder);
out:
    dt_strbuf_release(&text);
    return st;
}

/* --- the engine */

/* Opens a file without a name, with the text, that the engine inherits. */
static dt_status open_text(int *fd, const char **path, const dt_strbuf *text, dt_arena *arena,
                           dt_error *err)
{
    *fd = memfd_create("evaluate", 0);
    if (*fd < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot make a temporary file: %s", strerror(errno));
    *path = dt_arena_printf(arena, "/dev/fd/%d", *fd);
    return dt_file_write_all(*fd, text->data, text->length, err);
}

typedef struct taking {
    dt_strbuf *out;
    const char *title;
    const dt_call *call;
    int64_t rows, done;
    double noted_seconds;
} taking;

static dt_status take(void *context, const char *bytes, size_t length, dt_error *err)
{
    taking *t = context;
    double now = dt_clock_monotonic_seconds();

    (void)err;
    dt_strbuf_add(t->out, bytes, length);
    for (size_t i = 0; i < length; i++)
        t->done += bytes[i] == '\n';
    if (now - t->noted_seconds >= NOTE_SECONDS) {
        dt_report_note(t->call, "%s: %lld of %lld rows", t->title, (long long)t->done,
                       (long long)t->rows);
        t->noted_seconds = now;
    }
    return DT_OK;
}

static dt_status run(taking *t, const char *const argv[], dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf errors;
    int code = 0;

    dt_strbuf_init(&errors);
    DT_TRY(dt_child_run(&code,
                        &(dt_child_call){.argv = argv,
                                         .take = take,
                                         .context = t,
                                         .errors = &errors,
                                         .follows = true,
                                         .foreground = true}, /* inherits the files */
                        err));
    DT_TRY(dt_program_engine_status(code, &errors, err));
    if (t->done != t->rows)
        DT_THROW(err, DT_ERR_CORRUPT, "the engine returned %lld results of %lld rows",
                 (long long)t->done, (long long)t->rows);
out:
    dt_strbuf_release(&errors);
    return st;
}

dt_status dt_evaluate_model(dt_strbuf *out, const dt_evaluated_model *model, const char *title,
                            const dt_strbuf *lines, int64_t rows, const dt_call *call,
                            dt_error *err)
{
    taking t = {out, title, call, rows, 0, dt_clock_monotonic_seconds()};
    const char *engine, *input, *recipe_path = NULL;
    int input_fd = -1, recipe_fd = -1;
    json_t *recipe = NULL;
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    DT_TRY(dt_program_engine(&engine, call->arena, err));
    DT_TRY(open_text(&input_fd, &input, lines, call->arena, err));
    if (model->checkpoint[0] == '\0') {
        recipe = dt_recipe_to_json(&model->recipe);
        dt_json_write(&text, recipe);
        DT_TRY(open_text(&recipe_fd, &recipe_path, &text, call->arena, err));
    }
    {
        const char *const argv[] = {engine,
                                    "evaluate",
                                    "--input",
                                    input,
                                    recipe_path != NULL ? "--recipe" : "--checkpoint",
                                    recipe_path != NULL ? recipe_path : model->checkpoint,
                                    "--device",
                                    dt_arguments_get(call->args, "device")->text,
                                    "--threads",
                                    dt_arguments_get(call->args, "threads")->text,
                                    "--precision",
                                    dt_arguments_get(call->args, "precision")->text,
                                    NULL};

        DT_TRY(run(&t, argv, err));
    }
out:
    if (input_fd >= 0)
        close(input_fd);
    if (recipe_fd >= 0)
        close(recipe_fd);
    json_decref(recipe);
    dt_strbuf_release(&text);
    return st;
}

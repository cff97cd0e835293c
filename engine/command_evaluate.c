/* command_evaluate: prints the results of rows of evaluation tasks. */
#include <getopt.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "engine/commands.h"
#include "recipes/fields/fields.h"

#define LINES_MOST  ((size_t)1 << 30)
#define RECIPE_MOST ((size_t)16 << 20)

typedef struct wanted {
    dt_evaluate_options options;
    const char *input, *recipe;
} wanted;

static dt_status parse(wanted *out, int argc, char **argv, dt_error *err)
{
    static const struct option options[] = {{"checkpoint", required_argument, NULL, 'c'},
                                            {"recipe", required_argument, NULL, 'r'},
                                            {"input", required_argument, NULL, 'i'},
                                            {"device", required_argument, NULL, 'd'},
                                            {"threads", required_argument, NULL, 't'},
                                            {"precision", required_argument, NULL, 'p'},
                                            {NULL, 0, NULL, 0}};
    dt_status st = DT_OK;
    int option;

    *out = (wanted){.options = {.checkpoint = "", .device = "cpu", .precision = DT_F32}};
    while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            out->options.checkpoint = optarg;
            break;
        case 'r':
            out->recipe = optarg;
            break;
        case 'i':
            out->input = optarg;
            break;
        case 'd':
            out->options.device = optarg;
            break;
        case 't':
            DT_TRY(dt_argument_whole(&out->options.threads, optarg, "--threads", 0, 1024, err));
            break;
        case 'p':
            DT_TRY(dt_argument_precision(&out->options.precision, optarg, err));
            break;
        default:
            DT_TRY(dt_argument_refuse(argv, option, err));
        }
    }
    if (optind < argc)
        DT_TRY(dt_argument_refuse(argv, -1, err));
    if (out->input == NULL || (out->options.checkpoint[0] != '\0') == (out->recipe != NULL))
        DT_THROW(err, DT_ERR_USAGE, "expected --input and either --checkpoint or --recipe");
out:
    return st;
}

static dt_status take(void *context, const dt_strbuf *line, dt_error *err)
{
    (void)context;
    return dt_print_line(line, err);
}

/* Reads the recipe of a model without a checkpoint, and finds its weights. */
static dt_status read_recipe(dt_recipe *out, dt_weights_files *files, const char *path,
                             dt_arena *arena, dt_error *err)
{
    json_t *object = NULL;
    dt_status st = DT_OK;

    DT_TRY(dt_json_read(&object, path, RECIPE_MOST, err));
    DT_TRY(dt_recipe_from_json(out, object, arena, err));
    DT_TRY(dt_weights_find(files, out->model.from, arena, err));
out:
    json_decref(object);
    return st;
}

dt_status dt_engine_evaluate(int argc, char **argv, dt_error *err)
{
    dt_weights_files files;
    dt_recipe recipe;
    dt_status st = DT_OK;
    dt_strbuf input;
    dt_arena arena;
    wanted w;

    dt_strbuf_init(&input);
    dt_arena_init(&arena, 0);
    DT_TRY(parse(&w, argc, argv, err));
    if (w.recipe != NULL) {
        DT_TRY(read_recipe(&recipe, &files, w.recipe, &arena, err));
        w.options.recipe = &recipe;
        w.options.base = &files;
    }
    DT_TRY(
        dt_file_read(&input, strcmp(w.input, "-") == 0 ? "/dev/stdin" : w.input, LINES_MOST, err));
    w.options.text = input.data;
    w.options.length = input.length;
    w.options.emit = take;
    DT_TRY(dt_evaluate_lines(&w.options, err));
out:
    dt_strbuf_release(&input);
    dt_arena_release(&arena);
    return st;
}

#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "engine/commands.h"
#include "engine/generate/text.h"
#include "engine/gguf/gguf.h"
#include "engine/weights/weights.h"

static dt_status parse_dtype(dt_dtype *out, const char *text, dt_error *err)
{
    static const struct {
        const char *name;
        dt_dtype dtype;
    } types[] = {{"fp32", DT_F32}, {"bf16", DT_BF16}, {"fp16", DT_F16}};

    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
        if (strcmp(types[i].name, text) == 0) {
            *out = types[i].dtype;
            return DT_OK;
        }
    return DT_FAIL(err, DT_ERR_USAGE, "--dtype is '%s': expected fp32, bf16 or fp16", text);
}

/* A GGUF file instead of a folder. */
typedef struct wanted_gguf {
    const char *path, *name; /* path NULL: none */
    dt_gguf_type type;
    bool replace;
} wanted_gguf;

static dt_status parse_export(dt_weights_export_options *out, wanted_gguf *gguf, int argc,
                              char **argv, dt_error *err)
{
    static const struct option options[] = {{"checkpoint", required_argument, NULL, 'c'},
                                            {"output", required_argument, NULL, 'o'},
                                            {"origin", required_argument, NULL, 'r'},
                                            {"dtype", required_argument, NULL, 'd'},
                                            {"file-mb", required_argument, NULL, 'm'},
                                            {"peft", no_argument, NULL, 'p'},
                                            {"merge", no_argument, NULL, 'g'},
                                            {"gguf", required_argument, NULL, 'u'},
                                            {"type", required_argument, NULL, 't'},
                                            {"name", required_argument, NULL, 'n'},
                                            {"force", no_argument, NULL, 'f'},
                                            {NULL, 0, NULL, 0}};
    double megabytes = 5000;
    int option;
    dt_status st = DT_OK;

    *out = (dt_weights_export_options){.dtype = DT_F32};
    while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            out->checkpoint = optarg;
            break;
        case 'o':
            out->output = optarg;
            break;
        case 'r':
            out->origin = optarg;
            break;
        case 'd':
            DT_TRY(parse_dtype(&out->dtype, optarg, err));
            break;
        case 'm':
            DT_TRY(dt_argument_number(&megabytes, optarg, "--file-mb", 0.001, 1e6, err));
            break;
        case 'u':
            gguf->path = optarg;
            break;
        case 't':
            if (!dt_gguf_type_of(&gguf->type, optarg))
                DT_THROW(err, DT_ERR_USAGE, "--type is '%s': expected f32, f16, bf16 or q8_0",
                         optarg);
            break;
        case 'n':
            gguf->name = optarg;
            break;
        case 'f':
            gguf->replace = true;
            break;
        case 'p':
            out->peft = true;
            break;
        case 'g':
            out->merge = true;
            break;
        default:
            DT_TRY(dt_argument_refuse(argv, option, err));
        }
    }
    if (optind < argc)
        DT_TRY(dt_argument_refuse(argv, -1, err));
    if (out->checkpoint == NULL || (out->output == NULL) == (gguf->path == NULL))
        DT_THROW(err, DT_ERR_USAGE, "expected --checkpoint, and --output or --gguf");
    out->file_bytes = (int64_t)(megabytes * 1e6);
out:
    return st;
}

/* --- a merged model against its adapter */

#define SAMPLE_TOKENS 64

typedef struct comparison {
    const char *checkpoint;
    double difference, largest; /* of the logits; largest: of the adapter's */
} comparison;

/* Logits of the sample, F32 (T,V), from the folder's weights, or if NULL the checkpoint's. Holds the root of the model and a
 * block at a time. The caller frees *out. */
static dt_status sample_logits(float **out, int64_t *count, const char *checkpoint,
                               const char *folder, dt_error *err)
{
    const dt_loaded_room room = {
        .batch = 1, .sequences = 1, .tokens = SAMPLE_TOKENS, .by_units = true};
    dt_loaded l = {0};
    int32_t *ids = NULL;
    int64_t tokens, vocab;
    dt_batch batch = {0};
    dt_status st = DT_OK;

    DT_TRY(dt_loaded_open(&l, checkpoint, NULL, err));
    if (folder != NULL)
        DT_TRY(dt_loaded_replace_weights(&l, folder, err));
    DT_TRY(dt_loaded_open_model(&l, "cpu", 0, DT_F32, &room, err));
    vocab = l.model->config.decoder.vocab;
    tokens = l.model->config.decoder.context;
    tokens = tokens < SAMPLE_TOKENS ? tokens : SAMPLE_TOKENS;
    ids = calloc((size_t)tokens, sizeof(*ids));
    *count = tokens * vocab;
    *out = calloc((size_t)*count, sizeof(**out));
    if (ids == NULL || *out == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the logits of a sample");
    for (int64_t i = 0; i < tokens; i++)
        ids[i] = (int32_t)((i * i * 7919 + i) % vocab);
    batch.inputs[DT_DECODER_TOKENS] = dt_tensor_2d(ids, DT_I32, 1, tokens);
    DT_TRY(dt_model_logits(l.model, &batch, tokens, *out, err));
out:
    free(ids);
    dt_loaded_close(&l);
    return st;
}

/* Implements dt_weights_export_options.check. */
static dt_status compare_logits(void *self, const char *folder, dt_error *err)
{
    comparison *of = self;
    float *adapter = NULL, *merged = NULL;
    int64_t count, other;
    dt_status st = DT_OK;

    DT_TRY(sample_logits(&adapter, &count, of->checkpoint, NULL, err));
    DT_TRY(sample_logits(&merged, &other, of->checkpoint, folder, err));
    DT_ASSERT(count == other);
    for (int64_t i = 0; i < count; i++) {
        of->difference = fmax(of->difference, fabs((double)merged[i] - (double)adapter[i]));
        of->largest = fmax(of->largest, fabs((double)adapter[i]));
        if (!isfinite(merged[i]) || !isfinite(adapter[i]))
            DT_THROW(err, DT_ERR_RECIPE,
                     "a logit of the merged model is %g, and the adapter's %g: nothing was written",
                     (double)merged[i], (double)adapter[i]);
    }
out:
    free(adapter);
    free(merged);
    return st;
}

/* Exports to a folder beside the file, which is then removed. */
static dt_status export_gguf(dt_gguf_result *out, dt_weights_export_result *result,
                             dt_weights_export_options *options, const wanted_gguf *gguf,
                             dt_error *err)
{
    dt_status st = DT_OK, removed;
    dt_strbuf folder;

    dt_strbuf_init(&folder);
    dt_strbuf_add_fmt(&folder, "%s.weights-%d", gguf->path, (int)getpid());
    options->output = folder.data;
    options->dtype = DT_F32;
    options->file_bytes = INT64_MAX;
    options->accept = dt_gguf_check;
    if (!gguf->replace && dt_file_exists(gguf->path))
        DT_THROW(err, DT_ERR_USAGE, "'%s' already exists (--force replaces it)", gguf->path);
    DT_TRY(dt_weights_export(result, options, err));
    st = dt_gguf_write(out, folder.data, gguf->path, gguf->type, gguf->name, gguf->replace, err);
    removed = dt_file_remove_tree(folder.data, st == DT_OK ? err : NULL);
    st = st == DT_OK ? removed : st;
out:
    dt_strbuf_release(&folder);
    return st;
}

dt_status dt_engine_export(int argc, char **argv, dt_error *err)
{
    wanted_gguf gguf = {.name = "", .type = DT_GGUF_F16};
    dt_gguf_result written = {0};
    dt_weights_export_options options;
    dt_weights_export_result result;
    comparison logits = {0};
    json_t *object = NULL;
    dt_strbuf text;
    dt_status st = DT_OK;

    dt_strbuf_init(&text);
    DT_TRY(parse_export(&options, &gguf, argc, argv, err));
    logits.checkpoint = options.checkpoint;
    options.check = compare_logits;
    options.self = &logits;
    if (gguf.path != NULL)
        DT_TRY(export_gguf(&written, &result, &options, &gguf, err));
    else
        DT_TRY(dt_weights_export(&result, &options, err));
    object = json_pack("{s:o, s:I, s:o, s:s, s:I, s:I, s:I}", "checkpoint",
                       dt_json_text(options.checkpoint), "step", (json_int_t)result.step, "output",
                       dt_json_text(gguf.path != NULL ? gguf.path : options.output), "model_type",
                       result.model_type, "parameters", (json_int_t)result.parameters, "bytes",
                       (json_int_t)result.bytes, "files", (json_int_t)result.files);
    if (object == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    if (gguf.path != NULL) {
        json_object_set_new(object, "bytes", json_integer((json_int_t)written.bytes));
        json_object_set(object, "notes", written.notes);
    }
    if (options.merge) {
        json_object_set_new(object, "logits_difference", dt_json_number(logits.difference));
        json_object_set_new(object, "logits_largest", dt_json_number(logits.largest));
    }
    dt_json_write(&text, object);
    DT_TRY(dt_print_line(&text, err));
out:
    json_decref(object);
    json_decref(written.notes);
    dt_strbuf_release(&text);
    return st;
}

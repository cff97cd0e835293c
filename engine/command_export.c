#include <getopt.h>
#include <string.h>

#include "base/json.h"
#include "engine/commands.h"
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

static dt_status parse_export(dt_weights_export_options *out, int argc, char **argv, dt_error *err)
{
    static const struct option options[] = {
        {"checkpoint", required_argument, NULL, 'c'}, {"output", required_argument, NULL, 'o'},
        {"origin", required_argument, NULL, 'r'},     {"dtype", required_argument, NULL, 'd'},
        {"file-mb", required_argument, NULL, 'm'},    {NULL, 0, NULL, 0}};
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
        default:
            DT_TRY(dt_argument_refuse(argv, option, err));
        }
    }
    if (optind < argc)
        DT_TRY(dt_argument_refuse(argv, -1, err));
    if (out->checkpoint == NULL || out->output == NULL)
        DT_THROW(err, DT_ERR_USAGE, "--checkpoint or --output is missing");
    out->file_bytes = (int64_t)(megabytes * 1e6);
out:
    return st;
}

dt_status dt_engine_export(int argc, char **argv, dt_error *err)
{
    dt_weights_export_options options;
    dt_weights_export_result result;
    json_t *object = NULL;
    dt_strbuf text;
    dt_status st = DT_OK;

    dt_strbuf_init(&text);
    DT_TRY(parse_export(&options, argc, argv, err));
    DT_TRY(dt_weights_export(&result, &options, err));
    object = json_pack("{s:o, s:I, s:o, s:s, s:I, s:I, s:I}", "checkpoint",
                       dt_json_text(options.checkpoint), "step", (json_int_t)result.step, "output",
                       dt_json_text(options.output), "model_type", result.model_type, "parameters",
                       (json_int_t)result.parameters, "bytes", (json_int_t)result.bytes, "files",
                       (json_int_t)result.files);
    if (object == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory");
    dt_json_write(&text, object);
    DT_TRY(dt_print_line(&text, err));
out:
    json_decref(object);
    dt_strbuf_release(&text);
    return st;
}

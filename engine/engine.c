/* engine: the program that trains one rank, and makes text, or a folder for others, from a checkpoint.
 * People start it through `dtrun`.
 *
 * Exit codes  0 good; 1 training, the checkpoint or the channel failed; 2 called wrongly
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/utf8.h"
#include "base/version.h"
#include "engine/channel/stop.h"
#include "engine/generate/generate.h"
#include "engine/train/train.h"
#include "engine/weights/export.h"

#include "base/banned.h"

static const char help[] =
    "usage: dtrun-engine train --plan FILE\n"
    "       dtrun-engine generate --checkpoint DIR [--prompt TEXT] [--tokens N]\n"
    "                             [--temperature X] [--top-k K] [--seed S] [--device NAME]\n"
    "                             [--threads N] [--json]\n"
    "       dtrun-engine export --checkpoint DIR --output DIR [--origin DIR] [--dtype TYPE]\n"
    "                           [--file-mb N]\n"
    "       dtrun-engine --version | --help\n"
    "\n"
    "train      runs one rank of a plan; 'dtrun launch' writes the plan and starts the ranks.\n"
    "           The rank is in RANK (0 where it is unset), the channel to the agent in\n"
    "           DTRUN_CHANNEL; without it events go to stdout.\n"
    "generate   prints the prompt and what the model adds to it.\n"
    "export     makes a folder that Hugging Face's transformers load; says in JSON what is in it.\n"
    "\n"
    "  --plan FILE        plan as JSON\n"
    "  --checkpoint DIR   a checkpoint directory, step-00000100 for example\n"
    "  --prompt TEXT      what the text starts with (default: a line break, not printed)\n"
    "  --tokens N         how many tokens to add (default 300)\n"
    "  --temperature X    0 takes the likeliest, 1 samples as learnt (default 0.8)\n"
    "  --top-k K          samples among the K likeliest only (default 0: all)\n"
    "  --seed S           of the sampling (default 1337)\n"
    "  --device NAME      cpu (default) or cuda:N\n"
    "  --threads N        of the cpu, default 0: all cores\n"
    "  --json             one JSON object: checkpoint, step, prompt, text, tokens, seed\n"
    "  --output DIR       the folder to make\n"
    "  --origin DIR       config.json and tokenizer files that it goes on from\n"
    "  --dtype TYPE       fp32 (default), bf16 or fp16\n"
    "  --file-mb N        tensors in one file, in MB (default 5000)\n";

static dt_status parse_whole(int64_t *out, const char *text, const char *what, int64_t low,
                             int64_t high, dt_error *err)
{
    char *end;
    long long value;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < low || value > high)
        return DT_FAIL(err, DT_ERR_USAGE, "%s is '%s': expected a whole number from %lld to %lld",
                       what, text, (long long)low, (long long)high);
    *out = value;
    return DT_OK;
}

static dt_status parse_number(double *out, const char *text, const char *what, double low,
                              double high, dt_error *err)
{
    char *end;
    double value;

    errno = 0;
    value = strtod(text, &end);
    if (errno != 0 || end == text || *end != '\0' || !(value >= low && value <= high))
        return DT_FAIL(err, DT_ERR_USAGE, "%s is '%s': expected a number from %g to %g", what, text,
                       low, high);
    *out = value;
    return DT_OK;
}

/* What getopt does not know, or an argument too many. */
static dt_status refuse(int argc, char **argv, int option, dt_error *err)
{
    const char *what = option == -1 ? argv[optind] : argv[optind - 1];

    return option == ':' ? DT_FAIL(err, DT_ERR_USAGE, "'%s' needs a value", what)
                         : DT_FAIL(err, DT_ERR_USAGE, "unknown argument '%s'", what);
}

/* --- train */

static dt_status parse_train(const char **plan, int argc, char **argv, dt_error *err)
{
    static const struct option options[] = {{"plan", required_argument, NULL, 'p'},
                                            {NULL, 0, NULL, 0}};
    int option;

    *plan = NULL;
    while ((option = getopt_long(argc, argv, ":", options, NULL)) == 'p')
        *plan = optarg;
    if (option != -1 || optind < argc)
        return refuse(argc, argv, option, err);
    if (*plan == NULL)
        return DT_FAIL(err, DT_ERR_USAGE, "--plan is missing");
    return DT_OK;
}

static dt_status train(int argc, char **argv, dt_error *err)
{
    const char *path, *rank_text = getenv("RANK");
    dt_events *events = NULL;
    int64_t rank = 0;
    dt_arena arena;
    dt_plan plan;
    char who[32];
    dt_status st = DT_OK;

    dt_arena_init(&arena, 0);
    DT_TRY(parse_train(&path, argc, argv, err));
    DT_TRY(dt_plan_read(&plan, path, &arena, err));
    if (rank_text != NULL)
        DT_TRY(parse_whole(&rank, rank_text, "RANK", 0, plan.world_size - 1, err));
    dt_stop_block();
    snprintf(who, sizeof(who), "engine[%lld]", (long long)rank);
    dt_log_init(who);
    DT_TRY(dt_events_open(&events, rank, plan.world_size, err));
    DT_TRY(dt_train(&plan, rank, events, err));
out:
    dt_events_close(events);
    dt_arena_release(&arena);
    return st;
}

/* --- generate */

static dt_status parse_generate(dt_generate_options *out, bool *json, int argc, char **argv,
                                dt_error *err)
{
    static const struct option options[] = {{"checkpoint", required_argument, NULL, 'c'},
                                            {"prompt", required_argument, NULL, 'p'},
                                            {"tokens", required_argument, NULL, 'n'},
                                            {"temperature", required_argument, NULL, 't'},
                                            {"top-k", required_argument, NULL, 'k'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"device", required_argument, NULL, 'd'},
                                            {"threads", required_argument, NULL, 'j'},
                                            {"json", no_argument, NULL, 'J'},
                                            {NULL, 0, NULL, 0}};
    int64_t seed = 1337;
    int option;
    dt_status st = DT_OK;

    *json = false;
    *out = (dt_generate_options){
        .prompt = "", .tokens = 300, .device = "cpu", .sampling = {.temperature = 0.8}};
    while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            out->checkpoint = optarg;
            break;
        case 'p':
            out->prompt = optarg;
            break;
        case 'n':
            DT_TRY(parse_whole(&out->tokens, optarg, "--tokens", 1, 1000000, err));
            break;
        case 't':
            DT_TRY(parse_number(&out->sampling.temperature, optarg, "--temperature", 0, 100, err));
            break;
        case 'k':
            DT_TRY(parse_whole(&out->sampling.top_k, optarg, "--top-k", 0, 1 << 24, err));
            break;
        case 's':
            DT_TRY(parse_whole(&seed, optarg, "--seed", 0, INT64_MAX, err));
            break;
        case 'd':
            out->device = optarg;
            break;
        case 'j':
            DT_TRY(parse_whole(&out->threads, optarg, "--threads", 0, 1024, err));
            break;
        case 'J':
            *json = true;
            break;
        default:
            DT_TRY(refuse(argc, argv, option, err));
        }
    }
    if (optind < argc)
        DT_TRY(refuse(argc, argv, -1, err));
    if (out->checkpoint == NULL)
        DT_THROW(err, DT_ERR_USAGE, "--checkpoint is missing");
    out->sampling.seed = (uint64_t)seed;
out:
    return st;
}

static dt_status print(const dt_strbuf *text, dt_error *err)
{
    if (fwrite(text->data, 1, text->length, stdout) != text->length || putchar('\n') == EOF ||
        fflush(stdout) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot write to stdout: %s", strerror(errno));
    return DT_OK;
}

static dt_status generate(int argc, char **argv, dt_error *err)
{
    dt_generate_options options;
    dt_strbuf text, valid, out;
    json_t *object = NULL;
    int64_t step;
    bool json;
    dt_status st = DT_OK;

    dt_strbuf_init(&text);
    dt_strbuf_init(&valid);
    dt_strbuf_init(&out);
    DT_TRY(parse_generate(&options, &json, argc, argv, err));
    DT_TRY(dt_generate(&text, &step, &options, err));
    if (json) {
        dt_utf8_add_valid(&valid, text.data, text.length); /* a model of bytes may add any */
        object = json_pack("{s:s, s:I, s:s, s:s%, s:I, s:I}", "checkpoint", options.checkpoint,
                           "step", (json_int_t)step, "prompt", options.prompt, "text", valid.data,
                           valid.length, "tokens", (json_int_t)options.tokens, "seed",
                           (json_int_t)options.sampling.seed);
        if (object == NULL)
            DT_THROW(err, DT_ERR_UNSUPPORTED,
                     "the prompt is not UTF-8, so it does not go into JSON (leave out --json)");
        dt_json_write(&out, object);
    } else {
        dt_strbuf_add_str(&out, options.prompt);
        dt_strbuf_add(&out, text.data, text.length);
    }
    DT_TRY(print(&out, err));
out:
    json_decref(object);
    dt_strbuf_release(&text);
    dt_strbuf_release(&valid);
    dt_strbuf_release(&out);
    return st;
}

/* --- export */

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
            DT_TRY(parse_number(&megabytes, optarg, "--file-mb", 0.001, 1e6, err));
            break;
        default:
            DT_TRY(refuse(argc, argv, option, err));
        }
    }
    if (optind < argc)
        DT_TRY(refuse(argc, argv, -1, err));
    if (out->checkpoint == NULL || out->output == NULL)
        DT_THROW(err, DT_ERR_USAGE, "--checkpoint or --output is missing");
    out->file_bytes = (int64_t)(megabytes * 1e6);
out:
    return st;
}

static dt_status export(int argc, char **argv, dt_error *err)
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
    DT_TRY(print(&text, err));
out:
    json_decref(object);
    dt_strbuf_release(&text);
    return st;
}

int main(int argc, char **argv)
{
    dt_error err = DT_ERROR_INIT;
    const char *command = argc > 1 ? argv[1] : "";
    dt_status st;

    if (strcmp(command, "--version") == 0) {
        printf("dtrun-engine %s (%s)\n", DT_VERSION, DT_COMMIT);
        return 0;
    }
    if (strcmp(command, "--help") == 0 || strcmp(command, "-h") == 0) {
        fputs(help, stdout);
        return 0;
    }
    if (strcmp(command, "train") == 0)
        st = train(argc - 1, argv + 1, &err);
    else if (strcmp(command, "generate") == 0)
        st = generate(argc - 1, argv + 1, &err);
    else if (strcmp(command, "export") == 0)
        st = export(argc - 1, argv + 1, &err);
    else if (argc < 2)
        st = DT_FAIL(&err, DT_ERR_USAGE, "a command is missing");
    else
        st = DT_FAIL(&err, DT_ERR_USAGE, "unknown command '%s'", command);
    if (st == DT_OK)
        return 0;
    fprintf(stderr, "dtrun-engine: %s\n", err.message);
    if (st != DT_ERR_USAGE)
        return 1;
    fputs("try 'dtrun-engine --help'\n", stderr);
    return 2;
}

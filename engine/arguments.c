/* arguments: parses the arguments of dtrun-engine's commands: single values, and all of `generate` and
 * `score`. */
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "engine/commands.h"
#include "engine/generate/generate.h"

/* --- single values, and lines of output */

dt_status dt_argument_whole(int64_t *out, const char *text, const char *what, int64_t low,
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

dt_status dt_argument_number(double *out, const char *text, const char *what, double low,
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

dt_status dt_argument_refuse(char **argv, int option, dt_error *err)
{
    const char *what = option == -1 ? argv[optind] : argv[optind - 1];

    return option == ':' ? DT_FAIL(err, DT_ERR_USAGE, "'%s' needs a value", what)
                         : DT_FAIL(err, DT_ERR_USAGE, "unknown argument '%s'", what);
}

dt_status dt_print_line(const dt_strbuf *text, dt_error *err)
{
    if (fwrite(text->data, 1, text->length, stdout) != text->length || putchar('\n') == EOF ||
        fflush(stdout) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot write to stdout: %s", strerror(errno));
    return DT_OK;
}

/* --- the arguments of `generate` */

#define TEMPERATURE_MOST 100
#define BEAMS_MOST       256
#define BATCH_MOST       1024

static dt_status add_stop(dt_generate_arguments *w, const char *text, dt_error *err)
{
    if (text[0] == '\0')
        return DT_FAIL(err, DT_ERR_USAGE, "--stop is empty: expected a text");
    if (w->options.rules.stops.count == DT_GENERATE_STOPS)
        return DT_FAIL(err, DT_ERR_USAGE, "too many --stop (at most %d)", DT_GENERATE_STOPS);
    w->stops[w->options.rules.stops.count++] = text;
    return DT_OK;
}

dt_status dt_argument_precision(dt_dtype *out, const char *text, dt_error *err)
{
    if (strcmp(text, "fp32") == 0)
        *out = DT_F32;
    else if (strcmp(text, "bf16") == 0)
        *out = DT_BF16;
    else
        return DT_FAIL(err, DT_ERR_USAGE, "--precision is '%s': expected fp32 or bf16", text);
    return DT_OK;
}

static dt_status take(dt_generate_arguments *w, int option, const char *text, dt_error *err)
{
    dt_generate_options *out = &w->options;

    switch (option) {
    case 'c':
        out->checkpoint = text;
        return DT_OK;
    case 'p':
        if (strcmp(text, "-") == 0)
            w->prompt_file = text;
        else
            out->prompt = text;
        return DT_OK;
    case 'f':
        w->prompt_file = text;
        return DT_OK;
    case 'i':
        w->input = text;
        return DT_OK;
    case 'h':
        w->chat = text;
        return DT_OK;
    case 'T':
        w->template.folder = text;
        return DT_OK;
    case 'F':
        w->template.file = text;
        return DT_OK;
    case 'S':
        w->system = text;
        return DT_OK;
    case 'b':
        return dt_argument_whole(&w->options.rules.beams, text, "--beam", 1, BEAMS_MOST, err);
    case 'l':
        return dt_argument_number(&w->options.rules.length_penalty, text, "--length-penalty", 0, 10,
                                  err);
    case 'a':
        return dt_argument_whole(&w->batch, text, "--batch", 1, BATCH_MOST, err);
    case 'n':
        return dt_argument_whole(&out->rules.tokens, text, "--tokens", 1, 1000000, err);
    case 'x':
        return add_stop(w, text, err);
    case 'e':
        out->rules.past_end = true;
        return DT_OK;
    case 'o':
        out->rules.no_special = true;
        return DT_OK;
    case 't':
        return dt_argument_number(&out->rules.sampling.temperature, text, "--temperature", 0,
                                  TEMPERATURE_MOST, err);
    case 'k':
        return dt_argument_whole(&out->rules.sampling.top_k, text, "--top-k", 0, 1 << 24, err);
    case 'q':
        return dt_argument_number(&out->rules.sampling.top_p, text, "--top-p", 1e-9, 1, err);
    case 'r':
        return dt_argument_number(&out->rules.sampling.penalty, text, "--repetition-penalty", 0.01,
                                  100, err);
    case 's':
        return dt_argument_whole(&w->seed, text, "--seed", 0, INT64_MAX, err);
    case 'd':
        out->device = text;
        return DT_OK;
    case 'j':
        return dt_argument_whole(&out->threads, text, "--threads", 0, 1024, err);
    case 'w':
        return dt_argument_precision(&out->precision, text, err);
    default:
        w->json = true;
        return DT_OK;
    }
}

dt_status dt_generate_arguments_parse(dt_generate_arguments *out, int argc, char **argv,
                                      dt_error *err)
{
    static const struct option options[] = {{"checkpoint", required_argument, NULL, 'c'},
                                            {"prompt", required_argument, NULL, 'p'},
                                            {"prompt-file", required_argument, NULL, 'f'},
                                            {"input", required_argument, NULL, 'i'},
                                            {"chat", required_argument, NULL, 'h'},
                                            {"template", required_argument, NULL, 'T'},
                                            {"chat-template", required_argument, NULL, 'F'},
                                            {"system", required_argument, NULL, 'S'},
                                            {"beam", required_argument, NULL, 'b'},
                                            {"length-penalty", required_argument, NULL, 'l'},
                                            {"batch", required_argument, NULL, 'a'},
                                            {"tokens", required_argument, NULL, 'n'},
                                            {"stop", required_argument, NULL, 'x'},
                                            {"past-end", no_argument, NULL, 'e'},
                                            {"no-special", no_argument, NULL, 'o'},
                                            {"temperature", required_argument, NULL, 't'},
                                            {"top-k", required_argument, NULL, 'k'},
                                            {"top-p", required_argument, NULL, 'q'},
                                            {"repetition-penalty", required_argument, NULL, 'r'},
                                            {"seed", required_argument, NULL, 's'},
                                            {"device", required_argument, NULL, 'd'},
                                            {"threads", required_argument, NULL, 'j'},
                                            {"precision", required_argument, NULL, 'w'},
                                            {"json", no_argument, NULL, 'J'},
                                            {NULL, 0, NULL, 0}};
    int option;
    dt_status st = DT_OK;

    *out = (dt_generate_arguments){.seed = 1337,
                                   .batch = DT_CONTINUE_EXACT,
                                   .options = {.prompt = "",
                                               .device = DT_DEVICE_CPU,
                                               .rules = {.tokens = 300,
                                                         .sampling = {.temperature = 0.8},
                                                         .beams = 1,
                                                         .length_penalty = 1}}};
    while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        if (option == '?' || option == ':')
            DT_TRY(dt_argument_refuse(argv, option, err));
        DT_TRY(take(out, option, optarg, err));
    }
    if (optind < argc)
        DT_TRY(dt_argument_refuse(argv, -1, err));
    if (out->options.checkpoint == NULL)
        DT_THROW(err, DT_ERR_USAGE, "--checkpoint is missing");
    if (out->options.prompt[0] != '\0' && out->prompt_file != NULL)
        DT_THROW(err, DT_ERR_USAGE, "--prompt and --prompt-file cannot be combined");
    if (out->input != NULL && (out->options.prompt[0] != '\0' || out->prompt_file != NULL))
        DT_THROW(err, DT_ERR_USAGE, "--input and a prompt cannot be combined");
    if (out->chat != NULL &&
        (out->input != NULL || out->options.prompt[0] != '\0' || out->prompt_file != NULL))
        DT_THROW(err, DT_ERR_USAGE, "--chat cannot be combined with --input or a prompt");
    out->options.rules.sampling.seed = (uint64_t)out->seed;
    out->options.rules.stops.texts = out->stops;
    if (out->options.rules.beams > 1 && out->options.rules.stops.count > 0)
        DT_THROW(err, DT_ERR_USAGE, "--beam and --stop cannot be combined");
out:
    return st;
}

/* --- the arguments of `score` */

dt_status dt_score_arguments_parse(dt_score_arguments *out, int argc, char **argv, dt_error *err)
{
    static const struct option options[] = {{"checkpoint", required_argument, NULL, 'c'},
                                            {"input", required_argument, NULL, 'i'},
                                            {"target", required_argument, NULL, 't'},
                                            {"device", required_argument, NULL, 'd'},
                                            {"threads", required_argument, NULL, 'j'},
                                            {"json", no_argument, NULL, 'J'},
                                            {NULL, 0, NULL, 0}};
    dt_status st = DT_OK;
    int option;

    *out = (dt_score_arguments){.options = {.device = DT_DEVICE_CPU}};
    while ((option = getopt_long(argc, argv, ":", options, NULL)) != -1) {
        switch (option) {
        case 'c':
            out->options.checkpoint = optarg;
            break;
        case 'i':
            out->input = optarg;
            break;
        case 't':
            out->target = optarg;
            break;
        case 'd':
            out->options.device = optarg;
            break;
        case 'j':
            DT_TRY(dt_argument_whole(&out->options.threads, optarg, "--threads", 0, 1024, err));
            break;
        case 'J':
            out->json = true;
            break;
        default:
            DT_TRY(dt_argument_refuse(argv, option, err));
        }
    }
    if (optind < argc)
        DT_TRY(dt_argument_refuse(argv, -1, err));
    if (out->options.checkpoint == NULL || out->input == NULL)
        DT_THROW(err, DT_ERR_USAGE, "--checkpoint or --input is missing");
    if (strcmp(out->input, "-") == 0 && out->target != NULL && strcmp(out->target, "-") == 0)
        DT_THROW(err, DT_ERR_USAGE, "--input and --target are both stdin; name a file for one");
out:
    return st;
}

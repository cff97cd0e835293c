#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "engine/arguments.h"
#include "engine/commands.h"
#include "engine/generate/score.h"

#include "base/banned.h"

#define LINES_MOST ((size_t)1 << 30) /* bytes */

typedef struct wanted {
    dt_score_options options;
    const char *input, *target; /* files; target may be NULL */
    json_t *lines;              /* with --json: what has been, so far */
    double log_likelihood;      /* of all */
    int64_t tokens;
    bool json;
} wanted;

static dt_status parse(wanted *out, int argc, char **argv, dt_error *err)
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

    *out = (wanted){.options = {.device = "cpu"}};
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

static dt_status read_lines(dt_score_lines *out, dt_strbuf *text, const char *path, dt_error *err)
{
    dt_status st = DT_OK;

    if (path == NULL)
        return DT_OK;
    DT_TRY(dt_file_read(text, strcmp(path, "-") == 0 ? "/dev/stdin" : path, LINES_MOST, err));
    *out = (dt_score_lines){text->data, text->length};
out:
    return st;
}

static dt_status take(void *context, double log_likelihood, int64_t tokens, dt_error *err)
{
    wanted *w = context;
    dt_status st = DT_OK;
    dt_strbuf line;

    w->log_likelihood += log_likelihood;
    w->tokens += tokens;
    if (w->json) {
        json_array_append_new(w->lines, json_pack("{s:f, s:I}", "log_likelihood", log_likelihood,
                                                  "tokens", (json_int_t)tokens));
        return DT_OK;
    }
    dt_strbuf_init(&line);
    dt_strbuf_add_fmt(&line, "%.6f\t%lld", log_likelihood, (long long)tokens);
    DT_TRY(dt_print_line(&line, err));
out:
    dt_strbuf_release(&line);
    return st;
}

dt_status dt_engine_score(int argc, char **argv, dt_error *err)
{
    dt_strbuf input, target, out;
    json_t *object = NULL;
    dt_status st = DT_OK;
    double loss;
    wanted w;

    dt_strbuf_init(&input);
    dt_strbuf_init(&target);
    dt_strbuf_init(&out);
    DT_TRY(parse(&w, argc, argv, err));
    DT_TRY(read_lines(&w.options.input, &input, w.input, err));
    DT_TRY(read_lines(&w.options.target, &target, w.target, err));
    object = json_pack("{s:o, s:[]}", "checkpoint", dt_json_text(w.options.checkpoint), "lines");
    w.lines = json_object_get(object, "lines");
    w.options.emit = take;
    w.options.context = &w;
    DT_TRY(dt_score(&w.options, err));
    loss = w.tokens > 0 ? -w.log_likelihood / (double)w.tokens : NAN;
    if (!w.json) {
        if (w.tokens > 0)
            dt_strbuf_add_fmt(&out, "%.6f\t%lld\tall: loss %.6f, perplexity %.6g", w.log_likelihood,
                              (long long)w.tokens, loss, exp(loss));
        else
            dt_strbuf_add_str(&out, "0.000000\t0\tall: no token was scored");
        DT_TRY(dt_print_line(&out, err));
        goto out;
    }
    json_object_set_new(object, "log_likelihood", json_real(w.log_likelihood));
    json_object_set_new(object, "tokens", json_integer(w.tokens));
    json_object_set_new(object, "loss", w.tokens > 0 ? json_real(loss) : json_null());
    json_object_set_new(object, "perplexity",
                        w.tokens > 0 && isfinite(exp(loss)) ? json_real(exp(loss)) : json_null());
    dt_json_write(&out, object);
    DT_TRY(dt_print_line(&out, err));
out:
    json_decref(object);
    dt_strbuf_release(&input);
    dt_strbuf_release(&target);
    dt_strbuf_release(&out);
    return st;
}

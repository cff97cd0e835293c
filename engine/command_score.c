#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "engine/commands.h"

#define LINES_MOST ((size_t)1 << 30) /* maximum size of an input file in bytes */

typedef struct wanted {
    dt_score_arguments given;
    json_t *lines;         /* with --json: the lines scored so far */
    double log_likelihood; /* log-likelihood of all lines */
    int64_t tokens;
} wanted;

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
    if (w->given.json) {
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
    wanted w = {0};

    dt_strbuf_init(&input);
    dt_strbuf_init(&target);
    dt_strbuf_init(&out);
    DT_TRY(dt_score_arguments_parse(&w.given, argc, argv, err));
    DT_TRY(read_lines(&w.given.options.input, &input, w.given.input, err));
    DT_TRY(read_lines(&w.given.options.target, &target, w.given.target, err));
    object =
        json_pack("{s:o, s:[]}", "checkpoint", dt_json_text(w.given.options.checkpoint), "lines");
    w.lines = json_object_get(object, "lines");
    w.given.options.emit = take;
    w.given.options.context = &w;
    DT_TRY(dt_score(&w.given.options, err));
    loss = w.tokens > 0 ? -w.log_likelihood / (double)w.tokens : NAN;
    if (!w.given.json) {
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

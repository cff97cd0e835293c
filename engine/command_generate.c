#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/utf8.h"
#include "engine/arguments.h"
#include "engine/commands.h"
#include "engine/generate/continue.h"
#include "engine/generate/generate.h"
#include "engine/generate/translate.h"

#include "base/banned.h"

#define STOPS_MOST       64
#define PROMPT_MOST      ((size_t)64 << 20)
#define TEMPERATURE_MOST 100
#define BEAMS_MOST       256
#define BATCH_MOST       1024

typedef struct wanted {
    dt_generate_options options;
    const char *prompt_file;
    const char *input; /* NULL, or the lines that are translated or continued */
    int64_t batch;
    json_t *lines; /* with --json: those that are done */
    const char *stops[STOPS_MOST];
    int64_t seed;
    bool json;
    bool begun; /* the prompt is printed */
} wanted;

static dt_status add_stop(wanted *w, const char *text, dt_error *err)
{
    if (text[0] == '\0')
        return DT_FAIL(err, DT_ERR_USAGE, "--stop is empty: expected a text");
    if (w->options.rules.stops.count == STOPS_MOST)
        return DT_FAIL(err, DT_ERR_USAGE, "more than %d times --stop", STOPS_MOST);
    w->stops[w->options.rules.stops.count++] = text;
    return DT_OK;
}

static dt_status take_precision(dt_dtype *out, const char *text, dt_error *err)
{
    if (strcmp(text, "fp32") == 0)
        *out = DT_F32;
    else if (strcmp(text, "bf16") == 0)
        *out = DT_BF16;
    else
        return DT_FAIL(err, DT_ERR_USAGE, "--precision is '%s': expected fp32 or bf16", text);
    return DT_OK;
}

static dt_status take(wanted *w, int option, const char *text, dt_error *err)
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
    case 't':
        return dt_argument_number(&out->rules.sampling.temperature, text, "--temperature", 0,
                                  TEMPERATURE_MOST, err);
    case 'k':
        return dt_argument_whole(&out->rules.sampling.top_k, text, "--top-k", 0, 1 << 24, err);
    case 'q':
        return dt_argument_number(&out->rules.sampling.top_p, text, "--top-p", 0, 1, err);
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
        return take_precision(&out->precision, text, err);
    default:
        w->json = true;
        return DT_OK;
    }
}

static dt_status parse(wanted *out, int argc, char **argv, dt_error *err)
{
    static const struct option options[] = {{"checkpoint", required_argument, NULL, 'c'},
                                            {"prompt", required_argument, NULL, 'p'},
                                            {"prompt-file", required_argument, NULL, 'f'},
                                            {"input", required_argument, NULL, 'i'},
                                            {"beam", required_argument, NULL, 'b'},
                                            {"length-penalty", required_argument, NULL, 'l'},
                                            {"batch", required_argument, NULL, 'a'},
                                            {"tokens", required_argument, NULL, 'n'},
                                            {"stop", required_argument, NULL, 'x'},
                                            {"past-end", no_argument, NULL, 'e'},
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

    *out = (wanted){.seed = 1337,
                    .batch = DT_CONTINUE_EXACT,
                    .options = {.prompt = "",
                                .device = "cpu",
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
        DT_THROW(err, DT_ERR_USAGE, "--prompt and --prompt-file are both given; leave one out");
    if (out->input != NULL && (out->options.prompt[0] != '\0' || out->prompt_file != NULL))
        DT_THROW(err, DT_ERR_USAGE, "--input and a prompt are both given; leave one out");
    out->options.rules.sampling.seed = (uint64_t)out->seed;
    out->options.rules.stops.texts = out->stops;
    if (out->options.rules.beams > 1 && out->options.rules.stops.count > 0)
        DT_THROW(err, DT_ERR_USAGE, "--beam and --stop are both given; leave one out");
out:
    return st;
}

/* As it stands in the file, but for one line break at its end. */
static dt_status read_prompt(dt_strbuf *out, const char *path, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_file_read(out, strcmp(path, "-") == 0 ? "/dev/stdin" : path, PROMPT_MOST, err));
    if (strlen(out->data) != out->length)
        DT_THROW(err, DT_ERR_USAGE, "the prompt in '%s' has a byte 0", path);
    if (out->length > 0 && out->data[out->length - 1] == '\n')
        out->data[--out->length] = '\0';
out:
    return st;
}

static dt_status write_out(const char *text, size_t length, dt_error *err)
{
    if (fwrite(text, 1, length, stdout) != length || fflush(stdout) != 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot write to stdout: %s", strerror(errno));
    return DT_OK;
}

/* The prompt precedes the first of what is added to it: nothing is printed of what fails before. */
static dt_status emit(void *context, const char *text, size_t length, dt_error *err)
{
    wanted *w = context;
    dt_status st = DT_OK;

    if (!w->begun)
        DT_TRY(write_out(w->options.prompt, strlen(w->options.prompt), err));
    w->begun = true;
    DT_TRY(write_out(text, length, err));
out:
    return st;
}

static dt_status print_json(const wanted *w, const dt_generated *result, const dt_strbuf *text,
                            dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf valid, out;
    json_t *object;

    dt_strbuf_init(&valid);
    dt_strbuf_init(&out);
    dt_utf8_add_valid(&valid, text->data, text->length); /* a model of bytes may add any */
    object = json_pack("{s:s, s:I, s:s, s:s%, s:I, s:s, s:I}", "checkpoint", w->options.checkpoint,
                       "step", (json_int_t)result->step, "prompt", w->options.prompt, "text",
                       valid.data, valid.length, "tokens", (json_int_t)result->tokens, "ended",
                       dt_text_end_name(result->end), "seed",
                       (json_int_t)w->options.rules.sampling.seed);
    if (object == NULL)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "the prompt is not UTF-8, so it does not go into JSON (leave out --json)");
    if (w->options.rules.beams > 1)
        json_object_set_new(object, "score", json_real(result->score));
    dt_json_write(&out, object);
    DT_TRY(dt_print_line(&out, err));
out:
    json_decref(object);
    dt_strbuf_release(&valid);
    dt_strbuf_release(&out);
    return st;
}

/* --- lines */

static dt_status take_translation(void *context, const char *line, size_t length, double score,
                                  dt_error *err)
{
    wanted *w = context;
    dt_status st = DT_OK;
    dt_strbuf valid;

    dt_strbuf_init(&valid);
    if (w->json) {
        dt_utf8_add_valid(&valid, line, length);
        json_array_append_new(
            w->lines, json_pack("{s:s%, s:f}", "text", valid.data, valid.length, "score", score));
    } else {
        DT_TRY(write_out(line, length, err));
        DT_TRY(write_out("\n", 1, err));
    }
out:
    dt_strbuf_release(&valid);
    return st;
}

static dt_status translate(wanted *w, const dt_strbuf *text, dt_error *err)
{
    dt_translate_options options = {.checkpoint = w->options.checkpoint,
                                    .text = text->data,
                                    .length = text->length,
                                    .beams = w->options.rules.beams,
                                    .length_penalty = w->options.rules.length_penalty,
                                    .device = w->options.device,
                                    .threads = w->options.threads,
                                    .precision = w->options.precision,
                                    .emit = take_translation,
                                    .context = w};

    return dt_translate(&options, err);
}

static dt_status take_continued(void *context, const char *prompt, size_t length,
                                const dt_text *text, dt_error *err)
{
    wanted *w = context;
    dt_status st = DT_OK;
    dt_strbuf begin, added;

    dt_strbuf_init(&begin);
    dt_strbuf_init(&added);
    dt_utf8_add_valid(&begin, prompt, length);
    dt_utf8_add_valid(&added, text->text.data, text->text.length);
    if (w->json) {
        json_t *object = json_pack("{s:s%, s:s%, s:I, s:s}", "prompt", begin.data, begin.length,
                                   "text", added.data, added.length, "tokens",
                                   (json_int_t)text->added, "ended", dt_text_end_name(text->end));

        if (w->options.rules.beams > 1)
            json_object_set_new(object, "score", json_real(text->score));
        json_array_append_new(w->lines, object);
        goto out;
    }
    dt_strbuf_add(&begin, added.data, added.length);
    for (size_t i = 0; i < begin.length; i++) /* a line of input stays one line */
        if (begin.data[i] == '\n' || begin.data[i] == '\r')
            begin.data[i] = ' ';
    dt_strbuf_add_char(&begin, '\n');
    DT_TRY(write_out(begin.data, begin.length, err));
out:
    dt_strbuf_release(&begin);
    dt_strbuf_release(&added);
    return st;
}

static dt_status continue_lines(wanted *w, const dt_strbuf *text, int64_t *step, dt_error *err)
{
    dt_continue_options options = {.checkpoint = w->options.checkpoint,
                                   .text = text->data,
                                   .length = text->length,
                                   .batch = w->batch,
                                   .rules = w->options.rules,
                                   .device = w->options.device,
                                   .threads = w->options.threads,
                                   .precision = w->options.precision,
                                   .emit = take_continued,
                                   .context = w};

    return dt_continue(step, &options, err);
}

static dt_status each_line(wanted *w, dt_error *err)
{
    json_t *object = json_pack("{s:s, s:[]}", "checkpoint", w->options.checkpoint, "lines");
    dt_status st = DT_OK;
    dt_strbuf text, out;
    int64_t step = 0;
    bool pairs;

    dt_strbuf_init(&text);
    dt_strbuf_init(&out);
    w->lines = json_object_get(object, "lines");
    DT_TRY(dt_file_read(&text, strcmp(w->input, "-") == 0 ? "/dev/stdin" : w->input, PROMPT_MOST,
                        err));
    DT_TRY(dt_loaded_is_of_pairs(&pairs, w->options.checkpoint, err));
    if (pairs)
        DT_TRY(translate(w, &text, err));
    else
        DT_TRY(continue_lines(w, &text, &step, err));
    if (!pairs) {
        json_object_set_new(object, "step", json_integer((json_int_t)step));
        json_object_set_new(object, "seed",
                            json_integer((json_int_t)w->options.rules.sampling.seed));
    }
    if (w->json) {
        dt_json_write(&out, object);
        DT_TRY(dt_print_line(&out, err));
    }
out:
    json_decref(object);
    dt_strbuf_release(&text);
    dt_strbuf_release(&out);
    return st;
}

dt_status dt_engine_generate(int argc, char **argv, dt_error *err)
{
    dt_strbuf text, prompt;
    dt_generated result;
    dt_status st = DT_OK;
    wanted w;

    dt_strbuf_init(&text);
    dt_strbuf_init(&prompt);
    DT_TRY(parse(&w, argc, argv, err));
    if (w.input != NULL) {
        DT_TRY(each_line(&w, err));
        goto out;
    }
    if (w.prompt_file != NULL) {
        DT_TRY(read_prompt(&prompt, w.prompt_file, err));
        w.options.prompt = prompt.data;
    }
    w.options.emit = w.json ? NULL : emit;
    w.options.context = &w;
    DT_TRY(dt_generate(&text, &result, &w.options, err));
    if (w.json)
        DT_TRY(print_json(&w, &result, &text, err));
    else
        DT_TRY(emit(&w, "\n", 1, err));
out:
    dt_strbuf_release(&text);
    dt_strbuf_release(&prompt);
    return st;
}

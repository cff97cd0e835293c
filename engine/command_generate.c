#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "base/file.h"
#include "base/json.h"
#include "engine/commands.h"
#include "engine/generate/generate.h"
#include "engine/generate/prompter.h"

#define PROMPT_MOST ((size_t)64 << 20)

typedef struct wanted {
    dt_generate_arguments given;
    json_t *lines; /* with --json: the finished lines */
    bool begun;    /* the prompt has been printed */
    bool single;   /* with --chat: there is one conversation */
} wanted;

/* Read the prompt as it is in the file, except one trailing line break. */
static dt_status read_prompt(dt_strbuf *out, const char *path, dt_error *err)
{
    dt_status st = DT_OK;

    DT_TRY(dt_file_read(out, strcmp(path, "-") == 0 ? "/dev/stdin" : path, PROMPT_MOST, err));
    if (strlen(out->data) != out->length)
        DT_THROW(err, DT_ERR_USAGE, "the prompt in '%s' contains a NUL byte", path);
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

/* Print new text. The prompt is printed just before the first of it, so that an earlier failure
 * prints nothing. */
static dt_status emit(void *context, const char *text, size_t length, dt_error *err)
{
    wanted *w = context;
    dt_status st = DT_OK;

    if (!w->begun)
        DT_TRY(write_out(w->given.options.prompt, strlen(w->given.options.prompt), err));
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
    /* a model on bytes can generate any bytes */
    dt_utf8_add_valid(&valid, text->data, text->length);
    object = json_pack("{s:s, s:I, s:s, s:s%, s:I, s:s, s:I}", "checkpoint",
                       w->given.options.checkpoint, "step", (json_int_t)result->step, "prompt",
                       w->given.options.prompt, "text", valid.data, valid.length, "tokens",
                       (json_int_t)result->tokens, "ended", dt_text_end_name(result->end), "seed",
                       (json_int_t)w->given.options.rules.sampling.seed);
    if (object == NULL)
        DT_THROW(err, DT_ERR_UNSUPPORTED,
                 "the prompt is not UTF-8 and cannot be printed as JSON (leave out --json)");
    if (w->given.options.rules.beams > 1)
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
    if (w->given.json) {
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
    dt_translate_options options = {.checkpoint = w->given.options.checkpoint,
                                    .text = text->data,
                                    .length = text->length,
                                    .batch = w->given.batch,
                                    .beams = w->given.options.rules.beams,
                                    .length_penalty = w->given.options.rules.length_penalty,
                                    .past_end = w->given.options.rules.past_end,
                                    .device = w->given.options.device,
                                    .threads = w->given.options.threads,
                                    .precision = w->given.options.precision,
                                    .emit = take_translation,
                                    .context = w};

    return dt_translate(&options, err);
}

static dt_status add_continued(wanted *w, const char *prompt, size_t length, const dt_text *text)
{
    dt_strbuf begin, added;
    json_t *object;

    dt_strbuf_init(&begin);
    dt_strbuf_init(&added);
    dt_utf8_add_valid(&begin, prompt, length);
    dt_utf8_add_valid(&added, text->text.data, text->text.length);
    object = json_pack("{s:s%, s:s%, s:I, s:s}", "prompt", begin.data, begin.length, "text",
                       added.data, added.length, "tokens", (json_int_t)text->added, "ended",
                       dt_text_end_name(text->end));
    if (w->given.options.rules.beams > 1)
        json_object_set_new(object, "score", json_real(text->score));
    json_array_append_new(w->lines, object);
    dt_strbuf_release(&begin);
    dt_strbuf_release(&added);
    return DT_OK;
}

static dt_status take_continued(void *context, const char *prompt, size_t length,
                                const dt_text *text, dt_error *err)
{
    wanted *w = context;
    dt_status st = DT_OK;
    dt_strbuf line;

    if (w->given.json)
        return add_continued(w, prompt, length, text);
    dt_strbuf_init(&line);
    dt_continued_line(&line, prompt, length, text);
    st = write_out(line.data, line.length, err);
    dt_strbuf_release(&line);
    return st;
}

static dt_status continue_lines(wanted *w, const dt_strbuf *text, int64_t *step, dt_error *err)
{
    dt_continue_options options = {.checkpoint = w->given.options.checkpoint,
                                   .text = text->data,
                                   .length = text->length,
                                   .batch = w->given.batch,
                                   .rules = w->given.options.rules,
                                   .device = w->given.options.device,
                                   .threads = w->given.options.threads,
                                   .precision = w->given.options.precision,
                                   .emit = take_continued,
                                   .context = w};

    return dt_continue(step, &options, err);
}

static dt_status each_line(wanted *w, dt_error *err)
{
    json_t *object = json_pack("{s:s, s:[]}", "checkpoint", w->given.options.checkpoint, "lines");
    dt_status st = DT_OK;
    dt_strbuf text, out;
    int64_t step = 0;
    bool pairs;

    dt_strbuf_init(&text);
    dt_strbuf_init(&out);
    w->lines = json_object_get(object, "lines");
    DT_TRY(dt_file_read(&text, strcmp(w->given.input, "-") == 0 ? "/dev/stdin" : w->given.input,
                        PROMPT_MOST, err));
    DT_TRY(dt_loaded_is_of_pairs(&pairs, w->given.options.checkpoint, err));
    if (pairs)
        DT_TRY(translate(w, &text, err));
    else
        DT_TRY(continue_lines(w, &text, &step, err));
    if (!pairs) {
        json_object_set_new(object, "step", json_integer((json_int_t)step));
        json_object_set_new(object, "seed",
                            json_integer((json_int_t)w->given.options.rules.sampling.seed));
    }
    if (w->given.json) {
        dt_json_write(&out, object);
        DT_TRY(dt_print_line(&out, err));
    }
out:
    json_decref(object);
    dt_strbuf_release(&text);
    dt_strbuf_release(&out);
    return st;
}

/* --- conversations */

typedef struct answering {
    wanted *w;
    dt_prompter prompter;
} answering;

static dt_status open_prompter(void *context, dt_loaded *from, dt_error *err)
{
    answering *a = context;

    return dt_prompter_open(&a->prompter, from, &a->w->given.template, err);
}

static dt_status encode_chat(void *context, dt_ids *ids, const char *line, size_t length,
                             dt_error *err)
{
    answering *a = context;

    return dt_prompter_line(ids, &a->prompter, line, length, err);
}

static dt_status take_answer(void *context, const char *prompt, size_t length, const dt_text *text,
                             dt_error *err)
{
    wanted *w = ((answering *)context)->w;
    dt_strbuf valid;
    dt_status st = DT_OK;

    (void)prompt;
    (void)length;
    dt_strbuf_init(&valid);
    dt_utf8_add_valid(&valid, text->text.data, text->text.length);
    if (w->given.json) {
        json_array_append_new(w->lines, json_pack("{s:s%, s:I, s:s}", "text", valid.data,
                                                  valid.length, "tokens", (json_int_t)text->added,
                                                  "ended", dt_text_end_name(text->end)));
        goto out;
    }
    for (size_t i = 0; i < valid.length && !w->single; i++) /* a line each */
        if (valid.data[i] == '\n' || valid.data[i] == '\r')
            valid.data[i] = ' ';
    dt_strbuf_add_char(&valid, '\n');
    DT_TRY(write_out(valid.data, valid.length, err));
out:
    dt_strbuf_release(&valid);
    return st;
}

/* A file with one JSON value is one conversation, or its messages: makes it one line. */
static void join_value(dt_strbuf *text, bool *single)
{
    json_t *value =
        json_loadb(text->data, text->length, JSON_ALLOW_NUL | JSON_REJECT_DUPLICATES, NULL);

    *single = value != NULL;
    if (json_is_array(value))
        value = json_pack("{s:o}", "messages", value);
    if (value != NULL) {
        dt_strbuf_reset(text);
        dt_json_write(text, value);
    }
    json_decref(value);
}

static dt_status answer(wanted *w, dt_error *err)
{
    json_t *object = json_pack("{s:s, s:[]}", "checkpoint", w->given.options.checkpoint, "lines");
    answering a = {.w = w};
    dt_status st = DT_OK;
    dt_strbuf text, out;
    int64_t step = 0;
    dt_continue_options options;

    dt_strbuf_init(&text);
    dt_strbuf_init(&out);
    w->lines = json_object_get(object, "lines");
    DT_TRY(dt_file_read(&text, strcmp(w->given.chat, "-") == 0 ? "/dev/stdin" : w->given.chat,
                        PROMPT_MOST, err));
    join_value(&text, &w->single);
    options = (dt_continue_options){.checkpoint = w->given.options.checkpoint,
                                    .text = text.data,
                                    .length = text.length,
                                    .open = open_prompter,
                                    .encode = encode_chat,
                                    .batch = w->given.batch,
                                    .rules = w->given.options.rules,
                                    .device = w->given.options.device,
                                    .threads = w->given.options.threads,
                                    .precision = w->given.options.precision,
                                    .emit = take_answer,
                                    .context = &a};
    DT_TRY(dt_continue(&step, &options, err));
    if (w->given.json) {
        json_object_set_new(object, "step", json_integer((json_int_t)step));
        json_object_set_new(object, "seed",
                            json_integer((json_int_t)w->given.options.rules.sampling.seed));
        dt_json_write(&out, object);
        DT_TRY(dt_print_line(&out, err));
    }
out:
    dt_prompter_close(&a.prompter);
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
    wanted w = {0};

    dt_strbuf_init(&text);
    dt_strbuf_init(&prompt);
    DT_TRY(dt_generate_arguments_parse(&w.given, argc, argv, err));
    if (w.given.chat != NULL) {
        DT_TRY(answer(&w, err));
        goto out;
    }
    if (w.given.input != NULL) {
        DT_TRY(each_line(&w, err));
        goto out;
    }
    if (w.given.prompt_file != NULL) {
        DT_TRY(read_prompt(&prompt, w.given.prompt_file, err));
        w.given.options.prompt = prompt.data;
    }
    w.given.options.emit = w.given.json ? NULL : emit;
    w.given.options.context = &w;
    DT_TRY(dt_generate(&text, &result, &w.given.options, err));
    if (w.given.json)
        DT_TRY(print_json(&w, &result, &text, err));
    else
        DT_TRY(emit(&w, "\n", 1, err));
out:
    dt_strbuf_release(&text);
    dt_strbuf_release(&prompt);
    return st;
}

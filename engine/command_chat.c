/* command_chat: talks with a model. Each line of stdin is a message of the user; the answer is printed as it is
 * generated, and both stay in the conversation.
 *
 * Ctrl-C  ends an answer, whose text stays in the conversation; while nothing is answered, ends the line. If stdin is
 *         not a terminal, it ends the program
 * Ctrl-D  ends the program, as does the end of the input
 * Long    if the conversation does not fit into the context, the oldest messages but the system's are left out, which
 *         is reported
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/display.h"
#include "base/json.h"
#include "engine/commands.h"
#include "engine/generate/prompter.h"

typedef struct talk {
    dt_generate_arguments given;
    dt_loaded from;
    dt_prompter prompter;
    json_t *line, *messages; /* the conversation */
    float *logits;
    int64_t answers;
    dt_strbuf line_text, input; /* a line of stdin; what was read after it */
    int signals;                /* a signalfd of SIGINT, which is blocked in all threads */
    bool interrupted;           /* SIGINT arrived during the answer */
    bool asks;                  /* stdin is a terminal */
    bool shown;                 /* stdout is a terminal */
} talk;

/* Takes a SIGINT that has arrived. */
static bool take_interrupt(const talk *t)
{
    struct signalfd_siginfo info;

    return read(t->signals, &info, sizeof(info)) > 0;
}

/* --- output */

static dt_status print(const talk *t, const char *text, size_t length, dt_error *err)
{
    dt_strbuf safe;
    dt_status st = DT_OK;

    dt_strbuf_init(&safe);
    if (t->shown) /* a model can generate escape sequences */
        dt_display_add(&safe, text, length);
    else
        dt_strbuf_add(&safe, text, length);
    if (fwrite(safe.data, 1, safe.length, stdout) != safe.length || fflush(stdout) != 0)
        st = DT_FAIL(err, DT_ERR_IO, "cannot write to stdout: %s", strerror(errno));
    dt_strbuf_release(&safe);
    return st;
}

static dt_status print_json(const talk *t, const dt_text *text, dt_error *err)
{
    const char *ended = t->interrupted ? "interrupted" : dt_text_end_name(text->end);
    dt_strbuf valid, out;
    json_t *object;
    dt_status st;

    dt_strbuf_init(&valid);
    dt_strbuf_init(&out);
    dt_utf8_add_valid(&valid, text->text.data, text->text.length);
    object = json_pack("{s:i, s:s, s:s%, s:I, s:s}", "version", 1, "role", "assistant", "content",
                       valid.data, valid.length, "tokens", (json_int_t)text->added, "ended", ended);
    dt_json_write(&out, object);
    st = dt_print_line(&out, err);
    json_decref(object);
    dt_strbuf_release(&valid);
    dt_strbuf_release(&out);
    return st;
}

/* --- the conversation */

static void add_message(talk *t, const char *role, const char *text, size_t length)
{
    dt_strbuf valid;

    dt_strbuf_init(&valid);
    dt_utf8_add_valid(&valid, text, length);
    json_array_append_new(
        t->messages, json_pack("{s:s, s:s%}", "role", role, "content", valid.data, valid.length));
    dt_strbuf_release(&valid);
}

/* Leaves out the oldest message that is not the system's, and what follows it up to the next of the user. Returns false
 * if only the last message is left. */
static bool forget(talk *t)
{
    size_t first = t->given.system != NULL ? 1 : 0;

    if (json_array_size(t->messages) <= first + 1)
        return false;
    do
        json_array_remove(t->messages, first);
    while (json_array_size(t->messages) > first + 1 &&
           strcmp(json_string_value(json_object_get(json_array_get(t->messages, first), "role")),
                  "user") != 0);
    return true;
}

/* The ids of the conversation, without its oldest messages if it is too long. */
static dt_status encode(dt_ids *ids, talk *t, dt_error *err)
{
    size_t before = json_array_size(t->messages);
    dt_status st = DT_OK;
    bool fits = false;

    while (!fits) {
        ids->count = 0;
        DT_TRY(dt_prompter_encode(ids, &fits, &t->prompter, t->line, err));
        if (!fits && !forget(t))
            DT_THROW(err, DT_ERR_USAGE,
                     "the message has %zu tokens with its prompt, and the model's context is %lld",
                     ids->count, (long long)t->prompter.context);
    }
    if (json_array_size(t->messages) < before)
        fprintf(stderr, "(the %zu oldest messages no longer fit into the context of %lld tokens)\n",
                before - json_array_size(t->messages), (long long)t->prompter.context);
out:
    return st;
}

static dt_status answer(talk *t, dt_error *err)
{
    const dt_text_rules *rules = &t->given.options.rules;
    dt_text text = {0};
    dt_ids ids = {0};
    dt_status st = DT_OK;
    size_t given = 0;

    DT_TRY(encode(&ids, t, err));
    DT_TRY(dt_model_replace(t->from.model, 0, DT_SEQUENCE_EMPTY, err));
    DT_TRY(dt_text_open_ids(&text, &t->from, rules, ids.items, (int64_t)ids.count,
                            rules->sampling.seed + (uint64_t)t->answers, err));
    while (!text.done && text.count < t->prompter.context) {
        t->interrupted = take_interrupt(t);
        if (t->interrupted)
            break;
        DT_TRY(dt_text_logits(t->logits, &text, &t->from, 0, err));
        DT_TRY(dt_text_take(&text, t->logits, err));
        if (!t->given.json && text.whole > given)
            DT_TRY(print(t, text.text.data + given, text.whole - given, err));
        given = text.whole;
    }
    if (!t->given.json && text.text.length > given)
        DT_TRY(print(t, text.text.data + given, text.text.length - given, err));
    if (t->given.json)
        DT_TRY(print_json(t, &text, err));
    else
        DT_TRY(print(t, "\n", 1, err));
    if (!text.done && !t->interrupted)
        fprintf(stderr, "(the answer ends with the context of %lld tokens)\n",
                (long long)t->prompter.context);
    add_message(t, "assistant", text.text.data, text.text.length);
    t->answers++;
out:
    dt_text_close(&text);
    dt_ids_release(&ids);
    return st;
}

/* --- the loop */

/* Prints to the terminal; the output of a pipe has only answers. */
static void say(const char *text)
{
    fputs(text, stderr);
    fflush(stderr);
}

typedef enum stdin_event { GOT_BYTES, GOT_END, GOT_INTERRUPT } stdin_event;

/* Waits for stdin or SIGINT, and reads. */
static dt_status read_more(stdin_event *got, talk *t, dt_error *err)
{
    struct pollfd ends[] = {{.fd = STDIN_FILENO, .events = POLLIN}, {t->signals, POLLIN, 0}};
    char bytes[4096];
    ssize_t count;

    *got = GOT_INTERRUPT;
    if (poll(ends, 2, -1) < 0 && errno != EINTR)
        return DT_FAIL(err, DT_ERR_IO, "cannot wait for stdin: %s", strerror(errno));
    if (take_interrupt(t))
        return DT_OK;
    count = read(STDIN_FILENO, bytes, sizeof(bytes));
    if (count < 0 && !(t->asks && errno == EIO)) /* EIO: the terminal is gone */
        return DT_FAIL(err, DT_ERR_IO, "cannot read stdin: %s", strerror(errno));
    *got = count > 0 ? GOT_BYTES : GOT_END;
    if (count > 0)
        dt_strbuf_add(&t->input, bytes, (size_t)count);
    return DT_OK;
}

/* Moves a line without its break from the input. At the end of the input its rest is a line. */
static bool take_line(dt_strbuf *line, dt_strbuf *input, bool at_end)
{
    const char *end = memchr(input->data, '\n', input->length);
    size_t length = end != NULL ? (size_t)(end - input->data) : input->length;
    size_t taken = end != NULL ? length + 1 : length;

    if (end == NULL && (!at_end || length == 0))
        return false;
    while (length > 0 && input->data[length - 1] == '\r')
        length--;
    dt_strbuf_reset(line);
    dt_strbuf_add(line, input->data, length);
    dt_strbuf_remove_front(input, taken);
    return true;
}

/* Reads a line. *ended: there is none, or SIGINT has arrived and stdin is not a terminal. */
static dt_status read_line(bool *ended, talk *t, dt_error *err)
{
    const char *prompt = t->asks && !t->given.json ? "> " : "";
    dt_status st = DT_OK;
    stdin_event got = GOT_BYTES;

    say(prompt);
    while (!*ended && !take_line(&t->line_text, &t->input, got == GOT_END)) {
        DT_TRY(read_more(&got, t, err));
        *ended = (got == GOT_END && t->input.length == 0) || (got == GOT_INTERRUPT && !t->asks);
        if (got == GOT_INTERRUPT && t->asks) {
            say("\n(Ctrl-D ends the conversation)\n");
            say(prompt);
        }
    }
out:
    return st;
}

static dt_status run(talk *t, dt_error *err)
{
    dt_error refused = DT_ERROR_INIT;
    bool ended = false;
    dt_status st = DT_OK;

    while (!ended) {
        DT_TRY(read_line(&ended, t, err));
        if (ended || t->line_text.length == 0)
            continue;
        add_message(t, "user", t->line_text.data, t->line_text.length);
        t->interrupted = false;
        st = answer(t, &refused);
        if (st == DT_ERR_USAGE && t->asks) { /* the message stays out of the conversation */
            fprintf(stderr, "%s\n", refused.message);
            json_array_remove(t->messages, json_array_size(t->messages) - 1);
            dt_error_clear(&refused);
            st = DT_OK;
        }
        if (st != DT_OK)
            DT_THROW(err, st, "%s", refused.message);
        if (t->interrupted && !t->asks)
            break;
    }
    if (t->asks && !t->given.json)
        DT_TRY(print(t, "\n", 1, err));
out:
    return st;
}

/* Blocks SIGINT, before threads start: no handler has to wake a read that begins just after it ran. */
static dt_status catch_interrupts(talk *t, dt_error *err)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigprocmask(SIG_BLOCK, &set, NULL);
    t->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
    if (t->signals < 0)
        return DT_FAIL(err, DT_ERR_IO, "cannot open a signalfd: %s", strerror(errno));
    return DT_OK;
}

static dt_status open_talk(talk *t, dt_error *err)
{
    const dt_loaded_room room = {.batch = 1, .sequences = 1};
    const dt_generate_options *options = &t->given.options;
    dt_model_text source;
    dt_status st = DT_OK;

    DT_TRY(dt_loaded_open(&t->from, options->checkpoint, NULL, err));
    DT_TRY(dt_prompter_open(&t->prompter, &t->from, &t->given.template, err));
    DT_TRY(dt_loaded_open_model(&t->from, options->device, options->threads, options->precision,
                                &room, err));
    DT_TRY(dt_model_text_of(&source, t->from.model, err));
    t->logits = calloc((size_t)source.vocab, sizeof(*t->logits));
    if (t->logits == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory for the logits of %lld tokens",
                 (long long)source.vocab);
    t->line = json_pack("{s:[]}", "messages");
    t->messages = json_object_get(t->line, "messages");
    if (t->given.system != NULL)
        add_message(t, "system", t->given.system, strlen(t->given.system));
out:
    return st;
}

dt_status dt_engine_chat(int argc, char **argv, dt_error *err)
{
    talk t = {
        .signals = -1, .asks = isatty(STDIN_FILENO) != 0, .shown = isatty(STDOUT_FILENO) != 0};
    dt_status st = DT_OK;

    dt_strbuf_init(&t.line_text);
    dt_strbuf_init(&t.input);
    DT_TRY(dt_generate_arguments_parse(&t.given, argc, argv, err));
    DT_TRY(catch_interrupts(&t, err));
    DT_TRY(open_talk(&t, err));
    if (!take_interrupt(&t))
        DT_TRY(run(&t, err));
out:
    free(t.logits);
    json_decref(t.line);
    dt_strbuf_release(&t.line_text);
    dt_strbuf_release(&t.input);
    if (t.signals >= 0)
        close(t.signals);
    dt_prompter_close(&t.prompter);
    dt_loaded_close(&t.from);
    return st;
}

/* dtrun data show: prints conversations as they are trained. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/display.h"
#include "base/file.h"
#include "engine/data/chats.h"
#include "runner/cli/read_recipe.h"
#include "runner/cli/report.h"
#include "runner/commands/data_show.h"
#include "runner/corpus/chats.h"
#include "runner/launch/preflight.h"
#include "runner/term/term.h"

#define SHOWN_USUALLY 3

typedef struct shown {
    const dt_tokenizer *tokenizer;
    dt_chat_limits limits;
    dt_term term;
    bool json, with_tokens;
    int64_t from, most; /* first conversation, from 1, and how many */
    int64_t seen, printed;
} shown;

/* --- what is trained of a row */

static size_t kept_count(const shown *s, const dt_chat_row *row)
{
    return row->count > (size_t)s->limits.tokens ? (size_t)s->limits.tokens : row->count;
}

/* The first token is never predicted, and nothing after a cut. */
static bool is_target(const shown *s, const dt_chat_row *row, size_t token)
{
    return token > 0 && token < kept_count(s, row) && row->weights[token] > 0;
}

static size_t target_count(const shown *s, const dt_chat_row *row)
{
    size_t count = 0;

    for (size_t t = 0; t < row->count; t++)
        count += is_target(s, row, t);
    return count;
}

static bool is_left_out(const shown *s, const dt_chat_row *row)
{
    bool is_long = row->count > (size_t)s->limits.tokens;

    return target_count(s, row) == 0 || (is_long && s->limits.too_long != DT_TOO_LONG_CUT);
}

/* --- JSON */

static dt_status print_json(const shown *s, const dt_chats_line *line, dt_error *err)
{
    const dt_chat_row *row = line->row;
    json_t *object = dt_report_object(), *ids = json_array(), *trained = json_array();
    json_t *weights = json_array();
    dt_status st = DT_OK;
    bool plain = true;
    dt_strbuf text;

    for (size_t t = 0; t < kept_count(s, row); t++) {
        float weight = is_target(s, row, t) ? row->weights[t] : 0;

        json_array_append_new(ids, json_integer(row->ids[t]));
        json_array_append_new(trained, json_integer(weight > 0));
        json_array_append_new(weights, json_real((double)weight));
        plain = plain && (weight == 0 || weight == 1);
    }
    json_object_set_new(object, "file", dt_json_text(line->path));
    json_object_set_new(object, "line", json_integer(line->number));
    json_object_set_new(object, "form", json_string(dt_chat_form_name(row->form)));
    json_object_set_new(object, "messages", json_integer((json_int_t)row->messages));
    json_object_set_new(object, "tokens", json_integer((json_int_t)row->count));
    json_object_set_new(object, "cut", json_boolean(kept_count(s, row) < row->count));
    json_object_set_new(object, "left_out", json_boolean(is_left_out(s, row)));
    json_object_set_new(object, "text", json_stringn(row->text, row->length));
    json_object_set(object, "ids", ids);
    json_object_set(object, "trained", trained);
    if (!plain)
        json_object_set(object, "weights", weights);
    dt_strbuf_init(&text);
    dt_json_write(&text, object); /* always one line, so that several can be told apart */
    dt_strbuf_add_char(&text, '\n');
    DT_TRY(dt_report_text(&text, err));
out:
    json_decref(object);
    json_decref(ids);
    json_decref(trained);
    json_decref(weights);
    dt_strbuf_release(&text);
    return st;
}

/* --- text */

/* The text of a line and the marks under it, for a terminal without colours and for files. */
typedef struct marked {
    dt_strbuf line, marks;
    bool any;
} marked;

static void end_line(dt_strbuf *out, marked *m)
{
    dt_strbuf_add(out, m->line.data, m->line.length);
    dt_strbuf_add_char(out, '\n');
    if (m->any) {
        dt_strbuf_add(out, m->marks.data, m->marks.length);
        dt_strbuf_add_char(out, '\n');
    }
    dt_strbuf_reset(&m->line);
    dt_strbuf_reset(&m->marks);
    m->any = false;
}

/* Adds a part of a line, without line breaks. */
static void add_part(const shown *s, marked *m, const char *text, size_t length, bool trained)
{
    size_t columns;
    dt_strbuf safe;

    dt_strbuf_init(&safe);
    dt_display_add(&safe, text, length);
    columns = dt_display_columns(safe.data, safe.length);
    dt_term_add(&m->line, &s->term, trained ? DT_STYLE_TRAINED : DT_STYLE_DIM, "%s", safe.data);
    for (size_t i = 0; i < columns; i++)
        dt_strbuf_add_char(&m->marks, trained ? '~' : ' ');
    m->any = m->any || (trained && columns > 0 && !s->term.colour);
    dt_strbuf_release(&safe);
}

static void add_text(dt_strbuf *out, const shown *s, marked *m, const char *text, size_t length,
                     bool trained)
{
    while (length > 0) {
        const char *end = memchr(text, '\n', length);
        size_t part = end != NULL ? (size_t)(end - text) : length;

        if (part > 0)
            add_part(s, m, text, part, trained);
        if (end == NULL)
            return;
        end_line(out, m);
        text += part + 1;
        length -= part + 1;
    }
}

static void add_conversation(dt_strbuf *out, const shown *s, const dt_chat_row *row)
{
    size_t start = 0, count = kept_count(s, row);
    marked m = {.any = false};

    dt_strbuf_init(&m.line);
    dt_strbuf_init(&m.marks);
    for (size_t t = 0, next; t < count; t = next) { /* tokens that are alike together */
        bool trained = is_target(s, row, t);

        for (next = t + 1; next < count && is_target(s, row, next) == trained;)
            next++;
        add_text(out, s, &m, row->text + start, row->ends[next - 1] - start, trained);
        start = row->ends[next - 1];
    }
    if (m.line.length > 0)
        end_line(out, &m);
    if (count < row->count) {
        dt_term_add(out, &s->term, DT_STYLE_WARN, "-- %zu more tokens are beyond batch.tokens",
                    row->count - count);
        dt_strbuf_add_char(out, '\n');
    }
    dt_strbuf_release(&m.line);
    dt_strbuf_release(&m.marks);
}

/* A line for each token: its id, its text as JSON, and its weight. */
static void add_tokens(dt_strbuf *out, const shown *s, const dt_chat_row *row)
{
    size_t start = 0;

    for (size_t t = 0; t < kept_count(s, row); t++) {
        json_t *text;
        dt_strbuf valid;

        dt_strbuf_init(&valid);
        dt_utf8_add_valid(&valid, row->text + start, row->ends[t] - start);
        text = json_stringn(valid.data, valid.length);
        dt_strbuf_reset(&valid);
        dt_json_write(&valid, text);
        json_decref(text);
        dt_term_add(out, &s->term, is_target(s, row, t) ? DT_STYLE_TRAINED : DT_STYLE_DIM,
                    "%8d %-8.4g %s", row->ids[t],
                    is_target(s, row, t) ? (double)row->weights[t] : 0.0, valid.data);
        dt_strbuf_add_char(out, '\n');
        dt_strbuf_release(&valid);
        start = row->ends[t];
    }
}

static dt_status print_text(const shown *s, const dt_chats_line *line, dt_error *err)
{
    const dt_chat_row *row = line->row;
    dt_status st = DT_OK;
    dt_strbuf out;

    dt_strbuf_init(&out);
    dt_term_add(&out, &s->term, DT_STYLE_BOLD, "%sconversation %lld", s->printed > 0 ? "\n" : "",
                (long long)s->seen);
    dt_term_add(&out, &s->term, DT_STYLE_PLAIN,
                "  %s:%lld (%s): %zu messages, %zu tokens, %zu trained%s\n", line->path,
                (long long)line->number, dt_chat_form_name(row->form), row->messages, row->count,
                target_count(s, row), is_left_out(s, row) ? ": left out" : "");
    if (s->with_tokens)
        add_tokens(&out, s, row);
    else
        add_conversation(&out, s, row);
    DT_TRY(dt_report_styled(&out, err));
out:
    dt_strbuf_release(&out);
    return st;
}

static dt_status show_line(void *context, const dt_chats_line *line, bool *stop, dt_error *err)
{
    shown *s = context;
    dt_status st = DT_OK;

    if (++s->seen < s->from)
        return DT_OK;
    DT_TRY(s->json ? print_json(s, line, err) : print_text(s, line, err));
    *stop = ++s->printed == s->most;
out:
    return st;
}

/* --- the command */

static dt_status read_count(int64_t *out, const char *text, dt_error *err)
{
    char *end;
    long long value;

    errno = 0;
    value = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || value < 1)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "'%s' is not a number of conversations (expected 1 or more)", text);
    *out = value;
    return DT_OK;
}

dt_status dt_data_show(dt_call *call, dt_error *err)
{
    const dt_arguments *args = call->args;
    shown s = {.json = call->json,
               .with_tokens = dt_arguments_flag(args, "tokens"),
               .from = dt_arguments_get(args, "from")->integer,
               .most = SHOWN_USUALLY};
    dt_tokenizer *tokenizer = NULL;
    dt_chat *chat = NULL;
    dt_recipe recipe, here;
    dt_recipe_source source;
    dt_data_files files;
    dt_status st = DT_OK;

    if (args->operands_count > 3)
        DT_THROW(err, DT_ERR_USAGE, "expected show RECIPE [N]");
    if (args->operands_count == 3)
        DT_TRY(read_count(&s.most, args->operands[2], err));
    DT_TRY(dt_read_training_recipe(&recipe, &source, args->operands[1], call, err));
    if (recipe.data.format != DT_DATA_CHAT)
        DT_THROW(err, DT_ERR_RECIPE,
                 "data.format is text: 'data show' prints conversations (data.format: chat)");
    if (recipe.data.tokens == DT_TOKENS_CHATS)
        DT_THROW(err, DT_ERR_RECIPE, "data.tokens is chats: prepared conversations have no text");
    DT_TRY(dt_fetch_recipe(&here, &recipe, call->arena, err));
    DT_TRY(dt_tokenizer_read(&tokenizer, &here, err));
    DT_TRY(dt_chats_template(&chat, &here, tokenizer, call->arena, err));
    DT_TRY(dt_chats_files(&files, &here.data.train, "data.train", call->arena, err));
    s.tokenizer = tokenizer;
    s.limits = dt_chat_limits_of(&here);
    dt_term_init(&s.term, STDOUT_FILENO);
    DT_TRY(dt_chats_each(&files, chat, here.dpo.beta > 0, show_line, &s, err));
    if (s.printed == 0)
        DT_THROW(err, DT_ERR_USAGE, "data.train has %lld conversation%s: --from %lld is too large",
                 (long long)s.seen, s.seen == 1 ? "" : "s", (long long)s.from);
out:
    dt_chat_free(chat);
    dt_tokenizer_free(tokenizer);
    return st;
}

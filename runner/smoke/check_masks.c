/* check_masks: checks which tokens of conversations are trained. */
#include <string.h>

#include "engine/data/chats.h"
#include "runner/corpus/chats.h"
#include "runner/smoke/smoke_int.h"

#define LOOKED_AT 2000 /* conversations */

typedef struct masks {
    const dt_tokenizer *tokenizer;
    int32_t turn_end; /* -1: the template has none */
    int64_t conversations, tokens, trained, turns, ends;
    int64_t calling;   /* turns with tool calls, which can end with another token */
    const char *fault; /* NULL: none */
    dt_smoke *smoke;
} masks;

/* The run of the text that has the last byte of a token. */
static const dt_chat_run *run_of(const dt_chat_row *row, size_t token)
{
    size_t low = 0, high = row->run_count - 1;

    while (low < high) {
        size_t middle = (low + high) / 2;

        if (row->runs[middle].end >= row->ends[token])
            high = middle;
        else
            low = middle + 1;
    }
    return &row->runs[low];
}

static const char *role_of(const json_t *messages, int32_t message)
{
    const json_t *one = message >= 0 ? json_array_get(messages, (size_t)message) : NULL;
    const char *role = json_string_value(json_object_get(one, "role"));

    return role != NULL ? role : "";
}

static bool calls_tools(const json_t *messages, int32_t message)
{
    const json_t *one = json_array_get(messages, (size_t)message);

    return json_array_size(json_object_get(one, "tool_calls")) > 0;
}

/* A trained token is of an assistant's fields, or of the template after them. */
static void check_row(masks *m, const dt_chats_line *line, const json_t *messages)
{
    const dt_chat_row *row = line->row;
    int32_t last = -1; /* the assistant's message that was trained last */

    for (size_t t = 0; t < row->count; t++) {
        const dt_chat_run *run = run_of(row, t);
        bool trained = row->weights[t] > 0;

        m->trained += trained;
        if (trained && run->message >= 0) { /* an empty answer has its end alone */
            m->turns += run->message != last;
            m->calling += run->message != last && calls_tools(messages, run->message);
            last = run->message;
        }
        if (trained && run->field == DT_CHAT_TEMPLATE)
            m->ends += row->ids[t] == m->turn_end;
        if (!trained || m->fault != NULL)
            continue;
        if (run->field == DT_CHAT_OTHER ||
            (run->field != DT_CHAT_TEMPLATE &&
             strcmp(role_of(messages, run->message), "assistant") != 0))
            m->fault =
                dt_arena_printf(m->smoke->arena,
                                "%s:%lld: token %zu is trained, but is of '%s' of a message "
                                "of '%s'",
                                line->path, (long long)line->number, t,
                                dt_chat_field_name(run->field), role_of(messages, run->message));
        else if (run->field == DT_CHAT_TEMPLATE && last < 0)
            m->fault =
                dt_arena_printf(m->smoke->arena, "%s:%lld: token %zu is trained before any answer",
                                line->path, (long long)line->number, t);
    }
}

static dt_status look_at_line(void *context, const dt_chats_line *line, bool *stop, dt_error *err)
{
    masks *m = context;
    json_t *plain = NULL;
    dt_status st = DT_OK;

    DT_TRY(dt_chat_normalize(&plain, line->line, err));
    check_row(m, line, json_object_get(plain, "messages"));
    m->conversations++;
    m->tokens += (int64_t)line->row->count;
    *stop = m->conversations == LOOKED_AT;
out:
    json_decref(plain);
    return st;
}

static const char *turns_text(const masks *m)
{
    dt_arena *arena = m->smoke->arena;
    long long turns = (long long)m->turns, others = (long long)(m->turns - m->ends);

    if (m->turn_end < 0)
        return dt_arena_printf(
            arena,
            "the assistant's %lld turns; the template does not end them with a control token",
            turns);
    if (others == 0)
        return dt_arena_printf(arena, "the assistant's %lld turns and their ends", turns);
    return dt_arena_printf(arena,
                           "the assistant's %lld turns and their ends; %lld with tool calls are "
                           "trained up to another control token",
                           turns, others);
}

static void judge(dt_smoke_result *out, const masks *m)
{
    dt_smoke *smoke = m->smoke;

    if (m->fault != NULL)
        dt_smoke_fail(out, smoke, "%s", m->fault);
    else if (m->trained == 0)
        dt_smoke_fail(out, smoke, "of %lld conversations nothing is trained",
                      (long long)m->conversations);
    else if (m->turn_end >= 0 && (m->ends > m->turns || m->ends < m->turns - m->calling))
        dt_smoke_fail(out, smoke, "%lld turns of the assistant are trained, and %lld of their ends",
                      (long long)m->turns, (long long)m->ends);
    else
        dt_smoke_figure(out, smoke, "%lld of %lld tokens of %lld conversations, all of %s",
                        (long long)m->trained, (long long)m->tokens, (long long)m->conversations,
                        turns_text(m));
}

dt_status dt_smoke_masks(dt_smoke_result *out, dt_smoke *smoke, dt_error *err)
{
    masks m = {.smoke = smoke};
    dt_tokenizer *tokenizer = NULL;
    dt_chat *chat = NULL;
    dt_data_files files;
    dt_recipe recipe;
    dt_status st = DT_OK;

    if (smoke->asked->data.tokens == DT_TOKENS_CHATS) {
        dt_smoke_skip(out, smoke, "the conversations are ids already");
        return DT_OK;
    }
    DT_TRY(dt_fetch_recipe(&recipe, smoke->asked, smoke->arena, err));
    DT_TRY(dt_tokenizer_read(&tokenizer, &recipe, err));
    DT_TRY(dt_chats_template(&chat, &recipe, tokenizer, smoke->arena, err));
    DT_TRY(dt_chat_turn_end(&m.turn_end, chat, err));
    DT_TRY(dt_chats_files(&files, &recipe.data.train, "data.train", smoke->arena, err));
    DT_TRY(dt_chats_each(&files, chat, recipe.dpo.beta > 0, look_at_line, &m, err));
    judge(out, &m);
out:
    dt_chat_free(chat);
    dt_tokenizer_free(tokenizer);
    return st;
}

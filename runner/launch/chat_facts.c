/* chat_facts: describes the conversations of a recipe: how many tokens are trained, and what is left out. */
#include "engine/chat/chat.h"
#include "runner/corpus/corpus.h"
#include "runner/launch/preflight.h"
#include "runner/term/term.h"

#define FORMS 3

/* "messages", or "120 messages, 3 ShareGPT" */
static void add_forms(dt_strbuf *out, const dt_chat_counts *counts)
{
    int used = 0;

    for (int i = 0; i < FORMS; i++)
        used += counts->forms[i] > 0;
    for (int i = 0, added = 0; i < FORMS; i++) {
        if (counts->forms[i] == 0)
            continue;
        dt_strbuf_add_str(out, added++ > 0 ? ", " : "");
        if (used > 1)
            dt_strbuf_add_fmt(out, "%lld ", (long long)counts->forms[i]);
        dt_strbuf_add_str(out, dt_chat_form_name((dt_chat_form)i));
    }
}

double dt_chat_dropped_share(const dt_preflight_chats *chats)
{
    const dt_chat_counts *counts = &chats->facts.chats;

    return counts->field_bytes > 0 ? (double)counts->dropped_bytes / (double)counts->field_bytes
                                   : 0;
}

double dt_chat_trained_share(const dt_preflight_chats *chats)
{
    return chats->facts.tokens > 0
               ? (double)chats->facts.chats.trained / (double)chats->facts.tokens
               : 0;
}

/* Adds a count of conversations and what happens to them; nothing for 0. */
static void add_count(dt_strbuf *out, int64_t count, const char *one, const char *several)
{
    if (count > 0)
        dt_strbuf_add_fmt(out, "; %lld %s", (long long)count, count == 1 ? one : several);
}

static void add_rows(dt_strbuf *out, const dt_chat_facts *rows)
{
    add_count(out, rows->untrained, "without a trained token is left out",
              "without a trained token are left out");
    add_count(out, rows->cut, "is cut at batch.tokens", "are cut at batch.tokens");
    add_count(out, rows->too_long, "is longer than batch.tokens and left out",
              "are longer than batch.tokens and left out");
    if (rows->untrained + rows->cut + rows->too_long > 0)
        dt_strbuf_add_fmt(out, ", so that %lld tokens are trained", (long long)rows->targets);
}

const char *dt_preflight_chats_text(const dt_preflight *flight, dt_arena *arena)
{
    const dt_preflight_chats *chats = flight->chats;
    char count[DT_FORMAT_SIZE], tokens[DT_FORMAT_SIZE], trained[DT_FORMAT_SIZE];
    const char *text;
    dt_strbuf out;

    dt_strbuf_init(&out);
    dt_strbuf_add_fmt(&out, "%s%s conversation%s (", chats->whole ? "" : "the first ",
                      dt_format_whole(count, sizeof(count), chats->facts.documents),
                      chats->facts.documents == 1 ? "" : "s");
    add_forms(&out, &chats->facts.chats);
    dt_strbuf_add_str(&out, ")");
    if (flight->recipe.dpo.beta > 0)
        dt_strbuf_add_fmt(&out, " in %lld pairs", (long long)chats->facts.documents / 2);
    dt_strbuf_add_fmt(&out, ", %s tokens, %s of which are trained (%.1f %%)",
                      dt_format_whole(tokens, sizeof(tokens), chats->facts.tokens),
                      dt_format_whole(trained, sizeof(trained), chats->facts.chats.trained),
                      100 * dt_chat_trained_share(chats));
    add_rows(&out, &flight->data.chats);
    if (flight->data.valid_chats.rows > 0 || flight->data.valid_chats.untrained > 0) {
        dt_strbuf_add_fmt(&out, "; %lld for validation",
                          (long long)flight->data.valid_chats.conversations);
        add_rows(&out, &flight->data.valid_chats);
    }
    if (chats->facts.chats.dropped_bytes > 0)
        dt_strbuf_add_fmt(&out, "; the template leaves out %.2g %% of the assistants' text",
                          100 * dt_chat_dropped_share(chats));
    text = dt_arena_strdup(arena, out.data);
    dt_strbuf_release(&out);
    return text;
}

json_t *dt_preflight_chats_to_json(const dt_preflight *flight)
{
    const dt_preflight_chats *chats = flight->chats;
    const dt_chat_counts *counts = &chats->facts.chats;
    const dt_chat_facts *train = &flight->data.chats, *valid = &flight->data.valid_chats;
    json_t *out = json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "whole", chats->whole,
                            "conversations", (json_int_t)chats->facts.documents, "tokens",
                            (json_int_t)chats->facts.tokens, "trained", (json_int_t)counts->trained,
                            "rows", (json_int_t)train->rows, "targets", (json_int_t)train->targets,
                            "untrained", (json_int_t)(train->untrained + valid->untrained), "cut",
                            (json_int_t)(train->cut + valid->cut), "too_long",
                            (json_int_t)(train->too_long + valid->too_long));
    json_t *forms = json_object();

    for (int i = 0; i < FORMS; i++)
        json_object_set_new(forms, dt_chat_form_name((dt_chat_form)i),
                            json_integer(counts->forms[i]));
    json_object_set_new(out, "forms", forms);
    json_object_set_new(out, "trained_share", dt_json_number(dt_chat_trained_share(chats)));
    json_object_set_new(out, "dropped_share", dt_json_number(dt_chat_dropped_share(chats)));
    return out;
}

/* chat: opens the chat template of a model, and encodes conversations with it. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json.h"
#include "engine/chat/chat_int.h"

/* --- opening */

/* Whether one of the templates writes the text of a token. */
static bool writes(const dt_chat *chat, const char *text)
{
    if (text[strspn(text, " \t\r\n\v\f")] == '\0')
        return false; /* white space is ordinary text */
    return dt_jinja_contains(chat->main.jinja, text) ||
           (chat->tools.jinja != NULL && dt_jinja_contains(chat->tools.jinja, text));
}

static bool is_named(const dt_chat *chat, const char *text)
{
    const char *key;
    json_t *value;

    json_object_foreach(chat->special, key, value)
        if (strcmp(json_string_value(value), text) == 0)
            return true;
    return false;
}

static void find_tokens(dt_chat *chat)
{
    size_t count;
    const dt_bpe_added *added = dt_bpe_get_added(&count, chat->tokenizer);
    const char *end = json_string_value(json_object_get(chat->special, "eos_token"));

    chat->token_count = dt_bpe_vocab(chat->tokenizer);
    chat->tokens = dt_calloc((size_t)chat->token_count + 1, 1);
    for (size_t i = 0; i < count; i++)
        chat->tokens[added[i].id] = added[i].special || is_named(chat, added[i].text)
                                        ? DT_CHAT_CONTROL
                                    : writes(chat, added[i].text) ? DT_CHAT_MARKER
                                                                  : DT_CHAT_ADDED;
    if (dt_bpe_unknown(chat->tokenizer) >= 0 &&
        chat->tokens[dt_bpe_unknown(chat->tokenizer)] == DT_CHAT_CONTROL)
        chat->tokens[dt_bpe_unknown(chat->tokenizer)] = DT_CHAT_UNKNOWN;
    chat->end_of_text = -1;
    for (size_t i = 0; i < count; i++)
        if (end != NULL && strcmp(added[i].text, end) == 0)
            chat->end_of_text = added[i].id;
}

dt_status dt_chat_open(dt_chat **out, const dt_chat_source *source, const dt_bpe *tokenizer,
                       dt_error *err)
{
    dt_chat *chat = dt_calloc(1, sizeof(*chat));
    dt_status st = DT_OK;

    *out = NULL;
    chat->tokenizer = tokenizer;
    chat->now = source->now != 0 ? source->now : (int64_t)time(NULL);
    DT_TRY(dt_chat_find_templates(chat, source, err));
    DT_TRY(dt_chat_read_special(&chat->special, source->folder, err));
    find_tokens(chat);
    *out = chat; /* caller owns *out */
    chat = NULL;
out:
    dt_chat_free(chat);
    return st;
}

void dt_chat_free(dt_chat *chat)
{
    if (chat == NULL)
        return;
    dt_chat_template_release(&chat->main);
    dt_chat_template_release(&chat->tools);
    json_decref(chat->special);
    free(chat->tokens);
    free(chat);
}

const char *dt_chat_template_path(const dt_chat *chat)
{
    return chat->main.path;
}

const char *dt_chat_template_text(const dt_chat *chat)
{
    return chat->main.text;
}

/* --- encoding */

struct dt_chat_encoder {
    const dt_chat *chat;
    dt_bpe_encoder *tokens;
    dt_ids ids;
};

dt_status dt_chat_encoder_open(dt_chat_encoder **out, const dt_chat *chat, dt_error *err)
{
    dt_chat_encoder *made = dt_calloc(1, sizeof(*made));
    dt_status st = DT_OK;

    *out = NULL;
    made->chat = chat;
    DT_TRY(dt_bpe_encoder_open(&made->tokens, chat->tokenizer, err));
    *out = made; /* caller owns *out */
    made = NULL;
out:
    dt_chat_encoder_close(made);
    return st;
}

void dt_chat_encoder_close(dt_chat_encoder *encoder)
{
    if (encoder == NULL)
        return;
    dt_bpe_encoder_close(encoder->tokens);
    dt_ids_release(&encoder->ids);
    free(encoder);
}

/* Where the bytes of the text came from, for added tokens that are asked for from left to right. */
typedef struct origins {
    const dt_chat *chat;
    const dt_jinja_output *rendered;
    const dt_chat_messages *messages;
    size_t piece;
    dt_chat_anchors anchors; /* the tokens that were recognised */
    dt_arena *arena;
} origins;

static bool writes_itself(const origins *o, uint32_t origin)
{
    int32_t message = dt_chat_origin_message(origin);

    return message >= 0 && o->messages->items[message].assistant &&
           dt_chat_origin_field(origin) != DT_CHAT_OTHER;
}

/* Returns whether an added token may be recognised in bytes from .. to: a special one only in the template's text, a
 * marker also where an assistant writes. */
static bool is_allowed(origins *o, uint8_t kind, size_t from, size_t to)
{
    if (kind == DT_CHAT_ADDED)
        return true;
    if (o->piece > 0 && o->rendered->pieces[o->piece - 1].end > from)
        o->piece = 0; /* a part of the text is searched a second time */
    while (o->piece + 1 < o->rendered->count && o->rendered->pieces[o->piece].end <= from)
        o->piece++;
    for (size_t i = o->piece; i < o->rendered->count; i++) {
        uint32_t origin = o->rendered->pieces[i].origin & DT_JINJA_ORIGIN;
        uint32_t start = i > 0 ? o->rendered->pieces[i - 1].end : 0;

        if (o->rendered->pieces[i].end > start && origin != DT_JINJA_TEMPLATE &&
            (kind != DT_CHAT_MARKER || !writes_itself(o, origin)))
            return false;
        if (o->rendered->pieces[i].end >= to)
            break;
    }
    return true;
}

static bool allow(void *context, int32_t id, size_t from, size_t to)
{
    origins *o = context;
    dt_chat_anchors *a = &o->anchors;

    if (!is_allowed(o, o->chat->tokens[id], from, to))
        return false;
    a->items =
        dt_arena_array_room(o->arena, a->items, a->count + 1, &a->capacity, sizeof(*a->items));
    a->items[a->count++] = (dt_chat_anchor){id, from, to};
    return true;
}

/* Cuts the text where the content of the last message ends. */
static dt_status cut(dt_jinja_output *rendered, size_t messages, dt_error *err)
{
    dt_jinja_piece *pieces = (dt_jinja_piece *)(uintptr_t)rendered->pieces;
    size_t count = rendered->count;

    while (count > 0 &&
           !(dt_chat_origin_field(pieces[count - 1].origin & DT_JINJA_ORIGIN) == DT_CHAT_CONTENT &&
             dt_chat_origin_message(pieces[count - 1].origin & DT_JINJA_ORIGIN) ==
                 (int32_t)messages - 1))
        count--;
    if (count == 0)
        return DT_FAIL(
            err, DT_ERR_USAGE,
            "messages[%zu].content: the template does not write it, so that it cannot be "
            "continued",
            messages - 1);
    rendered->count = count;
    rendered->length = pieces[count - 1].end;
    ((char *)(uintptr_t)rendered->text)[rendered->length] = '\0';
    return DT_OK;
}

static dt_status render(dt_jinja_output *out, dt_chat_messages *messages, const dt_jinja *jinja,
                        const dt_chat *chat, const json_t *line, const dt_chat_options *options,
                        dt_arena *arena, dt_error *err)
{
    dt_jinja_run *run = dt_jinja_begin(jinja, chat->now, arena);
    dt_status st = DT_OK;

    DT_TRY(dt_chat_set_messages(messages, run, chat, line, options->prompts, arena, err));
    DT_TRY(dt_jinja_render(out, run, err));
    if (options->continues)
        DT_TRY(cut(out, messages->count, err));
out:
    return st;
}

/* Fails if ordinary text became a control token, which happens if a Unigram model has it as a piece. */
static dt_status check_control(const dt_chat *chat, const dt_ids *ids,
                               const dt_chat_anchors *anchors, dt_error *err)
{
    int64_t recognised = 0, last = -1;
    dt_strbuf token;

    for (int64_t i = 0; i < anchors->count; i++)
        recognised += chat->tokens[anchors->items[i].id] == DT_CHAT_CONTROL;
    for (size_t i = 0; i < ids->count; i++)
        if (chat->tokens[ids->items[i]] == DT_CHAT_CONTROL) {
            recognised--;
            last = recognised < 0 ? ids->items[i] : last;
        }
    if (last < 0)
        return DT_OK;
    dt_strbuf_init(&token);
    dt_bpe_decode(&token, chat->tokenizer, (int32_t)last);
    (void)DT_FAIL(err, DT_ERR_USAGE,
                  "the tokenizer makes a control token, such as '%.40s', of ordinary text",
                  token.data != NULL ? token.data : "");
    dt_strbuf_release(&token);
    return DT_ERR_USAGE;
}

static dt_status encode(dt_chat_row *out, dt_chat_encoder *encoder, const dt_jinja_output *rendered,
                        const dt_chat_messages *messages, dt_arena *arena, dt_error *err)
{
    origins o = {.chat = encoder->chat, .rendered = rendered, .messages = messages, .arena = arena};
    dt_status st = DT_OK;
    uint32_t *ends;
    int32_t *ids;

    encoder->ids.count = 0;
    DT_TRY(dt_bpe_encode_allowed(&encoder->ids, encoder->tokens, rendered->text, rendered->length,
                                 allow, &o, err));
    DT_TRY(check_control(encoder->chat, &encoder->ids, &o.anchors, err));
    out->count = encoder->ids.count;
    ids = dt_arena_alloc_array(arena, out->count + 1, sizeof(*ids));
    ends = dt_arena_alloc_array(arena, out->count + 1, sizeof(*ends));
    if (out->count > 0)
        memcpy(ids, encoder->ids.items, out->count * sizeof(*ids));
    dt_chat_align(ends, encoder->chat->tokenizer, &o.anchors, ids, out->count, rendered->text,
                  rendered->length, arena);
    out->ids = ids;
    out->ends = ends;
out:
    return st;
}

dt_status dt_chat_encode(dt_chat_row *out, dt_chat_encoder *encoder, const json_t *line,
                         const dt_chat_options *options, dt_arena *arena, dt_error *err)
{
    static const dt_chat_options none;
    const dt_chat *chat = encoder->chat;
    dt_chat_messages messages;
    dt_jinja_output rendered;
    const dt_jinja *jinja;
    json_t *normal = NULL;
    dt_status st = DT_OK;

    *out = (dt_chat_row){.text = ""};
    options = options != NULL ? options : &none;
    DT_TRY(dt_chat_form_of(&out->form, line, err));
    DT_TRY(dt_chat_normalize(&normal, line, err));
    jinja = chat->tools.jinja != NULL && dt_chat_has_tools(normal) ? chat->tools.jinja
                                                                   : chat->main.jinja;
    DT_TRY(render(&rendered, &messages, jinja, chat, normal, options, arena, err));
    DT_TRY(encode(out, encoder, &rendered, &messages, arena, err));
    out->messages = messages.count;
    out->assistants = messages.assistants;
    /* the strings of `normal` are in the text already; the text is in the arena */
    out->text = rendered.text;
    out->length = rendered.length;
    DT_TRY(dt_chat_mask(out, chat, jinja, &rendered, &messages, options, arena, err));
out:
    json_decref(normal);
    return st;
}

/* --- the token that ends a turn of the assistant */

dt_status dt_chat_turn_end(int32_t *out, const dt_chat *chat, dt_error *err)
{
    static const char line[] = "{\"messages\": [{\"role\": \"user\", \"content\": \"a\"}, "
                               "{\"role\": \"assistant\", \"content\": \"b\"}]}";
    json_t *json = json_loads(line, 0, NULL);
    dt_chat_options options = {.unchecked = false};
    dt_chat_encoder *encoder = NULL;
    dt_status st = DT_OK;
    dt_chat_row row;
    dt_arena arena;

    *out = -1;
    dt_arena_init(&arena, 0);
    DT_TRY(dt_chat_encoder_open(&encoder, chat, err));
    if (dt_chat_encode(&row, encoder, json, &options, &arena, NULL) != DT_OK)
        goto out; /* the template needs other roles, or more */
    for (size_t t = row.count, r = row.run_count; t-- > 0;) {
        if (!row.trained[t])
            continue;
        while (r > 0 && row.runs[r - 1].end >= row.ends[t])
            r--; /* the run that has the token's last byte */
        if (row.runs[r].field == DT_CHAT_TEMPLATE)
            *out = row.ids[t];
        break;
    }
out:
    json_decref(json);
    dt_chat_encoder_close(encoder);
    dt_arena_release(&arena);
    return st;
}

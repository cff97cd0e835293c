/* form: recognises the three forms of a conversation, and brings the other two into that of messages; names of forms and
 * fields. */
#include <string.h>

#include "base/names.h"
#include "engine/chat/chat.h"

static const char *const form_names[] = {"messages", "ShareGPT", "Alpaca"};

const char *dt_chat_form_name(dt_chat_form form)
{
    return form_names[form];
}

const char *dt_chat_field_name(dt_chat_field field)
{
    static const char *const names[DT_CHAT_FIELDS] = {"template", "content", "reasoning_content",
                                                      "tool_calls", "other"};

    return names[field];
}

dt_status dt_chat_form_of(dt_chat_form *out, const json_t *line, dt_error *err)
{
    static const char *const keys[] = {"messages", "conversations", "instruction"};
    int found = 0;

    *out = DT_CHAT_MESSAGES;
    if (!json_is_object(line))
        return DT_FAIL(err, DT_ERR_USAGE, "not a conversation: expected a JSON object");
    for (int form = 2; form >= 0; form--)
        if (json_object_get(line, keys[form]) != NULL) {
            *out = (dt_chat_form)form;
            found++;
        }
    if (found == 0)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "not a conversation: expected 'messages' (each with 'role' and 'content'), "
                       "'conversations' (each with 'from' and 'value'), or 'instruction', 'input' "
                       "and 'output'");
    if (found > 1)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "the line has more than one of 'messages', 'conversations' and "
                       "'instruction': keep the one to train on");
    return DT_OK;
}

/* Returns a copy of the line without some of its keys. */
static json_t *copy_without(const json_t *line, const char *const *keys, size_t count)
{
    json_t *made = json_copy((json_t *)line);

    DT_ASSERT(made != NULL);
    for (size_t i = 0; i < count; i++)
        (void)json_object_del(made, keys[i]);
    return made;
}

/* --- ShareGPT */

typedef struct speaker {
    const char *from, *role;
} speaker;

static const speaker speakers[] = {
    {"human", "user"},          {"user", "user"},       {"gpt", "assistant"},
    {"assistant", "assistant"}, {"model", "assistant"}, {"chatgpt", "assistant"},
    {"system", "system"},       {"tool", "tool"},       {"observation", "tool"},
};

static const char *role_of(const char *from)
{
    for (size_t i = 0; i < sizeof(speakers) / sizeof(speakers[0]); i++)
        if (strcmp(speakers[i].from, from) == 0)
            return speakers[i].role;
    return NULL;
}

static dt_status take_turn(json_t *messages, const json_t *turn, size_t index, dt_error *err)
{
    const char *from = json_string_value(json_object_get(turn, "from")), *key;
    const json_t *value = json_object_get(turn, "value");
    json_t *message, *field;

    if (!json_is_object(turn))
        return DT_FAIL(err, DT_ERR_USAGE, "conversations[%zu]: expected an object", index);
    if (from == NULL)
        return DT_FAIL(err, DT_ERR_USAGE, "conversations[%zu].from: expected a string", index);
    if (role_of(from) == NULL)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "conversations[%zu].from: unsupported '%.40s' (expected system, human, gpt "
                       "or tool)",
                       index, from);
    if (!json_is_string(value))
        return DT_FAIL(err, DT_ERR_USAGE, "conversations[%zu].value: expected a string", index);
    message = json_object();
    json_object_set_new(message, "role", json_string(role_of(from)));
    json_object_set(message, "content", (json_t *)value);
    json_object_foreach((json_t *)turn, key, field) {
        if (strcmp(key, "role") == 0 || strcmp(key, "content") == 0) {
            json_decref(message);
            return DT_FAIL(err, DT_ERR_USAGE,
                           "conversations[%zu].%s: not together with 'from' and 'value'", index,
                           key);
        }
        if (strcmp(key, "from") != 0 && strcmp(key, "value") != 0)
            json_object_set(message, key, field);
    }
    json_array_append_new(messages, message);
    return DT_OK;
}

/* Puts a system message first, if the line has one as a field. */
static dt_status take_system(json_t *messages, const json_t *line, dt_error *err)
{
    const json_t *system = json_object_get(line, "system");
    json_t *message;

    if (system == NULL || json_is_null(system))
        return DT_OK;
    if (!json_is_string(system))
        return DT_FAIL(err, DT_ERR_USAGE, "system: expected a string");
    if (json_string_length(system) == 0)
        return DT_OK;
    message = json_object();
    json_object_set_new(message, "role", json_string("system"));
    json_object_set(message, "content", (json_t *)system);
    json_array_append_new(messages, message);
    return DT_OK;
}

static dt_status from_sharegpt(json_t **out, const json_t *line, dt_error *err)
{
    static const char *const own[] = {"conversations", "system"};
    const json_t *turns = json_object_get(line, "conversations"), *turn;
    json_t *made = copy_without(line, own, 2), *messages = json_array();
    dt_status st = DT_OK;
    size_t i;

    json_object_set_new(made, "messages", messages);
    if (!json_is_array(turns))
        DT_THROW(err, DT_ERR_USAGE, "conversations: expected a list");
    DT_TRY(take_system(messages, line, err));
    json_array_foreach((json_t *)turns, i, turn)
        DT_TRY(take_turn(messages, turn, i, err));
    *out = made;
    made = NULL;
out:
    json_decref(made);
    return st;
}

/* --- Alpaca */

static dt_status get_text(const char **out, const json_t *line, const char *key, bool must,
                          dt_error *err)
{
    const json_t *value = json_object_get(line, key);

    *out = json_string_value(value);
    if (*out == NULL && (must || (value != NULL && !json_is_null(value))))
        return DT_FAIL(err, DT_ERR_USAGE, "%s: expected a string", key);
    return DT_OK;
}

static void add_message(json_t *messages, const char *role, json_t *content)
{
    json_t *message = json_object();

    json_object_set_new(message, "role", json_string(role));
    json_object_set_new(message, "content", content);
    json_array_append_new(messages, message);
}

/* `history`: a list of [question, answer]. */
static dt_status take_history(json_t *messages, const json_t *history, dt_error *err)
{
    const json_t *pair;
    size_t i;

    if (history == NULL || json_is_null(history))
        return DT_OK;
    if (!json_is_array(history))
        return DT_FAIL(err, DT_ERR_USAGE, "history: expected a list of [question, answer]");
    json_array_foreach((json_t *)history, i, pair) {
        const json_t *question = json_array_get(pair, 0), *answer = json_array_get(pair, 1);

        if (json_array_size(pair) != 2 || !json_is_string(question) || !json_is_string(answer))
            return DT_FAIL(err, DT_ERR_USAGE, "history[%zu]: expected [question, answer]", i);
        add_message(messages, "user", json_incref((json_t *)question));
        add_message(messages, "assistant", json_incref((json_t *)answer));
    }
    return DT_OK;
}

static dt_status from_alpaca(json_t **out, const json_t *line, dt_error *err)
{
    static const char *const own[] = {"instruction", "input", "output", "system", "history"};
    json_t *made = copy_without(line, own, 5), *messages = json_array();
    const char *instruction, *input, *output;
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    json_object_set_new(made, "messages", messages);
    DT_TRY(get_text(&instruction, line, "instruction", true, err));
    DT_TRY(get_text(&input, line, "input", false, err));
    DT_TRY(get_text(&output, line, "output", true, err));
    DT_TRY(take_system(messages, line, err));
    DT_TRY(take_history(messages, json_object_get(line, "history"), err));
    dt_strbuf_add_str(&text, instruction);
    if (input != NULL && input[0] != '\0') {
        dt_strbuf_add_str(&text, text.length > 0 ? "\n\n" : "");
        dt_strbuf_add_str(&text, input);
    }
    add_message(messages, "user", json_stringn(text.data, text.length));
    add_message(messages, "assistant", json_incref(json_object_get(line, "output")));
    *out = made;
    made = NULL;
out:
    dt_strbuf_release(&text);
    json_decref(made);
    return st;
}

dt_status dt_chat_normalize(json_t **out, const json_t *line, dt_error *err)
{
    dt_status st = DT_OK;
    dt_chat_form form;

    *out = NULL;
    DT_TRY(dt_chat_form_of(&form, line, err));
    if (form == DT_CHAT_SHAREGPT)
        DT_TRY(from_sharegpt(out, line, err));
    else if (form == DT_CHAT_ALPACA)
        DT_TRY(from_alpaca(out, line, err));
    else
        *out = json_incref((json_t *)line);
out:
    return st;
}

/* messages: checks the messages of a conversation, and makes them the variables of a template. */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/names.h"
#include "engine/chat/chat_int.h"

static const char *const known[] = {"role",     "content",    "reasoning_content", "reasoning",
                                    "thinking", "tool_calls", "tool_call_id",      "name",
                                    "weight",   "train"};
/* The names under which thoughts are passed; the first one is the one that templates read. */
static const char *const thoughts[] = {"reasoning_content", "thinking", "reasoning"};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool is_one_of(const char *key, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], key) == 0)
            return true;
    return false;
}

/* Returns the field, NULL if it is missing or null. */
static const json_t *field_of(const json_t *message, const char *key)
{
    const json_t *value = json_object_get(message, key);

    return json_is_null(value) ? NULL : value;
}

static const json_t *thoughts_of(const json_t *message)
{
    const json_t *value = NULL;

    for (size_t i = 0; value == NULL && i < COUNT(thoughts); i++)
        value = field_of(message, thoughts[i]);
    return value;
}

/* --- checks */

static dt_status unknown_field(size_t index, const char *key, dt_error *err)
{
    const char *nearest = NULL;
    int least = 3;

    for (size_t i = 0; i < COUNT(known); i++)
        if (dt_distance(key, known[i]) < least) {
            least = dt_distance(key, known[i]);
            nearest = known[i];
        }
    if (nearest != NULL)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "messages[%zu]: unknown field '%.40s' (did you mean '%s'?)", index, key,
                       nearest);
    return DT_FAIL(err, DT_ERR_USAGE,
                   "messages[%zu]: unknown field '%.40s' (known: role, content, reasoning_content, "
                   "tool_calls, tool_call_id, name, weight, train)",
                   index, key);
}

/* A role is a word: no template can make a control token of it alone. */
static dt_status check_role(const char **out, const json_t *message, size_t index, dt_error *err)
{
    const char *role = json_string_value(field_of(message, "role"));
    size_t length = 0;

    if (role == NULL)
        return DT_FAIL(err, DT_ERR_USAGE, "messages[%zu].role: expected a string", index);
    while (isalnum((unsigned char)role[length]) ||
           (role[length] != '\0' && strchr("_- ", role[length]) != NULL))
        length++;
    if (length == 0 || role[length] != '\0' || length > 40)
        return DT_FAIL(err, DT_ERR_USAGE,
                       "messages[%zu].role: '%.40s' is not a role (expected a word such as user)",
                       index, role);
    *out = role;
    return DT_OK;
}

/* Checks [{"type": "text", "text": "..."}, ...]. */
static dt_status check_parts(const json_t *parts, size_t index, dt_error *err)
{
    const json_t *part;
    size_t i;

    json_array_foreach((json_t *)parts, i, part) {
        const char *type = json_string_value(json_object_get(part, "type"));

        if (!json_is_object(part) || type == NULL)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "messages[%zu].content[%zu]: expected an object with 'type' and 'text'",
                           index, i);
        if (strcmp(type, "text") != 0)
            return DT_FAIL(err, DT_ERR_USAGE,
                           "messages[%zu].content[%zu].type: unsupported '%.40s' (only text)",
                           index, i, type);
        if (!json_is_string(json_object_get(part, "text")))
            return DT_FAIL(err, DT_ERR_USAGE, "messages[%zu].content[%zu].text: expected a string",
                           index, i);
    }
    return DT_OK;
}

static dt_status check_content(const json_t *message, bool assistant, size_t index, dt_error *err)
{
    const json_t *content = field_of(message, "content");

    if (content == NULL) {
        if (assistant && (field_of(message, "tool_calls") != NULL || thoughts_of(message) != NULL))
            return DT_OK;
        return DT_FAIL(err, DT_ERR_USAGE, "messages[%zu].content: is missing", index);
    }
    if (json_is_array(content))
        return check_parts(content, index, err);
    if (!json_is_string(content))
        return DT_FAIL(err, DT_ERR_USAGE,
                       "messages[%zu].content: expected a string or a list of parts", index);
    return DT_OK;
}

static dt_status check_weight(float *out, const json_t *message, bool assistant, size_t index,
                              dt_error *err)
{
    const json_t *weight = field_of(message, "weight"), *train = field_of(message, "train");
    double value = json_number_value(weight);

    *out = assistant ? 1 : 0;
    if (weight != NULL && train != NULL)
        return DT_FAIL(err, DT_ERR_USAGE, "messages[%zu]: 'weight' and 'train' cannot be combined",
                       index);
    if (train != NULL && !json_is_boolean(train))
        return DT_FAIL(err, DT_ERR_USAGE, "messages[%zu].train: expected true or false", index);
    if (weight != NULL &&
        (!json_is_number(weight) || !(value >= 0) || !isfinite(value) || value > 1e6))
        return DT_FAIL(err, DT_ERR_USAGE, "messages[%zu].weight: expected a number from 0 to 1e6",
                       index);
    if (!assistant && (json_is_true(train) || (weight != NULL && value > 0)))
        return DT_FAIL(err, DT_ERR_USAGE,
                       "messages[%zu].%s: only messages of an assistant are trained", index,
                       train != NULL ? "train" : "weight");
    if (json_is_false(train))
        *out = 0;
    else if (assistant && weight != NULL)
        *out = (float)value;
    return DT_OK;
}

static dt_status check_others(const json_t *message, size_t index, dt_error *err)
{
    const json_t *calls = field_of(message, "tool_calls"), *reason, *call;
    const char *key;
    json_t *value;
    size_t i;

    json_object_foreach((json_t *)message, key, value)
        if (!is_one_of(key, known, COUNT(known)))
            return unknown_field(index, key, err);
    for (i = 0; i < COUNT(thoughts); i++) {
        reason = field_of(message, thoughts[i]);
        if (reason != NULL && !json_is_string(reason))
            return DT_FAIL(err, DT_ERR_USAGE, "messages[%zu].%s: expected a string", index,
                           thoughts[i]);
    }
    if (calls != NULL && !json_is_array(calls))
        return DT_FAIL(err, DT_ERR_USAGE, "messages[%zu].tool_calls: expected a list", index);
    json_array_foreach((json_t *)calls, i, call)
        if (!json_is_object(call))
            return DT_FAIL(err, DT_ERR_USAGE, "messages[%zu].tool_calls[%zu]: expected an object",
                           index, i);
    return DT_OK;
}

/* --- bytes of the fields of an assistant */

static bool is_blank(const char *text)
{
    return text[strspn(text, " \t\r\n\v\f")] == '\0';
}

static void count_text(dt_chat_message *out, dt_chat_field field, const json_t *text)
{
    out->bytes[field] += json_string_length(text);
    out->blank = out->blank && is_blank(json_string_value(text));
}

/* Counts the texts of tool calls that are not keys. */
static void count_all(dt_chat_message *out, dt_chat_field field, const json_t *value)
{
    const json_t *item;
    const char *key;
    size_t i;

    if (json_is_string(value))
        count_text(out, field, value);
    json_array_foreach((json_t *)value, i, item)
        count_all(out, field, item);
    json_object_foreach((json_t *)value, key, item)
        count_all(out, field, item);
}

static void count_fields(dt_chat_message *out, const json_t *message)
{
    const json_t *content = field_of(message, "content"), *calls = field_of(message, "tool_calls");
    const json_t *reason = thoughts_of(message), *part;
    size_t i;

    out->blank = true;
    if (json_is_string(content))
        count_text(out, DT_CHAT_CONTENT, content);
    json_array_foreach((json_t *)content, i, part)
        count_text(out, DT_CHAT_CONTENT, json_object_get(part, "text"));
    if (reason != NULL)
        count_text(out, DT_CHAT_REASONING, reason);
    count_all(out, DT_CHAT_TOOL_CALLS, calls);
}

/* --- values */

static dt_chat_field field_named(const char *key, bool assistant)
{
    if (strcmp(key, "content") == 0)
        return DT_CHAT_CONTENT;
    if (is_one_of(key, thoughts, COUNT(thoughts)))
        return DT_CHAT_REASONING;
    return assistant && strcmp(key, "tool_calls") == 0 ? DT_CHAT_TOOL_CALLS : DT_CHAT_OTHER;
}

enum { CONTENT_VALUE = 1, THOUGHTS_VALUE, FIRST_VALUE };

/* Converts tool calls, of which every string and number gets a value of its own. */
static dt_jinja_value call_value(dt_jinja_run *run, const json_t *json, int64_t index, int *next)
{
    dt_jinja_value made;
    const json_t *item;
    const char *key;
    size_t i;

    if (json_is_array(json)) {
        made = dt_jinja_new_list(run, dt_chat_origin(index, DT_CHAT_TOOL_CALLS, 0));
        json_array_foreach((json_t *)json, i, item)
            dt_jinja_append(run, made, call_value(run, item, index, next));
        return made;
    }
    if (json_is_object(json)) {
        made = dt_jinja_new_dict(run, dt_chat_origin(index, DT_CHAT_TOOL_CALLS, 0));
        json_object_foreach((json_t *)json, key, item)
            dt_jinja_put(run, made, key, call_value(run, item, index, next));
        return made;
    }
    made = dt_jinja_from_json(run, json, dt_chat_origin(index, DT_CHAT_TOOL_CALLS, *next));
    *next += *next < DT_CHAT_VALUES - 1;
    return made;
}

static dt_jinja_value field_value(dt_jinja_run *run, const char *key, const json_t *value,
                                  bool assistant, int64_t index)
{
    dt_chat_field field = field_named(key, assistant);
    int next = FIRST_VALUE;

    if (strcmp(key, "role") == 0) /* a word, which counts as the template's text */
        return dt_jinja_from_json(run, value, DT_JINJA_TEMPLATE);
    if (field == DT_CHAT_TOOL_CALLS)
        return call_value(run, value, index, &next);
    return dt_jinja_from_json(run, value,
                              dt_chat_origin(index, field,
                                             json_is_array(value)         ? 0
                                             : field == DT_CHAT_CONTENT   ? CONTENT_VALUE
                                             : field == DT_CHAT_REASONING ? THOUGHTS_VALUE
                                                                          : 0));
}

/* Makes the dict of a message as transformers passes it: without nulls, and with thoughts under two names. */
static dt_jinja_value message_value(dt_jinja_run *run, const json_t *message, const char *role,
                                    int64_t index)
{
    dt_jinja_value made = dt_jinja_new_dict(run, dt_chat_origin(index, DT_CHAT_OTHER, 0));
    const json_t *reason = thoughts_of(message);
    bool assistant = strcmp(role, "assistant") == 0;
    json_t *value;
    const char *key;

    if (reason != NULL && field_of(message, "thinking") == NULL)
        dt_jinja_put(run, made, "thinking", field_value(run, "thinking", reason, assistant, index));
    json_object_foreach((json_t *)message, key, value)
        if (!json_is_null(value))
            dt_jinja_put(run, made, key, field_value(run, key, value, assistant, index));
    if (reason != NULL && field_of(message, "reasoning_content") == NULL)
        dt_jinja_put(run, made, "reasoning_content",
                     field_value(run, "reasoning_content", reason, assistant, index));
    return made;
}

bool dt_chat_has_tools(const json_t *line)
{
    const json_t *tools = field_of(line, "tools");

    return tools != NULL;
}

/* Sets the variables that are not messages. */
static dt_status set_others(dt_jinja_run *run, const dt_chat *chat, const json_t *line,
                            bool prompts, dt_error *err)
{
    static const char *const lists[] = {"tools", "documents"};
    const uint32_t origin = dt_chat_origin(-1, DT_CHAT_OTHER, 0);
    const char *key;
    json_t *value;

    json_object_foreach(chat->special, key, value)
        dt_jinja_set(run, key, dt_jinja_from_json(run, value, DT_JINJA_TEMPLATE));
    for (size_t i = 0; i < COUNT(lists); i++) {
        const json_t *list = field_of(line, lists[i]), *item;
        size_t k;

        if (list != NULL && !json_is_array(list))
            return DT_FAIL(err, DT_ERR_USAGE, "%s: expected a list", lists[i]);
        json_array_foreach((json_t *)list, k, item)
            if (!json_is_object(item))
                return DT_FAIL(err, DT_ERR_USAGE, "%s[%zu]: expected an object", lists[i], k);
        dt_jinja_set(run, lists[i],
                     list != NULL ? dt_jinja_from_json(run, list, origin) : dt_jinja_none());
    }
    json_object_foreach((json_t *)line, key, value)
        if (strcmp(key, "messages") != 0 && strcmp(key, "chat_template_kwargs") != 0 &&
            !is_one_of(key, lists, COUNT(lists)))
            dt_jinja_set(run, key, dt_jinja_from_json(run, value, origin));
    value = json_object_get(line, "chat_template_kwargs");
    if (value != NULL && !json_is_null(value) && !json_is_object(value))
        return DT_FAIL(err, DT_ERR_USAGE, "chat_template_kwargs: expected an object");
    json_object_foreach(json_object_get(line, "chat_template_kwargs"), key, value)
        dt_jinja_set(run, key, dt_jinja_from_json(run, value, origin));
    dt_jinja_set(run, "add_generation_prompt", dt_jinja_from_bool(prompts));
    return DT_OK;
}

static dt_status take_message(dt_chat_message *out, dt_jinja_run *run, dt_jinja_value list,
                              const json_t *message, size_t index, dt_error *err)
{
    const char *role = "";
    dt_status st = DT_OK;

    if (!json_is_object(message))
        return DT_FAIL(err, DT_ERR_USAGE, "messages[%zu]: expected an object", index);
    DT_TRY(check_others(message, index, err));
    DT_TRY(check_role(&role, message, index, err));
    out->assistant = strcmp(role, "assistant") == 0;
    out->has_parts = json_is_array(field_of(message, "content"));
    DT_TRY(check_content(message, out->assistant, index, err));
    DT_TRY(check_weight(&out->weight, message, out->assistant, index, err));
    if (out->assistant)
        count_fields(out, message);
    dt_jinja_append(run, list, message_value(run, message, role, (int64_t)index));
out:
    return st;
}

dt_status dt_chat_set_messages(dt_chat_messages *out, dt_jinja_run *run, const dt_chat *chat,
                               const json_t *line, bool prompts, dt_arena *arena, dt_error *err)
{
    const json_t *messages = json_object_get(line, "messages"), *message;
    dt_jinja_value list = dt_jinja_new_list(run, DT_JINJA_TEMPLATE);
    dt_status st = DT_OK;
    size_t i;

    *out = (dt_chat_messages){.count = json_array_size(messages)};
    if (!json_is_array(messages))
        return DT_FAIL(err, DT_ERR_USAGE, "messages: expected a list");
    if (out->count == 0)
        return DT_FAIL(err, DT_ERR_USAGE, "messages: the list is empty");
    if (out->count > DT_CHAT_MESSAGES_MOST)
        return DT_FAIL(err, DT_ERR_USAGE, "messages: more than %d messages", DT_CHAT_MESSAGES_MOST);
    out->items = dt_arena_alloc_array(arena, out->count, sizeof(*out->items));
    json_array_foreach((json_t *)messages, i, message) {
        DT_TRY(take_message(&out->items[i], run, list, message, i, err));
        out->assistants += out->items[i].assistant;
    }
    DT_TRY(set_others(run, chat, line, prompts, err));
    dt_jinja_set(run, "messages", list);
out:
    return st;
}

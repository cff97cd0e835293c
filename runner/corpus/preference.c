/* preference: a line with a preferred and a rejected answer, as two conversations (chats.h). */
#include <string.h>

#include "base/json.h"
#include "runner/corpus/chats.h"

/* Messages of a value: a list of them, or a text as one message. New reference; NULL: neither. */
static json_t *messages_of(const json_t *value, const char *role)
{
    if (json_is_array(value))
        return json_deep_copy(value);
    if (!json_is_string(value))
        return NULL;
    return json_pack("[{s:s, s:O}]", "role", role, "content", value);
}

/* Nothing of a prompt is trained. */
static void silence(json_t *messages)
{
    json_t *message;
    size_t i;

    json_array_foreach(messages, i, message) {
        const char *role = json_string_value(json_object_get(message, "role"));

        if (role != NULL && strcmp(role, "assistant") == 0)
            json_object_set_new(message, "weight", json_integer(0));
    }
}

/* Moves the messages with which both begin to the end of `prompt`. */
static void share_beginning(json_t *prompt, json_t *chosen, json_t *rejected)
{
    while (json_array_size(chosen) > 0 && json_array_size(rejected) > 0 &&
           json_equal(json_array_get(chosen, 0), json_array_get(rejected, 0))) {
        json_array_append(prompt, json_array_get(chosen, 0));
        json_array_remove(chosen, 0);
        json_array_remove(rejected, 0);
    }
}

/* The line with the messages of the prompt and one answer. */
static json_t *line_of(const json_t *line, json_t *prompt, json_t *answer)
{
    json_t *out = json_copy((json_t *)(uintptr_t)line), *messages = json_copy(prompt);

    json_object_del(out, "prompt");
    json_object_del(out, "chosen");
    json_object_del(out, "rejected");
    json_array_extend(messages, answer);
    json_object_set_new(out, "messages", messages);
    return out;
}

dt_status dt_preference_lines(json_t *out[2], const json_t *line, dt_error *err)
{
    const json_t *given = json_object_get(line, "prompt");
    json_t *prompt = given != NULL ? messages_of(given, "user") : json_array();
    json_t *chosen = messages_of(json_object_get(line, "chosen"), "assistant");
    json_t *rejected = messages_of(json_object_get(line, "rejected"), "assistant");
    dt_status st = DT_OK;

    out[0] = out[1] = NULL;
    if (chosen == NULL || rejected == NULL || prompt == NULL)
        DT_THROW(err, DT_ERR_RECIPE,
                 "not a pair of answers: with 'dpo' a line has 'prompt', 'chosen' and 'rejected', "
                 "each a text or a list of messages");
    if (given == NULL)
        share_beginning(prompt, chosen, rejected);
    if (json_array_size(prompt) == 0)
        DT_THROW(err, DT_ERR_RECIPE,
                 "a pair of answers without a prompt: add 'prompt', or begin 'chosen' and "
                 "'rejected' with the same messages");
    if (json_equal(chosen, rejected))
        DT_THROW(err, DT_ERR_RECIPE, "'chosen' and 'rejected' are the same: nothing is preferred");
    silence(prompt);
    out[0] = line_of(line, prompt, chosen);
    out[1] = line_of(line, prompt, rejected);
out:
    json_decref(prompt);
    json_decref(chosen);
    json_decref(rejected);
    return st;
}

/* answer: makes the result of a call of the output of its command, and shortens a long one. */
#include <string.h>

#include "base/process.h"
#include "runner/mcp/mcp.h"

enum { ERRORS_MOST = 8000, CUTS_MOST = 40 };

static size_t bytes_of(dt_strbuf *text, const json_t *value)
{
    dt_strbuf whole;

    dt_strbuf_init(&whole);
    dt_json_write(&whole, value);
    dt_strbuf_reset(text);
    dt_json_shorten(text, whole.data);
    dt_strbuf_release(&whole);
    return text->length;
}

/* --- shortening */

/* Whether the next point is of another metric or another run. */
static bool ends_series(const json_t *all, size_t i)
{
    const json_t *a = json_array_get(all, i), *b = json_array_get(all, i + 1);

    return b == NULL || !json_equal(json_object_get(a, "name"), json_object_get(b, "name")) ||
           !json_equal(json_object_get(a, "run"), json_object_get(b, "run"));
}

/* Returns about `wanted` of the items; new reference. */
static json_t *some_of(const json_t *all, size_t wanted, dt_mcp_cut cut)
{
    size_t count = json_array_size(all), stride = (count + wanted - 1) / wanted;
    json_t *out = json_array();

    for (size_t i = 0; i < count; i++)
        if (cut == DT_MCP_FIRST  ? i < wanted
            : cut == DT_MCP_LAST ? i + wanted >= count
                                 : i % stride == 0 || ends_series(all, i))
            json_array_append(out, json_array_get(all, i));
    return out;
}

static void say_left_out(json_t *object, const dt_mcp_tool *tool, size_t kept, size_t all,
                         size_t most)
{
    dt_strbuf note;

    dt_strbuf_init(&note);
    dt_strbuf_add_fmt(&note, "%zu of %zu %s are here, to keep the answer below %zu bytes: %s", kept,
                      all, tool->array, most, tool->less);
    json_object_set_new(
        object, "left_out",
        json_pack("{s:I, s:s}", tool->array, (json_int_t)(all - kept), "note", note.data));
    dt_strbuf_release(&note);
}

/* Writes the object into `text`, with fewer items of its array if it is too long. Returns false if that does not
 * suffice. */
static bool shorten(dt_strbuf *text, json_t *object, const dt_mcp_tool *tool, size_t most)
{
    size_t bytes = bytes_of(text, object), wanted, count;
    json_t *all, *some;

    if (bytes <= most)
        return true;
    all = tool->array != NULL ? json_incref(json_object_get(object, tool->array)) : NULL;
    count = wanted = json_array_size(all);
    for (int i = 0; i < CUTS_MOST && bytes > most && wanted > 1; i++) {
        size_t next = (size_t)((double)wanted * ((double)most / (double)bytes) * 0.95);

        wanted = next >= wanted ? wanted - 1 : next > 0 ? next : 1;
        some = some_of(all, wanted, tool->cut);
        say_left_out(object, tool, json_array_size(some), count, most);
        json_object_set_new(object, tool->array, some);
        bytes = bytes_of(text, object);
    }
    json_decref(all);
    return bytes <= most;
}

/* --- results */

static void add_content(json_t *content, const char *text)
{
    json_array_append_new(content,
                          json_pack("{s:s, s:o}", "type", "text", "text", dt_json_text(text)));
}

json_t *dt_mcp_answer_error(const char *text)
{
    json_t *content = json_array();

    add_content(content, text);
    return json_pack("{s:o, s:b}", "content", content, "isError", 1);
}

static json_t *too_long(const dt_mcp_tool *tool, size_t bytes, size_t most)
{
    json_t *result;
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_add_fmt(&text, "the answer has %s%zu bytes, and the limit is %zu: %s",
                      bytes >= DT_MCP_OUTPUT_MOST ? "more than " : "", bytes, most, tool->less);
    result = dt_mcp_answer_error(text.data);
    dt_strbuf_release(&text);
    return result;
}

/* Adds what the command wrote to stderr, without what is too long. */
static void add_errors(dt_strbuf *out, const char *errors)
{
    size_t length = strlen(errors);

    while (length > 0 && errors[length - 1] == '\n')
        length--;
    dt_strbuf_add(out, errors, length < ERRORS_MOST ? length : ERRORS_MOST);
    if (length > ERRORS_MOST)
        dt_strbuf_add_str(out, " [...]");
}

static json_t *failure(const dt_mcp_tool *tool, const dt_mcp_output *output, const json_t *object)
{
    const char *message =
        json_string_value(json_object_get(json_object_get(object, "error"), "message"));
    char words[DT_EXIT_WORDS_BYTES];
    json_t *result;
    dt_strbuf text;

    dt_strbuf_init(&text);
    add_errors(&text, output->errors);
    if (text.length == 0 && message != NULL)
        dt_strbuf_add_str(&text, message);
    if (text.length == 0)
        dt_strbuf_add_fmt(&text, "dtrun %s %s", tool->command->name,
                          dt_exit_words(words, output->exit_code));
    if (object != NULL && message == NULL) { /* an answer all the same, as of a run that failed */
        dt_strbuf_add_char(&text, '\n');
        dt_strbuf_add(&text, output->text,
                      output->text_length < ERRORS_MOST ? output->text_length : ERRORS_MOST);
    }
    result = dt_mcp_answer_error(text.data);
    dt_strbuf_release(&text);
    return result;
}

json_t *dt_mcp_answer(const dt_mcp_tool *tool, const dt_mcp_output *output, size_t most)
{
    json_t *object = NULL, *content, *result;
    dt_strbuf text, errors;

    if (output->too_long)
        return too_long(tool, DT_MCP_OUTPUT_MOST, most);
    (void)dt_json_parse(&object, output->text, output->text_length, "answer", NULL);
    if (output->exit_code != 0 || !json_is_object(object)) {
        result = failure(tool, output, object);
        json_decref(object);
        return result;
    }
    dt_strbuf_init(&text);
    dt_strbuf_init(&errors);
    if (shorten(&text, object, tool, most)) {
        content = json_array();
        add_content(content, text.data);
        add_errors(&errors, output->errors);
        if (errors.length > 0)
            add_content(content, errors.data);
        result = json_pack("{s:o, s:O, s:b}", "content", content, "structuredContent", object,
                           "isError", 0);
    } else {
        result = too_long(tool, text.length, most);
    }
    dt_strbuf_release(&text);
    dt_strbuf_release(&errors);
    json_decref(object);
    return result;
}

/* Conversations are encoded with the mask that follows from where each byte came from. The tokenizer is a small one with
 * the control tokens of the templates in tests/golden/chat/. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"
#include "tests/unit/chat_support.h"

/* Returns the trained text, with '|' between parts that are not neighbours. */
static const char *trained_text(const dt_chat_row *row, dt_strbuf *out)
{
    size_t start = 0;
    bool open = false;

    dt_strbuf_reset(out);
    for (size_t i = 0; i < row->count; start = row->ends[i++]) {
        if (row->trained[i] && !open && out->length > 0)
            dt_strbuf_add_char(out, '|');
        if (row->trained[i])
            dt_strbuf_add(out, row->text + start, row->ends[i] - start);
        open = row->trained[i];
    }
    return out->data != NULL ? out->data : "";
}

static void check_trained(const char *template, const char *line, const char *expected)
{
    chat_place place;
    dt_chat_row row;
    dt_strbuf text;

    dt_strbuf_init(&text);
    chat_place_open(&place, template);
    if (chat_place_encode(&row, &place, line, NULL) != DT_OK)
        fail_msg("%s", place.err.message);
    assert_string_equal(trained_text(&row, &text), expected);
    dt_strbuf_release(&text);
    chat_place_close(&place);
}

static void check_error(const char *template, const char *line, const char *expected)
{
    chat_place place;
    dt_chat_row row;

    chat_place_open(&place, template);
    assert_int_not_equal(chat_place_encode(&row, &place, line, NULL), DT_OK);
    assert_string_equal(place.err.message, expected);
    chat_place_close(&place);
}

static void trains_answers_and_their_ends(void **state)
{
    (void)state;
    check_trained(
        "turns",
        "{'messages': [{'role': 'system', 'content': 'Be brief.'},"
        " {'role': 'user', 'content': 'Hi'}, {'role': 'assistant', 'content': 'Hello!'},"
        " {'role': 'user', 'content': 'Bye'}, {'role': 'assistant', 'content': 'See you'}]}",
        "Hello!<|im_end|>|See you<|im_end|>");
    check_trained("brackets",
                  "{'messages': [{'role': 'user', 'content': 'Hi'},"
                  " {'role': 'assistant', 'content': '  Hello \\n'}]}",
                  "Hello</s>");
    check_trained("plain", "{'instruction': 'add', 'input': '1 2', 'output': 'a\\nb'}",
                  "a\n  b</s>");
}

static void empty_answers_have_an_end(void **state)
{
    (void)state;
    check_trained(
        "turns",
        "{'messages': [{'role': 'user', 'content': ''}, {'role': 'assistant', 'content': ''},"
        " {'role': 'user', 'content': ' '}, {'role': 'assistant', 'content': 'b'}]}",
        "<|im_end|>|b<|im_end|>");
    check_trained("brackets",
                  "{'messages': [{'role': 'user', 'content': 'a'},"
                  " {'role': 'assistant', 'content': ' \\n'}]}",
                  "</s>");
    /* what opens a call comes after the empty content */
    check_trained(
        "turns",
        "{'messages': [{'role': 'user', 'content': 'a'}, {'role': 'assistant', 'content': '',"
        " 'tool_calls': [{'function': {'name': 'f', 'arguments': {}}}]}]}",
        "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call><|im_end|>");
    /* the name of a tool that is printed again above its result is not an answer, nor is empty content after a call */
    check_trained(
        "text:{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.name ~ '(' ~ "
        "c.function.arguments | tojson ~ ')<|call|>' }}{% endfor %}{% if m.role == 'tool' %}"
        "{{ messages[loop.index0 - 1].tool_calls[0].function.name ~ ': ' ~ m.content ~ '<|end|>' "
        "}}{% elif m.role == 'user' %}{{ m.content ~ '<|start|>' }}{% else %}{{ m.content ~ "
        "'<|message|>' }}{% endif %}{% endfor %}",
        "{'messages': [{'role': 'user', 'content': 'a'}, {'role': 'assistant', 'content': '',"
        " 'tool_calls': [{'function': {'name': 'f', 'arguments': {'x': 'f'}}}]},"
        " {'role': 'tool', 'content': '7'}, {'role': 'assistant', 'content': 'ok'}]}",
        "f({\"x\": \"f\"})<|call|>|ok<|message|>");
    /* the eos_token right after another special token belongs to the end */
    check_trained("text:{% for m in messages %}{{ m.content }}<|end|></s>{% endfor %}",
                  "{'messages': [{'role': 'user', 'content': 'a'},"
                  " {'role': 'assistant', 'content': 'b'}]}",
                  "b<|end|></s>");
}

static void trains_thoughts_and_calls(void **state)
{
    (void)state;
    check_trained(
        "turns",
        "{'messages': [{'role': 'user', 'content': 'q'},"
        " {'role': 'assistant', 'reasoning_content': 'hm', 'content': 'a',"
        "  'tool_calls': [{'function': {'name': 'f', 'arguments': {'x': [1, 'y']}}}]},"
        " {'role': 'tool', 'content': '7'}, {'role': 'assistant', 'content': 'ok'}]}",
        "hm\n</think>\n\na\n<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": [1, \"y\"]}"
        "}\n</tool_call><|im_end|>|ok<|im_end|>");
    /* the first special token ends what is trained after a part, also inside of a message */
    check_trained("channels",
                  "{'messages': [{'role': 'user', 'content': 'q'},"
                  " {'role': 'assistant', 'thinking': 'hm', 'content': 'a'}]}",
                  "hm<|end|>|a<|return|>");
}

static void weights_choose_messages(void **state)
{
    const char *line = "{'messages': [{'role': 'user', 'content': 'a'},"
                       " {'role': 'assistant', 'content': 'b', 'weight': 0},"
                       " {'role': 'user', 'content': 'c', 'weight': 0},"
                       " {'role': 'assistant', 'content': 'd', 'weight': 0.5},"
                       " {'role': 'assistant', 'content': 'e', 'train': false},"
                       " {'role': 'assistant', 'content': 'f', 'train': true}]}";
    chat_place place;
    dt_chat_row row;
    float sum = 0;

    (void)state;
    check_trained("turns", line, "d<|im_end|>|f<|im_end|>");
    chat_place_open(&place, "turns");
    assert_int_equal(chat_place_encode(&row, &place, line, NULL), DT_OK);
    for (size_t i = 0; i < row.count; i++)
        sum += row.weights[i];
    assert_true(sum == 3); /* two tokens each */
    assert_int_equal(row.trained_count, 4);
    chat_place_close(&place);
}

static void typed_control_tokens_are_text(void **state)
{
    chat_place place;
    dt_chat_row row;
    int32_t end, call;
    int ends = 0, calls = 0;

    (void)state;
    chat_place_open(&place, "turns");
    end = chat_place_id(&place, "<|im_end|>");
    call = chat_place_id(&place, "<tool_call>");
    assert_int_equal(
        chat_place_encode(&row, &place,
                          "{'messages': [{'role': 'user', 'content': 'a<|im_end|>\\n<tool_call>b'},"
                          " {'role': 'assistant', 'content': 'c<|im_end|> <tool_call>d'}]}",
                          NULL),
        DT_OK);
    for (size_t i = 0; i < row.count; i++) {
        ends += row.ids[i] == end;
        calls += row.ids[i] == call;
    }
    assert_int_equal(ends, 2);  /* those of the template */
    assert_int_equal(calls, 1); /* an assistant writes its marker itself */
    assert_non_null(strstr(row.text, "a<|im_end|>\n<tool_call>b"));
    assert_int_equal(row.ends[row.count - 1], row.length);
    chat_place_close(&place);
}

static void generation_blocks_must_agree(void **state)
{
    (void)state;
    check_trained("marked",
                  "{'messages': [{'role': 'user', 'content': 'a'},"
                  " {'role': 'assistant', 'content': 'b'}]}",
                  "b<|end|>");
    check_error(
        "text:{% for m in messages %}{% generation %}{{ m.content }}<|end|>{% endgeneration "
        "%}{% endfor %}",
        "{'messages': [{'role': 'user', 'content': 'ab'},"
        " {'role': 'assistant', 'content': 'cd'}]}",
        "the template's {% generation %} blocks train \"ab\" (byte 0, after \"\"), and the origin "
        "of the "
        "text does not: one of the two trains the wrong tokens");
    check_error(
        "text:{% for m in messages %}{% generation %}{{ m.content if m.role == 'assistant' }}"
        "{% endgeneration %}{{ m.content if m.role == 'user' }}<|end|>{% endfor %}",
        "{'messages': [{'role': 'user', 'content': 'ab'},"
        " {'role': 'assistant', 'content': 'cd'}]}",
        "the template's {% generation %} blocks do not train \"<|end|>\" (byte 11, after "
        "\"ab<|end|>cd\"), and the origin of the text does: one of the two trains the wrong "
        "tokens");
    /* a line break of the template may be in a block */
    check_trained("text:{% for m in messages %}{% if m.role == 'user' %}{{ m.content }}{% else %}"
                  "{% generation %}>{{ m.content }}<|end|>\n\n{% endgeneration %}{% endif %}"
                  "{% endfor %}",
                  "{'messages': [{'role': 'user', 'content': 'ab'},"
                  " {'role': 'assistant', 'content': 'cd'}]}",
                  "cd<|end|>");
}

static void drops_are_counted(void **state)
{
    chat_place place;
    dt_chat_row row;

    (void)state;
    chat_place_open(&place, "turns");
    assert_int_equal(
        chat_place_encode(
            &row, &place,
            "{'messages': [{'role': 'user', 'content': 'a'},"
            " {'role': 'assistant', 'reasoning_content': '12345', 'content': 'bc'},"
            " {'role': 'user', 'content': 'd'}, {'role': 'assistant', 'content': 'e'}]}",
            NULL),
        DT_OK);
    assert_int_equal(row.field_bytes, 8);
    assert_int_equal(row.dropped_bytes, 5);
    assert_int_equal(row.endless, 0);
    chat_place_close(&place);
    check_error("text:{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}",
                "{'messages': [{'role': 'user', 'content': 'a'},"
                " {'role': 'assistant', 'content': 'b'}]}",
                "messages[1]: the template leaves this message of the assistant out");
    chat_place_open(&place,
                    "text:{% for m in messages %}{{ m.role ~ ': ' ~ m.content }}\n{% endfor %}");
    assert_int_equal(chat_place_encode(&row, &place,
                                       "{'messages': [{'role': 'user', 'content': 'a'},"
                                       " {'role': 'assistant', 'content': 'b'}]}",
                                       NULL),
                     DT_OK);
    assert_int_equal(row.endless, 1); /* nothing ends the turn */
    assert_int_equal(row.trained_count, 1);
    chat_place_close(&place);
}

static void prompts_and_continues(void **state)
{
    dt_chat_options prompts = {.prompts = true, .unchecked = true};
    dt_chat_options continues = {.continues = true, .unchecked = true};
    chat_place place;
    dt_chat_row row;

    (void)state;
    chat_place_open(&place, "turns");
    assert_int_equal(chat_place_encode(&row, &place,
                                       "{'messages': [{'role': 'user', 'content': 'a'}]}",
                                       &prompts),
                     DT_OK);
    assert_string_equal(row.text, "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\n");
    assert_int_equal(row.trained_count, 0);
    assert_int_equal(chat_place_encode(&row, &place,
                                       "{'messages': [{'role': 'user', 'content': 'a'},"
                                       " {'role': 'assistant', 'content': 'The answer is '}]}",
                                       &continues),
                     DT_OK);
    assert_string_equal(row.text,
                        "<|im_start|>user\na<|im_end|>\n<|im_start|>assistant\nThe answer is ");
    assert_int_equal(row.ends[row.count - 1], row.length);
    chat_place_close(&place);
}

static void forms_are_recognised(void **state)
{
    (void)state;
    check_trained(
        "turns",
        "{'conversations': [{'from': 'human', 'value': 'a'}, {'from': 'gpt', 'value': 'b'}],"
        " 'system': 's', 'id': 7}",
        "b<|im_end|>");
    check_trained("turns",
                  "{'instruction': 'a', 'input': '', 'output': 'b', 'history': [['c', 'd']]}",
                  "d<|im_end|>|b<|im_end|>");
    check_error("turns", "{'text': 'a'}",
                "not a conversation: expected 'messages' (each with 'role' and 'content'), "
                "'conversations' (each with 'from' and 'value'), or 'instruction', 'input' and "
                "'output'");
    check_error("turns", "{'conversations': [{'from': 'alien', 'value': 'a'}]}",
                "conversations[0].from: unsupported 'alien' (expected system, human, gpt or tool)");
    check_error("turns", "{'instruction': 'a', 'output': 3}", "output: expected a string");
    check_error("turns", "[]", "not a conversation: expected a JSON object");
}

static void errors_name_the_field(void **state)
{
    static const struct {
        const char *line, *message;
    } cases[] = {
        {"{'messages': {}}", "messages: expected a list"},
        {"{'messages': []}", "messages: the list is empty"},
        {"{'messages': ['a']}", "messages[0]: expected an object"},
        {"{'messages': [{'content': 'a'}]}", "messages[0].role: expected a string"},
        {"{'messages': [{'role': '<|im_end|>', 'content': 'a'}]}",
         "messages[0].role: '<|im_end|>' is not a role (expected a word such as user)"},
        {"{'messages': [{'role': 'user'}]}", "messages[0].content: is missing"},
        {"{'messages': [{'role': 'user', 'content': 3}]}",
         "messages[0].content: expected a string or a list of parts"},
        {"{'messages': [{'role': 'user', 'content': [{'type': 'image', 'url': 'x'}]}]}",
         "messages[0].content[0].type: unsupported 'image' (only text)"},
        {"{'messages': [{'role': 'user', 'contents': 'a'}]}",
         "messages[0]: unknown field 'contents' (did you mean 'content'?)"},
        {"{'messages': [{'role': 'user', 'content': 'a', 'weight': 1}]}",
         "messages[0].weight: only messages of an assistant are trained"},
        {"{'messages': [{'role': 'assistant', 'content': 'a', 'weight': -1}]}",
         "messages[0].weight: expected a number from 0 to 1e6"},
        {"{'messages': [{'role': 'assistant', 'content': 'a', 'weight': 1, 'train': true}]}",
         "messages[0]: 'weight' and 'train' cannot be combined"},
        {"{'messages': [{'role': 'assistant', 'content': 'a', 'tool_calls': {}}]}",
         "messages[0].tool_calls: expected a list"},
        {"{'messages': [{'role': 'assistant', 'content': 'a', 'tool_calls': [{}, 3]}]}",
         "messages[0].tool_calls[1]: expected an object"},
        {"{'messages': [{'role': 'user', 'content': 'a'}], 'tools': [3]}",
         "tools[0]: expected an object"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        check_error("turns", cases[i].line, cases[i].message);
    check_error(
        "brackets", "{'messages': [{'role': 'critic', 'content': 'a'}]}",
        "'tests/golden/chat/brackets.jinja', line 9: Only user, assistant and a first system "
        "message are supported, not critic");
    check_error(
        "brackets",
        "{'messages': [{'role': 'user', 'content': 'a'},"
        " {'role': 'assistant', 'content': [{'type': 'text', 'text': 'b'}]}]}",
        "'tests/golden/chat/brackets.jinja', line 7: 'list object' has no attribute 'strip'");
    check_error("marked",
                "{'messages': [{'role': 'user', 'content': [{'type': 'text', 'text': 'b'}]}]}",
                "messages[0].content: the template prints the list of parts itself; give a string");
}

/* --- where a template is found */

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[300];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    assert_int_equal(dt_file_write_atomic(path, text, strlen(text), 0600, NULL), DT_OK);
}

static void check_found(const char *folder, const char *name, const char *path, const char *text)
{
    dt_chat_source source = {.folder = folder, .name = name};
    dt_error err = DT_ERROR_INIT;
    dt_bpe *bpe = chat_tokenizer();
    dt_chat *chat;

    if (dt_chat_open(&chat, &source, bpe, &err) != DT_OK)
        fail_msg("%s", err.message);
    assert_string_equal(dt_chat_template_path(chat) + strlen(folder), path);
    assert_string_equal(dt_chat_template_text(chat), text);
    dt_chat_free(chat);
    dt_bpe_free(bpe);
}

static void check_not_found(const char *folder, const char *name, const char *end)
{
    dt_chat_source source = {.folder = folder, .name = name};
    dt_error err = DT_ERROR_INIT;
    dt_bpe *bpe = chat_tokenizer();
    dt_chat *chat;

    assert_int_equal(dt_chat_open(&chat, &source, bpe, &err), DT_ERR_NOT_FOUND);
    assert_non_null(strstr(err.message, end));
    dt_bpe_free(bpe);
}

static void templates_are_found(void **state)
{
    char folder[] = "/tmp/dtrun-chat-XXXXXX", templates[64];

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(templates, sizeof(templates), "%s/additional_chat_templates", folder);
    check_not_found(folder, NULL,
                    "has no chat template (chat_template.jinja, or 'chat_template' in "
                    "tokenizer_config.json): give a file with one");
    write_file(folder, "chat_template.json", "{\"chat_template\": \"four\"}");
    check_found(folder, NULL, "/chat_template.json", "four");
    write_file(folder, "tokenizer_config.json",
               "{\"chat_template\": [{\"name\": \"default\", \"template\": \"three\"},"
               " {\"name\": \"rag\", \"template\": \"rag\"}]}");
    check_found(folder, NULL, "/tokenizer_config.json, template 'default'", "three");
    check_found(folder, "rag", "/tokenizer_config.json, template 'rag'", "rag");
    check_not_found(folder, "other",
                    "has no chat template named 'other' (it has 'default', 'rag')");
    assert_int_equal(dt_file_make_dirs(templates, 0700, NULL), DT_OK);
    write_file(templates, "rag.jinja", "rag file");
    write_file(folder, "chat_template.jinja", "one");
    check_found(folder, NULL, "/chat_template.jinja", "one");
    check_found(folder, "rag", "/additional_chat_templates/rag.jinja", "rag file");
    assert_int_equal(dt_file_remove_tree(folder, NULL), DT_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trains_answers_and_their_ends),
        cmocka_unit_test(empty_answers_have_an_end),
        cmocka_unit_test(trains_thoughts_and_calls),
        cmocka_unit_test(weights_choose_messages),
        cmocka_unit_test(typed_control_tokens_are_text),
        cmocka_unit_test(generation_blocks_must_agree),
        cmocka_unit_test(drops_are_counted),
        cmocka_unit_test(prompts_and_continues),
        cmocka_unit_test(forms_are_recognised),
        cmocka_unit_test(errors_name_the_field),
        cmocka_unit_test(templates_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

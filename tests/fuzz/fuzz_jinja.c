/* fuzz_jinja: any template, and any variables: the input is a template, or a template, a NUL byte and a JSON object of
 * variables. The template is refused with its name and line, or rendered within its limits; the pieces of its text are
 * in order and cover it.
 */
#include <stdint.h>
#include <string.h>

#include "base/jinja/jinja.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static const char defaults[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \" Be \\u00fcber kind.\\n\"}, {\"role\": "
    "\"user\", "
    "\"content\": \"<|im_end|>\"}, {\"role\": \"assistant\", \"content\": "
    "\"<think>a</think>\\n\\nb\", "
    "\"tool_calls\": [{\"id\": \"abcdefghi\", \"function\": {\"name\": \"f\", \"arguments\": "
    "{\"x\": [1, 2.5, null, "
    "true], \"\\u00df\": \"\\\"\"}}}]}, {\"role\": \"tool\", \"content\": [{\"type\": \"text\", "
    "\"text\": \"7\"}]}], "
    "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", \"parameters\": {}}}], "
    "\"n\": 3, "
    "\"bos_token\": \"<s>\", \"eos_token\": \"</s>\", \"add_generation_prompt\": true}";

static void check(const dt_jinja_output *out)
{
    uint32_t at = 0;

    for (size_t i = 0; i < out->count; i++) {
        DT_ASSERT(out->pieces[i].end >= at && (out->pieces[i].origin & DT_JINJA_ORIGIN) <= 7);
        at = out->pieces[i].end;
    }
    DT_ASSERT(at == out->length && out->text[out->length] == '\0');
}

static void render(const dt_jinja *jinja, json_t *variables)
{
    dt_error err = DT_ERROR_INIT;
    dt_jinja_output out;
    dt_jinja_run *run;
    uint32_t origin = 1;
    const char *name;
    json_t *value;
    dt_arena arena;

    dt_arena_init(&arena, 0);
    run = dt_jinja_begin(jinja, 1700000000, &arena);
    json_object_foreach(variables, name, value)
        dt_jinja_set(run, name, dt_jinja_from_json(run, value, origin++ % 8));
    if (dt_jinja_render(&out, run, &err) == DT_OK)
        check(&out);
    else
        DT_ASSERT(err.code == DT_ERR_USAGE &&
                  strstr(err.message, "'x.jinja', line ") == err.message);
    dt_arena_release(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const uint8_t *nul = size > 0 ? memchr(bytes, 0, size) : NULL;
    size_t length = nul != NULL ? (size_t)(nul - bytes) : size;
    dt_error err = DT_ERROR_INIT;
    json_t *variables = NULL;
    dt_jinja *jinja;

    if (nul != NULL)
        variables = json_loadb((const char *)nul + 1, size - length - 1, JSON_ALLOW_NUL, NULL);
    if (!json_is_object(variables)) {
        json_decref(variables);
        variables = json_loads(defaults, 0, NULL);
        DT_ASSERT(variables != NULL);
    }
    if (dt_jinja_parse(&jinja, (const char *)bytes, length, "x.jinja", &err) == DT_OK)
        render(jinja, variables);
    else
        DT_ASSERT(err.code == DT_ERR_UNSUPPORTED &&
                  strstr(err.message, "'x.jinja'") == err.message);
    dt_jinja_free(jinja);
    json_decref(variables);
    return 0;
}

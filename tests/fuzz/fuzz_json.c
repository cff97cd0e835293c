/* fuzz_json: a document that base/json.c writes is read back with the same values, in each form. */
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_form(const json_t *json, void (*write)(dt_strbuf *out, const json_t *value))
{
    dt_strbuf text, again;
    json_t *back;

    dt_strbuf_init(&text);
    dt_strbuf_init(&again);
    write(&text, json);
    back = json_loads(text.data, JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, NULL);
    DT_ASSERT(json_equal(json, back));
    write(&again, back);
    DT_ASSERT(strcmp(text.data, again.data) == 0);
    dt_strbuf_release(&again);
    dt_strbuf_release(&text);
    json_decref(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    json_t *json = json_loadb((const char *)bytes, size, JSON_DECODE_ANY, NULL);

    if (json == NULL)
        return 0;
    check_form(json, dt_json_write);
    check_form(json, dt_json_write_pretty);
    json_decref(json);
    return 0;
}

/* fuzz_display: any text from outside. Each display form of it has no control characters, is UTF-8,
 * and does not change when it is converted again; JSON keeps its value.
 */
#include <stdint.h>
#include <string.h>

#include "base/display.h"
#include "base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

static void check_harmless(const dt_strbuf *text)
{
    const unsigned char *at = (const unsigned char *)text->data, *end = at + text->length;
    size_t step;

    for (; at < end; at += step)
        DT_ASSERT(dt_display_next(&step, at, (size_t)(end - at)) == DT_DISPLAY_PLAIN);
    DT_ASSERT(memchr(text->data, 0x1b, text->length) == NULL);
}

static void check_form(void (*add)(dt_strbuf *, const char *, size_t), const char *bytes,
                       size_t size)
{
    dt_strbuf once, twice;

    dt_strbuf_init(&once);
    dt_strbuf_init(&twice);
    add(&once, bytes, size);
    check_harmless(&once);
    add(&twice, once.data, once.length);
    DT_ASSERT(once.length == twice.length && memcmp(once.data, twice.data, once.length) == 0);
    dt_strbuf_release(&once);
    dt_strbuf_release(&twice);
}

static void check_json(const char *bytes, size_t size)
{
    dt_strbuf text, json;
    json_t *value, *back;

    dt_strbuf_init(&text);
    dt_strbuf_init(&json);
    dt_strbuf_add(&text, bytes, size);
    value = dt_json_text(text.data); /* up to the first NUL */
    dt_json_write(&json, value);
    check_harmless(&json);
    DT_ASSERT(dt_json_parse(&back, json.data, json.length, "value", NULL) == DT_OK);
    DT_ASSERT(json_equal(value, back));
    json_decref(value);
    json_decref(back);
    dt_strbuf_release(&text);
    dt_strbuf_release(&json);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    check_form(dt_display_add, (const char *)bytes, size);
    check_form(dt_display_add_page, (const char *)bytes, size);
    check_json((const char *)bytes, size);
    return 0;
}

/* write: keys and values of a GGUF header. Numbers are little-endian, as are the processors that dtrun runs on. */
#include <string.h>

#include "engine/gguf/gguf_int.h"

static void add_string(dt_strbuf *out, const char *text, size_t length)
{
    uint64_t bytes = length;

    dt_strbuf_add(out, &bytes, sizeof(bytes));
    dt_strbuf_add(out, text, length);
}

static void begin(dt_gguf_header *out, const char *key, dt_gguf_value_type type)
{
    uint32_t number = type;

    add_string(&out->text, key, strlen(key));
    dt_strbuf_add(&out->text, &number, sizeof(number));
    out->count++;
}

void dt_gguf_add_u32(dt_gguf_header *out, const char *key, uint32_t value)
{
    begin(out, key, DT_GGUF_U32);
    dt_strbuf_add(&out->text, &value, sizeof(value));
}

void dt_gguf_add_float(dt_gguf_header *out, const char *key, float value)
{
    begin(out, key, DT_GGUF_FLOAT);
    dt_strbuf_add(&out->text, &value, sizeof(value));
}

void dt_gguf_add_bool(dt_gguf_header *out, const char *key, bool value)
{
    begin(out, key, DT_GGUF_BOOL);
    dt_strbuf_add_char(&out->text, value ? 1 : 0);
}

void dt_gguf_add_text(dt_gguf_header *out, const char *key, const char *value, size_t length)
{
    begin(out, key, DT_GGUF_TEXT);
    add_string(&out->text, value, length);
}

void dt_gguf_begin_array(dt_gguf_header *out, const char *key, dt_gguf_value_type type,
                         uint64_t count)
{
    uint32_t number = type;

    begin(out, key, DT_GGUF_ARRAY);
    dt_strbuf_add(&out->text, &number, sizeof(number));
    dt_strbuf_add(&out->text, &count, sizeof(count));
}

void dt_gguf_add_item(dt_gguf_header *out, const char *value, size_t length)
{
    add_string(&out->text, value, length);
}

void dt_gguf_add_item_i32(dt_gguf_header *out, int32_t value)
{
    dt_strbuf_add(&out->text, &value, sizeof(value));
}

void dt_gguf_add_item_float(dt_gguf_header *out, float value)
{
    dt_strbuf_add(&out->text, &value, sizeof(value));
}

void dt_gguf_add_item_bool(dt_gguf_header *out, bool value)
{
    dt_strbuf_add_char(&out->text, value ? 1 : 0);
}

void dt_gguf_note(dt_gguf_header *out, const char *text)
{
    json_array_append_new(out->notes, dt_json_text(text));
}

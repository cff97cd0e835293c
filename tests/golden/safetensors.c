#include "tests/golden/safetensors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/file.h"

void fixture_open(fixture *out, const char *path)
{
    dt_error err = DT_ERROR_INIT;
    uint64_t length;

    dt_strbuf_init(&out->text);
    if (dt_file_read(&out->text, path, 1 << 20, &err))
        fail_msg("%s", err.message);
    memcpy(&length, out->text.data, sizeof length); /* tests run on little-endian machines */
    assert_true(8 + length <= out->text.length);
    if (dt_json_parse(&out->header, out->text.data + 8, length, path, &err))
        fail_msg("%s", err.message);
}

void fixture_close(fixture *f)
{
    json_decref(f->header);
    dt_strbuf_release(&f->text);
}

const void *fixture_get(const fixture *f, const char *name, const char *dtype, int64_t elems)
{
    json_t *entry = json_object_get(f->header, name);
    json_t *offsets = json_object_get(entry, "data_offsets");
    size_t from = (size_t)json_integer_value(json_array_get(offsets, 0));
    size_t to = (size_t)json_integer_value(json_array_get(offsets, 1));
    size_t elem_bytes = strcmp(dtype, "F64") == 0 ? 8 : 4;
    uint64_t header_bytes;

    if (!entry)
        fail_msg("the fixture has no tensor '%s'", name);
    memcpy(&header_bytes, f->text.data, sizeof header_bytes);
    assert_string_equal(json_string_value(json_object_get(entry, "dtype")), dtype);
    assert_int_equal(to - from, (size_t)elems * elem_bytes);
    assert_true(8 + header_bytes + to <= f->text.length);
    return f->text.data + 8 + header_bytes + from;
}

double fixture_number(const fixture *f, const char *name)
{
    json_t *about = json_object_get(f->header, "__metadata__");
    const char *text = json_string_value(json_object_get(about, name));

    if (!text)
        fail_msg("the fixture's metadata has no '%s'", name);
    return strtod(text, NULL);
}

#include "engine/data/fingerprint.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

#include "engine/data/data_int.h"
#include "engine/data/files.h"

#define WINDOW_BYTES ((int64_t)64 << 10)
#define LEAST_BYTES  (2 * WINDOW_BYTES) /* room for the first window and the last */
#define HEX_SIZE     33

/* --- making */

/* Digest `most` bytes, or a little more, in windows from the first byte to the last. Returns how
 * many. */
static int64_t digest(char *hex, const dt_mapping *file, int64_t most)
{
    int64_t length = (int64_t)file->length, windows = most / WINDOW_BYTES;
    XXH3_state_t *state = XXH3_createState();
    XXH128_canonical_t bytes;

    DT_ASSERT(state != NULL && windows >= 2);
    (void)XXH3_128bits_reset(state);
    if (length <= most) {
        (void)XXH3_128bits_update(state, file->bytes, file->length);
        windows = 0;
    }
    for (int64_t i = 0; i < windows; i++) {
        int64_t room = length - WINDOW_BYTES, each = room / (windows - 1);
        int64_t start = i < windows - 1 ? i * each : room;

        (void)XXH3_128bits_update(state, file->bytes + start, (size_t)WINDOW_BYTES);
    }
    XXH128_canonicalFromHash(&bytes, XXH3_128bits_digest(state));
    for (size_t i = 0; i < sizeof(bytes.digest); i++)
        snprintf(hex + 2 * i, 3, "%02x", bytes.digest[i]);
    XXH3_freeState(state);
    return windows > 0 ? windows * WINDOW_BYTES : length;
}

static dt_status add_file(json_t *list, const dt_data_file *file, int64_t most, dt_error *err)
{
    dt_status st = DT_OK;
    char hex[HEX_SIZE];
    dt_mapping mapping;
    int64_t digested;

    DT_TRY(dt_mapping_open(&mapping, file->path, err));
    digested = digest(hex, &mapping, most);
    json_array_append_new(list,
                          json_pack("{s:s, s:I, s:s, s:I}", "kind", dt_tokens_kind_name(file->kind),
                                    "bytes", (json_int_t)mapping.length, "xxh3_128", hex,
                                    "digested_bytes", (json_int_t)digested));
    dt_mapping_close(&mapping);
out:
    return st;
}

static dt_status add_files(json_t *list, const dt_data_files *files, dt_error *err)
{
    int64_t most = files->bytes;
    dt_status st = DT_OK;

    if (files->bytes > DT_FINGERPRINT_BYTES)
        most = DT_FINGERPRINT_BYTES / files->count;
    if (most < LEAST_BYTES)
        most = LEAST_BYTES;
    for (int64_t i = 0; i < files->count; i++)
        DT_TRY(add_file(list, &files->items[i], most, err));
out:
    return st;
}

/* Adds "0.7 of 2 files, 0.3 of 1 file". */
static dt_status add_mixture(json_t *out, const dt_recipe *recipe, dt_tokens_kind kind,
                             dt_arena *arena, dt_error *err)
{
    int64_t counts[DT_MIXTURE_MOST];
    dt_status st = DT_OK;
    dt_strbuf text;

    dt_strbuf_init(&text);
    DT_TRY(dt_mixture_files(counts, recipe, kind, arena, err));
    for (int64_t i = 0; i < recipe->data.mixture.count; i++)
        dt_strbuf_add_fmt(&text, "%s%.15g of %lld file%s", i > 0 ? ", " : "",
                          dt_recipe_part_share(recipe, i), (long long)counts[i],
                          counts[i] == 1 ? "" : "s");
    json_object_set_new(out, "mixture", json_string(text.data));
out:
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_fingerprint_make(json_t **out, const dt_recipe *recipe, dt_error *err)
{
    static const char *const tails[] = {[DT_TAIL_WRAP] = "wrap", [DT_TAIL_DROP] = "drop"};
    static const char *const longs[] = {
        [DT_TOO_LONG_REFUSE] = "refuse", [DT_TOO_LONG_DROP] = "drop", [DT_TOO_LONG_CUT] = "cut"};
    json_t *files = json_array(), *validations = json_array();
    dt_data_files train, validation;
    dt_status st = DT_OK;
    dt_arena arena;

    *out = NULL;
    dt_arena_init(&arena, 0);
    DT_TRY(dt_dataset_find_files(&train, &validation, recipe, &arena, err));
    DT_TRY(add_files(files, &train, err));
    DT_TRY(add_files(validations, &validation, err));
    *out = json_pack("{s:O, s:O, s:o, s:I, s:s, s:I}", "files", files, "validation", validations,
                     "split", validation.count > 0 ? json_null() : json_real(recipe->data.split),
                     "sequence_tokens", (json_int_t)recipe->batch.tokens, "tail",
                     tails[recipe->data.tail], "seed", (json_int_t)recipe->seed);
    if (*out == NULL)
        DT_THROW(err, DT_ERR_NOMEM, "no memory to compare data");
    if (dt_packs_asked(recipe))
        json_object_set_new(*out, "pack", json_string("true"));
    if (train.items[0].kind == DT_TOKENS_PAIRS)
        json_object_set_new(*out, "max_tokens", json_integer(recipe->batch.max_tokens));
    if (train.items[0].kind == DT_TOKENS_PAIRS)
        json_object_set_new(*out, "too_long", json_string(longs[recipe->data.too_long]));
    if (train.items[0].kind == DT_TOKENS_CHATS)
        json_object_set_new(*out, "longer", json_string(longs[recipe->data.too_long]));
    if (train.items[0].kind == DT_TOKENS_CHATS)
        json_object_set_new(
            *out, "loss",
            json_string(recipe->data.loss == DT_MEAN_OF_CONVERSATIONS ? "conversation" : "token"));
    if (recipe->data.mixture.count > 0)
        DT_TRY(add_mixture(*out, recipe, train.items[0].kind, &arena, err));
out:
    json_decref(files);
    json_decref(validations);
    dt_arena_release(&arena);
    return st;
}

dt_status dt_fingerprint_files(json_t **out, const dt_string_list *paths, dt_error *err)
{
    dt_data_files files = {.count = paths->count};
    dt_status st = DT_OK;
    struct stat info;
    dt_arena arena;

    *out = NULL;
    dt_arena_init(&arena, 0);
    files.items = dt_arena_alloc_array(&arena, (size_t)paths->count + 1, sizeof(*files.items));
    for (int64_t i = 0; i < paths->count; i++) {
        files.items[i] = (dt_data_file){.path = paths->items[i], .kind = DT_TOKENS_BYTE};
        if (stat(paths->items[i], &info) == 0)
            files.bytes += info.st_size;
    }
    *out = json_array();
    DT_TRY(add_files(*out, &files, err));
out:
    dt_arena_release(&arena);
    return st;
}

/* --- comparing */

static void add_value(dt_strbuf *out, const json_t *value)
{
    if (json_is_integer(value))
        dt_strbuf_add_fmt(out, "%lld", (long long)json_integer_value(value));
    else if (json_is_real(value))
        dt_strbuf_add_fmt(out, "%g", json_real_value(value));
    else
        dt_strbuf_add_str(out, json_is_string(value) ? json_string_value(value) : "none");
}

static void add_difference(dt_strbuf *out, const char *what, const json_t *was, const char *verb,
                           const json_t *is, const char *now)
{
    dt_strbuf_add_fmt(out, "%s%s %s ", out->length > 0 ? "; " : "", what, verb);
    add_value(out, was);
    dt_strbuf_add_fmt(out, ", %s ", now);
    add_value(out, is);
}

/* Equal numbers can have different JSON types: 0 and 0.0. */
static bool same(const json_t *was, const json_t *is)
{
    if (was == NULL && is == NULL)
        return true;
    if (json_is_number(was) && json_is_number(is))
        return json_number_value(was) == json_number_value(is);
    return json_equal(was, is);
}

static void compare_file(dt_strbuf *out, size_t i, const json_t *was, const json_t *is)
{
    const json_t *bytes_was = json_object_get(was, "bytes"), *bytes = json_object_get(is, "bytes");
    const json_t *kind_was = json_object_get(was, "kind"), *kind = json_object_get(is, "kind");
    char name[48];

    snprintf(name, sizeof(name), "file %zu", i + 1);
    if (!same(kind_was, kind))
        add_difference(out, name, kind_was, "was read as", kind, "is as");
    if (!same(bytes_was, bytes)) {
        dt_strbuf_add_fmt(out, "%s%s had %lld bytes, has %lld", out->length > 0 ? "; " : "", name,
                          (long long)json_integer_value(bytes_was),
                          (long long)json_integer_value(bytes));
    } else if (!same(json_object_get(was, "xxh3_128"), json_object_get(is, "xxh3_128"))) {
        dt_strbuf_add_fmt(out, "%s%s has other content", out->length > 0 ? "; " : "", name);
    }
}

static void compare_files(dt_strbuf *out, const json_t *was, const json_t *is)
{
    size_t before = json_array_size(was), now = json_array_size(is);

    if (before != now) {
        dt_strbuf_add_fmt(out, "%sthere were %zu files, there are %zu", out->length > 0 ? "; " : "",
                          before, now);
        return;
    }
    for (size_t i = 0; i < now; i++)
        compare_file(out, i, json_array_get(was, i), json_array_get(is, i));
}

bool dt_fingerprint_differs(dt_strbuf *words, const json_t *was, const json_t *is)
{
    static const struct {
        const char *key, *name;
    } values[] = {
        {"split", "data.split"},
        {"sequence_tokens", "batch.tokens"},
        {"max_tokens", "batch.max_tokens"},
        {"pack", "data.pack"},
        {"mixture", "data.mixture"},
        {"longer", "data.too_long"},
        {"loss", "data.loss"},
        {"tail", "data.tail"},
        {"seed", "seed"},
    };
    dt_strbuf found;
    bool differs;

    dt_strbuf_init(&found);
    compare_files(&found, json_object_get(was, "files"), json_object_get(is, "files"));
    for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        const json_t *before = json_object_get(was, values[i].key);
        const json_t *now = json_object_get(is, values[i].key);

        if (!same(before, now))
            add_difference(&found, values[i].name, before, "was", now, "is");
    }
    differs = found.length > 0;
    if (words != NULL)
        dt_strbuf_add(words, found.data, found.length);
    dt_strbuf_release(&found);
    return differs;
}

bool dt_fingerprint_validation_differs(const json_t *was, const json_t *is)
{
    return !same(json_object_get(was, "validation"), json_object_get(is, "validation"));
}

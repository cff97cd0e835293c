#include "runner/node_setup/workdir/tree.h"

#include <stdio.h>
#include <string.h>

#include "base/file.h"

#define PRINTED_FRONT "{\"tree\":1,\"entries\":["
#define PRINTED_END   "]}"

static const char *const kind_names[] = {"file", "link", "folder"};

void dt_tree_digest(char *hex, const dt_tree *tree)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    for (int64_t i = 0; i < tree->count; i++) {
        const dt_tree_entry *entry = &tree->entries[i];

        dt_strbuf_add_fmt(&text, "%d %llo %lld %s ", (int)entry->kind, (long long)entry->mode,
                          (long long)entry->bytes, entry->digest);
        dt_strbuf_add(&text, entry->path, strlen(entry->path) + 1);
        if (entry->target != NULL)
            dt_strbuf_add(&text, entry->target, strlen(entry->target) + 1);
    }
    dt_digest_of(hex, text.data != NULL ? text.data : "", text.length);
    dt_strbuf_release(&text);
}

/* Appends the text as a string of JSON. */
static void print_string(dt_strbuf *out, const char *text)
{
    const char *at = text;
    json_t *string;

    while (*at >= ' ' && *at <= '~' && *at != '"' && *at != '\\')
        at++;
    if (*at == '\0') {
        dt_strbuf_add_fmt(out, "\"%s\"", text);
        return;
    }
    string = dt_json_text(text);
    dt_json_write(out, string);
    json_decref(string);
}

static void print_entry(dt_strbuf *out, const dt_tree_entry *entry)
{
    dt_strbuf_add_fmt(out, "[\"%s\",", kind_names[entry->kind]);
    print_string(out, entry->path);
    switch (entry->kind) {
    case DT_TREE_LINK:
        dt_strbuf_add_char(out, ',');
        print_string(out, entry->target);
        break;
    case DT_TREE_FOLDER:
        dt_strbuf_add_fmt(out, ",%lld", (long long)entry->mode);
        break;
    case DT_TREE_FILE:
        dt_strbuf_add_fmt(out, ",%lld,%lld,%lld,\"%s\"", (long long)entry->mode,
                          (long long)entry->bytes, (long long)entry->time_ns, entry->digest);
        if (entry->disk_bytes < entry->bytes)
            dt_strbuf_add_fmt(out, ",%lld", (long long)entry->disk_bytes);
        break;
    }
    dt_strbuf_add_char(out, ']');
}

void dt_tree_print(dt_strbuf *out, const dt_tree *tree)
{
    dt_strbuf_add_str(out, PRINTED_FRONT);
    for (int64_t i = 0; i < tree->count; i++) {
        if (i > 0)
            dt_strbuf_add_char(out, ',');
        print_entry(out, &tree->entries[i]);
    }
    dt_strbuf_add_str(out, PRINTED_END);
}

json_t *dt_tree_to_json(const dt_tree *tree)
{
    json_t *json = NULL;
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_tree_print(&text, tree);
    (void)dt_json_parse(&json, text.data, text.length, "tree", NULL);
    dt_strbuf_release(&text);
    return json;
}

bool dt_tree_path_is_good(const char *path)
{
    if (path[0] == '\0' || path[0] == '/')
        return false;
    for (const char *at = path; *at != '\0';) {
        size_t length = strcspn(at, "/");

        if (length == 0 || (length == 1 && at[0] == '.') ||
            (length == 2 && strncmp(at, "..", 2) == 0))
            return false;
        at += length;
        if (*at == '/' && *++at == '\0')
            return false;
    }
    return true;
}

static bool is_digest(const char *text)
{
    return strlen(text) == DT_DIGEST_SIZE - 1 && strspn(text, "0123456789abcdef") == strlen(text);
}

static bool read_entry(dt_tree_entry *out, const json_t *json, dt_arena *arena)
{
    const char *kind = json_string_value(json_array_get(json, 0));
    const char *path = json_string_value(json_array_get(json, 1));
    const json_t *third = json_array_get(json, 2);
    const char *digest = json_string_value(json_array_get(json, 5));
    const json_t *disk = json_array_get(json, 6);

    *out = (dt_tree_entry){0};
    if (kind == NULL || path == NULL || !dt_tree_path_is_good(path))
        return false;
    out->path = dt_arena_strdup(arena, path);
    if (strcmp(kind, "link") == 0) {
        out->kind = DT_TREE_LINK;
        if (!json_is_string(third))
            return false;
        out->target = dt_arena_strdup(arena, json_string_value(third));
        return true;
    }
    out->mode = json_integer_value(third);
    if (!json_is_integer(third) || out->mode < 0 || out->mode > 0777)
        return false;
    if (strcmp(kind, "folder") == 0) {
        out->kind = DT_TREE_FOLDER;
        return true;
    }
    out->bytes = json_integer_value(json_array_get(json, 3));
    out->time_ns = json_integer_value(json_array_get(json, 4));
    if (strcmp(kind, "file") != 0 || out->bytes < 0 || digest == NULL || !is_digest(digest))
        return false;
    snprintf(out->digest, sizeof(out->digest), "%s", digest);
    out->disk_bytes = disk != NULL ? json_integer_value(disk) : out->bytes;
    return out->disk_bytes >= 0 && out->disk_bytes <= out->bytes;
}

/* Adds the entry to the tree, which has room for it. */
static dt_status add_entry(dt_tree *tree, const dt_tree_entry *entry, dt_error *err)
{
    if ((tree->count > 0 && dt_tree_order(tree->entries[tree->count - 1].path, entry->path) >= 0) ||
        entry->bytes > INT64_MAX - tree->bytes)
        return DT_FAIL(err, DT_ERR_CORRUPT, "tree: entry %lld is malformed",
                       (long long)tree->count);
    tree->bytes += entry->bytes;
    tree->files += entry->kind == DT_TREE_FILE;
    tree->entries[tree->count++] = *entry;
    return DT_OK;
}

dt_status dt_tree_from_json(dt_tree *out, const json_t *json, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_tree_entry entry;
    json_t *entries;
    int64_t version;
    size_t i, count;

    *out = (dt_tree){0};
    DT_TRY(dt_json_get_int(&version, json, "tree", "tree", err));
    if (version != 1)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "tree: unsupported version %lld", (long long)version);
    DT_TRY(dt_json_get_array(&entries, json, "entries", "tree", err));
    count = json_array_size(entries);
    if (count > DT_TREE_ENTRIES_MAX)
        DT_THROW(err, DT_ERR_CORRUPT, "tree: %zu entries are too many", count);
    out->entries = dt_arena_alloc_array(arena, count + 1, sizeof(out->entries[0]));
    for (i = 0; i < count; i++) {
        if (!read_entry(&entry, json_array_get(entries, i), arena))
            DT_THROW(err, DT_ERR_CORRUPT, "tree: entry %zu is malformed", i);
        DT_TRY(add_entry(out, &entry, err));
    }
out:
    return st;
}

/* --- a document as dt_tree_print writes it, read without a tree of JSON values: this takes a fifth of the time */

static bool skip(const char **at, const char *text)
{
    size_t length = strlen(text);

    if (strncmp(*at, text, length) != 0)
        return false;
    *at += length;
    return true;
}

/* Reads a string without escapes, of ASCII. */
static const char *take_string(const char **at, dt_arena *arena)
{
    const char *from = *at + 1, *to = from;

    if (**at != '"')
        return NULL;
    while (*to >= ' ' && *to <= '~' && *to != '"' && *to != '\\')
        to++;
    if (*to != '"')
        return NULL;
    *at = to + 1;
    return dt_arena_strndup(arena, from, (size_t)(to - from));
}

/* Reads a comma and a whole number of at most 19 digits. */
static bool take_number(int64_t *out, const char **at)
{
    const char *digit = *at + 1;
    uint64_t number = 0;

    if (**at != ',')
        return false;
    for (; *digit >= '0' && *digit <= '9' && digit - *at <= 20; digit++)
        number = 10 * number + (uint64_t)(*digit - '0');
    if (digit - *at < 2 || digit - *at > 20 || number > INT64_MAX)
        return false;
    *out = (int64_t)number;
    *at = digit;
    return true;
}

static bool take_entry(dt_tree_entry *out, const char **at, dt_arena *arena)
{
    const char *digest;

    *out = (dt_tree_entry){0};
    if (skip(at, "[\"file\","))
        out->kind = DT_TREE_FILE;
    else if (skip(at, "[\"link\","))
        out->kind = DT_TREE_LINK;
    else if (skip(at, "[\"folder\","))
        out->kind = DT_TREE_FOLDER;
    else
        return false;
    out->path = take_string(at, arena);
    if (out->path == NULL || !dt_tree_path_is_good(out->path))
        return false;
    if (out->kind == DT_TREE_LINK) {
        out->target = skip(at, ",") ? take_string(at, arena) : NULL;
        return out->target != NULL && skip(at, "]");
    }
    if (!take_number(&out->mode, at) || out->mode > 0777)
        return false;
    if (out->kind == DT_TREE_FOLDER)
        return skip(at, "]");
    if (!take_number(&out->bytes, at) || !take_number(&out->time_ns, at) || !skip(at, ","))
        return false;
    digest = take_string(at, arena);
    if (digest == NULL || !is_digest(digest))
        return false;
    memcpy(out->digest, digest, sizeof(out->digest));
    out->disk_bytes = out->bytes;
    return skip(at, "]") ||
           (take_number(&out->disk_bytes, at) && out->disk_bytes <= out->bytes && skip(at, "]"));
}

/* Returns false if the document is written in another way, or is not one. */
static bool read_printed(dt_tree *out, const char *text, size_t length, dt_arena *arena)
{
    const char *at = text;
    int64_t capacity = 0;
    dt_tree_entry entry;

    *out = (dt_tree){0};
    if (!skip(&at, PRINTED_FRONT))
        return false;
    while (*at == '[') {
        if (out->count == DT_TREE_ENTRIES_MAX || !take_entry(&entry, &at, arena))
            return false;
        out->entries = dt_arena_array_room(arena, out->entries, out->count + 1, &capacity,
                                           sizeof(out->entries[0]));
        if (add_entry(out, &entry, NULL) != DT_OK)
            return false;
        if (!skip(&at, ","))
            break;
    }
    return (out->count == 0 || at[-1] == ']') && skip(&at, PRINTED_END) && at == text + length;
}

dt_status dt_tree_read_text(dt_tree *out, const char *text, size_t length, dt_arena *arena,
                            dt_error *err)
{
    dt_status st = DT_OK;
    json_t *json = NULL;

    if (read_printed(out, text, length, arena))
        return DT_OK;
    DT_TRY(dt_json_parse(&json, text, length, "the list of files", err));
    DT_TRY(dt_tree_from_json(out, json, arena, err));
out:
    json_decref(json);
    return st;
}

dt_status dt_tree_write(const dt_tree *tree, const char *path, dt_error *err)
{
    dt_strbuf text;
    dt_status st;

    dt_strbuf_init(&text);
    dt_tree_print(&text, tree);
    st = dt_file_write_atomic(path, text.data, text.length, 0600, err);
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_tree_read(dt_tree *out, const char *path, dt_arena *arena, dt_error *err)
{
    dt_status st = DT_OK;
    dt_strbuf text;

    *out = (dt_tree){0};
    dt_strbuf_init(&text);
    DT_TRY(dt_file_read(&text, path, DT_TREE_BYTES_MAX, err));
    DT_TRY(dt_tree_read_text(out, text.data, text.length, arena, err));
out:
    dt_strbuf_release(&text);
    return st;
}

bool dt_tree_entry_same(const dt_tree_entry *a, const dt_tree_entry *b)
{
    return a->kind == b->kind && a->mode == b->mode && a->bytes == b->bytes &&
           strcmp(a->digest, b->digest) == 0 && strcmp(a->path, b->path) == 0 &&
           (a->target == NULL || strcmp(a->target, b->target) == 0);
}

int dt_tree_order(const char *a, const char *b)
{
    while (*a != '\0' && *a == *b) {
        a++;
        b++;
    }
    return (*a == '/'    ? 1
            : *a == '\0' ? 0
                         : 2 + (unsigned char)*a) -
           (*b == '/'    ? 1
            : *b == '\0' ? 0
                         : 2 + (unsigned char)*b);
}

const dt_tree_entry *dt_tree_find(const dt_tree *tree, const char *path)
{
    int64_t low = 0, high = tree->count;

    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        int order = dt_tree_order(tree->entries[middle].path, path);

        if (order == 0)
            return &tree->entries[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

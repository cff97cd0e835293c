/* references: fills in references to the environment, and detects literal secrets in URLs. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/strbuf.h"
#include "recipes/read/read_int.h"
#include "recipes/read/reading.h"

/* --- references */

/* Limit of the values of all references of a recipe. */
#define FILLED_BYTES_MAX ((size_t)1 << 20)

static const char opening[] = "${env:";
#define OPENING_LENGTH (sizeof(opening) - 1)

typedef struct reference {
    const char *name; /* in the arena */
    const char *fallback;
    size_t fallback_length; /* fallback NULL: no default */
    const char *end;        /* after the '}' */
} reference;

static dt_status refuse(const dt_reading *reading, const dt_yaml_node *node, const char *before,
                        const char *name, const char *after)
{
    dt_strbuf text;

    dt_strbuf_init(&text);
    dt_strbuf_add_str(&text, before);
    dt_text_show(&text, name);
    dt_strbuf_add_str(&text, after);
    return dt_reading_refuse(reading, &node->mark, &text);
}

static bool is_name(const char *name)
{
    if (!isalpha((unsigned char)name[0]) && name[0] != '_')
        return false;
    for (; *name != '\0'; name++)
        if (!isalnum((unsigned char)*name) && *name != '_')
            return false;
    return true;
}

/* Parses the reference that begins at `at`. */
static dt_status parse(reference *out, const dt_reading *reading, const dt_yaml_node *node,
                       const char *at)
{
    const char *inside = at + OPENING_LENGTH, *end = strchr(inside, '}');
    const char *dash = strstr(inside, ":-");

    if (end == NULL)
        return refuse(reading, node, "", at, " has no '}'");
    if (dash != NULL && dash > end)
        dash = NULL;
    out->name =
        dt_arena_strndup(reading->arena, inside, (size_t)((dash != NULL ? dash : end) - inside));
    if (!is_name(out->name))
        return refuse(reading, node, "", out->name,
                      " is not a variable name: expected '${env:NAME}' or "
                      "'${env:NAME:-default}'");
    out->fallback = dash != NULL ? dash + 2 : NULL;
    out->fallback_length = dash != NULL ? (size_t)(end - out->fallback) : 0;
    out->end = end + 1;
    return DT_OK;
}

/* Messages do not repeat the value, because it may be secret. */
static dt_status add_value(dt_strbuf *out, dt_reading *reading, const dt_yaml_node *node,
                           const reference *r)
{
    const char *value = getenv(r->name);
    size_t length = value != NULL ? strlen(value) : 0;

    if (length == 0 && r->fallback == NULL)
        return refuse(reading, node, "the environment lacks ", r->name,
                      ": set it, or give a default as in '${env:NAME:-default}'");
    if (length > 0 && (reading->filled_bytes += length) > FILLED_BYTES_MAX)
        return refuse(reading, node, "the environment's ", r->name,
                      " is too long: all references together are limited to 1 MiB");
    if (length > 0 && dt_text_check(value, length, &node->mark, NULL) != DT_OK)
        return refuse(reading, node, "the environment's ", r->name,
                      " is not text: it has control characters or broken UTF-8");
    if (length > 0)
        dt_strbuf_add(out, value, length);
    else
        dt_strbuf_add(out, r->fallback, r->fallback_length);
    return DT_OK;
}

/* Adds a scalar's text with its references filled in; *whole: the scalar is one reference and no more. */
static dt_status expand(dt_strbuf *out, bool *whole, dt_reading *reading, const dt_yaml_node *node)
{
    const char *from = node->text, *at;
    dt_status st = DT_OK;
    reference r = {0};

    *whole = false;
    for (; (at = strstr(from, opening)) != NULL; from = r.end) {
        DT_TRY(parse(&r, reading, node, at));
        *whole = at == node->text && *r.end == '\0';
        dt_strbuf_add(out, from, (size_t)(at - from));
        DT_TRY(add_value(out, reading, node, &r));
    }
    dt_strbuf_add_str(out, from);
out:
    return st;
}

static bool has_reference(const dt_yaml_node *node)
{
    return node->kind == DT_YAML_SCALAR && strstr(node->text, opening) != NULL;
}

static dt_status fill_scalar(dt_reading *reading, dt_yaml_node *node)
{
    dt_status st = DT_OK;
    dt_strbuf text;
    bool whole;

    if (node->written != NULL || !has_reference(node))
        return DT_OK;
    dt_strbuf_init(&text);
    DT_TRY(expand(&text, &whole, reading, node));
    node->written = node->text;
    node->plain = node->plain || whole;
    node->text = dt_arena_strdup(reading->arena, text.data);
out:
    dt_strbuf_release(&text);
    return st;
}

dt_status dt_references_fill(dt_reading *reading, dt_yaml_node *node)
{
    dt_status st = DT_OK;

    if (node->kind == DT_YAML_SCALAR)
        return fill_scalar(reading, node);
    for (dt_yaml_node *child = node->first; child != NULL; child = child->next)
        DT_TRY(dt_references_fill(reading, child));
out:
    return st;
}

dt_status dt_references_check(dt_reading *reading, const dt_yaml_node *node)
{
    dt_status st = DT_OK;
    dt_strbuf text;
    bool whole;

    if (node->kind != DT_YAML_SCALAR) {
        for (const dt_yaml_node *child = node->first; child != NULL; child = child->next)
            DT_TRY(dt_references_check(reading, child));
        return DT_OK;
    }
    if (!has_reference(node))
        return DT_OK;
    dt_strbuf_init(&text);
    st = expand(&text, &whole, reading, node);
    dt_strbuf_release(&text);
out:
    return st;
}

/* --- as in a shell --- */

/* Returns whether the field's text is for dtrun, rather than for a program. */
static bool is_for_us(const dt_field *field)
{
    return (field->type != DT_FIELD_STRING && field->type != DT_FIELD_STRINGS &&
            field->type != DT_FIELD_MAPS) ||
           field->paths || strcmp(field->path, "name") == 0 || strcmp(field->path, "nodes") == 0;
}

/* Returns the length of the variable's name if the text at a '$' is "${NAME}", or at the start "$NAME/". */
static size_t shell_name(const char **name, const char *text, const char *dollar)
{
    bool braces = dollar[1] == '{';
    size_t length;

    *name = dollar + 1 + braces;
    length = strspn(*name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
    if (length == 0 || isdigit((unsigned char)**name))
        return 0;
    if (braces)
        return (*name)[length] == '}' ? length : 0;
    return dollar == text && ((*name)[length] == '/' || (*name)[length] == '\0') ? length : 0;
}

dt_status dt_references_refuse_shell(const dt_reading *reading, const dt_field *field,
                                     const dt_yaml_node *node)
{
    const char *name, *path;
    dt_status st = DT_OK;
    size_t length;

    if (!is_for_us(field))
        return DT_OK;
    for (const dt_yaml_node *child = node->first; child != NULL; child = child->next)
        DT_TRY(dt_references_refuse_shell(reading, field, child));
    if (node->kind != DT_YAML_SCALAR ||
        node->written != NULL) /* the environment's value is taken as it is */
        return DT_OK;
    for (const char *at = strchr(node->text, '$'); at != NULL; at = strchr(at + 1, '$')) {
        dt_strbuf after;

        length = shell_name(&name, node->text, at);
        if (length == 0 ||
            (field->paths &&
             dt_path_resolve(&path, node->text, reading->folder, reading->arena, NULL) == DT_OK &&
             dt_file_exists(path)))
            continue;
        dt_strbuf_init(&after);
        dt_strbuf_add_fmt(&after,
                          " is not filled in: write '${env:%.*s}' for the environment's %.*s",
                          (int)length, name, (int)length, name);
        refuse(reading, node, "", node->text, after.data);
        dt_strbuf_release(&after);
        return DT_ERR_RECIPE;
    }
out:
    return st;
}

/* --- secrets */

enum { KEY_LENGTH = 20 };

static const char reference_opening[] = "${env:";

/* Adds the URL without its references but with their defaults. */
static void literal(dt_strbuf *out, const char *url)
{
    const char *found, *end, *fallback;

    while ((found = strstr(url, reference_opening)) != NULL && (end = strchr(found, '}')) != NULL) {
        dt_strbuf_add(out, url, (size_t)(found - url));
        fallback = strstr(found, ":-");
        if (fallback != NULL && fallback < end)
            dt_strbuf_add(out, fallback + 2, (size_t)(end - fallback - 2));
        url = end + 1;
    }
    dt_strbuf_add_str(out, url);
}

/* Returns whether text[0, length) looks random: long, and of two kinds of characters. */
static bool is_key(const char *text, size_t length)
{
    bool upper = false, lower = false, digit = false;

    if (length < KEY_LENGTH)
        return false;
    for (size_t i = 0; i < length; i++) {
        upper = upper || isupper((unsigned char)text[i]);
        lower = lower || islower((unsigned char)text[i]);
        digit = digit || isdigit((unsigned char)text[i]);
    }
    return upper + lower + digit >= 2;
}

/* Returns whether any sequence of key characters looks like a key. */
static bool has_key(const char *text, size_t length)
{
    static const char made_of[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

    for (size_t at = 0; at < length;) {
        size_t run = strspn(text + at, made_of);

        if (run > length - at)
            run = length - at;
        if (is_key(text + at, run))
            return true;
        at += run + 1;
    }
    return false;
}

/* Returns whether a value follows an '=' of name=value&... */
static bool has_value(const char *query, size_t length)
{
    for (size_t i = 0; i + 1 < length; i++)
        if (query[i] == '=' && query[i + 1] != '&')
            return true;
    return false;
}

static const char *look(const char *url, dt_url_use use)
{
    const char *scheme = strstr(url, "://"), *at, *path, *query;
    const char *host = scheme != NULL ? scheme + 3 : url, *end = host + strcspn(host, "#");
    size_t authority = strcspn(host, "/?#");

    /* "${env:USER}:${env:PASS}@" leaves ":@" */
    at = memchr(host, '@', authority);
    if (at != NULL && strspn(host, ":") < (size_t)(at - host))
        return "a name or password before '@'";
    path = host + authority;
    query = memchr(path, '?', (size_t)(end - path));
    if (use == DT_URL_WEBHOOK && has_key(path, (size_t)((query != NULL ? query : end) - path)))
        return "what looks like a key in its path";
    if (query != NULL && has_key(query, (size_t)(end - query)))
        return "what looks like a key after '?'";
    if (query != NULL && use == DT_URL_WEBHOOK && has_value(query, (size_t)(end - query)))
        return "a value after '?'";
    return NULL;
}

const char *dt_url_secret(const char *url, dt_url_use use)
{
    const char *found;
    dt_strbuf text;

    dt_strbuf_init(&text);
    literal(&text, url);
    found = look(text.data, use);
    dt_strbuf_release(&text);
    return found;
}

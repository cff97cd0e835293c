#include "recipes/read/tree.h"

#include <stdio.h>
#include <string.h>
#include <yaml.h>

#include "recipes/read/read_int.h"

#define DEPTH_MAX       8 /* a recipe needs three */
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

/* A '[' or '{' that is not closed yet. */
typedef struct opening {
    yaml_mark_t at;
    char bracket;
    const struct opening *outer;
} opening;

typedef struct builder {
    yaml_parser_t parser;
    const char *text;
    size_t length;
    const opening *open; /* innermost unclosed bracket */
    yaml_event_t event;  /* the current one */
    bool has_event;
    const dt_text_mark *start;
    dt_arena *arena;
    dt_error *err;
} builder;

static dt_text_mark mark_of(const builder *b, const yaml_mark_t *at)
{
    dt_text_mark mark = {b->start->source, (int)at->line + 1, (int)at->column + 1};

    return b->start->line > 0 ? mark : *b->start;
}

/* Records the message at a place of the text. */
static dt_status refuse_at(builder *b, const yaml_mark_t *at, const char *message)
{
    dt_text_mark mark = mark_of(b, at);

    DT_FAIL(b->err, DT_ERR_RECIPE, "%s", message);
    dt_text_mark_prefix(b->err, &mark);
    return DT_ERR_RECIPE;
}

/* Returns the text from a mark on; libyaml counts characters. */
static const char *text_at(const builder *b, const yaml_mark_t *at)
{
    const char *text = b->text, *end = b->text + b->length;

    for (size_t i = 0; i < at->index && text < end; i++)
        do
            text++;
        while (text < end && ((unsigned char)*text & 0xc0) == 0x80);
    return text;
}

/* Returns whether only blanks and comments follow. */
static bool is_end(const char *text)
{
    for (; *text != '\0'; text += *text == '\n') {
        text += strspn(text, " \t\r");
        if (*text == '#')
            text += strcspn(text, "\n");
        if (*text != '\n' && *text != '\0')
            return false;
    }
    return true;
}

/* Refuses a character that looks like a space, in the line of `at` or the one above, outside of comments. */
static bool refuse_unseen(builder *b, const yaml_mark_t *at, const char *problem)
{
    dt_text_mark mark = {b->start->source, 1, 1};
    const char *line = b->text;

    while (line != NULL && mark.line <= (int)at->line + 1) {
        const char *comment = strstr(line, " #"), *end = line + strcspn(line, "\n");
        dt_text_mark found = mark;
        uint32_t code;

        if (line[0] == '#')
            comment = line;
        if (mark.line >= (int)at->line &&
            dt_text_find_unseen(&code, line,
                                (size_t)((comment != NULL && comment < end ? comment : end) - line),
                                &found) != NULL) {
            dt_strbuf text;

            dt_strbuf_init(&text);
            dt_strbuf_add_str(&text, "not YAML: ");
            dt_text_unseen_name(&text, code);
            dt_strbuf_add_fmt(
                &text, ", which YAML does not treat as a space (%s): type a plain space", problem);
            DT_FAIL(b->err, DT_ERR_RECIPE, "%s", text.data);
            dt_text_mark_prefix(b->err, b->start->line > 0 ? &found : b->start);
            dt_strbuf_release(&text);
            return true;
        }
        line = *end == '\n' ? end + 1 : NULL;
        mark.line++;
    }
    return false;
}

/* Refuses a line that is neither a key nor the rest of a value. */
static dt_status refuse_key(builder *b, const yaml_mark_t *at)
{
    const char *text = text_at(b, at);
    dt_strbuf message;

    dt_strbuf_init(&message);
    dt_strbuf_add_str(&message, "not YAML: ");
    if (!dt_yaml_missing_blank(&message, text, strcspn(text, "\r\n")))
        dt_strbuf_add_str(&message, "neither a key nor the rest of a value (a key is followed by a "
                                    "colon and a blank, as in 'seed: 1')");
    refuse_at(b, at, message.data);
    dt_strbuf_release(&message);
    return DT_ERR_RECIPE;
}

static dt_status refuse_yaml(builder *b)
{
    const yaml_parser_t *parser = &b->parser;
    const yaml_mark_t *at = &parser->problem_mark;
    const char *context = parser->context != NULL ? parser->context : "";
    const char *problem = parser->problem != NULL ? parser->problem : "unknown problem";
    dt_yaml_fault fault = {b->text, problem, context, at->line, at->column};
    dt_yaml_remedy remedy;
    yaml_mark_t place = *at;
    char message[256];
    const opening *open = b->open;

    if (parser->error == YAML_MEMORY_ERROR)
        return DT_FAIL(b->err, DT_ERR_NOMEM, "no memory to read '%s'", b->start->source);
    if (strstr(context, "quoted scalar") != NULL && is_end(text_at(b, at)))
        return refuse_at(b, &parser->context_mark, "this quote is not closed");
    if (open != NULL && is_end(text_at(b, at))) {
        snprintf(message, sizeof(message), "this '%c' is not closed: a '%c' is missing",
                 open->bracket, open->bracket == '[' ? ']' : '}');
        return refuse_at(b, &open->at, message);
    }
    if (strstr(context, "alias") != NULL || strstr(context, "anchor") != NULL)
        return refuse_at(b, at, "a plain text cannot begin with '*' or '&': put it in quotes");
    if (refuse_unseen(b, at, problem))
        return DT_ERR_RECIPE;
    if (strstr(context, "simple key") != NULL)
        return refuse_key(b, &parser->context_mark);
    if (open != NULL && open->at.line != at->line && b->start->line > 0) {
        snprintf(message, sizeof(message),
                 "not YAML: %s%s%s (is the '%c' of line %zu, column %zu, closed?)", problem,
                 context[0] != '\0' ? " " : "", context, open->bracket, open->at.line + 1,
                 open->at.column + 1);
        return refuse_at(b, at, message);
    }
    dt_yaml_remedy_find(&remedy, &fault);
    place.line = remedy.line;
    place.column = remedy.column;
    refuse_at(b, &place, remedy.message.data);
    dt_strbuf_release(&remedy.message);
    return DT_ERR_RECIPE;
}

static dt_status advance(builder *b)
{
    if (b->has_event)
        yaml_event_delete(&b->event);
    b->has_event = yaml_parser_parse(&b->parser, &b->event) != 0;
    return b->has_event ? DT_OK : refuse_yaml(b);
}

static dt_yaml_node *new_node(builder *b, dt_yaml_kind kind)
{
    dt_yaml_node *node = dt_arena_alloc(b->arena, sizeof(*node));

    node->kind = kind;
    node->mark = mark_of(b, &b->event.start_mark);
    return node;
}

static dt_status check_plain_yaml(builder *b, const yaml_char_t *anchor, const yaml_char_t *tag)
{
    if (anchor != NULL)
        return refuse_at(b, &b->event.start_mark,
                         "anchors are not supported in a recipe: write the value out");
    if (tag != NULL)
        return refuse_at(
            b, &b->event.start_mark,
            "tags are not supported in a recipe: remove the word that begins with '!'");
    return DT_OK;
}

/* Refuses plain text that begins or ends with a character that looks like a space; inside a value such a
 * character may be intended, as in the name of a file. */
static dt_status check_ends(builder *b, const char *text, size_t length)
{
    dt_text_mark mark = mark_of(b, &b->event.start_mark), nowhere = {0};
    size_t last = length;
    uint32_t code;
    dt_strbuf shown;

    while (last > 0 && ((unsigned char)text[--last] & 0xc0) == 0x80)
        ;
    if (dt_text_find_unseen(&code, text, length, &nowhere) != text &&
        dt_text_find_unseen(&code, text + last, length - last, &nowhere) == NULL)
        return DT_OK;
    dt_strbuf_init(&shown);
    dt_text_unseen_name(&shown, code);
    DT_FAIL(b->err, DT_ERR_RECIPE,
            "%s at an end of this text, which YAML does not treat as a space: type a plain space "
            "(or put the "
            "text in quotes)",
            shown.data);
    dt_text_mark_prefix(b->err, &mark);
    dt_strbuf_release(&shown);
    return DT_ERR_RECIPE;
}

static dt_status read_scalar(dt_yaml_node **out, builder *b)
{
    dt_status st = DT_OK;
    const char *text = (const char *)b->event.data.scalar.value;
    size_t length = b->event.data.scalar.length;
    dt_yaml_node *node;

    DT_TRY(check_plain_yaml(b, b->event.data.scalar.anchor, b->event.data.scalar.tag));
    if (memchr(text, '\0', length) != NULL)
        return refuse_at(b, &b->event.start_mark, "a text with a zero byte in it");
    if (b->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE)
        DT_TRY(check_ends(b, text, length));
    node = new_node(b, DT_YAML_SCALAR);
    node->plain = b->event.data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    node->text = dt_arena_strndup(b->arena, text, length);
    *out = node;
out:
    return st;
}

static dt_status read_node(dt_yaml_node **out, builder *b, int depth);

/* Reads the children of a list or a map, up to its end event, which stays current. */
static dt_status read_children(dt_yaml_node *parent, builder *b, int depth)
{
    bool map = parent->kind == DT_YAML_MAP;
    opening here = {b->event.start_mark, map ? '{' : '[', b->open};
    bool flow = map ? b->event.data.mapping_start.style == YAML_FLOW_MAPPING_STYLE
                    : b->event.data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
    yaml_event_type_t end = map ? YAML_MAPPING_END_EVENT : YAML_SEQUENCE_END_EVENT;
    dt_yaml_node **last = &parent->first;
    dt_status st = DT_OK;

    if (depth == DEPTH_MAX)
        return refuse_at(b, &b->event.start_mark, "nested too deeply for a recipe");
    if (flow)
        b->open = &here;
    for (;;) {
        dt_yaml_node *key = NULL, *child;

        DT_TRY(advance(b));
        if (b->event.type == end)
            break;
        if (map) {
            if (b->event.type != YAML_SCALAR_EVENT && b->event.type != YAML_ALIAS_EVENT)
                DT_TRY(refuse_at(b, &b->event.start_mark, "a key must be plain text"));
            DT_TRY(read_node(&key, b, depth));
            DT_TRY(advance(b));
        }
        DT_TRY(read_node(&child, b, depth));
        child->key = key;
        *last = child;
        last = &child->next;
    }
out:
    b->open = here.outer;
    return st;
}

/* Reads the node that begins with the current event. */
static dt_status read_node(dt_yaml_node **out, builder *b, int depth)
{
    dt_status st = DT_OK;
    dt_yaml_node *node;

    switch (b->event.type) {
    case YAML_SCALAR_EVENT:
        return read_scalar(out, b);
    case YAML_ALIAS_EVENT:
        return refuse_at(b, &b->event.start_mark,
                         "aliases are not supported in a recipe: write the value out (a text that "
                         "begins with '*' needs quotes)");
    case YAML_SEQUENCE_START_EVENT:
        DT_TRY(check_plain_yaml(b, b->event.data.sequence_start.anchor,
                                b->event.data.sequence_start.tag));
        node = new_node(b, DT_YAML_LIST);
        break;
    default:
        DT_ASSERT(b->event.type == YAML_MAPPING_START_EVENT);
        DT_TRY(check_plain_yaml(b, b->event.data.mapping_start.anchor,
                                b->event.data.mapping_start.tag));
        node = new_node(b, DT_YAML_MAP);
    }
    DT_TRY(read_children(node, b, depth + 1));
    *out = node;
out:
    return st;
}

/* Reads the start of the stream, at most one document, and the end of the stream. */
static dt_status read_stream(dt_yaml_node **out, builder *b)
{
    dt_status st = DT_OK;

    DT_TRY(advance(b)); /* stream start */
    DT_TRY(advance(b));
    if (b->event.type == YAML_STREAM_END_EVENT)
        goto out;
    DT_TRY(advance(b)); /* past the document's start */
    DT_TRY(read_node(out, b, 0));
    DT_TRY(advance(b)); /* the document's end */
    DT_TRY(advance(b));
    if (b->event.type != YAML_STREAM_END_EVENT)
        DT_TRY(refuse_at(b, &b->event.start_mark, "a second document: a recipe has only one"));
out:
    return st;
}

dt_status dt_tree_parse(dt_yaml_node **out, const char *text, const dt_text_mark *start,
                        dt_arena *arena, dt_error *err)
{
    builder b = {.start = start, .arena = arena, .err = err};
    bool marked = strncmp(text, BYTE_ORDER_MARK, strlen(BYTE_ORDER_MARK)) == 0;
    size_t length;
    dt_status st = DT_OK;

    *out = NULL;
    text += marked ? strlen(BYTE_ORDER_MARK) : 0;
    length = strlen(text);
    b.text = text;
    b.length = length;
    DT_TRY(dt_text_check(text, length, start, err));
    if (yaml_parser_initialize(&b.parser) == 0)
        DT_THROW(err, DT_ERR_NOMEM, "no memory to read '%s'", start->source);
    yaml_parser_set_encoding(&b.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b.parser, (const unsigned char *)text, length);
    st = read_stream(out, &b);
    if (b.has_event)
        yaml_event_delete(&b.event);
    yaml_parser_delete(&b.parser);
out:
    return st;
}

dt_yaml_node *dt_tree_scalar(const char *text, const dt_text_mark *mark, dt_arena *arena)
{
    dt_yaml_node *node = dt_arena_alloc(arena, sizeof(*node));

    *node = (dt_yaml_node){.kind = DT_YAML_SCALAR, .mark = *mark, .text = text, .plain = true};
    return node;
}

bool dt_yaml_node_is_null(const dt_yaml_node *node)
{
    return node->kind == DT_YAML_SCALAR && node->plain &&
           (node->text[0] == '\0' || strcmp(node->text, "~") == 0 ||
            strcmp(node->text, "null") == 0);
}

const char *dt_yaml_kind_name(const dt_yaml_node *node)
{
    switch (node->kind) {
    case DT_YAML_LIST:
        return "a list";
    case DT_YAML_MAP:
        return "a map";
    case DT_YAML_SCALAR:
        break;
    }
    return "text";
}

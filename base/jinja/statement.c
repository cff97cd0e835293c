/* statement: parses a template: text, and tags. */
#include <stdlib.h>
#include <string.h>

#include "base/display.h"
#include "base/jinja/jinja_int.h"

enum { NESTED_MOST = 400 };

static dt_status parse_body(dt_jinja_nodes *out, dt_jinja_parser *p, const char *const *ends);

static dt_status end_tag(dt_jinja_parser *p)
{
    if (p->token->kind != DT_TOKEN_BLOCK_END)
        return dt_parse_expected(p, "the end of the tag");
    p->token++;
    return DT_OK;
}

/* Parses the rest of a tag and the statements after it, up to a tag whose word is in `ends`, which becomes the current
 * token. */
static dt_status parse_block(dt_jinja_nodes *out, dt_jinja_parser *p, const char *const *ends)
{
    dt_status st = DT_OK;

    (void)dt_parse_skip_operator(p, ":");
    DT_TRY(end_tag(p));
    DT_TRY(parse_body(out, p, ends));
out:
    return st;
}

/* The same for a block with one end, which is skipped. */
static dt_status parse_whole(dt_jinja_nodes *out, dt_jinja_parser *p, const char *end)
{
    const char *const ends[] = {end, NULL};
    dt_status st = DT_OK;

    DT_TRY(parse_block(out, p, ends));
    p->token++;
out:
    return st;
}

/* The body of a macro or a caller: loops and ifs around it do not count. */
static dt_status parse_function(dt_jinja_node *node, dt_jinja_parser *p, const char *end,
                                bool is_macro)
{
    dt_jinja_node *macro = p->macro;
    int loops = p->loops;
    dt_status st = DT_OK;

    p->loops = 0;
    p->macro = is_macro ? node : macro;
    DT_TRY(parse_whole(&node->body, p, end));
    p->loops = loops;
    p->macro = macro;
out:
    return st;
}

static dt_status parse_for(dt_jinja_node *node, dt_jinja_parser *p)
{
    static const char *const ends[] = {"endfor", "else", NULL};
    dt_status st = DT_OK;

    DT_TRY(dt_parse_target(&node->a, p, false));
    if (!dt_parse_skip_word(p, "in"))
        return dt_parse_expected(p, "'in'");
    DT_TRY(dt_parse_tuple(&node->b, p, false, "recursive"));
    if (dt_parse_skip_word(p, "if"))
        DT_TRY(dt_parse_expression(&node->c, p));
    node->flag = dt_parse_skip_word(p, "recursive");
    p->loops++;
    DT_TRY(parse_block(&node->body, p, ends));
    p->loops--;
    if (dt_parse_skip_word(p, "else"))
        DT_TRY(parse_whole(&node->others, p, "endfor"));
    else
        p->token++;
out:
    return st;
}

/* "elif" becomes an "if" in the other branch. */
static dt_status parse_if(dt_jinja_node *node, dt_jinja_parser *p)
{
    static const char *const ends[] = {"elif", "else", "endif", NULL};
    dt_status st = DT_OK;
    dt_jinja_node *first = node;

    p->branches++;
    for (;;) {
        DT_TRY(dt_parse_tuple(&node->a, p, false, NULL));
        DT_TRY(parse_block(&node->body, p, ends));
        if (!dt_parse_skip_word(p, "elif"))
            break;
        first = dt_parse_node(p, DT_NODE_IF);
        dt_parse_add(p, &node->others, first);
        node = first;
    }
    if (dt_parse_skip_word(p, "else"))
        DT_TRY(parse_whole(&node->others, p, "endif"));
    else
        p->token++;
    p->branches--;
out:
    return st;
}

static dt_status parse_set(dt_jinja_node *node, dt_jinja_parser *p)
{
    dt_status st = DT_OK;

    DT_TRY(dt_parse_target(&node->a, p, true));
    if (dt_parse_skip_operator(p, "="))
        return dt_parse_tuple(&node->b, p, true, NULL);
    node->kind = DT_NODE_SET_BLOCK;
    DT_TRY(dt_parse_filters(&node->b, p, NULL, false));
    DT_TRY(parse_whole(&node->body, p, "endset"));
out:
    return st;
}

static dt_status parse_with(dt_jinja_node *node, dt_jinja_parser *p)
{
    dt_jinja_node *item;
    dt_status st = DT_OK;

    while (p->token->kind != DT_TOKEN_BLOCK_END) {
        if (node->items.count > 0 && !dt_parse_skip_operator(p, ","))
            return dt_parse_expected(p, "','");
        item = dt_parse_node(p, DT_NODE_NAME);
        DT_TRY(dt_parse_name(&item->name, p));
        dt_parse_add(p, &node->items, item);
        if (!dt_parse_skip_operator(p, "="))
            return dt_parse_expected(p, "'='");
        DT_TRY(dt_parse_expression(&item, p));
        dt_parse_add(p, &node->items, item);
    }
    DT_TRY(parse_whole(&node->body, p, "endwith"));
out:
    return st;
}

/* Parses "(a, b=1)". */
static dt_status parse_signature(dt_jinja_node *node, dt_jinja_parser *p)
{
    dt_jinja_arguments *params = node->arguments;
    dt_jinja_node *value;
    dt_status st = DT_OK;
    dt_jinja_name name;

    if (!dt_parse_skip_operator(p, "("))
        return dt_parse_expected(p, "'('");
    while (!dt_parse_is_operator(p, ")")) {
        if (params->keyword_count > 0 && !dt_parse_skip_operator(p, ","))
            return dt_parse_expected(p, "','");
        DT_TRY(dt_parse_name(&name, p));
        value = NULL;
        if (dt_parse_skip_operator(p, "="))
            DT_TRY(dt_parse_expression(&value, p));
        else if (params->keyword_count > 0 &&
                 params->keywords[params->keyword_count - 1].value != NULL)
            return dt_parse_fail(p, "non-default argument follows default argument");
        dt_parse_add_keyword(p, params, name, value);
    }
    p->token++;
out:
    return st;
}

static dt_status parse_macro(dt_jinja_node *node, dt_jinja_parser *p)
{
    dt_status st = DT_OK;

    DT_TRY(dt_parse_name(&node->name, p));
    DT_TRY(parse_signature(node, p));
    DT_TRY(parse_function(node, p, "endmacro", true));
out:
    return st;
}

static dt_status parse_call_block(dt_jinja_node *node, dt_jinja_parser *p)
{
    dt_status st = DT_OK;

    if (dt_parse_is_operator(p, "("))
        DT_TRY(parse_signature(node, p));
    DT_TRY(dt_parse_expression(&node->a, p));
    if (node->a->kind != DT_NODE_CALL)
        return dt_parse_fail(p, "expected call");
    DT_TRY(parse_function(node, p, "endcall", true));
out:
    return st;
}

static dt_status parse_filter_block(dt_jinja_node *node, dt_jinja_parser *p)
{
    dt_status st = DT_OK;

    DT_TRY(dt_parse_filters(&node->a, p, NULL, true));
    DT_TRY(parse_whole(&node->body, p, "endfilter"));
out:
    return st;
}

static dt_status parse_generation(dt_jinja_node *node, dt_jinja_parser *p)
{
    p->jinja->generates = true;
    return parse_function(node, p, "endgeneration", false);
}

static dt_status parse_print(dt_jinja_node *node, dt_jinja_parser *p)
{
    dt_jinja_node *item;
    dt_status st = DT_OK;

    while (p->token->kind != DT_TOKEN_BLOCK_END) {
        if (node->items.count > 0 && !dt_parse_skip_operator(p, ","))
            return dt_parse_expected(p, "','");
        DT_TRY(dt_parse_expression(&item, p));
        dt_parse_add(p, &node->items, item);
    }
out:
    return st;
}

static dt_status parse_jump(dt_jinja_node *node, dt_jinja_parser *p)
{
    (void)node;
    if (p->loops == 0)
        return dt_parse_fail(p, "'break' or 'continue' outside of a loop");
    return DT_OK;
}

typedef struct tag {
    const char *word;
    dt_jinja_node_kind kind;
    dt_status (*parse)(dt_jinja_node *node, dt_jinja_parser *p); /* NULL: not supported */
} tag;

static const tag tags[] = {
    {"for", DT_NODE_FOR, parse_for},
    {"if", DT_NODE_IF, parse_if},
    {"set", DT_NODE_SET, parse_set},
    {"with", DT_NODE_WITH, parse_with},
    {"macro", DT_NODE_MACRO, parse_macro},
    {"call", DT_NODE_CALL_BLOCK, parse_call_block},
    {"filter", DT_NODE_FILTER_BLOCK, parse_filter_block},
    {"generation", DT_NODE_GENERATION, parse_generation},
    {"print", DT_NODE_PRINT, parse_print},
    {"break", DT_NODE_BREAK, parse_jump},
    {"continue", DT_NODE_CONTINUE, parse_jump},
    {"extends", DT_NODE_DATA, NULL},
    {"include", DT_NODE_DATA, NULL},
    {"import", DT_NODE_DATA, NULL},
    {"from", DT_NODE_DATA, NULL},
    {"block", DT_NODE_DATA, NULL},
    {"autoescape", DT_NODE_DATA, NULL},
};

static dt_status parse_statement(dt_jinja_nodes *out, dt_jinja_parser *p)
{
    dt_status st = DT_OK;
    dt_jinja_node *node;

    if (p->token->kind != DT_TOKEN_NAME)
        return dt_parse_expected(p, "a tag");
    for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
        if (!dt_parse_is_word(p, tags[i].word))
            continue;
        if (tags[i].parse == NULL)
            return dt_parse_fail(p, "unsupported tag '%s'", tags[i].word);
        node = dt_parse_node(p, tags[i].kind);
        node->arguments = dt_arena_alloc(&p->jinja->arena, sizeof(*node->arguments));
        p->token++;
        DT_TRY(tags[i].parse(node, p));
        DT_TRY(end_tag(p));
        dt_parse_add(p, out, node);
        return DT_OK;
    }
    st = dt_parse_fail(p, "Encountered unknown tag '%.*s'.",
                       p->token->length < 40 ? (int)p->token->length : 40, p->token->data);
out:
    return st;
}

static bool is_end(const dt_jinja_parser *p, const char *const *ends)
{
    for (; ends != NULL && *ends != NULL; ends++)
        if (dt_parse_is_word(p, *ends))
            return true;
    return false;
}

static dt_status parse_body(dt_jinja_nodes *out, dt_jinja_parser *p, const char *const *ends)
{
    dt_status st = DT_OK;
    dt_jinja_node *node;

    DT_TRY(dt_parse_deepen(p));
    while (p->token->kind != DT_TOKEN_END) {
        if (p->token->kind == DT_TOKEN_DATA) {
            node = dt_parse_node(p, DT_NODE_DATA);
            node->value = dt_jinja_string(dt_parse_literal(p));
            dt_parse_add(p, out, node);
        } else if (p->token->kind == DT_TOKEN_PRINT_BEGIN) {
            dt_jinja_node *item;

            node = dt_parse_node(p, DT_NODE_PRINT);
            p->token++;
            DT_TRY(dt_parse_tuple(&item, p, true, NULL));
            if (p->token->kind != DT_TOKEN_PRINT_END)
                return dt_parse_expected(p, "'}}'");
            p->token++;
            dt_parse_add(p, &node->items, item);
            dt_parse_add(p, out, node);
        } else {
            p->token++; /* DT_TOKEN_BLOCK_BEGIN */
            if (is_end(p, ends)) {
                p->depth++;
                return DT_OK;
            }
            DT_TRY(parse_statement(out, p));
        }
    }
    if (ends != NULL) {
        char what[32];

        snprintf(what, sizeof(what), "'%s'", ends[0]);
        return dt_parse_expected(p, what);
    }
    p->depth++;
out:
    return st;
}

/* --- templates */

dt_status dt_jinja_parse(dt_jinja **out, const char *text, size_t length, const char *name,
                         dt_error *err)
{
    dt_jinja *jinja = dt_calloc(1, sizeof(*jinja));
    dt_jinja_parser p = {.jinja = jinja, .depth = NESTED_MOST, .err = err};
    dt_jinja_tokens tokens = {.count = 0};
    size_t valid = dt_utf8_valid_length(text, length);
    dt_status st = DT_OK;

    *out = NULL;
    dt_arena_init(&jinja->arena, 0);
    jinja->name = dt_arena_strdup(&jinja->arena, name);
    if (length > DT_JINJA_MAX_BYTES)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "'%s': a template of more than %zu MB", name,
                 DT_JINJA_MAX_BYTES >> 20);
    if (valid < length)
        DT_THROW(err, DT_ERR_UNSUPPORTED, "'%s': byte %zu is not UTF-8", name, valid);
    DT_TRY(dt_jinja_lex(&tokens, text, length, jinja->name, &jinja->arena, err));
    p.token = tokens.items;
    DT_TRY(parse_body(&jinja->body, &p, NULL));
    *out = jinja;
    jinja = NULL;
out:
    dt_jinja_free(jinja);
    return st;
}

void dt_jinja_free(dt_jinja *jinja)
{
    if (jinja == NULL)
        return;
    dt_arena_release(&jinja->arena);
    free(jinja);
}

bool dt_jinja_has_generation(const dt_jinja *jinja)
{
    return jinja->generates;
}

bool dt_jinja_names(const dt_jinja *jinja, const char *name)
{
    for (int64_t i = 0; i < jinja->name_count; i++)
        if (dt_text_is(jinja->names[i], name))
            return true;
    for (int64_t i = 0; i < jinja->literal_count; i++)
        if (dt_text_is(jinja->literals[i], name))
            return true;
    return false;
}

bool dt_jinja_contains(const dt_jinja *jinja, const char *part)
{
    for (int64_t i = 0; i < jinja->literal_count; i++)
        if (memmem(jinja->literals[i]->data, jinja->literals[i]->length, part, strlen(part)) !=
            NULL)
            return true;
    return false;
}

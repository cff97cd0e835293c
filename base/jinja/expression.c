/* expression: parses expressions, with Jinja's precedence: if, or, and, not, comparisons, + -, ~, * / // %, **, signs,
 * filters and tests. */
#include <string.h>

#include "base/jinja/jinja_int.h"

/* --- tokens */

dt_status dt_parse_fail(const dt_jinja_parser *p, const char *fmt, ...)
{
    char message[512];
    va_list args;

    va_start(args, fmt);
    vsnprintf(message, sizeof(message), fmt, args);
    va_end(args);
    return DT_FAIL(p->err, DT_ERR_UNSUPPORTED, "'%s', line %d: %s", p->jinja->name, p->token->line,
                   message);
}

dt_status dt_parse_expected(const dt_jinja_parser *p, const char *what)
{
    const dt_jinja_token *t = p->token;

    switch (t->kind) {
    case DT_TOKEN_END:
        return dt_parse_fail(p, "expected %s, got the end of the template", what);
    case DT_TOKEN_BLOCK_END:
    case DT_TOKEN_PRINT_END:
        return dt_parse_fail(p, "expected %s, got the end of the tag", what);
    default:
        return dt_parse_fail(p, "expected %s, got '%.*s'", what,
                             t->length < 40 ? (int)t->length : 40, t->data);
    }
}

static bool is_token(const dt_jinja_token *t, dt_jinja_token_kind kind, const char *data)
{
    return t->kind == kind && strlen(data) == t->length && memcmp(t->data, data, t->length) == 0;
}

bool dt_parse_is_word(const dt_jinja_parser *p, const char *word)
{
    return is_token(p->token, DT_TOKEN_NAME, word);
}

bool dt_parse_is_operator(const dt_jinja_parser *p, const char *sign)
{
    return is_token(p->token, DT_TOKEN_OPERATOR, sign);
}

bool dt_parse_skip_word(dt_jinja_parser *p, const char *word)
{
    bool is = dt_parse_is_word(p, word);

    p->token += is;
    return is;
}

bool dt_parse_skip_operator(dt_jinja_parser *p, const char *sign)
{
    bool is = dt_parse_is_operator(p, sign);

    p->token += is;
    return is;
}

static dt_status expect_operator(dt_jinja_parser *p, const char *sign)
{
    char what[8];

    snprintf(what, sizeof(what), "'%s'", sign);
    return dt_parse_skip_operator(p, sign) ? DT_OK : dt_parse_expected(p, what);
}

dt_status dt_parse_name(dt_jinja_name *out, dt_jinja_parser *p)
{
    if (p->token->kind != DT_TOKEN_NAME)
        return dt_parse_expected(p, "a name");
    *out = dt_jinja_intern(p->jinja, p->token->data, p->token->length, true);
    p->token++;
    return DT_OK;
}

dt_status dt_parse_deepen(dt_jinja_parser *p)
{
    if (p->depth == 0)
        return dt_parse_fail(p, "the template is nested too deeply");
    p->depth--;
    return DT_OK;
}

/* --- nodes */

dt_jinja_node *dt_parse_node(dt_jinja_parser *p, dt_jinja_node_kind kind)
{
    dt_jinja_node *node = dt_arena_alloc(&p->jinja->arena, sizeof(*node));

    node->kind = kind;
    node->line = p->token->line;
    return node;
}

void dt_parse_add(dt_jinja_parser *p, dt_jinja_nodes *nodes, dt_jinja_node *node)
{
    nodes->items = dt_arena_array_room(&p->jinja->arena, nodes->items, nodes->count + 1,
                                       &nodes->capacity, sizeof(dt_jinja_node *));
    nodes->items[nodes->count++] = node;
}

void dt_parse_add_keyword(dt_jinja_parser *p, dt_jinja_arguments *to, dt_jinja_name name,
                          dt_jinja_node *value)
{
    to->keywords = dt_arena_array_room(&p->jinja->arena, to->keywords, to->keyword_count + 1,
                                       &to->keyword_capacity, sizeof(*to->keywords));
    to->keywords[to->keyword_count++] = (dt_jinja_keyword){name, value};
}

const dt_jinja_text *dt_parse_literal(dt_jinja_parser *p)
{
    dt_jinja *jinja = p->jinja;
    const dt_jinja_text *text =
        dt_jinja_new_text(&jinja->arena, p->token->data, p->token->length, DT_JINJA_TEMPLATE);

    jinja->literals = dt_arena_array_room(&jinja->arena, jinja->literals, jinja->literal_count + 1,
                                          &jinja->literal_capacity, sizeof(dt_jinja_text *));
    jinja->literals[jinja->literal_count++] = text;
    p->token++;
    return text;
}

static dt_jinja_node *constant(dt_jinja_parser *p, dt_jinja_value value)
{
    dt_jinja_node *node = dt_parse_node(p, DT_NODE_CONSTANT);

    node->value = value;
    return node;
}

static dt_jinja_node *binary(dt_jinja_parser *p, dt_jinja_node_kind kind, dt_jinja_node *a,
                             dt_jinja_node *b)
{
    dt_jinja_node *node = dt_parse_node(p, kind);

    node->line = a->line;
    node->a = a;
    node->b = b;
    return node;
}

/* --- primaries */

/* Parses items up to a closing bracket; keys and values in turn for a dict. */
static dt_status parse_items(dt_jinja_node **out, dt_jinja_parser *p, dt_jinja_node_kind kind,
                             const char *close)
{
    dt_jinja_node *node = dt_parse_node(p, kind), *item;
    dt_status st = DT_OK;

    p->token++;
    while (!dt_parse_is_operator(p, close)) {
        if (node->items.count > 0)
            DT_TRY(expect_operator(p, ","));
        if (dt_parse_is_operator(p, close))
            break;
        DT_TRY(dt_parse_expression(&item, p));
        dt_parse_add(p, &node->items, item);
        if (kind != DT_NODE_DICT)
            continue;
        DT_TRY(expect_operator(p, ":"));
        DT_TRY(dt_parse_expression(&item, p));
        dt_parse_add(p, &node->items, item);
    }
    p->token++;
    *out = node;
out:
    return st;
}

static dt_status parse_name(dt_jinja_node **out, dt_jinja_parser *p)
{
    dt_status st = DT_OK;
    dt_jinja_node *node;

    if (dt_parse_is_word(p, "true") || dt_parse_is_word(p, "True") ||
        dt_parse_is_word(p, "false") || dt_parse_is_word(p, "False"))
        *out =
            constant(p, dt_jinja_from_bool(p->token->data[0] == 't' || p->token->data[0] == 'T'));
    else if (dt_parse_is_word(p, "none") || dt_parse_is_word(p, "None"))
        *out = constant(p, dt_jinja_none());
    else {
        node = dt_parse_node(p, DT_NODE_NAME);
        if (p->macro != NULL) {
            p->macro->takes_rest = p->macro->takes_rest || dt_parse_is_word(p, "varargs");
            p->macro->takes_keywords = p->macro->takes_keywords || dt_parse_is_word(p, "kwargs");
            p->macro->takes_caller = p->macro->takes_caller || dt_parse_is_word(p, "caller");
        }
        DT_TRY(dt_parse_name(&node->name, p));
        *out = node;
        return DT_OK;
    }
    p->token++;
out:
    return st;
}

/* Neighbouring strings are one. */
static void parse_string(dt_jinja_node **out, dt_jinja_parser *p)
{
    dt_jinja_node *node = dt_parse_node(p, DT_NODE_CONSTANT);
    const dt_jinja_text *text = dt_parse_literal(p);

    while (p->token->kind == DT_TOKEN_STRING) {
        const dt_jinja_text *more = dt_parse_literal(p);
        char *both = dt_arena_alloc(&p->jinja->arena, (size_t)text->length + more->length + 1);

        memcpy(both, text->data, text->length);
        memcpy(both + text->length, more->data, more->length);
        text = dt_jinja_new_text(&p->jinja->arena, both, (size_t)text->length + more->length,
                                 DT_JINJA_TEMPLATE);
    }
    node->value = dt_jinja_string(text);
    *out = node;
}

static dt_status parse_brackets(dt_jinja_node **out, dt_jinja_parser *p)
{
    dt_jinja_node *node = dt_parse_node(p, DT_NODE_TUPLE);
    dt_status st = DT_OK;

    p->token++;
    if (dt_parse_skip_operator(p, ")")) {
        *out = node;
        return DT_OK;
    }
    DT_TRY(dt_parse_tuple(out, p, true, NULL));
    DT_TRY(expect_operator(p, ")"));
out:
    return st;
}

static dt_status parse_primary(dt_jinja_node **out, dt_jinja_parser *p)
{
    switch (p->token->kind) {
    case DT_TOKEN_NAME:
        return parse_name(out, p);
    case DT_TOKEN_STRING:
        parse_string(out, p);
        return DT_OK;
    case DT_TOKEN_INTEGER:
        *out = constant(p, dt_jinja_integer(p->token->integer));
        break;
    case DT_TOKEN_FLOAT:
        *out = constant(p, dt_jinja_real(p->token->real));
        break;
    default:
        if (dt_parse_is_operator(p, "("))
            return parse_brackets(out, p);
        if (dt_parse_is_operator(p, "["))
            return parse_items(out, p, DT_NODE_LIST, "]");
        if (dt_parse_is_operator(p, "{"))
            return parse_items(out, p, DT_NODE_DICT, "}");
        return dt_parse_expected(p, "an expression");
    }
    p->token++;
    return DT_OK;
}

/* --- what follows a primary */

static dt_status parse_arguments(dt_jinja_arguments **out, dt_jinja_parser *p)
{
    dt_jinja_arguments *made = dt_arena_alloc(&p->jinja->arena, sizeof(*made));
    dt_jinja_node *value;
    dt_jinja_name name;
    dt_status st = DT_OK;
    bool first = true;

    DT_TRY(expect_operator(p, "("));
    for (; !dt_parse_is_operator(p, ")"); first = false) {
        if (!first)
            DT_TRY(expect_operator(p, ","));
        if (dt_parse_is_operator(p, ")"))
            break;
        if (made->dict != NULL || (made->list != NULL && !dt_parse_is_operator(p, "**") &&
                                   p->token[1].kind != DT_TOKEN_OPERATOR))
            return dt_parse_fail(p, "invalid syntax for function call expression");
        if (dt_parse_skip_operator(p, "*")) {
            DT_TRY(dt_parse_expression(&made->list, p));
        } else if (dt_parse_skip_operator(p, "**")) {
            DT_TRY(dt_parse_expression(&made->dict, p));
        } else if (p->token->kind == DT_TOKEN_NAME &&
                   is_token(p->token + 1, DT_TOKEN_OPERATOR, "=")) {
            DT_TRY(dt_parse_name(&name, p));
            p->token++;
            DT_TRY(dt_parse_expression(&value, p));
            dt_parse_add_keyword(p, made, name, value);
        } else {
            if (made->keyword_count > 0 || made->list != NULL)
                return dt_parse_fail(p, "invalid syntax for function call expression");
            DT_TRY(dt_parse_expression(&value, p));
            dt_parse_add(p, &made->positional, value);
        }
    }
    p->token++;
    *out = made;
out:
    return st;
}

/* Parses what is in "[...]": an expression, or a slice. */
static dt_status parse_subscript(dt_jinja_node **out, dt_jinja_parser *p, dt_jinja_node *of)
{
    dt_jinja_node *node = dt_parse_node(p, DT_NODE_ITEM),
                  **bounds[] = {&node->b, &node->c, &node->d};
    dt_status st = DT_OK;

    p->token++;
    node->a = of;
    if (!dt_parse_is_operator(p, ":"))
        DT_TRY(dt_parse_expression(&node->b, p));
    for (int i = 1; i < 3 && dt_parse_skip_operator(p, ":"); i++) {
        node->kind = DT_NODE_SLICE;
        if (!dt_parse_is_operator(p, ":") && !dt_parse_is_operator(p, "]"))
            DT_TRY(dt_parse_expression(bounds[i], p));
    }
    DT_TRY(expect_operator(p, "]"));
    *out = node;
out:
    return st;
}

static dt_status parse_dot(dt_jinja_node **out, dt_jinja_parser *p, dt_jinja_node *of)
{
    dt_jinja_node *node = dt_parse_node(p, DT_NODE_ATTRIBUTE);
    dt_status st = DT_OK;

    p->token++;
    node->a = of;
    if (p->token->kind == DT_TOKEN_INTEGER) {
        node->kind = DT_NODE_ITEM;
        node->b = constant(p, dt_jinja_integer(p->token->integer));
        p->token++;
    } else {
        DT_TRY(dt_parse_name(&node->name, p));
    }
    *out = node;
out:
    return st;
}

static dt_status parse_call(dt_jinja_node **out, dt_jinja_parser *p, dt_jinja_node *of)
{
    dt_jinja_node *node = dt_parse_node(p, DT_NODE_CALL);
    dt_status st = DT_OK;

    node->a = of;
    DT_TRY(parse_arguments(&node->arguments, p));
    *out = node;
out:
    return st;
}

static dt_status parse_postfix(dt_jinja_node **node, dt_jinja_parser *p)
{
    dt_status st = DT_OK;

    for (;;) {
        if (dt_parse_is_operator(p, "."))
            DT_TRY(parse_dot(node, p, *node));
        else if (dt_parse_is_operator(p, "["))
            DT_TRY(parse_subscript(node, p, *node));
        else if (dt_parse_is_operator(p, "("))
            DT_TRY(parse_call(node, p, *node));
        else
            break;
    }
out:
    return st;
}

/* Refuses a filter or a test that is not in the table. One that Jinja does not have either may stand in a branch, as in
 * Jinja, where it fails when it is reached. */
static dt_status check_callee(const dt_jinja_parser *p, const dt_jinja_node *node, const char *what)
{
    int length = node->name->length < 40 ? (int)node->name->length : 40;

    if (node->callee >= 0)
        return DT_OK;
    if (node->kind == DT_NODE_FILTER &&
        dt_jinja_filter_is_known(node->name->data, node->name->length))
        return dt_parse_fail(p, "unsupported filter '%.*s'", length, node->name->data);
    if (p->branches == 0)
        return dt_parse_fail(p, "No %s named '%.*s'.", what, length, node->name->data);
    return DT_OK;
}

dt_status dt_parse_filters(dt_jinja_node **out, dt_jinja_parser *p, dt_jinja_node *value,
                           bool begins)
{
    dt_status st = DT_OK;

    for (*out = value; begins || dt_parse_is_operator(p, "|"); begins = false) {
        dt_jinja_node *node = dt_parse_node(p, DT_NODE_FILTER);

        p->token += !begins;
        node->a = *out;
        DT_TRY(dt_parse_name(&node->name, p));
        node->callee = dt_jinja_filter_find(node->name->data, node->name->length);
        DT_TRY(check_callee(p, node, "filter"));
        if (dt_parse_is_operator(p, "("))
            DT_TRY(parse_arguments(&node->arguments, p));
        *out = node;
    }
out:
    return st;
}

static bool begins_argument(const dt_jinja_parser *p)
{
    switch (p->token->kind) {
    case DT_TOKEN_NAME:
        return !dt_parse_is_word(p, "else") && !dt_parse_is_word(p, "or") &&
               !dt_parse_is_word(p, "and");
    case DT_TOKEN_STRING:
    case DT_TOKEN_INTEGER:
    case DT_TOKEN_FLOAT:
        return true;
    default:
        return dt_parse_is_operator(p, "[") || dt_parse_is_operator(p, "{");
    }
}

/* Parses "is name", "is not name arguments". */
static dt_status parse_test(dt_jinja_node **out, dt_jinja_parser *p, dt_jinja_node *of)
{
    dt_jinja_node *node = dt_parse_node(p, DT_NODE_TEST), *argument;
    dt_status st = DT_OK;
    bool negated;

    p->token++;
    negated = dt_parse_skip_word(p, "not");
    node->a = of;
    DT_TRY(dt_parse_name(&node->name, p));
    node->callee = dt_jinja_test_find(node->name->data, node->name->length);
    DT_TRY(check_callee(p, node, "test"));
    if (dt_parse_is_operator(p, "(")) {
        DT_TRY(parse_arguments(&node->arguments, p));
    } else if (begins_argument(p)) {
        if (dt_parse_is_word(p, "is"))
            return dt_parse_fail(p, "You cannot chain multiple tests with is");
        node->arguments = dt_arena_alloc(&p->jinja->arena, sizeof(*node->arguments));
        DT_TRY(parse_primary(&argument, p));
        DT_TRY(parse_postfix(&argument, p));
        dt_parse_add(p, &node->arguments->positional, argument);
    }
    *out = node;
    if (negated) {
        *out = dt_parse_node(p, DT_NODE_NOT);
        (*out)->a = node;
    }
out:
    return st;
}

/* --- operators */

static dt_status parse_unary(dt_jinja_node **out, dt_jinja_parser *p, bool with_filters)
{
    dt_status st = DT_OK;

    DT_TRY(dt_parse_deepen(p));
    if (dt_parse_is_operator(p, "-") || dt_parse_is_operator(p, "+")) {
        dt_jinja_node *node = dt_parse_node(p, DT_NODE_UNARY);

        node->op = dt_parse_is_operator(p, "-") ? DT_OP_SUB : DT_OP_ADD;
        p->token++;
        DT_TRY(parse_unary(&node->a, p, false));
        *out = node;
    } else {
        DT_TRY(parse_primary(out, p));
    }
    DT_TRY(parse_postfix(out, p));
    while (with_filters) {
        if (dt_parse_is_operator(p, "|"))
            DT_TRY(dt_parse_filters(out, p, *out, false));
        else if (dt_parse_is_word(p, "is"))
            DT_TRY(parse_test(out, p, *out));
        else if (dt_parse_is_operator(p, "("))
            DT_TRY(parse_call(out, p, *out));
        else
            break;
    }
    p->depth++;
out:
    return st;
}

typedef struct sign {
    const char *sign;
    dt_jinja_operator op;
} sign;

static const sign powers[] = {{"**", DT_OP_POW}, {NULL, 0}};
static const sign products[] = {
    {"*", DT_OP_MUL}, {"/", DT_OP_DIV}, {"//", DT_OP_FLOOR_DIV}, {"%", DT_OP_MOD}, {NULL, 0}};
static const sign sums[] = {{"+", DT_OP_ADD}, {"-", DT_OP_SUB}, {NULL, 0}};
static const sign orders[] = {{"==", DT_OP_EQ}, {"!=", DT_OP_NE}, {"<", DT_OP_LT}, {"<=", DT_OP_LE},
                              {">", DT_OP_GT},  {">=", DT_OP_GE}, {NULL, 0}};

static const sign *skip_sign(dt_jinja_parser *p, const sign *signs)
{
    for (; signs->sign != NULL; signs++)
        if (dt_parse_skip_operator(p, signs->sign))
            return signs;
    return NULL;
}

typedef dt_status parse_fn(dt_jinja_node **out, dt_jinja_parser *p);

/* Parses operands with operators of one precedence between them, which join from left to right. */
static dt_status parse_chain(dt_jinja_node **out, dt_jinja_parser *p, const sign *signs,
                             parse_fn *operand)
{
    dt_jinja_node *right;
    dt_status st = DT_OK;
    const sign *s;

    DT_TRY(operand(out, p));
    while ((s = skip_sign(p, signs)) != NULL) {
        DT_TRY(operand(&right, p));
        *out = binary(p, DT_NODE_BINARY, *out, right);
        (*out)->op = s->op;
    }
out:
    return st;
}

static dt_status parse_operand(dt_jinja_node **out, dt_jinja_parser *p)
{
    return parse_unary(out, p, true);
}

static dt_status parse_power(dt_jinja_node **out, dt_jinja_parser *p)
{
    return parse_chain(out, p, powers, parse_operand);
}

static dt_status parse_product(dt_jinja_node **out, dt_jinja_parser *p)
{
    return parse_chain(out, p, products, parse_power);
}

static dt_status parse_concat(dt_jinja_node **out, dt_jinja_parser *p)
{
    dt_jinja_node *node, *right;
    dt_status st = DT_OK;

    DT_TRY(parse_product(out, p));
    if (!dt_parse_is_operator(p, "~"))
        return DT_OK;
    node = dt_parse_node(p, DT_NODE_CONCAT);
    dt_parse_add(p, &node->items, *out);
    while (dt_parse_skip_operator(p, "~")) {
        DT_TRY(parse_product(&right, p));
        dt_parse_add(p, &node->items, right);
    }
    *out = node;
out:
    return st;
}

static dt_status parse_sum(dt_jinja_node **out, dt_jinja_parser *p)
{
    return parse_chain(out, p, sums, parse_concat);
}

/* Skips an operator that compares. Returns false if there is none. */
static bool skip_comparison(dt_jinja_operator *out, dt_jinja_parser *p)
{
    const sign *s = skip_sign(p, orders);

    if (s != NULL) {
        *out = s->op;
    } else if (dt_parse_skip_word(p, "in")) {
        *out = DT_OP_IN;
    } else if (dt_parse_is_word(p, "not") && is_token(p->token + 1, DT_TOKEN_NAME, "in")) {
        p->token += 2;
        *out = DT_OP_NOT_IN;
    } else {
        return false;
    }
    return true;
}

static dt_status parse_comparison(dt_jinja_node **out, dt_jinja_parser *p)
{
    dt_jinja_node *node = NULL, *right;
    dt_jinja_operator op;
    dt_status st = DT_OK;
    int64_t room = 0;

    DT_TRY(parse_sum(out, p));
    while (skip_comparison(&op, p)) {
        if (node == NULL) {
            node = dt_parse_node(p, DT_NODE_COMPARE);
            node->a = *out;
            *out = node;
        }
        DT_TRY(parse_sum(&right, p));
        node->operators =
            dt_arena_array_room(&p->jinja->arena, node->operators, node->items.count + 1, &room,
                                sizeof(*node->operators));
        node->operators[node->items.count] = op;
        dt_parse_add(p, &node->items, right);
    }
out:
    return st;
}

static dt_status parse_not(dt_jinja_node **out, dt_jinja_parser *p)
{
    dt_jinja_node *node;
    dt_status st = DT_OK;

    if (!dt_parse_is_word(p, "not"))
        return parse_comparison(out, p);
    node = dt_parse_node(p, DT_NODE_NOT);
    p->token++;
    DT_TRY(dt_parse_deepen(p));
    DT_TRY(parse_not(&node->a, p));
    p->depth++;
    *out = node;
out:
    return st;
}

static dt_status parse_and(dt_jinja_node **out, dt_jinja_parser *p)
{
    dt_jinja_node *right;
    dt_status st = DT_OK;

    DT_TRY(parse_not(out, p));
    while (dt_parse_skip_word(p, "and")) {
        DT_TRY(parse_not(&right, p));
        *out = binary(p, DT_NODE_AND, *out, right);
    }
out:
    return st;
}

static dt_status parse_or(dt_jinja_node **out, dt_jinja_parser *p)
{
    dt_jinja_node *right;
    dt_status st = DT_OK;

    DT_TRY(parse_and(out, p));
    while (dt_parse_skip_word(p, "or")) {
        DT_TRY(parse_and(&right, p));
        *out = binary(p, DT_NODE_OR, *out, right);
    }
out:
    return st;
}

dt_status dt_parse_expression(dt_jinja_node **out, dt_jinja_parser *p)
{
    dt_status st = DT_OK;

    DT_TRY(dt_parse_deepen(p));
    DT_TRY(parse_or(out, p));
    while (dt_parse_skip_word(p, "if")) {
        dt_jinja_node *node = dt_parse_node(p, DT_NODE_IF_ELSE);

        node->a = *out;
        DT_TRY(parse_or(&node->b, p));
        if (dt_parse_skip_word(p, "else"))
            DT_TRY(dt_parse_expression(&node->c, p));
        *out = node;
    }
    p->depth++;
out:
    return st;
}

/* --- tuples and targets */

static bool ends_tuple(const dt_jinja_parser *p, const char *end)
{
    return p->token->kind == DT_TOKEN_PRINT_END || p->token->kind == DT_TOKEN_BLOCK_END ||
           dt_parse_is_operator(p, ")") || (end != NULL && dt_parse_is_word(p, end));
}

dt_status dt_parse_tuple(dt_jinja_node **out, dt_jinja_parser *p, bool with_if, const char *end)
{
    dt_jinja_node *tuple = NULL, *item;
    dt_status st = DT_OK;

    if (ends_tuple(p, end))
        return dt_parse_expected(p, "an expression");
    DT_TRY(with_if ? dt_parse_expression(out, p) : parse_or(out, p));
    while (dt_parse_skip_operator(p, ",")) {
        if (tuple == NULL) {
            tuple = dt_parse_node(p, DT_NODE_TUPLE);
            dt_parse_add(p, &tuple->items, *out);
            *out = tuple;
        }
        if (ends_tuple(p, end))
            break;
        DT_TRY(with_if ? dt_parse_expression(&item, p) : parse_or(&item, p));
        dt_parse_add(p, &tuple->items, item);
    }
out:
    return st;
}

/* Parses a name, name.attribute, or targets in brackets. */
static dt_status parse_one_target(dt_jinja_node **out, dt_jinja_parser *p, bool members)
{
    static const char *const reserved[] = {"true", "false", "none", "True", "False", "None"};
    dt_status st = DT_OK;

    DT_TRY(dt_parse_deepen(p));
    if (dt_parse_skip_operator(p, "(")) {
        DT_TRY(dt_parse_target(out, p, members));
        DT_TRY(expect_operator(p, ")"));
    } else {
        for (size_t i = 0; i < sizeof(reserved) / sizeof(reserved[0]); i++)
            if (dt_parse_is_word(p, reserved[i]))
                return dt_parse_fail(p, "can't assign to '%s'", reserved[i]);
        *out = dt_parse_node(p, DT_NODE_NAME);
        DT_TRY(dt_parse_name(&(*out)->name, p));
        if (members && dt_parse_skip_operator(p, ".")) {
            (*out)->kind = DT_NODE_MEMBER;
            DT_TRY(dt_parse_name(&(*out)->attribute, p));
        }
    }
    p->depth++;
out:
    return st;
}

dt_status dt_parse_target(dt_jinja_node **out, dt_jinja_parser *p, bool members)
{
    dt_jinja_node *tuple = NULL, *item;
    dt_status st = DT_OK;

    DT_TRY(parse_one_target(out, p, members));
    while (dt_parse_skip_operator(p, ",")) {
        if (tuple == NULL) {
            tuple = dt_parse_node(p, DT_NODE_TUPLE);
            dt_parse_add(p, &tuple->items, *out);
            *out = tuple;
        }
        if (dt_parse_is_word(p, "in") || dt_parse_is_operator(p, ")") ||
            dt_parse_is_operator(p, "=") || p->token->kind == DT_TOKEN_BLOCK_END)
            break;
        DT_TRY(parse_one_target(&item, p, members));
        dt_parse_add(p, &tuple->items, item);
    }
out:
    return st;
}

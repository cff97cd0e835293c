/* evaluate: evaluates expressions, and calls what is not written in the template. */
#include <string.h>
#include <time.h>

#include "base/jinja/jinja_int.h"

enum { RANGE_MOST = 100000 };

dt_jinja_variable *dt_scope_find(dt_jinja_scope *scope, dt_jinja_name name)
{
    for (; scope != NULL; scope = scope->parent)
        for (int64_t i = scope->count; i > 0; i--)
            if (scope->variables[i - 1].name == name)
                return &scope->variables[i - 1];
    return NULL;
}

/* --- functions */

static dt_status call_range(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_call *call)
{
    dt_jinja_value args[DT_JINJA_PARAMS];
    int64_t from = 0, to, step, count;
    dt_status st = DT_OK;

    DT_TRY(dt_jinja_bind(args, run, call, "range", "start, stop, step", 1));
    DT_TRY(dt_call_integer(&to, run, args[args[1].kind != DT_JINJA_MISSING], 0, "range"));
    DT_TRY(dt_call_integer(&step, run, args[2], 1, "range"));
    if (args[1].kind != DT_JINJA_MISSING)
        DT_TRY(dt_call_integer(&from, run, args[0], 0, "range"));
    if (step == 0)
        return dt_jinja_fail(run, "range() arg 3 must not be zero");
    if (from < -INT32_MAX || from > INT32_MAX || to < -INT32_MAX || to > INT32_MAX ||
        step < -INT32_MAX || step > INT32_MAX)
        return dt_jinja_fail(run, "range() of numbers of more than 32 bits");
    count = step > 0 ? (to - from + step - 1) / step : (from - to - step - 1) / -step;
    if (count > RANGE_MOST)
        return dt_jinja_fail(run, "Range too big: at most %d items", RANGE_MOST);
    DT_TRY(dt_jinja_spend(run, count > 0 ? count : 0));
    *out = dt_value_list(run, DT_SHAPE_RANGE, count > 0 ? count : 0);
    for (int64_t i = 0; i < count; i++)
        dt_jinja_append(run, *out, dt_jinja_integer(from + i * step));
out:
    return st;
}

/* Adds the entries of a mapping, or of a list of pairs. */
static dt_status add_entries(dt_jinja_run *run, dt_jinja_dict *to, dt_jinja_value from)
{
    const dt_jinja_list *items, *pair;
    dt_status st = DT_OK;

    if (from.kind == DT_JINJA_DICT) {
        const dt_jinja_dict *dict = dt_dict_of(from);

        for (int64_t i = 0; i < dict->count; i++)
            DT_TRY(dt_dict_set(run, to, dict->entries[i].key, dict->entries[i].value));
        return DT_OK;
    }
    DT_TRY(dt_value_iterate(&items, run, from));
    for (int64_t i = 0; i < items->count; i++) {
        DT_TRY(dt_value_iterate(&pair, run, items->items[i]));
        if (pair->count != 2)
            return dt_jinja_fail(run,
                                 "dictionary update sequence element #%lld has length %lld; 2 "
                                 "is required",
                                 (long long)i, (long long)pair->count);
        DT_TRY(dt_dict_set(run, to, pair->items[0], pair->items[1]));
    }
out:
    return st;
}

/* dict(...) and namespace(...) */
static dt_status call_dict(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_call *call,
                           dt_jinja_kind kind)
{
    dt_status st = DT_OK;

    *out = dt_jinja_new_dict(run, DT_JINJA_TEMPLATE);
    out->kind = (uint8_t)kind;
    if (call->count > 1)
        return dt_jinja_fail(run, "dict expected at most 1 argument, got %lld",
                             (long long)call->count);
    if (call->count == 1)
        DT_TRY(add_entries(run, dt_dict_of(*out), call->positional[0]));
    for (int64_t i = 0; i < call->keyword_count; i++) {
        if (kind == DT_JINJA_NAMESPACE && dt_text_of(call->keywords[i].key)->data[0] == '_')
            return dt_jinja_fail(run, "a name of a namespace cannot begin with '_'");
        DT_TRY(dt_dict_set(run, dt_dict_of(*out), call->keywords[i].key, call->keywords[i].value));
    }
out:
    return st;
}

static dt_status call_strftime(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_text *format)
{
    time_t now = (time_t)run->now;
    char *pattern, shown[1024];
    struct tm parts;
    size_t length;

    if (localtime_r(&now, &parts) == NULL)
        return dt_jinja_fail(run, "strftime_now: no local time");
    pattern = dt_arena_strndup(run->arena, format->data, format->length);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    length = strftime(shown, sizeof(shown), pattern, &parts);
#pragma GCC diagnostic pop
    if (length == 0 && format->length > 0)
        return dt_jinja_fail(run, "strftime_now: unsupported format '%.100s'", pattern);
    *out = dt_jinja_from_text(run, dt_arena_strndup(run->arena, shown, length), length,
                              DT_JINJA_TEMPLATE);
    return DT_OK;
}

/* loop.changed(...): whether the arguments differ from those of the last call. */
static dt_status call_changed(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_loop *loop,
                              const dt_jinja_call *call)
{
    dt_jinja_value now = dt_value_list(run, DT_SHAPE_TUPLE, call->count);

    for (int64_t i = 0; i < call->count; i++)
        dt_jinja_append(run, now, call->positional[i]);
    *out = dt_jinja_from_bool(!dt_value_equal(now, loop->changed));
    loop->changed = now;
    return DT_OK;
}

static dt_status call_function(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value function,
                               const dt_jinja_call *call)
{
    dt_jinja_value args[DT_JINJA_PARAMS];
    const dt_jinja_text *text;
    dt_status st = DT_OK;

    switch ((dt_jinja_function)function.shape) {
    case DT_FUNCTION_RANGE:
        return call_range(out, run, call);
    case DT_FUNCTION_DICT:
        return call_dict(out, run, call, DT_JINJA_DICT);
    case DT_FUNCTION_NAMESPACE:
        return call_dict(out, run, call, DT_JINJA_NAMESPACE);
    case DT_FUNCTION_RAISE:
        DT_TRY(dt_jinja_bind(args, run, call, "raise_exception", "message", 1));
        DT_TRY(dt_value_to_text(&text, run, args[0]));
        return dt_jinja_fail(run, "%.*s", text->length < 1000 ? (int)text->length : 1000,
                             text->data);
    case DT_FUNCTION_STRFTIME:
        DT_TRY(dt_jinja_bind(args, run, call, "strftime_now", "format", 1));
        DT_TRY(dt_value_to_text(&text, run, args[0]));
        return call_strftime(out, run, text);
    case DT_FUNCTION_CYCLE:
        if (call->count == 0)
            return dt_jinja_fail(run, "no items for cycling given");
        *out = call->positional[((const dt_jinja_loop *)function.as.other)->index0 % call->count];
        return DT_OK;
    case DT_FUNCTION_CHANGED:
        return call_changed(out, run, (dt_jinja_loop *)(uintptr_t)function.as.other, call);
    }
out:
    return st;
}

/* --- calls */

/* Evaluates the arguments of a call, filter or test. `caller` is a keyword more, unless it is MISSING. */
static dt_status evaluate_arguments(dt_jinja_call *out, dt_jinja_run *run,
                                    const dt_jinja_arguments *from, dt_jinja_scope *scope,
                                    dt_jinja_value caller)
{
    dt_jinja_value positional = dt_value_list(run, DT_SHAPE_LIST, from->positional.count);
    dt_jinja_dict keywords = {.count = 0};
    const dt_jinja_list *more;
    dt_jinja_value value;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < from->positional.count; i++) {
        DT_TRY(dt_jinja_evaluate(&value, run, from->positional.items[i], scope));
        dt_jinja_append(run, positional, value);
    }
    if (from->list != NULL) {
        DT_TRY(dt_jinja_evaluate(&value, run, from->list, scope));
        DT_TRY(dt_value_iterate(&more, run, value));
        for (int64_t i = 0; i < more->count; i++)
            dt_jinja_append(run, positional, more->items[i]);
    }
    for (int64_t i = 0; i < from->keyword_count; i++) {
        DT_TRY(dt_jinja_evaluate(&value, run, from->keywords[i].value, scope));
        DT_TRY(dt_dict_set(run, &keywords, dt_jinja_string(from->keywords[i].name), value));
    }
    if (from->dict != NULL) {
        DT_TRY(dt_jinja_evaluate(&value, run, from->dict, scope));
        if (value.kind != DT_JINJA_DICT)
            return dt_jinja_fail(run, "argument after ** must be a mapping, not %s",
                                 dt_value_type(value));
        DT_TRY(add_entries(run, &keywords, value));
    }
    if (caller.kind != DT_JINJA_MISSING) {
        static const dt_jinja_text name = {.data = "caller", .length = 6, .codes = 6};

        DT_TRY(dt_dict_set(run, &keywords, dt_jinja_string(&name), caller));
    }
    for (int64_t i = 0; i < keywords.count; i++)
        if (keywords.entries[i].key.kind != DT_JINJA_STRING)
            return dt_jinja_fail(run, "keywords must be strings");
    *out = (dt_jinja_call){dt_list_of(positional)->items, dt_list_of(positional)->count,
                           keywords.entries, keywords.count};
out:
    return st;
}

static dt_status apply_call(dt_jinja_value *out, dt_jinja_run *run, dt_jinja_value callee,
                            const dt_jinja_call *call)
{
    switch (callee.kind) {
    case DT_JINJA_METHOD:
        return dt_jinja_method_call(out, run, callee, call);
    case DT_JINJA_FUNCTION:
        return call_function(out, run, callee, call);
    case DT_JINJA_MACRO:
        return run->call_macro(out, run, callee.as.other, call);
    case DT_JINJA_LOOP:
        if (call->count != 1 || call->keyword_count > 0)
            return dt_jinja_fail(run, "a loop is called with one list");
        return run->call_loop(out, run, callee.as.other, call->positional[0]);
    case DT_JINJA_UNDEFINED:
        return dt_value_refuse_undefined(run, callee);
    default:
        return dt_jinja_fail(run, "'%s' object is not callable", dt_value_type(callee));
    }
}

dt_status dt_jinja_evaluate_call(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_node *node,
                                 dt_jinja_scope *scope, dt_jinja_value caller)
{
    dt_jinja_value callee;
    dt_jinja_call call;
    dt_status st = DT_OK;

    DT_TRY(dt_jinja_evaluate(&callee, run, node->a, scope));
    DT_TRY(evaluate_arguments(&call, run, node->arguments, scope, caller));
    run->line = node->line;
    DT_TRY(apply_call(out, run, callee, &call));
out:
    return st;
}

static dt_status evaluate_filter(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_node *node,
                                 dt_jinja_scope *scope)
{
    dt_jinja_call call = {.count = 0};
    dt_jinja_value value = run->block;
    dt_status st = DT_OK;

    if (node->a != NULL)
        DT_TRY(dt_jinja_evaluate(&value, run, node->a, scope));
    if (node->arguments != NULL)
        DT_TRY(evaluate_arguments(&call, run, node->arguments, scope, dt_jinja_missing()));
    run->line = node->line;
    if (node->callee < 0)
        return dt_jinja_fail(run, "No filter named '%.*s'.", (int)node->name->length,
                             node->name->data);
    DT_TRY(dt_jinja_filter_apply(out, run, node->callee, value, &call));
out:
    return st;
}

static dt_status evaluate_test(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_node *node,
                               dt_jinja_scope *scope)
{
    dt_jinja_call call = {.count = 0};
    dt_jinja_value value;
    dt_status st = DT_OK;
    bool holds;

    DT_TRY(dt_jinja_evaluate(&value, run, node->a, scope));
    if (node->arguments != NULL)
        DT_TRY(evaluate_arguments(&call, run, node->arguments, scope, dt_jinja_missing()));
    run->line = node->line;
    if (node->callee < 0)
        return dt_jinja_fail(run, "No test named '%.*s'.", (int)node->name->length,
                             node->name->data);
    DT_TRY(dt_jinja_test_apply(&holds, run, node->callee, value, &call));
    *out = dt_jinja_from_bool(holds);
out:
    return st;
}

/* --- other expressions */

static dt_status evaluate_items(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_node *node,
                                dt_jinja_scope *scope)
{
    dt_jinja_value key, value;
    dt_status st = DT_OK;

    if (node->kind == DT_NODE_DICT) {
        *out = dt_jinja_new_dict(run, DT_JINJA_TEMPLATE);
        for (int64_t i = 0; i < node->items.count; i += 2) {
            DT_TRY(dt_jinja_evaluate(&key, run, node->items.items[i], scope));
            DT_TRY(dt_jinja_evaluate(&value, run, node->items.items[i + 1], scope));
            DT_TRY(dt_dict_set(run, dt_dict_of(*out), key, value));
        }
        return DT_OK;
    }
    *out = dt_value_list(run, node->kind == DT_NODE_TUPLE ? DT_SHAPE_TUPLE : DT_SHAPE_LIST,
                         node->items.count);
    for (int64_t i = 0; i < node->items.count; i++) {
        DT_TRY(dt_jinja_evaluate(&value, run, node->items.items[i], scope));
        dt_jinja_append(run, *out, value);
    }
out:
    return st;
}

static dt_status evaluate_slice(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_node *node,
                                dt_jinja_scope *scope)
{
    const dt_jinja_node *bounds[3] = {node->b, node->c, node->d};
    dt_jinja_value value, given[3];
    dt_status st = DT_OK;

    DT_TRY(dt_jinja_evaluate(&value, run, node->a, scope));
    for (int i = 0; i < 3; i++) {
        given[i] = dt_jinja_missing();
        if (bounds[i] != NULL)
            DT_TRY(dt_jinja_evaluate(&given[i], run, bounds[i], scope));
    }
    run->line = node->line;
    DT_TRY(dt_value_slice(out, run, value, given));
out:
    return st;
}

static dt_status evaluate_comparison(dt_jinja_value *out, dt_jinja_run *run,
                                     const dt_jinja_node *node, dt_jinja_scope *scope)
{
    dt_jinja_value left, right;
    dt_status st = DT_OK;
    bool holds = true;

    DT_TRY(dt_jinja_evaluate(&left, run, node->a, scope));
    for (int64_t i = 0; i < node->items.count && holds; i++, left = right) {
        DT_TRY(dt_jinja_evaluate(&right, run, node->items.items[i], scope));
        run->line = node->line;
        DT_TRY(dt_value_test(&holds, run, node->operators[i], left, right));
    }
    *out = dt_jinja_from_bool(holds);
out:
    return st;
}

static dt_status evaluate_concat(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_node *node,
                                 dt_jinja_scope *scope)
{
    dt_jinja_sink sink = {.length = 0};
    dt_jinja_value value;
    dt_status st = DT_OK;

    for (int64_t i = 0; i < node->items.count; i++) {
        DT_TRY(dt_jinja_evaluate(&value, run, node->items.items[i], scope));
        DT_TRY(dt_value_print(run, &sink, value));
    }
    *out = dt_jinja_string(dt_sink_text(run, &sink));
out:
    return st;
}

static dt_status evaluate_choice(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_node *node,
                                 dt_jinja_scope *scope)
{
    dt_jinja_value condition;
    dt_status st = DT_OK;

    DT_TRY(dt_jinja_evaluate(&condition, run, node->b, scope));
    if (dt_value_truth(condition))
        return dt_jinja_evaluate(out, run, node->a, scope);
    if (node->c != NULL)
        return dt_jinja_evaluate(out, run, node->c, scope);
    *out = dt_value_undefined_hint(
        run, "the inline if-expression evaluated to false and no else section was defined.");
out:
    return st;
}

/* Evaluates `and`, `or`, `not`, and operators with one or two values. */
static dt_status evaluate_operator(dt_jinja_value *out, dt_jinja_run *run,
                                   const dt_jinja_node *node, dt_jinja_scope *scope)
{
    dt_jinja_value a, b;
    dt_status st = DT_OK;

    DT_TRY(dt_jinja_evaluate(&a, run, node->a, scope));
    switch (node->kind) {
    case DT_NODE_AND:
    case DT_NODE_OR:
        *out = a;
        return dt_value_truth(a) == (node->kind == DT_NODE_AND)
                   ? dt_jinja_evaluate(out, run, node->b, scope)
                   : DT_OK;
    case DT_NODE_NOT:
        *out = dt_jinja_from_bool(!dt_value_truth(a));
        break;
    case DT_NODE_UNARY:
        return dt_value_negate(out, run, a, node->op == DT_OP_SUB);
    default:
        DT_TRY(dt_jinja_evaluate(&b, run, node->b, scope));
        run->line = node->line;
        DT_TRY(dt_value_binary(out, run, node->op, a, b));
        break;
    }
out:
    return st;
}

static dt_status evaluate_lookup(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_node *node,
                                 dt_jinja_scope *scope)
{
    dt_jinja_value value, key;
    dt_status st = DT_OK;

    DT_TRY(dt_jinja_evaluate(&value, run, node->a, scope));
    if (node->kind == DT_NODE_ITEM)
        DT_TRY(dt_jinja_evaluate(&key, run, node->b, scope));
    run->line = node->line;
    DT_TRY(node->kind == DT_NODE_ITEM ? dt_value_item(out, run, value, key)
                                      : dt_value_attribute(out, run, value, node->name));
out:
    return st;
}

/* Variables that Jinja always has. */
static bool is_unsupported(dt_jinja_name name)
{
    static const char *const names[] = {"self", "super", "cycler", "joiner", "lipsum"};

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (dt_text_is(name, names[i]))
            return true;
    return false;
}

dt_status dt_jinja_evaluate(dt_jinja_value *out, dt_jinja_run *run, const dt_jinja_node *node,
                            dt_jinja_scope *scope)
{
    const dt_jinja_variable *variable;
    dt_status st = DT_OK;

    if (node->kind == DT_NODE_CONSTANT) {
        *out = node->value;
        return DT_OK;
    }
    run->line = node->line;
    DT_TRY(dt_jinja_spend(run, 1));
    if (node->kind == DT_NODE_NAME) {
        variable = dt_scope_find(scope, node->name);
        if (variable == NULL && is_unsupported(node->name))
            return dt_jinja_fail(run, "unsupported: '%s'", node->name->data);
        *out = variable != NULL ? variable->value : dt_value_undefined_name(run, node->name);
        return DT_OK;
    }
    DT_TRY(dt_jinja_deepen(run));
    switch (node->kind) {
    case DT_NODE_LIST:
    case DT_NODE_TUPLE:
    case DT_NODE_DICT:
        st = evaluate_items(out, run, node, scope);
        break;
    case DT_NODE_ATTRIBUTE:
    case DT_NODE_ITEM:
        st = evaluate_lookup(out, run, node, scope);
        break;
    case DT_NODE_SLICE:
        st = evaluate_slice(out, run, node, scope);
        break;
    case DT_NODE_CALL:
        st = dt_jinja_evaluate_call(out, run, node, scope, dt_jinja_missing());
        break;
    case DT_NODE_FILTER:
        st = evaluate_filter(out, run, node, scope);
        break;
    case DT_NODE_TEST:
        st = evaluate_test(out, run, node, scope);
        break;
    case DT_NODE_IF_ELSE:
        st = evaluate_choice(out, run, node, scope);
        break;
    case DT_NODE_COMPARE:
        st = evaluate_comparison(out, run, node, scope);
        break;
    case DT_NODE_CONCAT:
        st = evaluate_concat(out, run, node, scope);
        break;
    default:
        st = evaluate_operator(out, run, node, scope);
        break;
    }
    run->depth++;
out:
    return st;
}
